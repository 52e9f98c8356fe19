//! A stored bucket as logical documents, and as entries.

use crate::rule::read::Each;
use crate::shapes::bucket::Encoded;
use crate::shapes::bucket::entry::BucketEntry;
use crate::shapes::bucket::key::Key;
use crate::shapes::bucket::{Body, Bucket, Layout, ReadingId, Readings, Slot, Slots, slot_key, slot_start};
use document::value::show;
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

impl Bucket {
    /// The logical document that a reading comes back as.
    pub(crate) fn logical(&self, encoded: &Encoded) -> Result<Option<Doc<'static>>> {
        let Some(stored) = self.build(&encoded.key, 0, std::slice::from_ref(&encoded.entry)) else { return Ok(None) };
        let mut shown = None;
        self.decode(&stored, &mut |reading| {
            shown = Some(reading);
            Ok(())
        })?;
        Ok(shown)
    }

    /// The logical documents, in stored order.
    pub fn decode(&self, stored: &Doc<'_>, each: &mut Each<'_>) -> Result<()> {
        let stored = stored.borrow();
        let key = self.key_beside(&stored)?;
        match &self.body {
            Body::Readings(readings) => self.decode_readings(readings, &stored, &key, each),
            Body::Slots(slots) => {
                let series = self.logical_series(&key);
                let series = whole_elements(&series);
                self.walk_slots(slots, &stored, key.start, &mut |name, at, slot| {
                    each(self.logical_slot(slots, series, name, at, &slot))
                })
            }
        }
    }

    /// What the bucket holds, in stored order. Anything that [`Bucket::build`] would not write again is refused.
    pub fn entries(&self, stored: &Doc<'_>) -> Result<Vec<BucketEntry>> {
        let stored = stored.borrow();
        let mut entries = Vec::new();
        match &self.body {
            Body::Readings(_) => {
                for element in self.elements(&stored, "readings")?.iter() {
                    let Value::Document(element) = element else {
                        return Err(self.broken(&stored, "a reading is no document"));
                    };
                    entries.push(BucketEntry::Reading(element.into_owned()));
                }
            }
            Body::Slots(slots) => {
                let (key, _) = self.key_of(&stored)?;
                self.walk_slots(slots, &stored, key.start, &mut |name, at, slot| {
                    let mut sums = Vec::new();
                    for (short, value) in slot.iter() {
                        let known = slots.sums.iter().find(|(_, own)| **own == *short.as_str());
                        match known {
                            Some((_, short)) if value.is_number() => sums.push((Arc::clone(short), value.into_owned())),
                            _ if slots.layout == Layout::Array && short.as_str() == self.slot_field(slots) => {}
                            _ => {
                                let what = format!("slot {name} has {short}: {}", show::element(&value));
                                return Err(self.broken(&stored, &what));
                            }
                        }
                    }
                    entries.push(BucketEntry::Slot { key: name.to_owned(), at, sums });
                    Ok(())
                })?;
            }
        }
        Ok(entries)
    }

    /// The field of an array's slot that tells which it is.
    pub(super) fn slot_field<'s>(&'s self, slots: &'s Slots) -> &'s str {
        slots.slot.field().unwrap_or(&self.time)
    }

    /// Series and period as they are stored beside the `_id`, which is what the view reads; packed, there is only the `_id`.
    fn key_beside(&self, stored: &Doc<'_>) -> Result<Key> {
        if self.packed {
            return self.key_of(stored).map(|(key, _)| key);
        }
        let series = self.by.iter().map(|series| stored.get(&series.field).map(Value::into_owned)).collect();
        match stored.get(self.every.name()) {
            Some(Value::DateTime(start)) => Ok(Key { series, start }),
            _ => Err(self.broken(stored, &format!("'{}' is no date", self.every.name()))),
        }
    }

    fn elements<'d>(&self, stored: &Doc<'d>, name: &str) -> Result<Array<'d>> {
        match stored.get(name) {
            Some(Value::Array(elements)) => Ok(elements),
            None | Some(Value::Null) => Ok(Array::empty()),
            Some(_) => Err(self.broken(stored, &format!("'{name}' is no array"))),
        }
    }

    fn decode_readings(&self, readings: &Readings, stored: &Doc<'_>, key: &Key, each: &mut Each<'_>) -> Result<()> {
        let series = self.logical_series(key);
        let series = whole_elements(&series);
        let offset_name = &*readings.unit.name;
        for element in self.elements(stored, "readings")?.iter() {
            let Value::Document(element) = element else {
                return Err(self.broken(stored, "a reading is no document"));
            };
            let units = element.get(offset_name).and_then(|offset| offset.as_i64_exact());
            let Some(at) = units.and_then(|units| readings.unit.size.after(key.start, units)) else {
                return Err(self.broken(stored, &format!("a reading's '{offset_name}' is no offset")));
            };
            let bytes = element.as_bytes();
            let mut logical = DocWriter::with_capacity(bytes.len() + series.len() + self.time.len() + 16);
            match readings.reading_id {
                ReadingId::Time => {
                    logical.start_document("_id").append_elements(series);
                    logical.append(&self.time, &Value::DateTime(at)).end();
                }
                ReadingId::Stored | ReadingId::Indexed => {
                    logical.append("_id", &element.get("_id").unwrap_or(Value::Missing));
                }
            }
            logical.append_elements(series).append(&self.time, &Value::DateTime(at));
            let mut fields = element.iter();
            let mut from = fields.position();
            while let Some((name, _, _)) = fields.next_raw() {
                let to = fields.position();
                if name.as_str() != offset_name && name.as_str() != "_id" {
                    logical.append_elements(bytes.get(from..to).unwrap_or_default());
                }
                from = to;
            }
            each(logical.finish())?;
        }
        Ok(())
    }

    /// Calls `each` with the name and start of each slot and the document that holds its sums.
    fn walk_slots(
        &self,
        slots: &Slots,
        stored: &Doc<'_>,
        start: i64,
        each: &mut dyn FnMut(&str, i64, Doc<'_>) -> Result<()>,
    ) -> Result<()> {
        let no_slot = |name: &dyn std::fmt::Display| self.broken(stored, &format!("{name} is no slot"));
        match slots.layout {
            Layout::FieldNames => {
                let items = match stored.get("items") {
                    Some(Value::Document(items)) => items,
                    None | Some(Value::Null) => return Ok(()),
                    Some(_) => return Err(self.broken(stored, "'items' is no document")),
                };
                for (name, slot) in items.iter() {
                    let Value::Document(slot) = slot else { return Err(no_slot(&name)) };
                    let at = match &slots.slot {
                        Slot::Time(grain) => slot_start(self.every, *grain, start, name.as_str()),
                        Slot::Field { .. } => Some(start),
                    };
                    each(name.as_str(), at.ok_or_else(|| no_slot(&name))?, slot)?;
                }
            }
            Layout::Array => {
                for (at_index, slot) in self.elements(stored, "items")?.iter().enumerate() {
                    let Value::Document(slot) = slot else { return Err(no_slot(&at_index)) };
                    match (&slots.slot, slot.get(self.slot_field(slots))) {
                        (Slot::Time(grain), Some(Value::DateTime(at))) => {
                            each(&slot_key(self.every, *grain, at), at, slot)?;
                        }
                        (Slot::Field { .. }, Some(Value::String(name))) => each(name.as_str(), start, slot)?,
                        _ => return Err(no_slot(&at_index)),
                    }
                }
            }
        }
        Ok(())
    }

    fn logical_slot(&self, slots: &Slots, series: &[u8], name: &str, at: i64, slot: &Doc<'_>) -> Doc<'static> {
        let mut logical = DocWriter::with_capacity(slot.as_bytes().len() + 2 * series.len() + 128);
        // `_id` holds series, time and the slot's field, in this order: so does the document itself.
        let told = |writer: &mut DocWriter| {
            writer.append_elements(series).append(&self.time, &Value::DateTime(at));
            if let Some(field) = slots.slot.field() {
                writer.append(field, &Value::from(name));
            }
        };
        logical.start_document("_id");
        told(&mut logical);
        logical.end();
        told(&mut logical);
        for (sum, short) in &slots.sums {
            logical.append(sum, &slot.get(short).unwrap_or(Value::Missing));
        }
        logical.finish()
    }

    /// The series' fields as clients see them.
    fn logical_series(&self, key: &Key) -> Doc<'static> {
        let mut series = DocWriter::with_capacity(96);
        self.write_logical_series(&mut series, key);
        series.finish()
    }
}

/// The elements of a document without its length and end.
pub(super) fn whole_elements<'d>(doc: &'d Doc<'_>) -> &'d [u8] {
    let bytes = doc.as_bytes();
    bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default()
}
