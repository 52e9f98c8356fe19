//! Buckets: readings of one series and period in one stored document.
//!
//! `{ _id: { sensorId, hour, n }, sensorId, hour, count, readings: [{ m, temp }], stats: { maxTemp } }`, or, with slots,
//! `{ _id: { key, quarter }, key, quarter, items: { "0605": { a: 3 } } }`; packed, `{ _id: <series and period as bytes>, items }`.

mod add;
mod add_native;
mod assess;
mod build;
mod decode;
mod encode;
mod entry;
mod flaws;
mod gather;
mod gather_check;
mod grammar;
mod hex;
mod key;
mod life;
mod lookup;
mod losses;
mod memo;
mod needs;
mod of;
mod period;
mod print;
mod push;
mod push_packed;
mod read;
pub(crate) mod registered;
mod schema;
mod slot_key;
mod stats;
mod view;
pub(crate) mod write;

#[cfg(test)]
mod random;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;

pub use crate::rule::read::Dialect;
pub use entry::{BucketEntry, Encoded};
pub use grammar::Grammar;
pub use key::Key;
use slot_key::parts as slot_parts;
pub use slot_key::{slot_key, slot_start};
pub use write::BucketShape;

use document::op::Namespace;
use std::sync::Arc;

/// How readings are stored, as declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The stored collection.
    pub into: Namespace,
    /// The top-level field of a reading that holds its date.
    pub time: Arc<str>,
    /// The top-level fields that make a series, in the declared order.
    pub by: Vec<Series>,
    /// The span of one bucket, in UTC.
    pub every: Period,
    pub body: Body,
    /// `bucket_id: packed`: the stored `_id` is series and period as bytes, and neither is stored beside it.
    pub packed: bool,
}

/// A field that tells series apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub field: Arc<str>,
    /// `as: hex`: an even number of hex digits, stored as bytes, given back in lower case.
    pub hex: bool,
}

/// A span of time, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    Minute,
    Hour,
    Day,
    Month,
    Quarter,
    Year,
}

/// What a bucket holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Readings(Readings),
    Slots(Slots),
}

/// One array element per reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// A bucket with so many is full.
    pub at_most: u32,
    pub unit: Unit,
    pub inexact: Inexact,
    pub reading_id: ReadingId,
    /// Figures over a top-level field of the readings, in the declared order.
    pub stats: Vec<(Arc<str>, Vec<Stat>)>,
}

impl Readings {
    /// Whether a reading's `_id` is stored.
    pub(super) fn keeps_id(&self) -> bool {
        self.reading_id != ReadingId::Time
    }
}

/// In what a reading's distance from the period's start is kept, and under which name: `{ minute: m }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub size: Grain,
    pub name: Arc<str>,
}

/// The size of a unit or of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Month,
}

/// What happens to a reading that is not a whole unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inexact {
    #[default]
    Reject,
    Truncate,
}

/// Where a reading's `_id` is (SEMANTICS R14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadingId {
    /// In its element.
    #[default]
    Stored,
    /// In its element, and indexed.
    Indexed,
    /// Nowhere: it is `{ …series, time }`.
    Time,
}

/// A figure over one field of a bucket's readings: `stats.minTemp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    Avg,
    Count,
    Last,
    Max,
    Min,
    Sum,
}

/// One entry per slot, holding sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    pub slot: Slot,
    /// `(name in the logical document, short name)`, in the declared order.
    pub sums: Vec<(Arc<str>, Arc<str>)>,
    pub layout: Layout,
}

/// What tells the entries of a bucket apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// A unit of time: dates are cut to it.
    Time(Grain),
    /// A field whose values follow a grammar and are few; dates are cut to the bucket's period.
    Field { field: Arc<str>, keys: Grammar, at_most: u32 },
}

impl Slot {
    /// The field that names the slots, if it is not time.
    pub fn field(&self) -> Option<&str> {
        match self {
            Slot::Time(_) => None,
            Slot::Field { field, .. } => Some(field),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// `items: [{ date, a }]`
    #[default]
    Array,
    /// `items: { "0605": { a } }`
    FieldNames,
}
