//! A client's reading as an entry of a bucket, and what is no reading.

use crate::shapes::bucket::entry::{BucketEntry, Encoded};
use crate::shapes::bucket::key::Key;
use crate::shapes::bucket::{Body, Bucket, Inexact, Readings, Slot, Slots, hex, slot_key};
use document::value::calendar::Moment;
use document::value::show;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

impl Bucket {
    /// Where a reading goes and as what. It is refused if its time is no date, or if it could not be given back.
    pub fn encode(&self, reading: &Doc<'_>) -> Result<Encoded> {
        let reading = reading.borrow();
        let at = match reading.get(&self.time) {
            Some(Value::DateTime(at)) => at,
            _ => {
                return Err(Error::bad_value(format!(
                    "'{}' must be present and contain a valid BSON UTC datetime value",
                    self.time
                )));
            }
        };
        let series = self.by.iter().map(|series| match reading.get(&series.field) {
            None => Ok(None),
            Some(value) if series.hex => hex::stored(&series.field, &value).map(Some),
            Some(Value::Undefined) => {
                Err(Error::bad_value(format!("'{}' tells series apart: it cannot be undefined", series.field)))
            }
            Some(value) => Ok(Some(value.into_owned())),
        });
        let key = Key { series: series.collect::<Result<_>>()?, start: self.every.start(at) };
        match &self.body {
            Body::Readings(readings) => self.encode_reading(readings, &reading, key, at),
            Body::Slots(slots) => self.encode_slot(slots, &reading, key, at),
        }
    }

    fn encode_reading(&self, readings: &Readings, reading: &Doc<'_>, key: Key, at: i64) -> Result<Encoded> {
        let unit = &readings.unit;
        let (offset, exact) = unit.size.units_since(key.start, at);
        if !exact && readings.inexact == Inexact::Reject {
            return Err(Error::bad_value(format!(
                "'{}' is no whole {}: {}",
                self.time,
                unit.size.name(),
                show::element(&Value::DateTime(at))
            ))
            .with_hint("declare a finer unit, or inexact: truncate"));
        }
        let keeps_id = readings.keeps_id();
        let id = match keeps_id {
            true => reading.get("_id").unwrap_or(Value::Missing).into_owned(),
            false => self.derived_id(&key, unit.size.after(key.start, offset).unwrap_or(at), None),
        };
        if keeps_id && matches!(id, Value::Array(_) | Value::Regex { .. } | Value::Undefined) {
            let message = format!("The '_id' value cannot be of type {}", id.type_name());
            return Err(Error::new(Code::InvalidIdField, message));
        }
        let bytes = reading.as_bytes();
        let mut element = DocWriter::with_capacity(bytes.len() + 24);
        element.append(&unit.name, &whole(offset));
        if keeps_id {
            element.append("_id", &id);
        }
        let mut own = OwnFields::new(self);
        let mut fields = reading.iter();
        let mut from = fields.position();
        while let Some((name, _, _)) = fields.next_raw() {
            let to = fields.position();
            if own.is(name.as_str())? {
                if name.as_str() == &*unit.name {
                    return Err(Error::bad_value(format!(
                        "'{}' is the name under which a reading's offset from the {} is stored",
                        unit.name,
                        self.every.name()
                    ))
                    .with_hint("declare another name in unit"));
                }
                element.append_elements(bytes.get(from..to).unwrap_or_default());
            }
            from = to;
        }
        Ok(Encoded { key, entry: BucketEntry::Reading(element.finish()), id })
    }

