//! `explain` of a read of documents that have several versions: the backend's answer for the stored operation, and what Pleach made
//! of it.

use crate::active::Lenses;
use crate::execute::read::{versioned, versioned_joins, versioned_views};
use crate::mql::{document, list, object};
use document::backend::{Backend, Facts, Session};
use document::filter::Filter;
use document::op::{Context, Explained, ReadOp, Verbosity};
use document::{Doc, DocWriter, Result, Value};

/// Returns `None` if the read sees documents as they are stored.
pub(crate) async fn explain(
    backend: &dyn Backend,
    lenses: &Lenses,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    verbosity: Verbosity,
) -> Result<Option<Doc<'static>>> {
    if lenses.is_empty() {
        return Ok(None);
    }
    let (op, _, views) = versioned_views::expanded(backend, lenses, context, op.clone()).await?;
    let op = &op;
    let joined = versioned_joins::rewritten(lenses, &views, op.clone(), context, backend.facts())?;
    let Some(lens) = versioned::lens_of(lenses, &joined) else {
        let answer = backend.explain(session, context, Explained::Read(joined), verbosity).await?;
        return Ok(Some(answer));
    };
    let shown = versioned::plan(lens, joined.clone(), context, Facts::MONGODB)?.into_ops();
    let mut answers = Vec::new();
    for stored in versioned::plan(lens, joined, context, backend.facts())?.into_ops() {
        answers.push(backend.explain(session, context, Explained::Read(stored), verbosity).await?);
    }
    let answer = answers.pop().unwrap_or_else(Doc::empty);
    let rule = format!("{}.versions", op.ns().collection);
    let name = || Value::string(rule.clone());
    let steps = shown.iter().enumerate().map(|(at, shown)| {
        // The answer is about the last; beside the others stands how they are found.
        let planner = answers.get(at).and_then(|answer| answer.get("queryPlanner"));
        object([
            ("rule", name()),
            ("kind", Value::from("read")),
            ("namespace", Value::string(op.ns().to_string())),
            ("command", Value::Document(shown.to_command())),
            ("queryPlanner", planner.map_or(Value::Missing, Value::into_owned)),
        ])
    });
    let note = lens.is_unindexed(&leading(op)).then(|| list([Value::from("not indexed until migrated")]));
    let plan = document([
        ("rules", list([name()])),
        ("steps", list(steps)),
        ("notes", note.unwrap_or(Value::Missing)),
        ("fences", list([])),
        ("deferred", list([])),
    ]);
    let mut writer = DocWriter::with_capacity(answer.as_bytes().len() + 512);
    for (name, value) in answer.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("pleach", &Value::Document(plan));
    Ok(Some(writer.finish()))
}

/// What documents must match before anything else is done with them.
fn leading(op: &ReadOp) -> Filter {
    match op {
        ReadOp::Find(op) => op.filter.clone(),
        ReadOp::Count(op) => op.filter.clone(),
        ReadOp::Distinct(op) => op.filter.clone(),
        ReadOp::Aggregate(op) => op.pipeline.split().leading.filter,
    }
}
