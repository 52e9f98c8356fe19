//! `explain` of a write that rules concern: the backend's answer for the stored operation, and what Pleach adds to it
//! (SEMANTICS R25). The plan is run in a transaction that is given up, so that its steps are the real ones.

use crate::execute::client_statement::namespace;
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::outlier::{explained, reads};
use crate::execute::plan::Plan;
use crate::execute::run::rehearse;
use crate::execute::{digits, read, statements};
use crate::layer::bulk::Target;
use crate::layer::read::refuse_collation;
use crate::layer::write::concerns;
use crate::layer::{bulk, named_collection, owned};
use crate::rule::Stack;
use crate::shapes::evaluate::holding;
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Explained, ReadOp, Verbosity, WriteError, WriteOp};
use document::{Doc, DocWriter, Error, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// The backend's answer for the stored operation; and the write that a plan belongs to, if rules concern it.
pub(crate) async fn stored(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<(Doc<'static>, Option<WriteOp>)> {
    let rules = executor.rules();
    let op = match op {
        Explained::Read(read) => Explained::Read(digits::read_owned(&rules, read, context)?),
        write => write,
    };
    let planned = match &op {
        Explained::Write(write) => {
            if let Some(shaped) = rules.shaped(namespace(write)) {
                let explained = shaped_write(executor, session, context, write, shaped, verbosity).await?;
                return Ok((explained, None));
            }
            rules.of(namespace(write)).filter(|local| concerns(local, write)).map(|_| write.clone())
        }
        Explained::Read(read) => {
            if let Some(shaped) = read::stack_of(&rules, read) {
                refuse_collation(read)?;
                let line = session.relay.clone();
                let sees_stored = named_collection::sees_stored(executor, line.as_ref(), read, shaped).await?;
                let outcome = match !sees_stored && shaped.places.len() == 1 {
                    true => executor.inner.explain(session, context, op.clone(), verbosity).await,
                    false => {
                        let backend = &*executor.inner;
                        read::explain(backend, &rules, session, context, read, shaped, verbosity).await
                    }
                };
                return named_collection::of_read(executor, line, read, outcome).await.map(|told| (told, None));
            }
            if let Some(local) = reads::concerned(&rules, read) {
                let plan = explained::plan(local, read, context)?;
                let stored_read = explained::stored(executor, session, context, local, read.clone()).await?;
                let (backend, lenses) = (&*executor.inner, rules.lenses());
                let told = read::versioned_explain::explain(backend, lenses, session, context, &stored_read, verbosity);
                if let Some(told) = told.await? {
                    // Where the collection has versions, the answer says how these are read.
                    let is_whole = told.contains("pleach");
                    return Ok((if is_whole { told } else { with_plan(&told, &plan) }, None));
                }
                let stored = backend.explain(session, context, Explained::Read(stored_read), verbosity).await?;
                return Ok((with_plan(&stored, &plan), None));
            }
            let (backend, lenses) = (&*executor.inner, rules.lenses());
            if let Some(told) =
                read::versioned_explain::explain(backend, lenses, session, context, read, verbosity).await?
            {
                return Ok((told, None));
            }
            None
        }
    };
    drop(rules);
    Ok((executor.inner.explain(session, context, op, verbosity).await?, planned))
}

/// The whole answer.
pub(super) async fn explain(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    match stored(executor, session, context, op, verbosity).await? {
        (stored, Some(write)) => Ok(with_plan(&stored, &plan(executor, session, context, &write).await?)),
        (stored, None) => Ok(stored),
    }
}

/// MongoDB's answer for the stored operation, and one field more (SEMANTICS R25).
pub(crate) fn with_plan(stored: &Doc<'_>, plan: &Plan) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(stored.as_bytes().len() + 512);
    for (name, value) in stored.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("pleach", &Value::Document(plan.to_mql()));
    writer.finish()
}

/// What a write to a logical name would do, beside MongoDB's answer for the stored documents that it looks at.
async fn shaped_write(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    stack: &Arc<Stack>,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let plan = plan(executor, session, context, op).await?;
    let op = digits::write(stack, op, context)?;
    let all = Filter::all();
    let filter = match &*op {
        WriteOp::Insert(_) => &all,
        WriteOp::Update(op) => op.statements.first().map_or(&all, |statement| &statement.filter),
        WriteOp::Delete(op) => op.statements.first().map_or(&all, |statement| &statement.filter),
        WriteOp::FindAndModify(op) => &op.filter,
    };
    let Some(place) = stack.places.first() else { return Ok(with_plan(&Doc::empty(), &plan)) };
    let read = Explained::Read(ReadOp::Find(holding(place, filter)));
    let stored = executor.inner.explain(session, context, read, verbosity).await?;
    Ok(with_plan(&stored, &plan))
}

/// The steps of a write, without keeping anything of it. Statements that fail are left out, as when it is run.
pub(crate) async fn plan(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Plan> {
    let rules = executor.rules();
    let (stack, local) = (rules.shaped(namespace(op)).cloned(), rules.of(namespace(op)).cloned());
    drop(rules);
    let target = match (&stack, &local) {
        (Some(stack), _) => Some(Target::Stacked(stack)),
        (None, Some(local)) => Some(Target::Plain(local)),
        (None, None) => None,
    };
    let op = match target {
        Some(Target::Stacked(stack)) => digits::write(stack, op, context)?,
        Some(Target::Plain(local)) => owned::rewritten(local, op)?,
        None => Cow::Borrowed(op),
    };
    let mut left = Left::of(&op);
    loop {
        let part = left.op(&op);
        let (index, error) = match target.and_then(|target| target.refused(&part, 0)) {
            Some((index, error)) => (index, error),
            None => match rehearse(executor, client, context, &ClientWork::through(&part, stack.as_ref()), true).await?
            {
                Ok(plan) => return Ok(plan.with_errors(left.errors)),
                Err((Some(index), error)) => (index, error),
                Err((None, error)) if left.places.len() == 1 => (0, error),
                Err((None, _)) => {
                    let end = left.places.len();
                    match bulk::find(executor, client, context, &part, 0, end, stack.as_ref()).await? {
                        Some(found) => found,
                        // It did not fail again.
                        None => continue,
                    }
                }
            },
        };
        left.fail(index, error)?;
    }
}

/// The statements of a command that do not fail.
struct Left {
    places: Vec<usize>,
    ordered: bool,
    errors: Vec<WriteError>,
}

impl Left {
    fn of(op: &WriteOp) -> Left {
        Left { places: (0..statements::count(op)).collect(), ordered: statements::is_ordered(op), errors: Vec::new() }
    }

    fn op<'o>(&self, op: &'o WriteOp) -> Cow<'o, WriteOp> {
        if self.errors.is_empty() { Cow::Borrowed(op) } else { Cow::Owned(statements::chosen(op, &self.places)) }
    }

    /// Takes a statement out, and those behind it if they stand in order. Fails if none is left: then nothing is done.
    fn fail(&mut self, at: usize, error: Error) -> Result<()> {
        let Some(index) = self.places.get(at).copied() else { return Err(error) };
        self.errors.push(WriteError { index, error });
        match self.ordered {
            true => self.places.truncate(at),
            false => drop(self.places.remove(at)),
        }
        match self.errors.first() {
            Some(first) if self.places.is_empty() => Err(first.error.clone()),
            _ => Ok(()),
        }
    }
}
