//! Adding entries to a bucket: one statement on one document, which also makes the bucket (SEMANTICS R16).
//!
//! Series and period stand in its filter beside the `_id`: an upsert takes them from there, and on a sharded cluster they
//! tell the shard.

use crate::mql::{call, call_with, cond, document, field, list, literal, object, with};
use crate::shapes::bucket::add_native::{AddReadings, AddSlots};
use crate::shapes::bucket::build::{SlotSums, add_up, elements};
use crate::shapes::bucket::entry::BucketEntry;
use crate::shapes::bucket::key::Key;
use crate::shapes::bucket::{Body, Bucket, Layout, ReadingId, Readings, Slots, memo};
use document::filter::{Filter, Node, Test};
use document::op::UpdateStatement;
use document::pipeline::expr::Names;
use document::raw::kind;
use document::update::Update;
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

impl Bucket {
    /// Adds `entries` (not more than a bucket takes) to bucket `n`. If it exists and they do not fit, or one of their times is
    /// taken (`reading_id: time`), the statement fails with 11000 on `_id`.
    pub fn add(self: &Arc<Self>, key: &Key, n: i32, entries: &[BucketEntry]) -> Result<UpdateStatement> {
        let mut conditions = vec![Condition::equal("_id", self.id(key, n))];
        if !self.packed {
            for (series, value) in self.by.iter().zip(&key.series) {
                if let Some(value) = value {
                    conditions.push(Condition::equal(&series.field, value.clone()));
                }
            }
            conditions.push(Condition::equal(self.every.name(), Value::DateTime(key.start)));
        }
        let update = match &self.body {
            Body::Readings(readings) => {
                let elements = elements(entries);
                conditions.extend(readings.room_for(&elements));
                match readings.stats.is_empty() {
                    true => readings.push(&elements)?,
                    false => self.push_with_stats(readings, entries, &elements),
                }
            }
            Body::Slots(slots) => {
                let sums = add_up(slots, entries);
                match slots.layout {
                    Layout::FieldNames => increments(&sums)?,
                    Layout::Array => self.add_to_array(slots, &sums, entries),
                }
            }
        };
        Ok(UpdateStatement { filter: filter(conditions), update, multi: false, upsert: true, hint: None })
    }

