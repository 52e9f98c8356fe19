//! Buckets from logical documents, by stages that a person could run: the move of `plan`. `apply` goes part by part instead;
//! both give the same buckets. What does not fit fails as a whole, before anything is written.

use crate::mql::{call, call_with, cond, field, list, object};
use crate::shapes::bucket::encode::whole;
use crate::shapes::bucket::gather_check::{checked, failure};
use crate::shapes::bucket::view::part_name;
use crate::shapes::bucket::{Body, Bucket, Grain, Layout, Period, Readings, Slot, Slots, slot_key};
use document::{Doc, Value};

impl Bucket {
    /// From logical documents to stored ones; `order` is the field that tells which of them came first.
    pub(crate) fn gather(&self, order: &str) -> Vec<Value<'static>> {
        let mut stages = vec![call("$sort", object([(order, Value::Int32(1))]))];
        stages.push(call("$set", object([(&*self.time, checked(self))])));
        match &self.body {
            Body::Readings(readings) => {
                stages.extend(self.gather_readings(readings, order));
                stages.extend(self.stored_key());
                stages.push(self.stored_readings(readings));
            }
            Body::Slots(slots) => {
                stages.extend(self.gather_slots(slots, order));
                stages.extend(self.stored_key());
                stages.push(self.stored_slots(slots));
            }
        }
        stages
    }

    /// The stage that stores them. A bucket that somebody made meanwhile is not overwritten.
    pub(crate) fn merged(&self) -> Value<'static> {
        let into = ("into", Value::from(&*self.into.collection));
        call("$merge", object([into, ("whenMatched", Value::from("fail"))]))
    }

    /// Series and period of a logical document. Digits of either case are the same bytes.
    fn gathered_key(&self) -> Value<'static> {
        let series = self.by.iter().map(|series| {
            let value = field(&series.field);
            let upper = || if_text(&series.field, call("$toUpper", value.borrow()));
            (&*series.field, if series.hex { upper() } else { value.borrow().into_owned() })
        });
        object(series.chain([(self.every.name(), self.start_of(self.every.name()))]))
    }

    fn start_of(&self, unit: &str) -> Value<'static> {
        call("$dateTrunc", object([("date", field(&self.time)), ("unit", Value::from(unit))]))
    }

    /// The readings of each series and period in their order, as many to a bucket as there may be.
    fn gather_readings(&self, readings: &Readings, order: &str) -> Vec<Value<'static>> {
        let mut own = Value::from("$$ROOT");
        let id = (!readings.keeps_id()).then_some("_id");
        for name in self.by.iter().map(|series| &*series.field).chain([&*self.time]).chain(id) {
            own = call("$unsetField", object([("field", Value::from(name)), ("input", own)]));
        }
        let offset = object([(&*readings.unit.name, self.offset(readings.unit.size))]);
        let each = [
            ("key", self.gathered_key()),
            ("order", field(order)),
            ("reading", call_with("$mergeObjects", [offset, own])),
        ];
        let mut stages = vec![call("$replaceWith", object(each))];
        if !readings.keeps_id() {
            stages.extend(only_one_of_a_time(readings));
        }
        // Equal numbers of different types are one series: its first document says how it is written.
        let until_now = object([("documents", list([Value::from("unbounded"), Value::from("current")]))]);
        let first = object([("$first", field("key")), ("window", until_now)]);
        stages.push(numbered(field("key"), "number", Some(("series", first))));
        let before = call_with("$subtract", [field("number"), Value::Int32(1)]);
        let full = call_with("$divide", [before, whole(i64::from(readings.at_most))]);
        let id = object([("key", field("series")), ("n", call("$toInt", call("$floor", full)))]);
        let group =
            [("_id", id), ("count", call("$sum", Value::Int32(1))), ("readings", call("$push", field("reading")))];
        stages.push(call("$group", object(group)));
        stages
    }

    /// How many units a reading is behind the start of its period: a long only where an int is too short.
    fn offset(&self, size: Grain) -> Value<'static> {
        let start = self.start_of(self.every.name());
        let Some(millis) = size.millis() else {
            let span = [("startDate", start), ("endDate", field(&self.time)), ("unit", Value::from(size.name()))];
            return call("$toInt", call("$dateDiff", object(span)));
        };
        let since = call_with("$subtract", [field(&self.time), start]);
        let units = match millis {
            1 => since,
            millis => call("$floor", call_with("$divide", [since, whole(millis)])),
        };
        let int = call("$toInt", units.borrow());
        if self.every.units(size) <= u64::from(i32::MAX.unsigned_abs()) {
            return int;
        }
        let fits = call_with("$lte", [units.borrow(), Value::Int32(i32::MAX)]);
        cond(fits, int, call("$toLong", units))
    }

    fn stored_readings(&self, readings: &Readings) -> Value<'static> {
        let id = call_with("$mergeObjects", [field("_id.key"), object([("n", field("_id.n"))])]);
        let stats = match readings.stats.is_empty() {
            true => Value::Missing,
            false => readings.stats_expression(),
        };
        let own = object([("count", field("count")), ("readings", field("readings")), ("stats", stats)]);
        call("$replaceWith", call_with("$mergeObjects", [object([("_id", id)]), field("_id.key"), own]))
    }

    /// The sums of each series, period and slot; then the slots of each series and period, in their order.
    fn gather_slots(&self, slots: &Slots, order: &str) -> Vec<Value<'static>> {
        let slot = match (&slots.slot, slots.layout) {
            (Slot::Field { field: name, .. }, _) => field(name),
            (Slot::Time(grain), Layout::Array) => self.start_of(part_name(*grain)),
            (Slot::Time(grain), Layout::FieldNames) => digits(field(&self.time), &slot_format(self.every, *grain)),
        };
        let mut sums = vec![
            ("_id".to_owned(), object([("key", self.gathered_key()), ("slot", slot)])),
            ("order".to_owned(), call("$first", field(order))),
        ];
        let mut held = Vec::new();
        for (logical, short) in &slots.sums {
            let (sum, there) = (format!("sum_{short}"), format!("has_{short}"));
            // A sum that no document has stays absent.
            let value = cond(field(&there), field(&sum), Value::from("$$REMOVE"));
            held.push((&**short, value));
            sums.push((sum, call("$sum", field(logical))));
            sums.push((there, call("$max", call("$isNumber", field(logical)))));
        }
        let item = match slots.layout {
            Layout::FieldNames => object([("k", field("_id.slot")), ("v", object(held))]),
            Layout::Array => object([(self.slot_field(slots), field("_id.slot"))].into_iter().chain(held)),
        };
        let id = object([("key", field("_id.key"))]);
        vec![
            call("$group", object(sums.iter().map(|(name, value)| (&**name, value.borrow())))),
            call("$sort", object([("order", Value::Int32(1)), ("_id.slot", Value::Int32(1))])),
            call("$group", object([("_id", id), ("items", call("$push", item))])),
        ]
    }

    fn stored_slots(&self, slots: &Slots) -> Value<'static> {
        let items = match slots.layout {
            Layout::FieldNames => call("$arrayToObject", field("items")),
            Layout::Array => field("items"),
        };
        let items = object([("items", items)]);
        if self.packed {
            let series = self.by.iter().map(|series| field(&format!("_id.key.{}", series.field)));
            let all = call_with("$concat", series.chain([packed_digits(self.every)]));
            return call("$replaceWith", call_with("$mergeObjects", [object([("_id", bytes(all))]), items]));
        }
        let id = object([("_id", field("_id.key"))]);
        call("$replaceWith", call_with("$mergeObjects", [id, field("_id.key"), items]))
    }

    /// Hex digits become bytes once per bucket: JavaScript is slow.
    fn stored_key(&self) -> Option<Value<'static>> {
        let hex = self.by.iter().filter(|series| series.hex && !self.packed);
        let paths: Vec<String> = hex.map(|series| format!("_id.key.{}", series.field)).collect();
        let fields = paths.iter().map(|path| (&**path, if_text(path, bytes(field(path)))));
        (!paths.is_empty()).then(|| call("$set", object(fields)))
    }
}

