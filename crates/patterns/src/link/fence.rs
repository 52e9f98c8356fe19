//! The names of fences (SEMANTICS R1): one for each rule and key value.

use crate::rule::Rule;
use document::Value;
use document::backend::FenceKey;
use document::value::key;

/// The fence on (link, key value). Equal keys (1 and 1.0) share it.
pub fn fence_key(rule: &Rule, value: &Value<'_>) -> FenceKey {
    let (db, name) = (&*rule.host.db, &*rule.name);
    let mut bytes = Vec::with_capacity(db.len() + name.len() + 24);
    bytes.extend_from_slice(db.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    key::encode(value, &mut bytes);
    FenceKey(bytes)
}
