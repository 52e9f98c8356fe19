//! What becomes of the value that one host has: `plan` counts it before, `apply` says it afterwards.

use document::Value;
use document::value::order;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The host has no value, and gets none.
    Absent,
    Right,
    /// It stays although nothing says that it is right: its source does not exist.
    Sourceless,
    /// The host has no value, and gets one.
    Filled,
    /// It stays equal and gets another type: 5.0 becomes 5.
    Retyped,
    Corrected,
    /// The host has a value, and gets none.
    Removed,
}

impl Fate {
    /// Of a value that is `stored` and should be `expected`.
    pub fn of(stored: &Value<'_>, expected: &Value<'_>) -> Fate {
        match (stored.is_missing(), expected.is_missing()) {
            (true, true) => Fate::Absent,
            (true, false) => Fate::Filled,
            (false, true) => Fate::Removed,
            (false, false) if stored == expected => Fate::Right,
            (false, false) if order::equal(stored, expected) => Fate::Retyped,
            (false, false) => Fate::Corrected,
        }
    }

    /// Of an array of copies: the worst fate of any of them. Null stands for no copy.
    pub fn of_list(stored: &Value<'_>, expected: &Value<'_>) -> Fate {
        let (Value::Array(stored), Value::Array(expected)) = (stored, expected) else {
            return Fate::of(stored, expected);
        };
        let copy = |value: Option<Value<'_>>| match value {
            Some(value) if !value.is_nullish() => value.into_owned(),
            _ => Value::Missing,
        };
        let places = 0..stored.count().max(expected.count());
        let fates = places.map(|at| Fate::of(&copy(stored.get(at)), &copy(expected.get(at))));
        match fates.max() {
            // A place of null was added or taken away.
            None | Some(Fate::Absent | Fate::Right) if stored.count() != expected.count() => Fate::Corrected,
            Some(worst) => worst,
            None => Fate::Right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson};

    #[test]
    fn fates_of_values_and_of_lists() {
        let value = |value: Option<Bson>| value.map_or(Value::Missing, Value::from);
        for (stored, expected, fate) in [
            (None, None, Fate::Absent),
            (None, Some(bson!(1)), Fate::Filled),
            (Some(bson!(1)), None, Fate::Removed),
            (Some(Bson::Null), None, Fate::Removed),
            (Some(bson!(1)), Some(bson!(1)), Fate::Right),
            (Some(bson!(1)), Some(bson!(1.0)), Fate::Retyped),
            (Some(bson!({ "a": 1, "b": 2 })), Some(bson!({ "b": 2, "a": 1 })), Fate::Corrected),
            (Some(Bson::Null), Some(bson!(1)), Fate::Corrected),
        ] {
            assert_eq!(Fate::of(&value(stored), &value(expected)), fate);
        }
        let copy = || bson!({ "name": "Ada" });
        for (stored, expected, fate) in [
            (bson!([]), bson!([]), Fate::Right),
            (bson!([(Bson::Null)]), bson!([]), Fate::Corrected),
            (bson!([(copy())]), bson!([(copy()), (copy())]), Fate::Filled),
            (bson!([(copy())]), bson!([(copy())]), Fate::Right),
            (bson!([(copy()), 5]), bson!([(copy()), (copy())]), Fate::Corrected),
            (bson!([(copy()), 5]), bson!([(Bson::Null), (copy())]), Fate::Removed),
            (Bson::Null, bson!([(copy())]), Fate::Corrected),
        ] {
            assert_eq!(Fate::of_list(&Value::from(stored), &Value::from(expected)), fate);
        }
    }
}
