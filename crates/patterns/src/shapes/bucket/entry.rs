//! What a bucket holds, one by one.

use crate::shapes::bucket::key::Key;
use document::{Doc, Value};
use std::sync::Arc;

/// One thing that a bucket holds.
#[derive(Clone, Debug, PartialEq)]
pub enum BucketEntry {
    /// An element of `readings`, its offset included.
    Reading(Doc<'static>),
    /// A slot: its name, when it begins, and the sums it has, under their stored names.
    Slot { key: String, at: i64, sums: Vec<(Arc<str>, Value<'static>)> },
}

impl BucketEntry {
    pub(crate) fn is_same_slot(&self, other: &BucketEntry) -> bool {
        matches!((self, other), (BucketEntry::Slot { key: one, .. }, BucketEntry::Slot { key: other, .. }) if one == other)
    }

    /// About how many bytes it adds to its bucket.
    pub(crate) fn size(&self) -> usize {
        match self {
            BucketEntry::Reading(reading) => reading.as_bytes().len() + 8,
            BucketEntry::Slot { .. } => 64,
        }
    }
}

/// A client's reading, ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    pub key: Key,
    pub entry: BucketEntry,
    /// The logical `_id`; missing if the reading has none and none is derived.
    pub id: Value<'static>,
}
