//! `explain` of a write that rules concern: the backend's answer for the stored operation, and what Pleach adds to it
//! (SEMANTICS R25). The plan is run in a transaction that is given up, so that its steps are the real ones.

use crate::execute::attempt::Attempt;
use crate::execute::client_statement::{execute, namespace};
use crate::execute::plan::Plan;
use crate::execute::retry::RetryWindow;
use crate::execute::run::Outcome;
use crate::execute::{digits, read, run};
use crate::layer::{Executor, bulk, rights, shaped, statements};
use document::backend::Session;
use document::op::{Context, Explained, Verbosity, WriteError, WriteOp};
use document::{Doc, DocWriter, Error, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn explain(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let op = match op {
        Explained::Read(read) => Explained::Read(digits::read_owned(&executor.rules(), read, context)?),
        write => write,
    };
    let write = match &op {
        Explained::Write(write) => {
            let rules = executor.rules();
            if let Some(shaped) = rules.shaped(namespace(write)) {
                rights::before_explain(executor, session.relay.clone(), write).await?;
                return shaped::write::explain(executor, session, context, write, shaped, verbosity).await;
            }
            executor
                .rules()
                .of(namespace(write))
                .filter(|local| crate::layer::write::concerns(local, write))
                .map(|_| write.clone())
        }
        Explained::Read(read) => {
            let rules = executor.rules();
            if let Some(shaped) = read::stack_of(&rules, read) {
                let line = session.relay.clone();
                let sees_stored = rights::sees_stored(executor, line.as_ref(), read, shaped).await?;
                let outcome = match !sees_stored && shaped.sides.len() == 1 {
                    true => executor.inner.explain(session, context, op.clone(), verbosity).await,
                    false => {
                        let backend = &*executor.inner;
                        read::explain(backend, &rules, session, context, read, shaped, verbosity).await
                    }
                };
                return rights::of_read(executor, line, read, outcome).await;
            }
            None
        }
    };
    let stored = executor.inner.explain(session, context, op, verbosity).await?;
    let Some(write) = write else { return Ok(stored) };
    let rights = rights::before_explain(executor, session.relay.clone(), &write).await?;
    let plan = plan(executor, session, context, &write).await;
    let plan = rights::checked(&rights, &executor.rules(), write.ns(), plan)?;
    Ok(with_plan(&stored, &plan))
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

/// The steps of a write, without keeping anything of it. Statements that fail are left out, as when it is run.
pub(crate) async fn plan(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Plan> {
    let rules = executor.rules();
    if let Some(shaped) = rules.shaped(namespace(op)) {
        return shaped::write::plan(executor, client, context, op, shaped).await;
    }
    let local = rules.of(namespace(op)).cloned();
    drop(rules);
    let op = match &local {
        Some(local) => crate::layer::owned::rewritten(local, op)?,
        None => Cow::Borrowed(op),
    };
    let mut left = Left::of(&op);
    loop {
        let part = left.op(&op);
        let refused = local.as_ref().and_then(|local| crate::layer::owned::refused(local, &part, 0));
        let (index, error) = match refused {
            Some((index, error)) => (index, error),
            None => match rehearsed(executor, client, context, &part).await? {
                Ok(plan) => return Ok(plan.with_errors(left.errors)),
                Err((Some(index), error)) => (index, error),
                Err((None, error)) if left.places.len() == 1 => (0, error),
                Err((None, _)) => match bulk::find(executor, client, context, &part, 0, left.places.len()).await? {
                    Some(found) => found,
                    // It did not fail again.
                    None => continue,
                },
            },
        };
        left.fail(index, error)?;
    }
}

/// The statements of a command that do not fail.
pub(in crate::layer) struct Left {
    places: Vec<usize>,
    ordered: bool,
    pub(in crate::layer) errors: Vec<WriteError>,
}

impl Left {
    pub(in crate::layer) fn of(op: &WriteOp) -> Left {
        Left { places: (0..statements::count(op)).collect(), ordered: statements::is_ordered(op), errors: Vec::new() }
    }

    pub(in crate::layer) fn op<'o>(&self, op: &'o WriteOp) -> Cow<'o, WriteOp> {
        if self.errors.is_empty() { Cow::Borrowed(op) } else { Cow::Owned(statements::chosen(op, &self.places)) }
    }

    /// Takes a statement out, and those behind it if they stand in order. Fails if none is left: then nothing is done.
    pub(in crate::layer) fn fail(&mut self, at: usize, error: Error) -> Result<()> {
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

/// The steps of statements; if one of them fails, its error, and which one it is if that is known.
async fn rehearsed(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Result<Plan, (Option<usize>, Error)>> {
    let mut attempts = RetryWindow::new(context);
    loop {
        let mut session = client.sibling();
        executor.inner.begin(&mut session, context).await?;
        let mut run = Attempt::new(executor, &mut session, context, executor.rules());
        run.trace = Some(Plan::default());
        let result = match execute(&mut run, op).await {
            Ok(written) if written.errors.is_empty() => run.finish().await.map(|()| written),
            other => other,
        };
        let plan = run.trace.take().unwrap_or_default();
        run::abort(&mut session);
        match run::settle(result) {
            Ok(Outcome::Done(_)) => return Ok(Ok(plan)),
            Ok(Outcome::Failed { index, error }) => return Ok(Err((index, error))),
            Err(error) => attempts.again(error, context).await?,
        }
    }
}
