//! One transaction of our own for some statements of a client, tried again after conflicts (SEMANTICS R4, R10).

use super::Shared;
use crate::gate::Point;
use crate::retry::{Attempts, is_of_command, is_transient};
use crate::run::Run;
use crate::run::statement::execute;
use document::backend::Session;
use document::op::{Context, WriteOp, Written};
use document::{Code, Error, Result};
use std::sync::Arc;

/// What came of some statements.
pub(super) enum Outcome {
    Done(Written),
    /// Nothing was written: this statement failed, or one that is not known.
    Failed {
        index: Option<usize>,
        error: Error,
    },
}

pub(super) async fn transact(
    shared: &Arc<Shared>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Outcome> {
    let mut attempts = Attempts::new(context);
    loop {
        match attempt(shared, client, context, op, attempts.made()).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => attempts.again(error, context).await?,
        }
    }
}

async fn attempt(
    shared: &Arc<Shared>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
    number: u32,
) -> Result<Outcome> {
    if let Some(gate) = shared.gate() {
        gate.pass(Point::Begin { attempt: number }).await?;
    }
    let mut session = Session { id: client.id, retry: client.retry, relay: client.relay.clone(), ..Session::default() };
    let jobs = shared.jobs_so_far();
    shared.inner.begin(&mut session, context).await?;
    // Looked at after the transaction's moment is fixed: who seeds moves a rule's position before the commit (SEMANTICS R2).
    let rules = shared.rules();
    let mut run = Run::new(shared, &mut session, context, rules.clone());
    let result = match execute(&mut run, op).await {
        Ok(written) if written.errors.is_empty() => run.finish().await.map(|()| written),
        other => other,
    };
    let written = match result {
        Ok(mut written) => {
            if !written.errors.is_empty() {
                let failed = written.errors.remove(0);
                abort(&mut session);
                return match is_transient(&failed.error) {
                    true => Err(failed.error),
                    false => Ok(Outcome::Failed { index: Some(failed.index), error: failed.error }),
                };
            }
            written
        }
        Err(error) => {
            abort(&mut session);
            return match is_of_command(&error) {
                true => Err(error),
                false => Ok(Outcome::Failed { index: None, error }),
            };
        }
    };
    if !shared.is_current(&rules) {
        // A backend may fix its moment only with the first statement: the rules must not be older than that.
        abort(&mut session);
        return Err(Error::new(Code::WriteConflict, "the rules changed meanwhile"));
    }
    commit(shared, &mut session, context, jobs).await?;
    client.concern_error = session.concern_error.take();
    Ok(Outcome::Done(written))
}

/// Runs statements as [`transact`] does, but keeps nothing. Gives the failure, and which statement it was of if that is known.
pub(super) async fn rehearse(
    shared: &Arc<Shared>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Option<(Option<usize>, Error)>> {
    let mut attempts = Attempts::new(context);
    loop {
        let mut session = Session { relay: client.relay.clone(), ..Session::default() };
        shared.inner.begin(&mut session, context).await?;
        let mut run = Run::new(shared, &mut session, context, shared.rules());
        let result = match execute(&mut run, op).await {
            Ok(written) if written.errors.is_empty() => run.finish().await.map(|()| written),
            other => other,
        };
        abort(&mut session);
        let error = match result {
            Ok(mut written) if !written.errors.is_empty() => {
                let failed = written.errors.remove(0);
                if !is_transient(&failed.error) {
                    return Ok(Some((Some(failed.index), failed.error)));
                }
                failed.error
            }
            Ok(_) => return Ok(None),
            Err(error) if is_of_command(&error) => error,
            Err(error) => return Ok(Some((None, error))),
        };
        attempts.again(error, context).await?;
    }
}

async fn commit(shared: &Arc<Shared>, session: &mut Session, context: &Context, jobs: u64) -> Result<()> {
    if let Some(gate) = shared.gate() {
        gate.pass(Point::Commit).await?;
    }
    if let Some(transaction) = session.transaction.take() {
        transaction.commit(context).await?;
    }
    shared.wake_jobs(jobs);
    if let Some(gate) = shared.gate() {
        gate.pass(Point::Committed).await?;
    }
    Ok(())
}

pub(super) fn abort(session: &mut Session) {
    if let Some(transaction) = session.transaction.take() {
        transaction.abort();
    }
}
