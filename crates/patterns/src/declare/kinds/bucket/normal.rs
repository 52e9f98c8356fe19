//! A bucket's block in its normal form.

use crate::declare::kinds::bucket::readings::{INEXACT, READING_IDS};
use crate::declare::kinds::bucket::{BUCKET_IDS, LAYOUTS, word};
use crate::shapes::bucket::{Body, Bucket, Readings, Slot, Slots};
use document::{ArrayWriter, Doc, DocWriter, Value};

pub(super) fn block(bucket: &Bucket) -> Doc<'static> {
    let mut own = DocWriter::new();
    own.append("into", &Value::string(&*bucket.into.collection));
    own.append("time", &Value::string(&*bucket.time));
    let mut by = ArrayWriter::new();
    for series in &bucket.by {
        let field = Value::string(&*series.field);
        by.push(&match series.hex {
            true => crate::mql::object([("field", field), ("as", Value::from("hex"))]),
            false => field,
        });
    }
    own.append("by", &Value::Array(by.finish()));
    own.append("every", &Value::string(bucket.every.name()));
    match &bucket.body {
        Body::Readings(readings) => self::readings(readings, &mut own),
        Body::Slots(slots) => self::slots(slots, bucket.packed, &mut own),
    }
    own.finish()
}

fn readings(readings: &Readings, own: &mut DocWriter) {
    own.append("at_most", &number(readings.at_most));
    own.start_document("unit").append(readings.unit.size.name(), &Value::string(&*readings.unit.name)).end();
    own.append("inexact", &Value::string(word(INEXACT, readings.inexact)));
    own.append("reading_id", &Value::string(word(READING_IDS, readings.reading_id)));
    if readings.stats.is_empty() {
        return;
    }
    own.start_document("stats");
    for (field, figures) in &readings.stats {
        let words: Vec<Value<'static>> = figures.iter().map(|stat| Value::string(stat.name())).collect();
        own.append(field, &Value::Array(words.into_iter().collect()));
    }
    own.end();
}

fn slots(slots: &Slots, packed: bool, own: &mut DocWriter) {
    match &slots.slot {
        Slot::Time(grain) => {
            own.append("slot", &Value::string(grain.name()));
        }
        Slot::Field { field, keys, at_most } => {
            own.start_document("slot");
            own.append("field", &Value::string(&**field)).append("keys", &Value::string(keys.pattern()));
            own.append("at_most", &number(*at_most)).end();
        }
    }
    own.start_document("sum");
    for (logical, short) in &slots.sums {
        own.append(logical, &Value::string(&**short));
    }
    own.end();
    own.append("layout", &Value::string(word(LAYOUTS, slots.layout)));
    own.append("bucket_id", &Value::string(word(BUCKET_IDS, packed)));
}

fn number(number: u32) -> Value<'static> {
    i32::try_from(number).map_or(Value::Int64(i64::from(number)), Value::Int32)
}
