//! Link values (SEMANTICS R27): null and missing never link, an array links per element or not at all, equality is BSON's.

use crate::mql::{call, list, object};
use crate::rule::{Field, KeyPath};
use document::value::path::Part;
use document::value::{Path, Value, key};
use document::{Doc, Error};
use smallvec::SmallVec;

pub type Values = SmallVec<[Value<'static>; 1]>;

/// What a document has at one side of a link.
#[derive(Clone, Debug, Default)]
pub struct Linked {
    /// Each value once.
    pub values: Values,
    /// There is an array where the rule takes single values: nothing links, and a client's write is refused.
    pub refused: bool,
}

/// Whether a single value can link at all.
pub fn links(value: &Value<'_>) -> bool {
    !value.is_nullish() && !matches!(value, Value::Array(_))
}

/// Bytes that are equal exactly if the values are (1 = 1.0): for maps and fences.
pub fn bytes(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(value, &mut bytes);
    bytes
}

/// The error for a client that writes an array where a rule links single values.
pub fn refused(field: &dyn Field, path: impl std::fmt::Display) -> Error {
    let (rule, what) = (&field.target().rule, field.describe());
    Error::bad_value(format!("'{path}' is an array, but rule {rule} ({what}) links by single values"))
        .with_hint("say `each: true` in the rule to link once per element")
}

/// `{ $match: { path: { $in: values } } }`; inside `$in` a regex would be a pattern, and here it is a value.
pub(crate) fn any_of(path: &Path, values: &[Value<'_>]) -> Value<'static> {
    let path = path.dotted();
    let equal = |value: &Value<'_>| object([(&*path, call("$eq", value.borrow()))]);
    let filter = match values.iter().any(|value| matches!(value, Value::Regex { .. })) {
        true => call("$or", list(values.iter().map(equal))),
        false => match values {
            [one] => equal(one),
            _ => object([(&*path, call("$in", list(values.iter().map(Value::borrow))))]),
        },
    };
    call("$match", filter)
}

/// The link values of `doc`.
pub fn linked(doc: &Doc<'_>, side: &KeyPath) -> Linked {
    let mut found = Linked::default();
    collect(doc, &side.path.parts, side.each, &mut found);
    if found.refused {
        found.values.clear();
    }
    found
}

fn collect(doc: &Doc<'_>, parts: &[Part], each: bool, found: &mut Linked) {
    let Some((first, rest)) = parts.split_first() else { return };
    match doc.get(&first.name) {
        Some(Value::Array(_)) if !each => found.refused = true,
        Some(Value::Array(array)) if rest.is_empty() => {
            array.iter().for_each(|item| add(item, &mut found.values));
        }
        Some(Value::Array(array)) => {
            for item in array.iter() {
                if let Value::Document(inner) = item {
                    collect(&inner, rest, each, found);
                }
            }
        }
        Some(Value::Document(inner)) if !rest.is_empty() => collect(&inner, rest, each, found),
        Some(value) if rest.is_empty() => add(value, &mut found.values),
        _ => {}
    }
}

/// Adds a value that can link, once.
pub(crate) fn add(value: Value<'_>, found: &mut Values) {
    if links(&value) && !found.iter().any(|other| document::value::order::equal(other, &value)) {
        found.push(value.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    #[track_caller]
    fn check(doc: bson::Document, path: &str, each: bool, expected: Bson, refused: bool) {
        let side = KeyPath { path: Path::new(path), each };
        let found = linked(&Doc::from(doc), &side);
        assert_eq!(Value::Array(found.values.into_iter().collect()), Value::from(expected), "{path}");
        assert_eq!(found.refused, refused, "{path}");
    }

    #[test]
    fn null_and_missing_never_link_and_arrays_only_where_said() {
        check(doc! { "a": 1 }, "a", false, bson!([1]), false);
        check(doc! { "a": { "b": "x" } }, "a.b", false, bson!(["x"]), false);
        check(doc! { "a": null }, "a", false, bson!([]), false);
        check(doc! {}, "a", false, bson!([]), false);
        check(doc! { "a": 5 }, "a.b", false, bson!([]), false);
        check(doc! { "a": [1] }, "a", false, bson!([]), true);
        check(doc! { "a": [{ "b": 1 }] }, "a.b", false, bson!([]), true);
        check(doc! { "a": [1, 1.0, null, 2, [3]] }, "a", true, bson!([1, 2]), false);
        check(doc! { "a": [{ "b": 1 }, 7, { "b": [2, 3] }] }, "a.b", true, bson!([1, 2, 3]), false);
        check(doc! { "a": { "x": 1 } }, "a", false, bson!([{ "x": 1 }]), false);
    }

    #[test]
    fn equal_values_have_equal_bytes() {
        assert_eq!(bytes(&Value::Int32(1)), bytes(&Value::Double(1.0)));
        assert_ne!(bytes(&Value::Int32(1)), bytes(&Value::from("1")));
    }
}
