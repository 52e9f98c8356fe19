//! How alike two names of fields are.

use document::value::Path;

/// From 0 to 1. What is above [`ALIKE`] is taken for the same thing under another name.
pub(super) fn likeness(one: &Path, other: &Path) -> f64 {
    let last = |path: &Path| path.parts.last().map(|part| part.name.to_string()).unwrap_or_default();
    let (whole_one, whole_other) = (words(&one.dotted()), words(&other.dotted()));
    if whole_one.concat() == whole_other.concat() {
        return 1.0;
    }
    let (one, other) = (words(&last(one)), words(&last(other)));
    let (joined, other_joined) = (one.concat(), other.concat());
    if joined == other_joined {
        return 0.95;
    }
    let is_part = |few: &[String], many: &[String]| few.iter().all(|word| many.contains(word));
    if is_part(&one, &whole_other) || is_part(&other, &whole_one) {
        return 0.8;
    }
    let (short, long) =
        if joined.len() < other_joined.len() { (&joined, &other_joined) } else { (&other_joined, &joined) };
    if short.len() >= 3 && long.contains(short.as_str()) {
        return 0.7;
    }
    let longest = joined.chars().count().max(other_joined.chars().count()).max(1);
    let alike = 1.0 - share(edits(&joined, &other_joined), longest);
    if alike >= 0.7 { alike * 0.9 } else { 0.0 }
}

pub(super) const ALIKE: f64 = 0.6;

/// A part of a whole, from 0 to 1.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(part) / number(whole.max(1))
}

/// `firstName`, `first_name` and `name.first` as their words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = letter.is_lowercase() || letter.is_numeric();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// How many letters are put in, left out or changed (Levenshtein).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, own) in other.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&row, column) + usize::from(*own != letter);
            next.push(changed.min(at(&row, column + 1) + 1).min(at(&next, column) + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_thing_are_alike() {
        let like = |one: &str, other: &str| likeness(&Path::new(one), &Path::new(other));
        for (one, other) in [
            ("phone", "phoneNumber"),
            ("mail", "email"),
            ("zip_code", "zipCode"),
            ("city", "address.city"),
            ("colour", "color"),
            ("createdAt", "created"),
        ] {
            assert!(like(one, other) >= ALIKE, "{one} {other}: {}", like(one, other));
            assert!(like(other, one) >= ALIKE, "{other} {one}");
        }
        for (one, other) in [("fax", "email"), ("age", "active"), ("id", "identity"), ("name", "city"), ("a", "b")] {
            assert!(like(one, other) < ALIKE, "{one} {other}: {}", like(one, other));
        }
    }
}
