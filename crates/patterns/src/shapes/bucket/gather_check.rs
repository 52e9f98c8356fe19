//! What cannot be gathered into buckets, as an expression that says why, and as one that fails: MongoDB has no operator that raises
//! an error, so a text that says why is read as a date.

use crate::mql::{call, call_with, cond, field, list, object, with};
use crate::shapes::bucket::{Body, Bucket, Grain, Inexact, Readings, Slot, Slots};
use document::Value;

/// The time of a logical document that can be stored; fails for any other, with what [`Bucket::encode`] would say.
pub(super) fn checked(bucket: &Bucket) -> Value<'static> {
    let is_right = call_with("$eq", [Value::from("$$wrong"), Value::Null]);
    with([("wrong", why_not(bucket))], cond(is_right, field(&bucket.time), failure("_id", Value::from("$$wrong"))))
}

/// Why a logical document cannot be stored, as [`Bucket::encode`] would say it; null if it can.
pub(super) fn why_not(bucket: &Bucket) -> Value<'static> {
    let time = &*bucket.time;
    let mut wrong = vec![(is_not(time, &["date"]), format!("'{time}' is no date"))];
    for series in bucket.by.iter().filter(|series| series.hex) {
        let name = &*series.field;
        let kinds: &[&str] = if bucket.packed { &["string"] } else { &["string", "null", "missing"] };
        wrong.push((is_not(name, kinds), format!("'{name}' is no string of hex digits")));
        let other = unlike(name, "^([0-9A-Fa-f]{2})*\\z");
        wrong.push((other, format!("'{name}' is no even number of hex digits")));
    }
    match &bucket.body {
        Body::Readings(readings) => wrong.extend(wrong_reading(bucket, readings)),
        Body::Slots(slots) => wrong.extend(wrong_slot(bucket, slots)),
    }
    let branches = wrong.into_iter().map(|(case, why)| object([("case", case), ("then", Value::from(why))]));
    call("$switch", object([("branches", list(branches)), ("default", Value::Null)]))
}

/// Fails with `why`, and with the document's `_id`, which is under that name. It reads the document: a constant would be evaluated
/// beforehand, and fail always.
pub(super) fn failure(id: &str, why: Value<'_>) -> Value<'static> {
    let other = Value::from("?");
    let text =
        [("input", field(id)), ("to", Value::from("string")), ("onError", other.borrow()), ("onNull", other.borrow())];
    let text = [Value::from("_id "), call("$convert", object(text)), Value::from(": "), why];
    call("$toDate", call_with("$concat", text))
}

fn wrong_reading(bucket: &Bucket, readings: &Readings) -> Vec<(Value<'static>, String)> {
    let (time, unit) = (&*bucket.time, &readings.unit);
    let taken = format!("'{}' is the name under which a reading's offset is stored", unit.name);
    let mut wrong = vec![(is_not(&unit.name, &["missing"]), taken)];
    if readings.inexact == Inexact::Reject && unit.size != Grain::Millisecond {
        let whole = [("date", field(time)), ("unit", Value::from(unit.size.name()))];
        let inexact = call_with("$ne", [field(time), call("$dateTrunc", object(whole))]);
        wrong.push((inexact, format!("'{time}' is no whole {}", unit.size.name())));
    }
    wrong
}

fn wrong_slot(bucket: &Bucket, slots: &Slots) -> Vec<(Value<'static>, String)> {
    let time = &*bucket.time;
    let year = || call("$year", field(time));
    let before = call_with("$lt", [year(), Value::Int32(1)]);
    let after = call_with("$gt", [year(), Value::Int32(9999)]);
    let mut wrong = vec![(call_with("$or", [before, after]), format!("'{time}' is not in the years 1 to 9999"))];
    if let Slot::Field { field: name, keys, .. } = &slots.slot {
        wrong.push((is_not(name, &["string"]), format!("'{name}' names a slot: it must be a string")));
        for pattern in [keys.pattern(), "^[^$.][^.]*\\z"] {
            wrong.push((unlike(name, pattern), format!("'{name}' is no name of a slot")));
        }
    }
    for (sum, _) in &slots.sums {
        let kinds = ["int", "long", "double", "decimal", "missing"];
        wrong.push((is_not(sum, &kinds), format!("'{sum}' is no number")));
    }
    let known = ["_id", time].into_iter().chain(slots.slot.field());
    let known = known.chain(bucket.by.iter().map(|series| &*series.field));
    let known = list(known.chain(slots.sums.iter().map(|(sum, _)| &**sum)).map(Value::from));
    let names = object([("input", call("$objectToArray", Value::from("$$ROOT"))), ("in", Value::from("$$this.k"))]);
    let others = call("$size", call_with("$setDifference", [call("$map", names), known]));
    let others = call_with("$gt", [others, Value::Int32(0)]);
    wrong.push((others, "it has fields that a slot cannot store".to_owned()));
    wrong
}

fn is_not(name: &str, kinds: &[&'static str]) -> Value<'static> {
    let kinds = list(kinds.iter().map(|kind| Value::from(*kind)));
    call_with("$not", [call_with("$in", [call("$type", field(name)), kinds])])
}

/// Whether a text is not as the pattern says; what is no text is not asked.
fn unlike(name: &str, pattern: &str) -> Value<'static> {
    let text = [("input", field(name)), ("regex", Value::from(pattern.to_owned()))];
    let is_text = call_with("$eq", [call("$type", field(name)), Value::from("string")]);
    call_with("$and", [is_text, call_with("$not", [call("$regexMatch", object(text))])])
}
