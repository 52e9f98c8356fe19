//! "Did you mean": the known name that a misspelt one is nearest to.

/// The nearest of `known`, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(name);
    known
        .into_iter()
        .map(|candidate| (distance(&wanted, &plain(candidate)), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// `a, b or c`, each quoted.
pub(crate) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "or")
}

/// `a, b and c`, each quoted.
pub(crate) fn all_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "and")
}

fn joined<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// `whenChanged`, `when-changed` and `when_changed` are one name to the person who typed it.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).take(64).collect()
}

/// Edits (insert, delete, replace, swap neighbours) that lead from one to the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, have) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, want) in to.iter().enumerate() {
            let cell = |line: &[usize], at: usize| line.get(at).copied().unwrap_or(usize::MAX - 1);
            let mut best = cell(&above, column) + usize::from(have != want);
            best = best.min(cell(&above, column + 1) + 1).min(cell(&line, column) + 1);
            let swapped = row > 0 && column > 0 && from.get(row - 1) == Some(want) && to.get(column - 1) == Some(have);
            if swapped {
                best = best.min(cell(&before, column - 1) + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names() {
        let known = ["by", "fields", "from", "match", "when_changed", "when_deleted"];
        for (typed, meant) in [
            ("form", Some("from")),
            ("whenChanged", Some("when_changed")),
            ("when-deleted", Some("when_deleted")),
            ("feilds", Some("fields")),
            ("field", Some("fields")),
            ("when_delted", Some("when_deleted")),
            ("on", None),
            ("anything", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn names_in_a_sentence() {
        assert_eq!(one_of([]), "");
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(all_of(["a", "b"]), "`a` and `b`");
    }
}
