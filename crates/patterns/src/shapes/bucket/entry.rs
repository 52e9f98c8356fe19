//! What a bucket holds, one by one.

use crate::shapes::bucket::key::Key;
use document::{Doc, Value};
use std::sync::Arc;

/// One thing that a bucket holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An element of `readings`, its offset included.
    Reading(Doc<'static>),
    /// A slot: its name, when it begins, and the sums it has, under their stored names.
    Slot { key: String, at: i64, sums: Vec<(Arc<str>, Value<'static>)> },
}

/// A client's reading, ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    pub key: Key,
    pub entry: Entry,
    /// The logical `_id`; missing if the reading has none and none is derived.
    pub id: Value<'static>,
}
