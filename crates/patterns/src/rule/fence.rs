//! The names of fences (SEMANTICS R1): one for each rule and key value, and for the parts of a value that are inquired about.

use crate::mql::document;
use crate::rule::Rule;
use document::Value;
use document::backend::FenceKey;
use document::value::key;
use std::sync::Arc;

/// The fence on (link, key value). Equal keys (1 and 1.0) share it.
pub fn fence_key(rule: &Rule, value: &Value<'_>) -> FenceKey {
    let name = &*rule.name;
    let mut bytes = Vec::with_capacity(name.len() + 24);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    key::encode(value, &mut bytes);
    FenceKey { db: Arc::clone(&rule.host.db), key: bytes }
}

/// What the fence on a part of a key's value is named by; a missing part is the whole key.
pub fn part(key: &Value<'_>, about: &Value<'_>) -> Value<'static> {
    match about.is_missing() {
        true => key.clone().into_owned(),
        false => Value::Document(document([("key", key.borrow()), ("about", about.borrow())])),
    }
}
