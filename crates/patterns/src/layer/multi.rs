//! One statement about many documents outside a client's transaction (SEMANTICS R9): the `_id`s that match are collected,
//! then changed in transactions of some hundred documents, the filter beside the `_id`s. Each document is changed at most
//! once; after an error earlier documents stay, each with its derived effects.

use crate::execute::retry::is_of_command;
use crate::execute::run::{Outcome, transact};
use crate::layer::{Executor, statements};
use document::backend::{BatchLimit, Session};
use document::filter::Filter;
use document::op::{Context, Find, Hint, Namespace, ReadOp, WriteOp, Written};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::{Error, Result, Value};
use std::sync::Arc;

/// How many documents share a transaction.
const DOCUMENTS: usize = 500;

const IDS: BatchLimit = BatchLimit { documents: 10_000, bytes: 16 << 20 };

pub(super) enum Failed {
    Statement(Error),
    Command(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        if is_of_command(&error) { Failed::Command(error) } else { Failed::Statement(error) }
    }
}

/// Runs the statement number `at`, which is about many documents.
pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    at: usize,
) -> Result<Written, Failed> {
    let statement = statements::part(op, at..at + 1);
    let mut own = session.sibling();
    let ids = matching(executor, &mut own, context, &statement).await?;
    let mut total = Written::default();
    if ids.is_empty() {
        return match &statement {
            // Nobody has it: it is inserted, unless somebody was faster.
            WriteOp::Update(update) if update.statements.iter().any(|statement| statement.upsert) => {
                part(executor, &mut own, context, &statement).await
            }
            _ => Ok(total),
        };
    }
    let apart = can_be_told_apart(&statement, &ids);
    let mut left: Vec<&[Value<'static>]> = ids.chunks(if apart { DOCUMENTS } else { ids.len() }).rev().collect();
    while let Some(chunk) = left.pop() {
        match transact(executor, &mut own, context, &narrowed(&statement, chunk)).await? {
            Outcome::Done(written) => statements::add(&mut total, written, 0),
            Outcome::Failed { error, .. } if chunk.len() == 1 || !apart => return Err(Failed::Statement(error)),
            // The documents before the one that fails are changed all the same.
            Outcome::Failed { .. } => {
                let (first, second) = chunk.split_at(chunk.len() / 2);
                left.push(second);
                left.push(first);
            }
        }
    }
    session.concern_error = own.concern_error.take();
    Ok(total)
}

async fn part(executor: &Arc<Executor>, own: &mut Session, context: &Context, op: &WriteOp) -> Result<Written, Failed> {
    match transact(executor, own, context, op).await? {
        Outcome::Done(written) => Ok(written),
        Outcome::Failed { error, .. } => Err(Failed::Statement(error)),
    }
}

/// The `_id`s of the documents that match.
async fn matching(
    executor: &Arc<Executor>,
    own: &mut Session,
    context: &Context,
    statement: &WriteOp,
) -> Result<Vec<Value<'static>>> {
    let Some((ns, filter, hint)) = target(statement) else { return Ok(Vec::new()) };
    let only_id = crate::mql::document([("_id", Value::from(1))]);
    let find = Find {
        projection: Some(Arc::new(Projection::parse_find(&only_id, filter, &mut Names::new())?)),
        hint: hint.clone(),
        ..Find::matching(ns.clone(), filter.clone())
    };
    let mut cursor = executor.inner.read(own, context, ReadOp::Find(find)).await?;
    let mut ids = Vec::new();
    loop {
        let batch = cursor.next(own, context, IDS).await?;
        ids.extend(batch.documents.iter().filter_map(|doc| doc.get("_id")));
        if batch.exhausted {
            return Ok(ids);
        }
    }
}

fn target(statement: &WriteOp) -> Option<(&Namespace, &Filter, &Option<Hint>)> {
    match statement {
        WriteOp::Update(op) => op.statements.first().map(|statement| (&op.ns, &statement.filter, &statement.hint)),
        WriteOp::Delete(op) => op.statements.first().map(|statement| (&op.ns, &statement.filter, &statement.hint)),
        WriteOp::Insert(_) | WriteOp::FindAndModify(_) => None,
    }
}

/// The documents with one of these `_id`s.
pub(super) fn among(ids: &[Value<'static>]) -> Filter {
    Filter::among("_id", ids.to_vec())
}

/// Whether a filter on some of the `_id`s leaves the others alone: a collation may take different text for the same.
fn can_be_told_apart(statement: &WriteOp, ids: &[Value<'static>]) -> bool {
    let compares_text = |id: &Value<'static>| !matches!(id, Value::ObjectId(_)) && !id.is_number();
    target(statement).is_none_or(|(_, filter, _)| filter.collation.is_none()) || !ids.iter().any(compares_text)
}

/// The statement on some documents only.
fn narrowed(statement: &WriteOp, ids: &[Value<'static>]) -> WriteOp {
    let among = |filter: &Filter| among(ids).and(filter.clone());
    let mut statement = statement.clone();
    match &mut statement {
        WriteOp::Update(op) => op.statements.iter_mut().for_each(|one| {
            one.filter = among(&one.filter);
            (one.upsert, one.hint) = (false, None);
        }),
        WriteOp::Delete(op) => op.statements.iter_mut().for_each(|one| {
            one.filter = among(&one.filter);
            one.hint = None;
        }),
        WriteOp::Insert(_) | WriteOp::FindAndModify(_) => {}
    }
    statement
}
