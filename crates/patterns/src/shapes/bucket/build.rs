//! The stored document of some entries.

use crate::shapes::bucket::entry::BucketEntry;
use crate::shapes::bucket::key::Key;
use crate::shapes::bucket::{Body, Bucket, Layout, Readings, Slots};
use document::raw::kind;
use document::value::Number;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

/// What one slot adds up to, in the declared order of the sums.
pub(super) struct SlotSums<'e> {
    pub(super) key: &'e str,
    pub(super) at: i64,
    pub(super) sums: Vec<(Arc<str>, Value<'static>)>,
}

impl Bucket {
    /// The document that holds exactly these entries; `None` if there are none, as an emptied bucket disappears.
    pub fn build(&self, key: &Key, n: i32, entries: &[BucketEntry]) -> Option<Doc<'static>> {
        if entries.is_empty() {
            return None;
        }
        let size = entries.iter().map(|entry| match entry {
            BucketEntry::Reading(element) => element.as_bytes().len() + 8,
            BucketEntry::Slot { .. } => 48,
        });
        let mut stored = DocWriter::with_capacity(256 + size.sum::<usize>());
        stored.append("_id", &self.id(key, n));
        if !self.packed {
            self.write_key(&mut stored, key);
        }
        match &self.body {
            Body::Readings(readings) => readings.write(&mut stored, &elements(entries)),
            Body::Slots(slots) => self.write_slots(&mut stored, slots, &add_up(slots, entries)),
        }
        Some(stored.finish())
    }

    pub(super) fn write_slots(&self, stored: &mut DocWriter, slots: &Slots, items: &[SlotSums<'_>]) {
        match slots.layout {
            Layout::FieldNames => stored.start_document("items"),
            Layout::Array => stored.start_array("items"),
        };
        for (at, slot) in items.iter().enumerate() {
            match slots.layout {
                Layout::FieldNames => {
                    stored.start_document(slot.key);
                }
                Layout::Array => {
                    stored.start_document_at(at);
                    stored.append(self.slot_field(slots), &self.slot_name(slots, slot));
                }
            }
            for (short, value) in &slot.sums {
                stored.append(short, value);
            }
            stored.end();
        }
        stored.end();
    }

    /// What tells a slot of an array: when it begins, or its field's value.
    pub(super) fn slot_name<'s>(&self, slots: &Slots, slot: &SlotSums<'s>) -> Value<'s> {
        match slots.slot.field() {
            Some(_) => Value::from(slot.key),
            None => Value::DateTime(slot.at),
        }
    }
}

impl Readings {
    /// `count`, `readings` and, if declared, `stats`.
    pub(super) fn write(&self, stored: &mut DocWriter, elements: &[Doc<'_>]) {
        stored.append("count", &Value::Int32(i32::try_from(elements.len()).unwrap_or(i32::MAX)));
        stored.start_array("readings");
        for (at, element) in elements.iter().enumerate() {
            stored.append_raw_at(at, kind::DOCUMENT, element.as_bytes());
        }
        stored.end();
        if !self.stats.is_empty() {
            stored.start_document("stats");
            self.write_stats(stored, elements);
            stored.end();
        }
    }
}

pub(super) fn elements(entries: &[BucketEntry]) -> Vec<Doc<'_>> {
    let mut elements = Vec::with_capacity(entries.len());
    for entry in entries {
        if let BucketEntry::Reading(element) = entry {
            elements.push(element.borrow());
        }
    }
    elements
}

/// One per slot, in the order in which they first come.
pub(super) fn add_up<'e>(slots: &Slots, entries: &'e [BucketEntry]) -> Vec<SlotSums<'e>> {
    let mut all: Vec<SlotSums<'e>> = Vec::with_capacity(entries.len());
    for entry in entries {
        let BucketEntry::Slot { key, at, sums } = entry else { continue };
        match all.iter_mut().find(|slot| slot.key == *key) {
            Some(slot) => sums.iter().for_each(|(short, value)| slot.add(short, value)),
            None => all.push(SlotSums { key, at: *at, sums: sums.clone() }),
        }
    }
    let place = |short: &Arc<str>| slots.sums.iter().position(|(_, declared)| declared == short);
    for slot in &mut all {
        slot.sums.sort_by_key(|(short, _)| place(short));
    }
    all
}

impl SlotSums<'_> {
    fn add(&mut self, short: &Arc<str>, more: &Value<'static>) {
        match self.sums.iter_mut().find(|(own, _)| own == short) {
            Some((_, sum)) => {
                if let (Some(a), Some(b)) = (Number::of(sum), Number::of(more)) {
                    *sum = a.plus(b).into();
                }
            }
            None => self.sums.push((Arc::clone(short), more.clone())),
        }
    }
}
