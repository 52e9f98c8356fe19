//! Summaries as one MongoDB pipeline over the stored collection, without JavaScript.
//!
//! Each bucket is reduced to its figures first, whole ones without looking at dates, then they are added up. Adding sums of
//! sums is exact for whole numbers only: the types of the parts come along, and if one is no int the answer is thrown away
//! and found one by one ([`is_exact`]).

use crate::mql::{call, call_with, cond, field, list, object};
use crate::rule::read::names_others;
use crate::shapes::bucket::read::summaries::SummaryRead;
use crate::shapes::bucket::read::summaries::group_stage::{Accumulator, GroupId, Operand};
use crate::shapes::bucket::read::summaries::state::AccumulatorState;
use crate::shapes::bucket::{Body, Key, Layout, Slot, slot_key};
use document::pipeline::{Pipeline, Rows, Run, Stage, Stream};
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// Greater than every name of a slot.
const BEHIND_ALL: &str = "~";

/// A bucket of which only a part is asked for.
struct Edge {
    start: i64,
    /// Slots or readings that count are not before, or are before, this moment.
    at: i64,
    operator: &'static str,
}

impl SummaryRead {
    /// The stages behind the conditions on series and period; `None` if this report is better found in another way.
    pub(in super::super) fn to_mql(&self) -> Option<Array<'static>> {
        let GroupId::Constant(_) = self.group.id else { return None };
        if names_others(self.rest.source.as_ref()?) {
            return None;
        }
        let mut stages = Vec::new();
        if !self.scope.series.is_all() {
            stages.push(call("$match", Value::Document(self.scope.series.source.clone())));
        }
        stages.extend(self.in_time()?);
        let edges = self.edges();
        let is_edge = self.is_edge(&edges)?;
        let part = match is_edge {
            Some(is_edge) => Some((is_edge, self.part(&edges)?)),
            None => None,
        };
        stages.extend(match &self.bucket.body {
            Body::Slots(_) => self.slots(part)?,
            Body::Readings(_) => self.readings(part)?,
        });
        stages.push(self.added_up());
        Some(stages.into_iter().collect())
    }

    /// What the conditions on the period leave open: they let the bucket through that begins where the time ends. Returns `None`
    /// if it cannot be said.
    #[expect(clippy::option_option, reason = "nothing to be said, and nothing that can be said")]
    fn in_time(&self) -> Option<Option<Value<'static>>> {
        let (scope, every) = (&self.scope, self.bucket.every);
        if self.bucket.packed && scope.packed.is_none() && (scope.from, scope.to) != (i64::MIN, i64::MAX) {
            return None;
        }
        if scope.to == i64::MAX {
            return Some(None);
        }
        let condition = match (self.bucket.packed, every.start(scope.to) == scope.to) {
            (false, _) => object([(every.name(), call("$lt", Value::DateTime(scope.to)))]),
            (true, true) => object([("_id", call("$nin", list(self.ids(scope.to)?)))]),
            (true, false) => return Some(None),
        };
        Some(Some(call("$match", condition)))
    }

    /// The packed `_id`s of the buckets that begin then. The bytes of an `_id` cannot be taken apart: only a few series have
    /// known ones.
    fn ids(&self, start: i64) -> Option<Vec<Value<'static>>> {
        let keys = self.scope.packed.as_ref().filter(|keys| keys.len() <= 100)?;
        let id = |key: &Vec<u8>| {
            let series = vec![Some(Value::Binary { subtype: 0, bytes: key.clone().into() })];
            self.bucket.id(&Key { series, start }, 0)
        };
        Some(keys.iter().map(id).collect())
    }

    /// At most two: where the time asked for begins and ends inside a bucket.
    fn edges(&self) -> Vec<Edge> {
        let (scope, every) = (&self.scope, self.bucket.every);
        let mut edges = Vec::new();
        let start_of = |at: i64| Some(every.start(at)).filter(|start| *start != at);
        if let Some(start) = start_of(scope.from).filter(|_| scope.from != i64::MIN) {
            edges.push(Edge { start, at: scope.from, operator: "$gte" });
        }
        if let Some(start) = start_of(scope.to).filter(|_| scope.to != i64::MAX) {
            edges.push(Edge { start, at: scope.to, operator: "$lt" });
        }
        edges
    }

    /// An expression on the bucket: is it one of these? An inner `None`: there are none.
    #[expect(clippy::option_option, reason = "nothing to be said, and nothing that can be said")]
    fn is_edge(&self, edges: &[Edge]) -> Option<Option<Value<'static>>> {
        if edges.is_empty() {
            return Some(None);
        }
        let mut any = Vec::new();
        for edge in edges {
            any.push(self.is_bucket(edge.start)?);
        }
        Some(Some(call_with("$or", any)))
    }

    /// An expression: does the bucket begin then?
    fn is_bucket(&self, start: i64) -> Option<Value<'static>> {
        if !self.bucket.packed {
            return Some(call_with("$eq", [field(self.bucket.every.name()), Value::DateTime(start)]));
        }
        Some(call_with("$in", [field("_id"), list(self.ids(start)?)]))
    }

    /// The condition on `$$this`, an entry of an edge bucket.
    fn part(&self, edges: &[Edge]) -> Option<Value<'static>> {
        let mut all = Vec::new();
        for edge in edges {
            let compared = self.compared(edge)?;
            all.push(match edges.len() {
                1 => compared,
                _ => call_with("$or", [call_with("$not", [self.is_bucket(edge.start)?]), compared]),
            });
        }
        Some(call_with("$and", all))
    }

    fn compared(&self, edge: &Edge) -> Option<Value<'static>> {
        let (every, time) = (self.bucket.every, &self.bucket.time);
        let (place, bound) = match &self.bucket.body {
            Body::Slots(slots) => match (&slots.slot, slots.layout) {
                (Slot::Time(_), Layout::Array) => (format!("$$this.{time}"), Value::DateTime(edge.at)),
                (Slot::Time(grain), Layout::FieldNames) => {
                    // The first slot that begins at that moment or later.
                    let mut first = grain.start(edge.at);
                    if first < edge.at {
                        first = grain.after(first, 1)?;
                    }
                    let inside = first < every.next(edge.start);
                    let name = if inside { slot_key(every, *grain, first) } else { BEHIND_ALL.to_owned() };
                    ("$$this.k".to_owned(), Value::string(name))
                }
                (Slot::Field { .. }, _) => return None,
            },
            Body::Readings(readings) => {
                let (units, exact) = readings.unit.size.units_since(edge.start, edge.at);
                let units = if exact { units } else { units.checked_add(1)? };
                (format!("$$this.{}", readings.unit.name), Value::Int64(units))
            }
        };
        Some(call_with(edge.operator, [Value::string(place), bound]))
    }

    /// What of an array counts.
    fn counted(all: Value<'static>, part: Option<(Value<'static>, Value<'static>)>) -> Value<'static> {
        match part {
            Some((is_edge, condition)) => {
                let some = call("$filter", object([("input", all.clone()), ("cond", condition)]));
                cond(is_edge, some, all)
            }
            None => all,
        }
    }

    fn slots(&self, part: Option<(Value<'static>, Value<'static>)>) -> Option<Vec<Value<'static>>> {
        let Body::Slots(slots) = &self.bucket.body else { return None };
        if matches!(slots.slot, Slot::Field { .. }) {
            return None;
        }
        let (all, inner) = match slots.layout {
            Layout::Array => (field("items"), "i"),
            Layout::FieldNames => {
                (call("$objectToArray", call_with("$ifNull", [field("items"), Value::Document(Doc::empty())])), "i.v")
            }
        };
        let found = object([("_id", Value::Int32(0)), ("i", SummaryRead::counted(all, part))]);
        let mut summaries = vec![("_id".to_owned(), Value::Int32(0)), ("n".to_owned(), call("$size", field("i")))];
        for (at, asked) in self.group.fields.iter().enumerate() {
            let Operand::Stored { field: of, .. } = &asked.of else { continue };
            let values = field(&format!("{inner}.{of}"));
            let operator = match asked.kind {
                Accumulator::Sum => "$sum",
                Accumulator::Min => "$min",
                Accumulator::Max => "$max",
                Accumulator::Avg | Accumulator::Count => return None,
            };
            summaries.push((format!("f{at}"), call(operator, values)));
        }
        Some(vec![call("$project", found), call("$project", named(summaries))])
    }

    fn readings(&self, part: Option<(Value<'static>, Value<'static>)>) -> Option<Vec<Value<'static>>> {
        let is_edge = part.as_ref().map(|(is_edge, _)| is_edge.clone());
        let either = |of_part: Value<'static>, of_whole: Value<'static>| match &is_edge {
            Some(_) => cond(call_with("$isArray", [field("i")]), of_part, of_whole),
            None => of_whole,
        };
        let mut summaries = vec![
            ("_id".to_owned(), Value::Int32(0)),
            ("n".to_owned(), either(call("$size", field("i")), field("count"))),
        ];
        for (at, asked) in self.group.fields.iter().enumerate() {
            let Operand::Stored { field: of, stat } = &asked.of else { continue };
            let operator = match asked.kind {
                Accumulator::Sum => "$sum",
                Accumulator::Min => "$min",
                Accumulator::Max => "$max",
                Accumulator::Avg | Accumulator::Count => return None,
            };
            let figure = field(&format!("stats.{}", stat.as_ref()?));
            summaries.push((format!("f{at}"), either(call(operator, field(&format!("i.{of}"))), figure)));
        }
        let mut stages = Vec::new();
        if let Some((is_edge, condition)) = part {
            let some = call("$filter", object([("input", field("readings")), ("cond", condition)]));
            let found = object([
                ("_id", Value::Int32(0)),
                ("count", Value::Int32(1)),
                ("stats", Value::Int32(1)),
                ("i", cond(is_edge, some, Value::Null)),
            ]);
            stages.push(call("$project", found));
        }
        stages.push(call("$project", named(summaries)));
        Some(stages)
    }

    fn added_up(&self) -> Value<'static> {
        let mut group = vec![("_id".to_owned(), Value::Null), ("n".to_owned(), call("$sum", field("n")))];
        let mut types = Vec::new();
        for (at, asked) in self.group.fields.iter().enumerate() {
            let name = format!("f{at}");
            let operator = match asked.kind {
                Accumulator::Count => continue,
                Accumulator::Min => "$min",
                Accumulator::Max => "$max",
                Accumulator::Sum | Accumulator::Avg => {
                    types.push(call("$type", field(&name)));
                    "$sum"
                }
            };
            group.push((name.clone(), call(operator, field(&name))));
        }
        if !types.is_empty() {
            // By the alphabet: decimal, double, int, long.
            group.push(("least".to_owned(), call("$min", call("$min", list(types.clone())))));
            group.push(("greatest".to_owned(), call("$max", call("$max", list(types)))));
        }
        call("$group", named(group))
    }

    /// What makes the answer of the row that the pipeline gives, and what follows.
    pub(in super::super) fn behind_mql(mut self) -> Pipeline {
        let rest = std::mem::take(&mut self.rest);
        Pipeline::of_stage(FromMql(self), None).then(rest)
    }
}

