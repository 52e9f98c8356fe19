//! `explain` of a read of a logical name: the backend's answer for the stored operation, and what Pleach made of it.

use crate::layer::Executor;
use crate::layer::shaped::digits;
use crate::layer::shaped::read::plan::{Check, Plan, in_words};
use crate::mql::{document, list, object};
use crate::shapes::Stack;
use document::backend::Session;
use document::op::{Context, Explained, ReadOp, Verbosity};
use document::{Doc, DocWriter, Result, Value};

pub(in crate::layer) async fn explain(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    shaped: &Stack,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let op = &*digits::read(&executor.rules(), op, context)?;
    let plan = Plan::new(shaped, op, context, executor.inner.facts().runs_our_code)?;
    let explained = Explained::Read(plan.op.clone());
    let stored = executor.inner.explain(session, context, explained, verbosity).await?;
    let examined = examined(&Value::Document(stored.borrow()));
    // A find shows its plan at the top, as MongoDB's does; a pipeline has it in its first stage.
    let stored = match op {
        ReadOp::Aggregate(_) => stored,
        ReadOp::Find(_) | ReadOp::Count(_) | ReadOp::Distinct(_) => of_cursor(&stored).unwrap_or(stored),
    };
    let mut writer = DocWriter::with_capacity(stored.as_bytes().len() + 1024);
    for (name, value) in stored.iter() {
        writer.append(name.as_str(), &value);
    }
    let words = command(executor, shaped, op, context, &plan)?;
    writer.append("pleach", &Value::Document(told(shaped, &plan, words, examined)));
    Ok(writer.finish())
}

/// What a read would do, without running anything.
pub(in crate::layer) fn planned(
    executor: &Executor,
    context: &Context,
    op: &ReadOp,
    shaped: &Stack,
) -> Result<Doc<'static>> {
    let op = &*digits::read(&executor.rules(), op, context)?;
    let plan = Plan::new(shaped, op, context, executor.inner.facts().runs_our_code)?;
    let words = command(executor, shaped, op, context, &plan)?;
    let bytes = i64::try_from(words.as_bytes().len()).unwrap_or(i64::MAX);
    let numbers = [("read", 1), ("written", 0), ("deferred", 0), ("bytes", bytes)];
    let cost = object(numbers.map(|(name, number)| (name, Value::Int64(number))));
    let mut writer = DocWriter::new();
    for (name, value) in told(shaped, &plan, words, None).iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("fences", &list([])).append("deferred", &list([])).append("cost", &cost);
    Ok(writer.finish())
}

/// The stored operation as plain MQL. The embedded store runs code instead of some stages; they say the same.
fn command(executor: &Executor, shaped: &Stack, op: &ReadOp, context: &Context, plan: &Plan) -> Result<Doc<'static>> {
    if !executor.inner.facts().runs_our_code {
        return Ok(plan.op.to_command());
    }
    let mut stored = plan.op.clone();
    if let ReadOp::Aggregate(stored) = &mut stored {
        stored.pipeline.source = Some(in_words(shaped, op, context)?);
    }
    Ok(stored.to_command())
}

fn told(shaped: &Stack, plan: &Plan, words: Doc<'static>, examined: Option<i64>) -> Doc<'static> {
    let name = || Value::from(&*shaped.rule.name);
    let step = object([
        ("rule", name()),
        ("kind", Value::from("read")),
        ("namespace", Value::string(plan.op.ns().to_string())),
        ("command", Value::Document(words)),
    ]);
    let here = plan.here.as_ref().map(|here| match &here.source {
        Some(stages) => Value::Array(stages.clone()),
        None => list(here.stages.iter().map(|stage| object([(stage.name(), Value::Document(Doc::empty()))]))),
    });
    document([
        ("rules", list([name()])),
        ("steps", list([step])),
        ("here", here.unwrap_or(Value::Missing)),
        ("pushed", Value::Document(plan.pushed.source.clone())),
        ("figures", plan.figures.map_or(Value::Null, Value::from)),
        ("otherwise", otherwise(plan)),
        ("buckets", examined.map_or(Value::Missing, |examined| object([("examined", Value::Int64(examined))]))),
    ])
}

/// What is asked instead if there are more buckets than are moved.
fn otherwise(plan: &Plan) -> Value<'static> {
    let Some((Check::Few, other)) = &plan.otherwise else { return Value::Missing };
    let most = i64::try_from(plan.first.saturating_sub(1)).unwrap_or(i64::MAX);
    let command = Value::Document(other.op.to_command());
    object([("buckets", object([("moreThan", Value::Int64(most))])), ("command", command)])
}

/// The plan of the stored collection inside a pipeline's explanation.
fn of_cursor(stored: &Doc<'static>) -> Option<Doc<'static>> {
    let Some(Value::Array(stages)) = stored.get("stages") else { return None };
    let Some(Value::Document(first)) = stages.get(0) else { return None };
    let Some(Value::Document(cursor)) = first.get("$cursor") else { return None };
    let mut writer = DocWriter::with_capacity(stored.as_bytes().len());
    for (name, value) in stored.iter() {
        if name.as_str() != "stages" {
            writer.append(name.as_str(), &value);
            continue;
        }
        for (name, value) in cursor.iter() {
            writer.append(name.as_str(), &value);
        }
    }
    Some(writer.finish())
}

/// How many stored documents were looked at: the first figure of that name.
fn examined(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Document(doc) => doc.iter().find_map(|(name, value)| match name.as_str() {
            "totalDocsExamined" => value.as_i64_exact(),
            _ => examined(&value),
        }),
        Value::Array(items) => items.iter().find_map(|item| examined(&item)),
        _ => None,
    }
}
