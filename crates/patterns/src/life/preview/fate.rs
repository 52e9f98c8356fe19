//! What becomes of one host's value.

use document::value::order;
use document::{Array, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// Nothing is stored, and nothing would be.
    Absent,
    Right,
    /// Nothing is stored, and a value would be.
    Filled,
    Corrected,
    /// A value is stored, and nothing would be.
    Removed,
}

/// Of a value that is not inside an array.
pub(super) fn of_value(stored: &Value<'_>, expected: &Value<'_>) -> Fate {
    match (stored.is_missing(), expected.is_missing()) {
        (true, true) => Fate::Absent,
        (true, false) => Fate::Filled,
        (false, true) => Fate::Removed,
        (false, false) if order::equal(stored, expected) => Fate::Right,
        (false, false) => Fate::Corrected,
    }
}

/// Of copies in an array, where null stands for no copy: the worst fate of any of them.
pub(super) fn of_elements(stored: &Value<'_>, expected: &Value<'_>) -> Fate {
    match (stored, expected) {
        (Value::Array(stored), Value::Array(expected)) => {
            let longest = stored.count().max(expected.count());
            let item = |array: &Array<'_>, at: usize| array.get(at).map_or(Value::Missing, Value::into_owned);
            let fates = (0..longest).map(|at| of_elements(&item(stored, at), &item(expected, at)));
            fates.max().unwrap_or(Fate::Absent)
        }
        (Value::Array(stored), other) if other.is_nullish() => {
            stored.iter().map(|item| of_elements(&item, &Value::Missing)).max().unwrap_or(Fate::Absent)
        }
        (other, Value::Array(expected)) if other.is_nullish() => {
            expected.iter().map(|item| of_elements(&Value::Missing, &item)).max().unwrap_or(Fate::Absent)
        }
        (stored, expected) => {
            let nothing =
                |value: &Value<'_>| if value.is_nullish() { Value::Missing } else { value.clone().into_owned() };
            of_value(&nothing(stored), &nothing(expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson};

    #[test]
    fn fates_of_values_and_of_elements() {
        let value = |value: Option<Bson>| value.map_or(Value::Missing, Value::from);
        for (stored, expected, fate) in [
            (None, None, Fate::Absent),
            (None, Some(bson!(1)), Fate::Filled),
            (Some(bson!(1)), None, Fate::Removed),
            (Some(bson!(1)), Some(bson!(1.0)), Fate::Right),
            (Some(Bson::Null), Some(bson!(1)), Fate::Corrected),
        ] {
            assert_eq!(of_value(&value(stored), &value(expected)), fate);
        }
        let copy = || bson!({ "name": "Ada" });
        for (stored, expected, fate) in [
            (bson!([(Bson::Null)]), bson!([(Bson::Null)]), Fate::Absent),
            (bson!([(copy())]), bson!([(copy()), (copy())]), Fate::Filled),
            (bson!([(copy())]), bson!([(copy())]), Fate::Right),
            (bson!([(copy()), 5]), bson!([(copy()), (copy())]), Fate::Corrected),
            (bson!([(copy()), 5]), bson!([(Bson::Null), (copy())]), Fate::Removed),
            (bson!([(copy())]), Bson::Null, Fate::Removed),
        ] {
            assert_eq!(of_elements(&Value::from(stored), &Value::from(expected)), fate);
        }
    }
}
