//! The paths of updates: field names, the positional `$`, and array steps `$[]` and `$[identifier]`.

use super::array_filter::ArrayFilter;
use crate::code::Code;
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::sync::Arc;

/// One step of an update's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Name(Arc<str>),
    /// `$`: the element that the filter matched.
    Positional,
    /// `$[]`, or the elements that the array filter of this place in the list accepts.
    Elements(Option<usize>),
    /// `$[identifier]` without a filter: an error once nothing before it is in the way.
    Unknown(Arc<str>),
}

/// Splits and checks a path as MongoDB does before it looks at the operator's argument.
pub(super) fn parse<'p>(dotted: &'p str) -> Result<Vec<&'p str>> {
    if dotted.is_empty() {
        return Err(Error::new(Code::EmptyFieldName, "An empty update path is not valid."));
    }
    let parts: Vec<&'p str> = dotted.split('.').collect();
    if parts.contains(&"") {
        return Err(Error::new(
            Code::EmptyFieldName,
            format!("The update path '{dotted}' contains an empty field name, which is not allowed."),
        ));
    }
    if parts.first() == Some(&"$") {
        return Err(Error::bad_value(format!(
            "Cannot have positional (i.e. '$') element in the first position in path '{dotted}'"
        )));
    }
    if parts.iter().filter(|part| **part == "$").count() > 1 {
        return Err(Error::bad_value(format!("Too many positional (i.e. '$') elements found in path '{dotted}'")));
    }
    if parts.first().is_some_and(|first| identifier(first).is_some()) {
        return Err(Error::bad_value(format!(
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{dotted}'"
        )));
    }
    Ok(parts)
}

/// The steps of a checked path; marks the array filters it uses.
pub(super) fn steps(parts: &[&str], filters: &mut [ArrayFilter]) -> Vec<Step> {
    let step = |part: &&str| match (*part, identifier(part)) {
        ("$", _) => Step::Positional,
        (_, Some("")) => Step::Elements(None),
        (_, Some(id)) => match filters.iter_mut().position(|filter| filter.claim(id)) {
            Some(place) => Step::Elements(Some(place)),
            None => Step::Unknown(id.into()),
        },
        (name, None) => Step::Name(name.into()),
    };
    parts.iter().map(step).collect()
}

/// Whether a step depends on the document: `$`, `$[]`, `$[id]`.
pub(super) fn is_dynamic(part: &str) -> bool {
    part == "$" || identifier(part).is_some()
}

fn identifier(part: &str) -> Option<&str> {
    part.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']'))
}

/// The array index that a name stands for. Unlike filters, updates take leading zeros.
pub(super) fn index(name: &str) -> Option<usize> {
    name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok()).flatten()
}

/// The order in which MongoDB applies the names of one level, and adds missing ones: numbers at the beginning count as
/// numbers.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    fn split(name: &str) -> (&str, &str) {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        name.split_at_checked(digits).unwrap_or((name, ""))
    }
    let ((a, a_rest), (b, b_rest)) = (split(left), split(right));
    if a.is_empty() || b.is_empty() {
        return left.cmp(right);
    }
    let (x, y) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a_rest.cmp(b_rest)).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_by_leading_numbers_then_bytes() {
        let ordered = ["001", "01", "1", "9x", "10x", "Z", "_", "a", "a-", "a10", "a1b", "a2b", "b10", "b2", "b9", "é"];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn indexes_are_digits_that_fit() {
        for (name, expected) in [("0", Some(0)), ("01", Some(1)), ("-1", None), ("x", None), ("", None)] {
            assert_eq!(index(name), expected, "{name}");
        }
        assert_eq!(index("99999999999999999999"), None);
    }
}
