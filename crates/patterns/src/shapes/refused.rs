//! What writes through a shape are refused for, in MongoDB's words, and which refusals of stored statements mean what.

use document::op::Namespace;
use document::value::show;
use document::{Code, DocWriter, Error, Value};

/// A second document with the same derived `_id` (R14).
pub(crate) fn duplicate(logical: &Namespace, id: &Value<'_>) -> Error {
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

pub(crate) fn immutable_id(altered: &Value<'_>) -> Error {
    let message = format!(
        "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
        show::element(altered)
    );
    Error::new(Code::ImmutableField, message)
}

/// Whether a statement failed because a stored document with that `_id` is there.
pub(crate) fn is_taken(error: &Error) -> bool {
    error.code() == Code::DuplicateKey
        && error.info().is_none_or(|info| match info.get("keyPattern") {
            Some(Value::Document(pattern)) => pattern.contains("_id"),
            _ => true,
        })
}

/// Whether a statement failed because the stored document would become too large.
pub(crate) fn is_too_large(error: &Error) -> bool {
    matches!(error.code().number(), 10334 | 17419 | 17420)
}
