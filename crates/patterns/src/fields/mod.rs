//! The fields that rules keep, one folder or file each: what a changed source means for hosts, how a host's value is evaluated, and
//! the pipeline that defines it. Pure: nothing here reads or writes; the executor does what a field says.
//!
//! [`copy`] is an extended reference, [`tally`] a count, sum or average, [`extreme`] a smallest or largest value, [`first`] a value of
//! the first or last child, [`top`] a window on the first children, [`distinct`] a number of different values, [`expression`] a value
//! computed from the document itself. [`fold`] is what all folds of child documents share, [`host_update`] merges the deltas of all
//! fields of one host into one update. [`FIELDS`] lists them: what is listed is proven by all proofs and crash runs.

pub mod copy;
pub mod distinct;
pub(crate) mod excerpt;
pub mod expression;
pub mod extreme;
pub mod first;
pub mod fold;
pub mod host_update;
pub mod order;
pub(crate) mod ranked;
pub mod set_paths;
pub(crate) mod state_last;
pub mod tally;
#[cfg(test)]
pub(crate) mod testing;
pub mod top;

pub use copy::CopyField;
pub use distinct::DistinctField;
pub use expression::{Expression, ExpressionField};
pub use extreme::{Extreme, ExtremeField};
pub use first::FirstField;
pub use fold::FoldField;
pub use host_update::HostUpdate;
pub use tally::{Tally, TallyField};
pub use top::TopField;

use crate::mql::{call, call_with, field, object};
use crate::rule::RegistryEntry;
use document::value::Path;
use document::value::path::Part;
use document::{ArrayWriter, Doc, Value};

/// All fields, sorted by name.
pub const FIELDS: &[RegistryEntry] = &[
    copy::registered::ENTRY,
    distinct::registered::ENTRY,
    expression::ENTRY,
    extreme::registered::ENTRY,
    first::ENTRY,
    tally::registered::ENTRY,
    top::registered::ENTRY,
];

/// The stage that leaves documents whose `stored` is not their `expected`.
pub(crate) fn differing() -> Value<'static> {
    let differ = call_with("$ne", [field("stored"), field("expected")]);
    call("$match", object([("$expr", differ)]))
}

/// A name for a field's delta in pipelines that no other field of the host has: variables are letters, digits and underscores.
pub(crate) fn variable(path: &Path) -> String {
    let mut name = "of_".to_owned();
    for letter in path.dotted().chars() {
        match letter {
            '_' => name.push_str("__"),
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            other => name.push_str(&format!("_{:x}_", u32::from(other))),
        }
    }
    name
}

/// The value at a path; through arrays an array of what its elements have, null where they have nothing.
pub(crate) fn value_at<'d>(doc: &Doc<'d>, path: &Path) -> Value<'d> {
    follow(Value::Document(doc.clone()), &path.parts)
}

fn follow<'d>(value: Value<'d>, parts: &[Part]) -> Value<'d> {
    let Some((first, rest)) = parts.split_first() else { return value };
    match value {
        Value::Document(doc) => doc.get(&first.name).map_or(Value::Missing, |inner| follow(inner, rest)),
        Value::Array(array) => {
            let mut items = ArrayWriter::new();
            for item in array.iter() {
                items.push(&follow(item, parts));
            }
            Value::Array(items.finish())
        }
        _ => Value::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    #[test]
    fn values_are_followed_through_arrays() {
        let doc = Doc::from(doc! { "a": { "b": 1 }, "items": [{ "p": { "n": "x" } }, {}, 5] });
        for (path, expected) in [
            ("a.b", Some(bson!(1))),
            ("a.c", None),
            ("c", None),
            ("items.p", Some(bson!([{ "n": "x" }, (Bson::Null), (Bson::Null)]))),
        ] {
            let expected = expected.map_or(Value::Missing, Value::from);
            assert_eq!(value_at(&doc, &Path::new(path)), expected, "{path}");
        }
    }
}