    fn push_with_stats(self: &Arc<Self>, readings: &Readings, entries: &[BucketEntry], elements: &[Doc<'_>]) -> Update {
        let count = call_with("$add", [call_with("$ifNull", [field("count"), Value::Int32(0)]), Value::from("$$more")]);
        let old = call_with("$ifNull", [field("readings"), Value::Array(Array::empty())]);
        let all = call_with("$concatArrays", [old, Value::from("$$new")]);
        let stages = [
            call("$set", object([("count", count), ("readings", all)])),
            call("$set", object([("stats", readings.stats_expression())])),
        ];
        let constants = document([("more", length(elements)), ("new", Value::Array(array(elements)))]);
        let program = AddReadings { bucket: Arc::clone(self), entries: entries.to_vec() };
        Update::native(stages.into_iter().collect(), Some(constants), Arc::new(program))
    }

    fn add_to_array(self: &Arc<Self>, slots: &Slots, sums: &[SlotSums<'_>], entries: &[BucketEntry]) -> Update {
        let stages = sums.iter().map(|slot| {
            let name = literal(self.slot_name(slots, slot));
            let field = self.slot_field(slots);
            let more = slot.sums.iter().map(|(short, more)| {
                let old = call_with("$ifNull", [Value::from(format!("$$slot.{short}")), Value::Int32(0)]);
                (&**short, call_with("$add", [old, more.borrow()]))
            });
            let added = call_with("$mergeObjects", [Value::from("$$slot"), object(more)]);
            let is_it = call_with("$eq", [Value::from(format!("$$slot.{field}")), name.borrow()]);
            let each = object([
                ("input", Value::from("$$items")),
                ("as", Value::from("slot")),
                ("in", cond(is_it, added, Value::from("$$slot"))),
            ]);
            let new = slot.sums.iter().map(|(short, sum)| (&**short, sum.borrow()));
            let new = object([(field, name.borrow())].into_iter().chain(new));
            let appended = call_with("$concatArrays", [Value::from("$$items"), list([new])]);
            let is_there = call_with("$in", [name, Value::from(format!("$$items.{field}"))]);
            let items = call_with("$ifNull", [crate::mql::field("items"), Value::Array(Array::empty())]);
            let after = with([("items", items)], cond(is_there, call("$map", each), appended));
            call("$set", object([("items", after)]))
        });
        let program = AddSlots { bucket: Arc::clone(self), entries: entries.to_vec() };
        Update::native(stages.collect(), None, Arc::new(program))
    }
}

impl Readings {
    /// What a bucket must be for these to go in.
    fn room_for(&self, elements: &[Doc<'_>]) -> Vec<Condition> {
        let more = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        let limit = i64::from(self.at_most) + 1 - i64::from(more);
        let limit = i32::try_from(limit).map_or(Value::Int64(limit), Value::Int32);
        let mut conditions = vec![Condition::new("count", "$lt", limit.clone(), Test::Lt(limit))];
        if self.reading_id == ReadingId::Time {
            let offsets: Vec<Value<'static>> = elements
                .iter()
                .filter_map(|element| element.borrow().get(&self.unit.name).map(Value::into_owned))
                .collect();
            let listed = list(offsets.iter().map(Value::borrow));
            let test = Test::Not(Box::new(Test::among(offsets)));
            conditions.push(Condition::new(&format!("readings.{}", self.unit.name), "$nin", listed, test));
        }
        conditions
    }

    /// `{ $inc: { count: 2 }, $push: { readings: { $each: [ … ] } } }`
    fn push(&self, elements: &[Doc<'_>]) -> Result<Update> {
        let each = object([("readings", call("$each", Value::Array(array(elements))))]);
        let update = object([("$inc", object([("count", length(elements))])), ("$push", each)]);
        Update::parse(&update, &[], &mut Names::new())
    }
}

/// `{ $inc: { "items.0605.a": 3 } }`. A slot without any sum is made, if need be, by a pipeline.
fn increments(slots: &[SlotSums<'_>]) -> Result<Update> {
    let mut fields = DocWriter::with_capacity(32 * slots.len());
    if slots.iter().all(|slot| !slot.sums.is_empty()) {
        for slot in slots {
            for (short, sum) in &slot.sums {
                fields.append(&format!("items.{}.{short}", slot.key), sum);
            }
        }
        return memo::increments(fields.finish());
    }
    for slot in slots {
        let path = format!("items.{}", slot.key);
        let more = slot.sums.iter().map(|(short, sum)| {
            let old = call_with("$ifNull", [field(&format!("{path}.{short}")), Value::Int32(0)]);
            (&**short, call_with("$add", [old, sum.borrow()]))
        });
        let new = call_with("$mergeObjects", [field(&path), object(more)]);
        fields.append(&path, &new);
    }
    let stages = list([call("$set", Value::Document(fields.finish()))]);
    Update::parse(&stages, &[], &mut Names::new())
}

fn array(elements: &[Doc<'_>]) -> Array<'static> {
    let mut array = document::ArrayWriter::new();
    for element in elements {
        array.push_raw(kind::DOCUMENT, element.as_bytes());
    }
    array.finish()
}

fn length(elements: &[Doc<'_>]) -> Value<'static> {
    Value::Int32(i32::try_from(elements.len()).unwrap_or(i32::MAX))
}

/// One field of the filter, compiled and as it is written.
struct Condition {
    name: String,
    written: Value<'static>,
    test: Test,
}

impl Condition {
    fn new(name: &str, operator: &str, argument: Value<'static>, test: Test) -> Condition {
        Condition { name: name.to_owned(), written: call(operator, argument), test }
    }

    fn equal(name: &str, value: Value<'static>) -> Condition {
        let written = match &value {
            // Anything else could be read as operators or as a pattern. An `_id` of ours never is.
            Value::Document(_) | Value::Regex { .. } if name != "_id" => call("$eq", value.borrow()),
            plain => plain.clone(),
        };
        Condition { name: name.to_owned(), written, test: Test::Eq(value) }
    }
}

fn filter(conditions: Vec<Condition>) -> Filter {
    let source = document(conditions.iter().map(|condition| (&*condition.name, condition.written.borrow())));
    let nodes = conditions.into_iter().map(|condition| Node::field(&condition.name, condition.test));
    Filter { root: Node::all_of(nodes).sorted(), source, collation: None }
}
