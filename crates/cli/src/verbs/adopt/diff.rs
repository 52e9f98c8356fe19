//! How the text of a file changes, as `diff -u` shows it. The new text has the old one's lines, in order, but for a few.

/// How many lines are shown around a change.
const CONTEXT: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Line<'t> {
    Same(&'t str),
    Gone(&'t str),
    New(&'t str),
}

/// `before` is `None` if the file is new.
pub(crate) fn unified(file: &str, before: Option<&str>, after: &str) -> String {
    let old: Vec<&str> = before.unwrap_or_default().lines().collect();
    let lines = compared(&old, &after.lines().collect::<Vec<_>>());
    let from = if before.is_some() { file } else { "/dev/null" };
    let mut out = format!("--- {from}\n+++ {file}\n");
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let (mut at, mut line_number) = (0, 1);
    while let Some(next) = lines.iter().skip(at).position(is_change) {
        let begin = (at + next).saturating_sub(CONTEXT).max(at);
        let mut end = at + next;
        // Changes that are near each other are shown together.
        while let Some(more) = lines.iter().skip(end).take(2 * CONTEXT + 1).position(is_change) {
            end += more + 1;
        }
        let end = (end + CONTEXT).min(lines.len());
        line_number += numbered(lines.get(at..begin).unwrap_or_default());
        let hunk = lines.get(begin..end).unwrap_or_default();
        out.push_str(&format!("@@ line {line_number} @@\n"));
        for line in hunk {
            let (sign, text) = match line {
                Line::Same(text) => (' ', text),
                Line::Gone(text) => ('-', text),
                Line::New(text) => ('+', text),
            };
            out.push_str(&format!("{sign}{text}\n"));
        }
        line_number += numbered(hunk);
        at = end;
    }
    out
}

/// How many lines the new file has of these.
fn numbered(lines: &[Line<'_>]) -> usize {
    lines.iter().filter(|line| !matches!(line, Line::Gone(_))).count()
}

fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let mut lines = Vec::with_capacity(new.len());
    let mut from = 0;
    for line in old {
        let rest = new.get(from..).unwrap_or_default();
        match rest.iter().position(|other| other == line) {
            Some(ahead) => {
                lines.extend(rest.iter().take(ahead).map(|line| Line::New(line)));
                lines.push(Line::Same(line));
                from += ahead + 1;
            }
            None => lines.push(Line::Gone(line)),
        }
    }
    lines.extend(new.get(from..).unwrap_or_default().iter().map(|line| Line::New(line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nb\nc\nd\nNEW\ne\nf\ng\nh\ni\nj\nk\nL\n";
        let told = unified("x.yaml", Some(old), new);
        assert_eq!(
            told,
            "--- x.yaml\n+++ x.yaml\n@@ line 2 @@\n b\n c\n d\n+NEW\n e\n f\n g\n@@ line 10 @@\n i\n j\n k\n-l\n+L\n"
        );
        assert_eq!(unified("x.yaml", None, "a\nb\n"), "--- /dev/null\n+++ x.yaml\n@@ line 1 @@\n+a\n+b\n");
        assert_eq!(unified("x", Some("a\n"), "a\nb\nc"), "--- x\n+++ x\n@@ line 1 @@\n a\n+b\n+c\n");
    }
}
