//! What is refused, in MongoDB's words where it has some.

use crate::shapes::Stack;
use document::op::Namespace;
use document::value::show;
use document::{Code, DocWriter, Error, Value};

/// A second reading with the same derived `_id` (R14).
pub(super) fn duplicate(logical: &Namespace, id: &Value<'_>) -> Error {
    let (mut value, mut pattern) = (DocWriter::new(), DocWriter::new());
    value.append("_id", id);
    pattern.append("_id", &Value::Int32(1));
    let value = value.finish();
    let message =
        format!("E11000 duplicate key error collection: {logical} index: _id_ dup key: {}", show::document(&value));
    let mut info = DocWriter::new();
    info.append("keyPattern", &Value::Document(pattern.finish()));
    info.append("keyValue", &Value::Document(value));
    Error::new(Code::DuplicateKey, message).with_info(info.finish())
}

pub(super) fn immutable_id(altered: &Value<'_>) -> Error {
    let message = format!(
        "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
        show::element(altered)
    );
    Error::new(Code::ImmutableField, message)
}

/// An index hint: what it names is an index of the logical collection, which has none.
pub(super) fn hint() -> Error {
    Error::bad_value(
        "error processing query: Planner returned error: bad hint: hint provided does not correspond to an existing index",
    )
}

/// Readings are compared here, where only the simple collation is known.
pub(super) fn collation() -> Error {
    Error::new(Code::NotImplemented, "writes to a collection that is kept in buckets take no collation")
}

/// A client's write to where the documents of a logical collection are stored.
pub(crate) fn stored(ns: &Namespace, shaped: &Stack) -> Error {
    let (logical, rule) = (&shaped.logical, &shaped.rule.name);
    let message =
        format!("'{ns}' holds what '{logical}' is made of (rule {rule}): clients may read it, but not write to it");
    Error::new(Code::OperationFailed, message).with_hint(format!("write to '{logical}' instead"))
}

/// Whether a statement failed because a stored document with that `_id` is there.
pub(super) fn is_taken(error: &Error) -> bool {
    error.code() == Code::DuplicateKey
        && error.info().is_none_or(|info| match info.get("keyPattern") {
            Some(Value::Document(pattern)) => pattern.contains("_id"),
            _ => true,
        })
}

/// Whether a statement failed because the stored document would become too large.
pub(super) fn is_too_large(error: &Error) -> bool {
    matches!(error.code().number(), 10334 | 17419 | 17420)
}
