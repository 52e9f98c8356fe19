//! `explain` of a read of logical documents: the backend's answer for the stored operation, and what Pleach made of it.

use crate::active::Rules;
use crate::execute::digits;
use crate::execute::read::request::ParsedRead;
use crate::execute::read::{run, stack_of};
use crate::mql::{document, list, object};
use crate::rule::read::{Check, ReadPlan, ReadRequest};
use crate::shapes::Stack;
use document::backend::{Backend, Facts, Session};
use document::op::{Context, Explained, ReadOp, Verbosity};
use document::{Doc, DocWriter, Result, Value};

pub(crate) async fn explain(
    backend: &dyn Backend,
    rules: &Rules,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    stack: &Stack,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let explanation = Explanation::of(stack, &*digits::read(rules, op, context)?, context, backend.facts())?;
    let explained = Explained::Read(explanation.plan.op.clone());
    let stored = backend.explain(session, context, explained, verbosity).await?;
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
    writer.append("pleach", &Value::Document(explanation.document(examined)));
    Ok(writer.finish())
}

/// What a read would do, without running anything; `None` if its collection has no shape.
pub(crate) fn planned(
    backend: &dyn Backend,
    rules: &Rules,
    context: &Context,
    op: &ReadOp,
) -> Result<Option<Doc<'static>>> {
    let Some(stack) = stack_of(rules, op) else { return Ok(None) };
    let explanation = Explanation::of(stack, &*digits::read(rules, op, context)?, context, backend.facts())?;
    let bytes = i64::try_from(explanation.command.as_bytes().len()).unwrap_or(i64::MAX);
    let numbers = [("read", 1), ("written", 0), ("deferred", 0), ("bytes", bytes)];
    let cost = object(numbers.map(|(name, number)| (name, Value::Int64(number))));
    let mut writer = DocWriter::new();
    for (name, value) in explanation.document(None).iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("fences", &list([])).append("deferred", &list([])).append("cost", &cost);
    Ok(Some(writer.finish()))
}

/// A plan in words.
struct Explanation<'s> {
    stack: &'s Stack,
    plan: ReadPlan,
    /// The stored operation as plain MQL.
    command: Doc<'static>,
    /// The operation that is run instead if there are more stored documents than are moved.
    if_more: Option<Doc<'static>>,
}

impl Explanation<'_> {
    fn of<'s>(stack: &'s Stack, op: &ReadOp, context: &Context, facts: Facts) -> Result<Explanation<'s>> {
        let request = ParsedRead::of(op, context)?.request;
        let mut plan = run::plan(stack, &request, facts)?;
        let command = command(stack, &plan, &request, facts)?;
        let if_more = match plan.unless.take() {
            Some(unless) if matches!(unless.check, Check::FirstRowsAreAll) => {
                Some(run::instead(unless, stack, &request, facts)?.op.to_command())
            }
            _ => None,
        };
        Ok(Explanation { stack, plan, command, if_more })
    }

    fn document(self, examined: Option<i64>) -> Doc<'static> {
        let plan = self.plan;
        let name = || Value::from(&*self.stack.rule.name);
        let step = object([
            ("rule", name()),
            ("kind", Value::from("read")),
            ("namespace", Value::string(plan.op.ns().to_string())),
            ("command", Value::Document(self.command)),
        ]);
        let local = plan.local.map(|local| match local.source {
            Some(stages) => Value::Array(stages),
            None => list(local.stages.iter().map(|stage| object([(stage.name(), Value::Document(Doc::empty()))]))),
        });
        let most = i64::try_from(plan.first_rows.saturating_sub(1)).unwrap_or(i64::MAX);
        let otherwise = self.if_more.map(|command| {
            object([("buckets", object([("moreThan", Value::Int64(most))])), ("command", Value::Document(command))])
        });
        document([
            ("rules", list([name()])),
            ("steps", list([step])),
            ("here", local.unwrap_or(Value::Missing)),
            ("pushed", Value::Document(plan.pushed.source)),
            ("figures", plan.summaries.map_or(Value::Null, Value::from)),
            ("otherwise", otherwise.unwrap_or(Value::Missing)),
            ("buckets", examined.map_or(Value::Missing, |examined| object([("examined", Value::Int64(examined))]))),
        ])
    }
}

/// The stored operation as plain MQL. The embedded store runs code instead of some stages; they say the same.
fn command(stack: &Stack, plan: &ReadPlan, request: &ReadRequest, facts: Facts) -> Result<Doc<'static>> {
    let mut op = plan.op.clone();
    if let (true, ReadOp::Aggregate(native)) = (facts.runs_our_code, &mut op) {
        let as_mql = run::plan(stack, &ReadRequest { for_people: true, ..request.clone() }, facts)?.op;
        if let ReadOp::Aggregate(as_mql) = as_mql {
            native.pipeline.source = as_mql.pipeline.source;
        }
    }
    Ok(op.to_command())
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
