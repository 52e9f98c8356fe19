//! Replacing a whole document: the `_id` stays, zero timestamps become the current one.

use super::Applied;
use super::fields::current_timestamp;
use super::storable::{check_depth, check_id, check_same_id, check_size};
use super::walk::dollar_prefixed;
use crate::env::Env;
use crate::error::Result;
use crate::raw::{Doc, DocWriter};
use crate::value::Value;

pub(super) fn apply(replacement: &Doc<'_>, old: &Doc<'_>, env: &Env) -> Result<Applied> {
    if let Some((name, _)) = replacement.iter().find(|(name, _)| name.as_str().starts_with('$')) {
        return Err(dollar_prefixed(name.as_str()));
    }
    let replacement = with_timestamps(replacement, env);
    whole(&replacement, old)
}

/// `new` in the place of `old`, also for the result of a pipeline.
pub(super) fn whole(new: &Doc<'_>, old: &Doc<'_>) -> Result<Applied> {
    if new == old {
        return Ok(Applied::Unchanged);
    }
    if let Some(id) = new.get("_id") {
        check_id(&id)?;
    }
    let id = old.get("_id").unwrap_or(Value::Missing);
    check_same_id(&id, new)?;
    let result = id_first(new, &id);
    check_size(&result)?;
    check_depth(&result)?;
    Ok(Applied::Changed(result))
}

/// The document with its `_id` at the front; without one it gets `id`.
pub(super) fn id_first(doc: &Doc<'_>, id: &Value<'_>) -> Doc<'static> {
    match doc.iter().next() {
        Some((name, _)) if name.as_str() == "_id" => return doc.clone().into_owned(),
        _ => {}
    }
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 24);
    match doc.get("_id") {
        Some(own) => writer.append("_id", &own),
        None => writer.append("_id", id),
    };
    let mut fields = doc.iter();
    while let Some((name, kind, bytes)) = fields.next_raw() {
        if name.as_str() != "_id" {
            writer.append_raw(name.as_str(), kind, bytes.as_slice());
        }
    }
    writer.finish()
}

/// As an insert does it: on the top level, and not for the `_id`.
pub(super) fn with_timestamps(doc: &Doc<'_>, env: &Env) -> Doc<'static> {
    let zero = |name: &str, value: &Value<'_>| name != "_id" && matches!(value, Value::Timestamp(0));
    if !doc.iter().any(|(name, value)| zero(name.as_str(), &value)) {
        return doc.clone().into_owned();
    }
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
    for (name, value) in doc.iter() {
        if zero(name.as_str(), &value) {
            writer.append(name.as_str(), &Value::Timestamp(current_timestamp(env)));
        } else {
            writer.append(name.as_str(), &value);
        }
    }
    writer.finish()
}