/// Numbers the documents of each `partition` from 1, and gives each what `more` says.
fn numbered(partition: Value<'static>, name: &str, more: Option<(&str, Value<'static>)>) -> Value<'static> {
    let number = call("$documentNumber", Value::Document(Doc::empty()));
    let window = [
        ("partitionBy", partition),
        ("sortBy", object([("order", Value::Int32(1))])),
        ("output", object([(name, number)].into_iter().chain(more))),
    ];
    call("$setWindowFields", object(window))
}

/// Fails on a second reading of a series and time.
fn only_one_of_a_time(readings: &Readings) -> [Value<'static>; 2] {
    let at = field(&format!("reading.{}", readings.unit.name));
    let message = "there is another reading of its series and time";
    let is_first = call_with("$eq", [field("same"), Value::Int32(1)]);
    let order = cond(is_first, field("order"), failure("order", Value::from(message)));
    [numbered(object([("key", field("key")), ("at", at)]), "same", None), call("$set", object([("order", order)]))]
}

/// A slot's name as `$dateToString` writes it.
fn slot_format(every: Period, grain: Grain) -> String {
    let part = |part: Grain| match part {
        Grain::Month => "%m",
        Grain::Day => "%d",
        Grain::Hour => "%H",
        Grain::Minute => "%M",
        Grain::Second => "%S",
        Grain::Millisecond => "%L",
    };
    slot_key::parts(every, grain).map(|(grain, _)| part(grain)).collect()
}

fn digits(date: Value<'static>, format: &str) -> Value<'static> {
    call("$dateToString", object([("date", date), ("format", Value::from(format))]))
}

/// The period's digits at the end of a packed `_id`.
fn packed_digits(every: Period) -> Value<'static> {
    let start = || field(&format!("_id.key.{}", every.name()));
    let of = |format: &str| digits(start(), format);
    match every {
        Period::Year => of("%Y"),
        Period::Quarter => {
            let quarter = call("$ceil", call_with("$divide", [call("$month", start()), Value::Int32(3)]));
            call_with("$concat", [of("%Y0"), call("$toString", call("$toInt", quarter))])
        }
        Period::Month => of("%Y%m"),
        Period::Day => of("%Y%m%d"),
        Period::Hour => of("%Y%m%d%H"),
        Period::Minute => of("%Y%m%d%H%M"),
    }
}

/// Hex digits as bytes: MongoDB 6.0 has no other way than JavaScript.
fn bytes(digits: Value<'static>) -> Value<'static> {
    let function = [
        ("body", Value::from("function(digits) { return HexData(0, digits) }")),
        ("args", list([digits])),
        ("lang", Value::from("js")),
    ];
    call("$function", object(function))
}

fn if_text(path: &str, then: Value<'static>) -> Value<'static> {
    let is_text = call_with("$eq", [call("$type", field(path)), Value::from("string")]);
    cond(is_text, then, field(path))
}
