//! The value of a count, sum or average from scratch, as pipelines: of the children of some keys, and of all hosts.

use super::TallyField;
use super::exact::{Shown, accumulators, grouped_state, visible_expression};
use crate::mql::{call, call_with, cond, field, list, literal, object};
use crate::rule::{Link, key};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Result, Value};

/// What is summed, and how it is shown; nothing for a count.
type Summed = (Shown, Path);

/// The stages behind a `$match` on keys, compiled.
pub(super) fn compiled(link: &Link, summed: Option<&Summed>) -> Result<Pipeline> {
    let stages: Array<'static> = grouping(link, summed).into_iter().collect();
    Pipeline::parse(&stages, &mut Names::new())
}

/// The children of some keys.
pub(super) fn of_keys(link: &Link, keys: &[Value<'static>]) -> Result<Pipeline> {
    let mut stages = vec![key::any_of(&link.foreign.path, keys)];
    if link.each_foreign() {
        // The elements that were not asked for are taken out behind `$unwind`.
        stages.extend(unwinding(&link.foreign.path.dotted()));
        stages.push(key::any_of(&Path::new("_pleach_key"), keys));
    }
    let stages: Array<'static> = stages.into_iter().collect();
    Pipeline::parse(&stages, &mut Names::new())
}

/// Each key of a child's array once.
fn unwinding(by: &str) -> [Value<'static>; 2] {
    let once = call_with("$setUnion", [field(by), list([])]);
    let keys = cond(call("$isArray", field(by)), once, list([field(by)]));
    [call("$set", object([("_pleach_key", keys)])), call("$unwind", Value::from("$_pleach_key"))]
}

/// One row `{ _id: key, expected, expectedState }` per key that has children.
fn grouping(link: &Link, summed: Option<&Summed>) -> Vec<Value<'static>> {
    let by = if link.each_foreign() { "_pleach_key".to_owned() } else { link.foreign.path.dotted() };
    let mut stages = Vec::new();
    if let Some(filter) = &link.filter {
        stages.push(call("$match", Value::Document(filter.source.clone())));
    }
    stages.push(call("$group", object(group(summed, field(&by)))));
    match summed {
        None => stages.push(call("$project", object([("expected", Value::from("$n"))]))),
        Some((shown, _)) => {
            let state = grouped_state(Value::from("$$ROOT"));
            stages.push(call("$project", object([("expectedState", state)])));
            let value = visible_expression(*shown, Value::from("$expectedState"));
            stages.push(call("$set", object([("expected", value)])));
        }
    }
    stages
}

fn group(summed: Option<&Summed>, by: Value<'static>) -> Vec<(&'static str, Value<'static>)> {
    let mut fields = vec![("_id", by)];
    match summed {
        None => fields.push(("n", call("$sum", Value::Int32(1)))),
        Some((_, path)) => fields.extend(accumulators(&path.dotted())),
    }
    fields
}

