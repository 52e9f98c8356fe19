//! The view: logical documents from stored ones, as pipeline stages for any reader.

use crate::mql::{call, call_with, cond, field, object};
use crate::rule::read::Dialect;
use crate::shapes::bucket::key::packed_length;
use crate::shapes::bucket::{Body, Bucket, Grain, Layout, Period, ReadingId, Readings, Slot, Slots, slot_key};
use document::{Array, DocWriter, Value};

impl Bucket {
    /// The stages of the view. They give what [`Bucket::decode`] gives.
    pub fn view(&self, dialect: Dialect) -> Array<'static> {
        match &self.body {
            Body::Readings(readings) => self.readings_view(readings, dialect),
            Body::Slots(slots) => self.slots_view(slots, dialect),
        }
    }

    /// Own fields are whatever they are, so that each element is merged with the fields that all have.
    fn readings_view(&self, readings: &Readings, dialect: Dialect) -> Array<'static> {
        let start = field(self.every.name());
        let offset = field(&format!("readings.{}", readings.unit.name));
        let at = match readings.unit.size {
            Grain::Millisecond => call_with("$add", [start, offset]),
            Grain::Month => {
                let amount = [("startDate", start), ("unit", Value::from("month")), ("amount", offset)];
                call("$dateAdd", object(amount))
            }
            size => {
                let millis = size.millis().and_then(|millis| i32::try_from(millis).ok()).unwrap_or(1);
                call_with("$add", [start, call_with("$multiply", [offset, Value::Int32(millis)])])
            }
        };
        let mut common = DocWriter::new();
        match readings.reading_id {
            ReadingId::Time => {
                common.start_document("_id");
                self.write_series(&mut common, dialect);
                common.append(&self.time, &at).end();
            }
            ReadingId::Stored | ReadingId::Indexed => {
                common.append("_id", &field("readings._id"));
            }
        }
        self.write_series(&mut common, dialect);
        common.append(&self.time, &at);
        let own = object([("field", Value::from(&*readings.unit.name)), ("input", field("readings"))]);
        let whole = call_with("$mergeObjects", [Value::Document(common.finish()), call("$unsetField", own)]);
        [call("$unwind", field("readings")), call("$replaceWith", whole)].into_iter().collect()
    }

    fn write_series(&self, writer: &mut DocWriter, dialect: Dialect) {
        for series in &self.by {
            let stored = field(&series.field);
            let value = if series.hex { hex(stored, dialect) } else { stored };
            writer.append(&series.field, &value);
        }
    }

    /// All fields are known, so that they are named one by one: MongoDB then moves conditions on the series ahead.
    fn slots_view(&self, slots: &Slots, dialect: Dialect) -> Array<'static> {
        let mut per_bucket = DocWriter::new();
        if self.packed {
            per_bucket.append("_id", &hex(field("_id"), dialect));
        }
        for series in self.by.iter().filter(|series| series.hex && !self.packed) {
            per_bucket.append(&series.field, &hex(field(&series.field), dialect));
        }
        if slots.layout == Layout::FieldNames {
            per_bucket.append("items", &call("$objectToArray", field("items")));
        }
        let per_bucket = per_bucket.finish();

        let mut key = DocWriter::new();
        for series in &self.by {
            let value = if self.packed { self.packed_series() } else { field(&series.field) };
            key.append(&series.field, &value);
        }
        key.append(&self.time, &self.slot_time(slots));
        if let Some(name) = slots.slot.field() {
            let value = match slots.layout {
                Layout::FieldNames => field("items.k"),
                Layout::Array => field(&format!("items.{name}")),
            };
            key.append(name, &value);
        }
        let key = key.finish();

        let mut logical = DocWriter::new();
        // A document here would be read as paths of `_id`.
        logical.append("_id", &call_with("$mergeObjects", [Value::Document(key.borrow())]));
        for (name, value) in key.iter() {
            logical.append(name.as_str(), &value);
        }
        for (sum, short) in &slots.sums {
            let path = match slots.layout {
                Layout::FieldNames => format!("items.v.{short}"),
                Layout::Array => format!("items.{short}"),
            };
            logical.append(sum, &field(&path));
        }
        let set = (!per_bucket.is_empty()).then(|| call("$set", Value::Document(per_bucket)));
        let stages = [call("$unwind", field("items")), call("$project", Value::Document(logical.finish()))];
        set.into_iter().chain(stages).collect()
    }

    /// When a slot begins.
    fn slot_time(&self, slots: &Slots) -> Value<'static> {
        let grain = match &slots.slot {
            Slot::Field { .. } => return self.period_start(),
            Slot::Time(_) if slots.layout == Layout::Array => return field(&format!("items.{}", self.time)),
            Slot::Time(grain) => *grain,
        };
        let mut place = 0;
        let mut parts: Vec<(Grain, Value<'static>)> = Vec::new();
        for (part, digits) in slot_key::parts(self.every, grain) {
            parts.push((part, number(field("items.k"), place, digits)));
            place += digits;
        }
        let by_calendar = matches!(self.every, Period::Year | Period::Quarter) || self.packed;
        if by_calendar {
            let mut all = self.period_parts();
            // A quarter's slots name their months themselves.
            all.retain(|(name, _)| parts.iter().all(|(part, _)| part_name(*part) != *name));
            let own = parts.into_iter().map(|(part, value)| (part_name(part), value));
            return call("$dateFromParts", object(all.into_iter().chain(own)));
        }
        let since = parts.into_iter().map(|(part, value)| {
            let number = if part == Grain::Day { call_with("$subtract", [value, Value::Int32(1)]) } else { value };
            match part.millis().and_then(|millis| i32::try_from(millis).ok()) {
                None | Some(1) => number,
                Some(millis) => call_with("$multiply", [number, Value::Int32(millis)]),
            }
        });
        call_with("$add", [self.period_start()].into_iter().chain(since))
    }

    fn period_start(&self) -> Value<'static> {
        match self.packed {
            true => call("$dateFromParts", object(self.period_parts())),
            false => field(self.every.name()),
        }
    }

    /// What the bucket says of a date, from the year down to its period.
    fn period_parts(&self) -> Vec<(&'static str, Value<'static>)> {
        if !self.packed {
            return vec![("year", call("$year", field(self.every.name())))];
        }
        let digits = i32::try_from(packed_length(self.every) * 2).unwrap_or(0);
        let from_end = |place: i32, count: i32| {
            let start = call_with("$subtract", [call("$strLenBytes", field("_id")), Value::Int32(digits - place)]);
            let text = call_with("$substrBytes", [field("_id"), start, Value::Int32(count)]);
            call("$toInt", text)
        };
        let mut parts = vec![("year", from_end(0, 4))];
        match self.every {
            Period::Year => {}
            Period::Quarter => {
                let before = call_with("$subtract", [from_end(4, 2), Value::Int32(1)]);
                let month = call_with("$add", [call_with("$multiply", [before, Value::Int32(3)]), Value::Int32(1)]);
                parts.push(("month", month));
            }
            _ => parts.push(("month", from_end(4, 2))),
        }
        let below = [(Period::Day, "day", 6), (Period::Hour, "hour", 8), (Period::Minute, "minute", 10)];
        for (_, name, place) in below.into_iter().filter(|(period, ..)| self.every <= *period) {
            parts.push((name, from_end(place, 2)));
        }
        parts
    }

    fn packed_series(&self) -> Value<'static> {
        let digits = i32::try_from(packed_length(self.every) * 2).unwrap_or(0);
        let length = call_with("$subtract", [call("$strLenBytes", field("_id")), Value::Int32(digits)]);
        call_with("$substrBytes", [field("_id"), Value::Int32(0), length])
    }
}

/// What MongoDB calls a unit of time.
pub(super) fn part_name(part: Grain) -> &'static str {
    if part == Grain::Millisecond { "millisecond" } else { part.name() }
}

/// The digits of a text from `place` on, as a number.
fn number(text: Value<'static>, place: usize, digits: usize) -> Value<'static> {
    let int = |number| Value::Int32(i32::try_from(number).unwrap_or(0));
    call("$toInt", call_with("$substrBytes", [text, int(place), int(digits)]))
}

/// Bytes as lower-case hex digits; null and missing as they are.
fn hex(bytes: Value<'static>, dialect: Dialect) -> Value<'static> {
    let digits = match dialect {
        Dialect::Embedded => return call("$_internalPleachHex", bytes),
        Dialect::MongoDb => call(
            "$function",
            object([
                ("body", Value::from("function(b) { return b.hex() }")),
                ("args", crate::mql::list([bytes.borrow()])),
                ("lang", Value::from("js")),
            ]),
        ),
    };
    let is_bytes = call_with("$eq", [call("$type", bytes.borrow()), Value::from("binData")]);
    cond(is_bytes, digits, bytes)
}
