//! One statement about many documents outside a client's transaction (SEMANTICS R9): the `_id`s that match are collected,
//! then changed in transactions of some hundred documents, the filter beside the `_id`s. Each document is changed at most
//! once; after an error earlier documents stay, each with its derived effects.

use crate::execute::attempt::Attempt;
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::outlier::reads;
use crate::execute::read::versioned;
use crate::execute::retry::{RetryWindow, is_of_command};
use crate::execute::run::{Outcome, run_statements};
use crate::execute::statements;
use crate::rule::Stack;
use crate::rule::shape::Stop;
use crate::shapes::evaluate::multi::{Many, Picked};
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

/// The documents that a statement is about, or some of them.
enum Matches {
    /// Documents that are stored as they are, by `_id`.
    Ids(Vec<Value<'static>>),
    /// Logical documents of stored ones.
    Picked(Vec<Picked>),
}

/// Runs the statement number `at`, which is about many documents.
pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    at: usize,
    stack: Option<&Arc<Stack>>,
) -> Result<Written, Failed> {
    let statement = statements::part(op, at..at + 1);
    let mut own = session.sibling();
    let matches = match stack {
        Some(stack) => Matches::Picked(picked(executor, &mut own, context, &statement, stack).await?),
        None => Matches::Ids(matching(executor, &mut own, context, &statement).await?),
    };
    let mut total = Written::default();
    if matches.count() == 0 {
        // No document has it: it is inserted, unless another client was faster.
        return match is_upsert(&statement) {
            true => part(executor, &mut own, context, &statement, stack, matches).await.map(|(written, _)| written),
            false => Ok(total),
        };
    }
    let apart = matches.can_be_told_apart(&statement);
    let mut left: Vec<Matches> = if apart { matches.chunks() } else { vec![matches] };
    left.reverse();
    while let Some(chunk) = left.pop() {
        let halves = if chunk.count() > 1 && apart { Some(chunk.halves()) } else { None };
        match (part(executor, &mut own, context, &statement, stack, chunk).await, halves) {
            (Ok((written, None)), _) => statements::add(&mut total, written, 0),
            (Ok((_, Some(error))), _) => return Err(Failed::Statement(error)),
            // The documents before the one that fails are changed all the same.
            (Err(Failed::Statement(_)), Some((first, second))) => left.extend([second, first]),
            (Err(failed), _) => return Err(failed),
        }
    }
    session.concern_error = own.concern_error.take();
    Ok(total)
}

fn is_upsert(statement: &WriteOp) -> bool {
    matches!(statement, WriteOp::Update(update) if update.statements.iter().any(|statement| statement.upsert))
}

/// Changes some documents; second, the error of one, behind those that were changed.
async fn part(
    executor: &Arc<Executor>,
    own: &mut Session,
    context: &Context,
    statement: &WriteOp,
    stack: Option<&Arc<Stack>>,
    matches: Matches,
) -> Result<(Written, Option<Error>), Failed> {
    let outcome = match &matches {
        Matches::Ids(ids) if ids.is_empty() => {
            run_statements(executor, own, context, &ClientWork::of(statement)).await?
        }
        Matches::Ids(ids) => run_statements(executor, own, context, &ClientWork::of(&narrowed(statement, ids))).await?,
        Matches::Picked(picked) => {
            let work = ClientWork { picked: Some(picked), ..ClientWork::through(statement, stack) };
            run_statements(executor, own, context, &work).await?
        }
    };
    match outcome {
        Outcome::Done(mut written) => {
            let failed = written.errors.pop().map(|failed| failed.error);
            Ok((written, failed))
        }
        Outcome::Failed { error, .. } => Err(Failed::Statement(error)),
    }
}

impl Matches {
    fn count(&self) -> usize {
        match self {
            Matches::Ids(ids) => ids.len(),
            Matches::Picked(picked) => picked.iter().map(Picked::count).sum(),
        }
    }

    /// Some hundred documents at a time; a stored document is not divided.
    fn chunks(self) -> Vec<Matches> {
        match self {
            Matches::Ids(ids) => ids.chunks(DOCUMENTS).map(|chunk| Matches::Ids(chunk.to_vec())).collect(),
            Matches::Picked(picked) => {
                let (mut chunks, mut chunk, mut count) = (Vec::new(), Vec::new(), 0);
                for one in picked {
                    if count > 0 && count + one.count() > DOCUMENTS {
                        chunks.push(Matches::Picked(std::mem::take(&mut chunk)));
                        count = 0;
                    }
                    count += one.count();
                    chunk.push(one);
                }
                chunks.push(Matches::Picked(chunk));
                chunks
            }
        }
    }

    fn halves(&self) -> (Matches, Matches) {
        match self {
            Matches::Ids(ids) => {
                let (first, second) = ids.split_at(ids.len() / 2);
                (Matches::Ids(first.to_vec()), Matches::Ids(second.to_vec()))
            }
            Matches::Picked(picked) => {
                let mut first: Vec<Picked> = picked.iter().cloned().flat_map(Picked::one_by_one).collect();
                let second = first.split_off(first.len() / 2);
                (Matches::Picked(first), Matches::Picked(second))
            }
        }
    }

    /// Whether a filter on some of the `_id`s leaves the others alone: a collation may take different text for the same.
    fn can_be_told_apart(&self, statement: &WriteOp) -> bool {
        let Matches::Ids(ids) = self else { return true };
        let compares_text = |id: &Value<'static>| !matches!(id, Value::ObjectId(_)) && !id.is_number();
        target(statement).is_none_or(|(_, filter, _)| filter.collation.is_none()) || !ids.iter().any(compares_text)
    }
}

/// The logical documents that match. It runs outside a transaction, so what other rules make of it is tried again here.
async fn picked(
    executor: &Arc<Executor>,
    own: &mut Session,
    context: &Context,
    statement: &WriteOp,
    stack: &Arc<Stack>,
) -> Result<Vec<Picked>, Failed> {
    let Some(many) = Many::of(statement, 0) else { return Ok(Vec::new()) };
    let mut attempts = RetryWindow::new(context);
    loop {
        let mut run = Attempt::new(executor, own, context, executor.rules());
        match many.pick(&mut run, stack).await {
            Ok(picked) => return Ok(picked),
            Err(Stop::Statement { error, .. }) => return Err(Failed::Statement(error)),
            Err(Stop::Command(error)) => attempts.again(error, context).await.map_err(Failed::Command)?,
        }
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
    if let Some(ids) = reads::matching_ids(executor, own, context, ns, filter).await? {
        return Ok(ids);
    }
    let only_id = crate::mql::document([("_id", Value::from(1))]);
    let find = Find {
        projection: Some(Arc::new(Projection::parse_find(&only_id, filter, &mut Names::new())?)),
        hint: hint.clone(),
        ..Find::matching(ns.clone(), filter.clone())
    };
    let rules = executor.rules();
    let mut cursor = versioned::open(&*executor.inner, rules.lenses(), own, context, ReadOp::Find(find)).await?;
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

/// The statement on some documents only.
fn narrowed(statement: &WriteOp, ids: &[Value<'static>]) -> WriteOp {
    let among = |filter: &Filter| Filter::among("_id", ids.to_vec()).and(filter.clone());
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
