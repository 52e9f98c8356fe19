//! The updates that are pipelines for a real MongoDB, as code: the same bytes come out.

use crate::shapes::bucket::build::{add_up, elements};
use crate::shapes::bucket::entry::BucketEntry;
use crate::shapes::bucket::{Body, Bucket};
use document::raw::kind;
use document::update::Native;
use document::value::{Number, order};
use document::{Array, ArrayWriter, Doc, DocWriter, Env, Error, Result, Value};
use std::sync::Arc;

/// Readings are appended, counted, and the figures taken anew.
#[derive(Debug)]
pub(super) struct AddReadings {
    pub(super) bucket: Arc<Bucket>,
    pub(super) entries: Vec<BucketEntry>,
}

impl Native for AddReadings {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        let Body::Readings(readings) = &self.bucket.body else { return Ok(doc.clone().into_owned()) };
        let doc = doc.borrow();
        let count = match doc.get("count") {
            None | Some(Value::Null) => Number::Int32(0),
            Some(count) => Number::of(&count).ok_or_else(|| {
                Error::type_mismatch(format!("$add only supports numeric or date types, not {}", count.type_name()))
            })?,
        };
        let mut all = Vec::new();
        let old = array(&doc, "readings")?;
        for reading in old.iter() {
            match reading {
                Value::Document(reading) => all.push(reading),
                _ => return Err(self.bucket.broken(&doc, "a reading is no document")),
            }
        }
        let new = elements(&self.entries);
        let count = count.plus(Number::int_or_long(i64::try_from(new.len()).unwrap_or(i64::MAX)));
        all.extend(new);
        let mut array = ArrayWriter::new();
        for reading in &all {
            array.push_raw(kind::DOCUMENT, reading.as_bytes());
        }
        let mut stats = DocWriter::new();
        // Other fields of `stats` stay, as `$set` of a document leaves them.
        let mut figures = DocWriter::new();
        readings.write_stats(&mut figures, &all);
        let figures = figures.finish();
        if let Some(Value::Document(old)) = doc.get("stats") {
            for (name, value) in old.iter() {
                stats.append(name.as_str(), &figures.get(name.as_str()).unwrap_or(value));
            }
            for (name, value) in figures.iter().filter(|(name, _)| !old.contains(name.as_str())) {
                stats.append(name.as_str(), &value);
            }
        } else {
            stats.append_elements(crate::shapes::bucket::decode::whole_elements(&figures));
        }
        Ok(replaced(
            &doc,
            &[
                ("count", count.into()),
                ("readings", Value::Array(array.finish())),
                ("stats", Value::Document(stats.finish())),
            ],
        ))
    }
}

/// Sums are added to their slots of an array; new slots are appended.
#[derive(Debug)]
pub(super) struct AddSlots {
    pub(super) bucket: Arc<Bucket>,
    pub(super) entries: Vec<BucketEntry>,
}

impl Native for AddSlots {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        let Body::Slots(slots) = &self.bucket.body else { return Ok(doc.clone().into_owned()) };
        let doc = doc.borrow();
        let field = self.bucket.slot_field(slots);
        let more = add_up(slots, &self.entries);
        let mut there = vec![false; more.len()];
        let mut items = ArrayWriter::new();
        for item in array(&doc, "items")?.iter() {
            let Value::Document(slot) = &item else {
                items.push(&item);
                continue;
            };
            let name = slot.get(field).unwrap_or(Value::Missing);
            let found =
                more.iter().zip(&mut there).find(|(more, _)| order::equal(&name, &self.bucket.slot_name(slots, more)));
            match found {
                Some((more, there)) => {
                    *there = true;
                    items.push(&Value::Document(added(slot, &more.sums)?));
                }
                None => {
                    items.push(&item);
                }
            }
        }
        for (more, _) in more.iter().zip(&there).filter(|(_, there)| !**there) {
            let mut slot = DocWriter::new();
            slot.append(field, &self.bucket.slot_name(slots, more));
            for (short, sum) in &more.sums {
                slot.append(short, sum);
            }
            items.push(&Value::Document(slot.finish()));
        }
        Ok(replaced(&doc, &[("items", Value::Array(items.finish()))]))
    }
}

fn added(slot: &Doc<'_>, more: &[(Arc<str>, Value<'static>)]) -> Result<Doc<'static>> {
    let mut writer = DocWriter::with_capacity(slot.as_bytes().len() + 16);
    let sum = |old: &Value<'_>, more: &Value<'static>| match (Number::of(old), Number::of(more)) {
        _ if old.is_nullish() => Ok(more.clone()),
        (Some(old), Some(more)) => Ok(old.plus(more).into()),
        _ => Err(Error::type_mismatch(format!(
            "$add only supports numeric or date types, not {}",
            if Number::of(old).is_some() { more.type_name() } else { old.type_name() }
        ))),
    };
    for (name, value) in slot.iter() {
        match more.iter().find(|(short, _)| **short == *name.as_str()) {
            Some((_, more)) => writer.append(name.as_str(), &sum(&value, more)?),
            None => writer.append(name.as_str(), &value),
        };
    }
    for (short, value) in more.iter().filter(|(short, _)| !slot.contains(short)) {
        writer.append(short, value);
    }
    Ok(writer.finish())
}

fn array<'d>(doc: &Doc<'d>, name: &str) -> Result<Array<'d>> {
    match doc.get(name) {
        None | Some(Value::Null) => Ok(Array::empty()),
        Some(Value::Array(array)) => Ok(array),
        Some(other) => Err(Error::new(
            document::Code::Location(28664),
            format!("$concatArrays only supports arrays, not {}", other.type_name()),
        )),
    }
}

/// `doc` with these fields in the place of those of the same name, else at the end.
pub(super) fn replaced(doc: &Doc<'_>, with: &[(&str, Value<'_>)]) -> Doc<'static> {
    let size = with.iter().map(|(_, value)| match value {
        Value::Array(array) => array.as_bytes().len(),
        Value::Document(doc) => doc.as_bytes().len(),
        _ => 8,
    });
    let mut writer = DocWriter::with_capacity(256 + size.sum::<usize>());
    let mut fields = doc.iter();
    while let Some((name, of_kind, bytes)) = fields.next_raw() {
        match with.iter().find(|(own, _)| *own == name.as_str()) {
            Some((_, value)) => writer.append(name.as_str(), value),
            None => writer.append_raw(name.as_str(), of_kind, bytes.as_slice()),
        };
    }
    for (name, value) in with.iter().filter(|(name, _)| !doc.contains(name)) {
        writer.append(name, value);
    }
    writer.finish()
}