    fn encode_slot(&self, slots: &Slots, reading: &Doc<'_>, key: Key, at: i64) -> Result<Encoded> {
        if !(1..=9999).contains(&Moment::of(at).year) {
            return Err(Error::bad_value(format!("'{}' must be in the years 1 to 9999", self.time)));
        }
        if self.packed && !matches!(key.series.as_slice(), [Some(Value::Binary { .. })]) {
            let field = self.by.first().map_or("", |series| &series.field);
            return Err(Error::bad_value(format!("'{field}' is part of the stored _id: it must be there")));
        }
        let (name, at) = match &slots.slot {
            Slot::Time(grain) => {
                let at = grain.start(at);
                (slot_key(self.every, *grain, at), at)
            }
            Slot::Field { field, keys, .. } => {
                let name = match reading.get(field) {
                    Some(Value::String(name)) => name.as_str().to_owned(),
                    other => {
                        return Err(Error::bad_value(format!(
                            "'{field}' names a slot: it must be a string, not {}",
                            show::element(&other.unwrap_or(Value::Null))
                        )));
                    }
                };
                keys.check(field, &name)?;
                (name, key.start)
            }
        };
        let mut own = OwnFields::new(self);
        for (field, value) in reading.iter() {
            let field = field.as_str();
            if !own.is(field)? || slots.slot.field() == Some(field) {
                continue;
            }
            if !slots.sums.iter().any(|(sum, _)| &**sum == field) {
                return Err(Error::bad_value(format!(
                    "'{field}' cannot be stored: a slot has only {}",
                    slots.sums.iter().map(|(sum, _)| &**sum).collect::<Vec<_>>().join(", ")
                )));
            }
            if !value.is_number() {
                return Err(Error::type_mismatch(format!(
                    "Cannot increment with non-numeric argument: {{{field}: {}}}",
                    show::element(&value)
                )));
            }
        }
        let sums = slots
            .sums
            .iter()
            .filter_map(|(sum, short)| reading.get(sum).map(|value| (Arc::clone(short), value.into_owned())));
        let sums = sums.collect();
        let id = self.derived_id(&key, at, slots.slot.field().map(|field| (field, name.as_str())));
        Ok(Encoded { key, entry: BucketEntry::Slot { key: name, at, sums }, id })
    }

    /// `{ …series, time, slot's field }`: the logical `_id` where none is stored.
    pub(super) fn derived_id(&self, key: &Key, at: i64, field: Option<(&str, &str)>) -> Value<'static> {
        let mut id = DocWriter::with_capacity(64);
        self.write_logical_series(&mut id, key);
        id.append(&self.time, &Value::DateTime(at));
        if let Some((field, name)) = field {
            id.append(field, &Value::from(name));
        }
        Value::Document(id.finish())
    }

    /// The series' fields as clients see them.
    pub(crate) fn write_logical_series(&self, writer: &mut DocWriter, key: &Key) {
        for (series, value) in self.by.iter().zip(&key.series) {
            match value {
                Some(Value::Binary { bytes, .. }) if series.hex => {
                    writer.append(&series.field, &Value::from(document::value::hex::to_digits(bytes.as_slice())));
                }
                Some(value) => {
                    writer.append(&series.field, value);
                }
                None => {}
            }
        }
    }
}

/// int32 if it fits.
pub(super) fn whole(number: i64) -> Value<'static> {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}

/// Tells a reading's own fields from `_id`, series and time, which are kept elsewhere, each once.
struct OwnFields<'b> {
    bucket: &'b Bucket,
    /// One bit per field kept elsewhere that has been seen.
    seen: u64,
}

impl<'b> OwnFields<'b> {
    fn new(bucket: &'b Bucket) -> OwnFields<'b> {
        OwnFields { bucket, seen: 0 }
    }

    fn is(&mut self, name: &str) -> Result<bool> {
        let place = match name {
            "_id" => 0,
            time if *time == *self.bucket.time => 1,
            name => match self.bucket.by.iter().position(|series| &*series.field == name) {
                Some(place) => place + 2,
                None => return Ok(true),
            },
        };
        let bit = 1 << place.min(63);
        if place < 63 && self.seen & bit != 0 {
            return Err(Error::bad_value(format!("'{name}' is there twice")));
        }
        self.seen |= bit;
        Ok(false)
    }
}