fn named(fields: Vec<(String, Value<'static>)>) -> Value<'static> {
    let mut writer = DocWriter::new();
    for (name, value) in fields {
        writer.append(&name, &value);
    }
    Value::Document(writer.finish())
}

#[derive(Debug)]
struct FromMql(SummaryRead);

impl Stage for FromMql {
    fn name(&self) -> &'static str {
        "$group"
    }

    fn start(self: Arc<Self>, input: Rows, _: &Run) -> Result<Rows> {
        Ok(Box::new(AnswerRows { stage: self, input }))
    }
}

struct AnswerRows {
    stage: Arc<FromMql>,
    input: Rows,
}

impl Stream for AnswerRows {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let summaries = &self.stage.0;
        while let Some(row) = self.input.next()? {
            let documents = row.get("n").and_then(|number| number.as_i64_exact()).unwrap_or_default();
            if documents == 0 {
                continue;
            }
            let mut writer = DocWriter::new();
            if let (true, GroupId::Constant(id)) = (summaries.group.shows_id, &summaries.group.id) {
                writer.append("_id", id);
            }
            for (at, field) in summaries.group.fields.iter().enumerate() {
                let value = match &field.of {
                    Operand::Each(_) => AccumulatorState::Count.finish(field, documents),
                    Operand::Stored { .. } => row.get(&format!("f{at}")).unwrap_or(Value::Null),
                };
                writer.append(&field.name, &value);
            }
            return Ok(Some(writer.finish()));
        }
        Ok(None)
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

/// Whether the sums in a row of the pipeline are exact: all that was added up were ints.
pub(in super::super) fn is_exact(row: &Doc<'_>) -> bool {
    let is_int = |name: &str| row.get(name).is_none_or(|found| found.as_str() == Some("int"));
    is_int("least") && is_int("greatest")
}