impl TallyField {
    /// What makes a row of the children of a key: the stages behind a `$match` on it.
    pub(super) fn grouping_stages(&self) -> Array<'static> {
        grouping(&self.link, self.summed.as_ref()).into_iter().collect()
    }

    /// See [`crate::rule::Field::expected`].
    pub(super) fn definition(&self, only_differences: bool) -> Array<'static> {
        let found = "_pleach_found";
        let local = self.link.local.path.dotted();
        let by = self.link.foreign.path.dotted();
        let mut inner = Vec::new();
        if let Some(filter) = &self.link.filter {
            inner.push(call("$match", Value::Document(filter.source.clone())));
        }
        if !self.link.each_foreign() {
            // A `$lookup` would join per element.
            let single = call_with("$not", [call("$isArray", field(&by))]);
            inner.push(call("$match", object([("$expr", single)])));
        }
        inner.push(call("$group", object(group(self.summed.as_ref(), Value::Null))));
        let lookup = object([
            ("from", Value::from(&*self.link.source.collection)),
            ("localField", Value::from(&*local)),
            ("foreignField", Value::from(&*by)),
            ("pipeline", list(inner)),
            ("as", Value::from(found)),
        ]);
        // Null and missing never link, although they are joined.
        let row = cond(links(&local), call_with("$arrayElemAt", [field(found), Value::Int32(0)]), Value::Null);
        let mut shown = vec![("stored", field(&self.field))];
        match (&self.summed, &self.owned.state) {
            (Some(_), Some(state)) => {
                shown.push(("state", field(&state.dotted())));
                shown.push(("expectedState", grouped_state(row)));
            }
            _ => {
                let n = crate::mql::with([("g", row)], call_with("$ifNull", [Value::from("$$g.n"), Value::Int32(0)]));
                shown.push(("expected", n));
            }
        }
        let mut stages = vec![call("$lookup", lookup), call("$project", object(shown))];
        if let Some((shown, _)) = &self.summed {
            let value = visible_expression(*shown, Value::from("$expectedState"));
            stages.push(call("$set", object([("expected", value)])));
        }
        if only_differences {
            stages.push(self.differing());
        }
        stages.into_iter().collect()
    }

    /// As [`TallyField::definition`], in one pass over hosts and children: for who may not make the index that the other form
    /// needs. Gives hosts whose value differs.
    pub(super) fn differing_without_index(&self) -> Vec<Value<'static>> {
        self.meeting().into_iter().chain([crate::fields::differing()]).collect()
    }

    /// All hosts as `{ stored, expected }`: those that link meet their children in one pass, which needs no index; the others
    /// have no children.
    pub(super) fn compared(&self) -> Vec<Vec<Value<'static>>> {
        let links = links(&self.link.local.path.dotted());
        let mut linked = vec![only(links.clone())];
        linked.extend(self.meeting());
        let empty = literal(self.evaluated(None).value);
        let shown = object([("stored", field(&self.field)), ("expected", call_with("$ifNull", [empty, Value::Null]))]);
        let others = vec![only(call_with("$not", [links])), call("$project", shown)];
        vec![linked, others]
    }

    /// `{ _id, stored, expected }` of every host that links.
    fn meeting(&self) -> Vec<Value<'static>> {
        let by = self.link.foreign.path.dotted();
        let mut children = Vec::new();
        if self.link.each_foreign() {
            children.extend(unwinding(&by));
        } else {
            children.push(only(links(&by)));
        }
        children.extend(grouping(&self.link, self.summed.as_ref()));
        let row = [("_id", Value::Int32(0)), ("key", Value::from("$_id")), ("expected", Value::Int32(1))];
        children.push(call("$project", object(row)));
        let host = object([("id", field("_id")), ("stored", field(&self.field))]);
        let shown = [("_id", Value::Int32(0)), ("key", field(&self.link.local.path.dotted())), ("host", host)];
        let union = object([("coll", Value::from(&*self.link.source.collection)), ("pipeline", list(children))]);
        let met = object([
            ("_id", Value::from("$key")),
            ("hosts", call("$push", Value::from("$host"))),
            ("expected", call("$max", Value::from("$expected"))),
        ]);
        let empty = literal(self.evaluated(None).value);
        let compared = object([
            ("_id", Value::from("$hosts.id")),
            ("stored", Value::from("$hosts.stored")),
            ("expected", call_with("$ifNull", [Value::from("$expected"), empty])),
        ]);
        vec![
            call("$project", object(shown)),
            call("$unionWith", union),
            call("$group", met),
            call("$unwind", Value::from("$hosts")),
            call("$project", compared),
        ]
    }

    fn differing(&self) -> Value<'static> {
        let differs = |left: &str, right: &str| call_with("$ne", [field(left), field(right)]);
        let type_of = |path: &str| call("$type", field(path));
        let types = call_with("$ne", [type_of("stored"), type_of("expected")]);
        let mut reasons = vec![differs("stored", "expected"), types];
        if self.summed.is_some() {
            reasons.push(differs("state", "expectedState"));
        }
        only(call_with("$or", reasons))
    }
}

/// Whether the value at a path links.
fn links(path: &str) -> Value<'static> {
    let unlinked = ["missing", "null", "undefined", "array"].map(Value::from);
    call_with("$not", [call_with("$in", [call("$type", field(path)), list(unlinked)])])
}

fn only(condition: Value<'static>) -> Value<'static> {
    call("$match", object([("$expr", condition)]))
}
