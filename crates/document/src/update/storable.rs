//! What every document must keep to after an update: size, depth, and a storable `_id`.

use super::operation::id_text;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Value, order};

/// The largest document.
const MAX_SIZE: usize = 16 * 1024 * 1024;
/// The largest that MongoDB's own writer takes: 16 KB more, for internal use.
const MAX_WRITTEN: usize = MAX_SIZE + 16 * 1024;
/// How deep stored documents may nest; deeper ones can still be sent and computed.
pub(super) const MAX_DEPTH: usize = 180;

pub(super) fn check_size(doc: &Doc<'_>) -> Result<()> {
    let size = doc.as_bytes().len();
    if size <= MAX_SIZE {
        return Ok(());
    }
    if size <= MAX_WRITTEN {
        return Err(Error::new(
            Code::Location(17419),
            format!("Resulting document after update is larger than {MAX_SIZE}"),
        ));
    }
    Err(Error::new(
        Code::BSONObjectTooLarge,
        format!(
            "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {MAX_WRITTEN}(16MB) First element: {}",
            id_text(doc)
        ),
    ))
}

pub(super) fn check_depth(doc: &Doc<'_>) -> Result<()> {
    if depth(&Value::Document(doc.borrow())) <= MAX_DEPTH {
        return Ok(());
    }
    Err(Error::new(Code::Overflow, format!("Document exceeds maximum nesting depth of {MAX_DEPTH}")))
}

/// How many containers are around the deepest value, the outermost included.
pub(super) fn depth(value: &Value<'_>) -> usize {
    match value {
        Value::Document(doc) => 1 + doc.iter().map(|(_, inner)| depth(&inner)).max().unwrap_or_default(),
        Value::Array(array) => 1 + array.iter().map(|inner| depth(&inner)).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A value that may not be an `_id`, or a document with names that may not be in one.
pub(super) fn check_id(id: &Value<'_>) -> Result<()> {
    match id {
        Value::Array(_) | Value::Regex { .. } | Value::Undefined => {
            Err(Error::new(Code::InvalidIdField, format!("The '_id' value cannot be of type {}", id.type_name())))
        }
        Value::Document(doc) => match doc.iter().find(|(name, _)| name.as_str().starts_with('$')) {
            Some((name, _)) => Err(Error::new(
                Code::DollarPrefixedFieldName,
                format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."),
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A whole new document in the place of one whose `_id` was `old`.
pub(super) fn check_same_id(old: &Value<'_>, new: &Doc<'_>) -> Result<()> {
    match new.get("_id") {
        Some(id) if !order::equal(&id, old) => Err(Error::new(
            Code::ImmutableField,
            format!(
                "After applying the update, the (immutable) field '_id' was found to have been altered to {}",
                id_text(new)
            ),
        )),
        _ => Ok(()),
    }
}

/// What MongoDB says of a whole new document that an upsert would insert.
pub(super) fn refuse_array_id(new: &Doc<'_>) -> Result<()> {
    match new.get("_id") {
        Some(Value::Array(_)) => Err(Error::new(
            Code::NotSingleValueField,
            "After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.",
        )),
        _ => Ok(()),
    }
}
