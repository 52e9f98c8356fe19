//! What a lift comes to in plain MQL, and whether there is anything to lift.

use crate::execute::access::{Access, find};
use crate::life::catalog::long;
use crate::life::lift::item::Lift;
use crate::life::plan::seeding;
use crate::life::relocate::plan::PlanCommand;
use crate::mql::{call, call_with, document, field, list, object};
use crate::rule::Rule;
use document::filter::Filter;
use document::op::{Count, Find, ReadOp};
use document::pipeline::expr::Names;
use document::{Doc, DocWriter, Result, Value};

/// Whether some host has an item in the array that the rule lifts.
pub(crate) async fn has_items(at: &mut Access<'_>, rule: &Rule) -> Result<bool> {
    let Some(filter) = with_items(rule)? else { return Ok(false) };
    Ok(!at.find(Find { limit: Some(1), ..find(&rule.host, filter) }).await?.is_empty())
}

/// How many hosts do.
pub(crate) async fn hosts_with_items(at: &mut Access<'_>, rule: &Rule) -> Result<u64> {
    let Some(filter) = with_items(rule)? else { return Ok(0) };
    let rows = at.all(ReadOp::Count(Count { ns: rule.host.clone(), filter, skip: 0, limit: None, hint: None })).await?;
    Ok(rows.first().map_or(0, |row| u64::try_from(long(row.get("n"))).unwrap_or(0)))
}

fn with_items(rule: &Rule) -> Result<Option<Filter>> {
    let Some(array) = &rule.lift else { return Ok(None) };
    let filter = document([(&*format!("{array}.0"), call("$exists", Value::Bool(true)))]);
    Filter::parse(&filter, &mut Names::new()).map(Some)
}

/// Moves the items, takes the array away and makes the window, as a person would.
pub(crate) fn commands(rule: &Rule) -> Vec<PlanCommand> {
    let Some(lift) = Lift::of(rule) else { return Vec::new() };
    let command = |kind, command| PlanCommand { kind, namespace: rule.host.clone(), command };
    vec![command("lift", moving(&lift)), command("lift", taking(&lift)), command("seed", seeding(rule))]
}

/// `{ aggregate, pipeline: [ $unwind, $replaceWith, $merge ] }`.
fn moving(lift: &Lift<'_>) -> Doc<'static> {
    let array = lift.array.dotted();
    let key = field(&lift.link.local.path.dotted());
    let nested = lift.by.parts.iter().rev().fold(key, |inner, part| object([(&*part.name, inner)]));
    let child = call_with("$mergeObjects", [field(&array), nested]);
    let into = object([("into", Value::from(&*lift.source().collection)), ("whenMatched", Value::from("fail"))]);
    let stages = [call("$unwind", field(&array)), call("$replaceWith", child), call("$merge", into)];
    let mut command = DocWriter::new();
    command.append("aggregate", &Value::from(&*lift.host().collection)).append("pipeline", &list(stages));
    command.start_document("cursor").end();
    command.finish()
}

/// `{ update, updates: [ { $unset } ] }`.
fn taking(lift: &Lift<'_>) -> Doc<'static> {
    let array = lift.array.dotted();
    let statement = object([
        ("q", object([(&*array, call("$exists", Value::Bool(true)))])),
        ("u", call("$unset", object([(&*array, Value::from(""))]))),
        ("multi", Value::Bool(true)),
    ]);
    document([("update", Value::from(&*lift.host().collection)), ("updates", list([statement]))])
}
