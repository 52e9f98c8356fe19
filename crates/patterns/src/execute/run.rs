//! One transaction of our own for some statements of a client, tried again after conflicts (SEMANTICS R4, R10).

use crate::execute::attempt::Attempt;
use crate::execute::client_statement::execute;
use crate::execute::client_work::ClientWork;
use crate::execute::collect::Collected;
use crate::execute::executor::Executor;
use crate::execute::flying::{Attempted, Flown};
use crate::execute::gate::Point;
use crate::execute::host_queue::{HostHash, Turns};
use crate::execute::plan::Plan;
use crate::execute::retry::{RetryWindow, is_of_command, is_transient};
use crate::execute::{convoy, flying, group};
use crate::rule::Stack;
use document::backend::{Claim, Session};
use document::op::{Context, WriteOp, Written};
use document::{Error, Result};
use std::sync::Arc;

/// What came of some statements.
pub(crate) enum Outcome {
    Done(Written),
    /// Nothing was written: this statement failed, or one that is not known.
    Failed {
        index: Option<usize>,
        error: Error,
    },
}

/// So many hosts are waited for before the first attempt; a write to more finds out which of them are hot.
const WAITED_FOR: usize = 16;

/// A longer insert is not looked through for them.
const LOOKED_AT: usize = 64;

pub(crate) async fn run_statements(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    work: &ClientWork<'_>,
) -> Result<Outcome> {
    let op = work.op;
    if let Some(stack) = work.stack {
        let attempts = RetryWindow::new(context);
        let turns = attempts.in_time(executor.lines.take(stored_hosts(stack, op))).await?;
        return alone(executor, client, context, work, turns, attempts).await;
    }
    if !executor.lines.is_empty() {
        let sources = group::sources(&executor.rules(), op);
        RetryWindow::new(context).in_time(executor.lines.make_way(sources)).await?;
    }
    let hosts = group::hosts(&executor.rules(), op, context, WAITED_FOR)?;
    let flies = flying::may_fly(executor, op, client.retry.is_some()) && !executor.undecided_hosts.contains_any(&hosts);
    if let WriteOp::Insert(insert) = op
        && flies
        && convoy::is_open_to(client)
    {
        return convoy::insert(executor, client, context, insert, hosts).await;
    }
    // A client that may not share a transaction with others flies alone, in turn.
    if let ([host], WriteOp::Insert(insert)) = (&hosts[..], op)
        && !flies
        && executor.current().of(&insert.ns).is_none_or(|local| local.outliers.is_empty())
    {
        return group::insert(executor, client, context, insert, *host).await;
    }
    let attempts = RetryWindow::new(context);
    let turns = attempts.in_time(executor.lines.take(hosts)).await?;
    alone(executor, client, context, work, turns, attempts).await
}

/// The stored documents that inserted ones are added to; none if they are not known, or too many.
fn stored_hosts(stack: &Stack, op: &WriteOp) -> Vec<HostHash> {
    let (WriteOp::Insert(insert), Some(place)) = (op, stack.places.first()) else { return Vec::new() };
    if insert.documents.len() > LOOKED_AT {
        return Vec::new();
    }
    let mut hosts = place.shape.hosts(place, &insert.documents);
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > WAITED_FOR { Vec::new() } else { hosts }
}

/// Statements that share their transaction with nobody.
pub(crate) async fn alone(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    work: &ClientWork<'_>,
    mut turns: Turns<'_>,
    mut attempts: RetryWindow,
) -> Result<Outcome> {
    let is_plain = work.stack.is_none();
    let mut flies = is_plain && flying::may_fly(executor, work.op, client.retry.is_some());
    let mut trails = is_plain && executor.flights() && !matches!(work.op, WriteOp::Insert(_));
    loop {
        let mut touched = Vec::new();
        let how = Sending { number: attempts.made(), flies, trails };
        match attempt(executor, client, context, work, how, &mut turns, &mut touched).await {
            Ok(Attempted::Outcome(outcome)) => return Ok(outcome),
            Ok(Attempted::Again) => continue,
            Ok(Attempted::Apart) => {
                (flies, trails) = (false, false);
                continue;
            }
            Err(error) => attempts.again(error, context).await?,
        }
        if turns.is_empty() && !touched.is_empty() {
            // Somebody else writes to one of these hosts: from now on in turn.
            turns = attempts.in_time(executor.lines.take(touched)).await?;
        }
    }
}

/// Which attempt it is; whether what can be sent at once is, and the last statement with the commit.
#[derive(Clone, Copy)]
struct Sending {
    number: u32,
    flies: bool,
    trails: bool,
}

async fn attempt(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    work: &ClientWork<'_>,
    attempt: Sending,
    turns: &mut Turns<'_>,
    touched: &mut Vec<HostHash>,
) -> Result<Attempted> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Begin { attempt: attempt.number }).await?;
    }
    let mut session = client.attempt();
    let jobs = executor.jobs_so_far();
    executor.inner.begin(&mut session, context).await?;
    // Looked at after the transaction's moment is fixed: a seeding moves a rule's position before the commit (SEMANTICS R2).
    let rules = executor.rules();
    let mut run = Attempt::new(executor, &mut session, context, rules);
    run.together.allowed = work.stack.is_none() && executor.inner.pipelining().is_some();
    run.together.trails = attempt.trails;
    run.collects = attempt.flies;
    run.guesses = attempt.number == 0;
    let result = match execute(&mut run, work).await {
        Ok(written) if written.errors.is_empty() => run.finish().await.map(|()| written),
        other => other,
    };
    std::mem::swap(touched, &mut run.touched);
    if run.needs_answer {
        return Ok(Attempted::Apart);
    }
    let mut written = match settle(result)? {
        Outcome::Done(written) => written,
        failed => return Ok(Attempted::Outcome(failed)),
    };
    written.errors = std::mem::take(&mut run.refused);
    let stored = run.stored.take();
    match (run.collected.take(), run.together.trailing.take(), work.op) {
        (Some(collected), _, WriteOp::Insert(insert)) => {
            let claims: Vec<Claim> = flying::claim(client.id, client.retry, insert).into_iter().collect();
            let guarded = !claims.is_empty();
            match flying::land(executor, &mut session, context, collected, claims, guarded, turns).await? {
                Flown::Done => turns.end(),
                Flown::Again => return Ok(Attempted::Again),
                Flown::Apart(_) | Flown::Claimed(_) => return Ok(Attempted::Apart),
            }
        }
        (_, Some(last), _) => {
            // What is begun and answered may be asked about, so it is guarded without a claim.
            match flying::land(executor, &mut session, context, Collected::of(last), Vec::new(), true, turns).await? {
                Flown::Done => turns.end(),
                Flown::Again => return Ok(Attempted::Again),
                Flown::Apart(_) | Flown::Claimed(_) => return Ok(Attempted::Apart),
            }
            executor.wake_jobs(jobs);
        }
        _ => commit(executor, &mut session, context, turns, jobs).await?,
    }
    for learn in stored.into_iter().flat_map(|stored| stored.learned) {
        learn();
    }
    client.concern_error = session.concern_error.take();
    Ok(Attempted::Outcome(Outcome::Done(written)))
}

/// Tells a failure of a statement from one of the whole attempt.
pub(crate) fn settle(result: Result<Written>) -> Result<Outcome> {
    match result {
        Ok(mut written) if !written.errors.is_empty() => {
            let failed = written.errors.remove(0);
            match is_transient(&failed.error) {
                true => Err(failed.error),
                false => Ok(Outcome::Failed { index: Some(failed.index), error: failed.error }),
            }
        }
        Ok(written) => Ok(Outcome::Done(written)),
        Err(error) if is_of_command(&error) => Err(error),
        Err(error) => Ok(Outcome::Failed { index: None, error }),
    }
}

/// Commits; writers that wait for the same hosts go on as soon as the writes are visible, before they are synced.
pub(crate) async fn commit(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    turns: &mut Turns<'_>,
    jobs: u64,
) -> Result<()> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Commit).await?;
    }
    if let Some(transaction) = session.transaction.take() {
        if turns.is_empty() {
            transaction.commit(context).await?;
        } else {
            let durable = transaction.publish(context).await?;
            turns.end();
            durable.await?;
        }
    }
    executor.wake_jobs(jobs);
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Committed).await?;
    }
    Ok(())
}

/// What a rehearsal came to: the steps, or the failure, and which statement it is of if that is known.
pub(crate) type Rehearsed = std::result::Result<Plan, (Option<usize>, Error)>;

/// Runs statements as [`run_statements`] does, but keeps nothing. The steps are noted if they are to be shown.
pub(crate) async fn rehearse(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    work: &ClientWork<'_>,
    is_shown: bool,
) -> Result<Rehearsed> {
    let mut attempts = RetryWindow::new(context);
    // As it is sent where nothing fails.
    let mut leaves_to_stages = work.stack.is_none() && flying::may_fly(executor, work.op, false);
    loop {
        let mut session = client.sibling();
        executor.inner.begin(&mut session, context).await?;
        let mut run = Attempt::new(executor, &mut session, context, executor.rules());
        run.trace = is_shown.then(Plan::default);
        run.leaves_to_stages = leaves_to_stages;
        let result = match execute(&mut run, work).await {
            Ok(written) if written.errors.is_empty() => run.finish().await.map(|()| written),
            other => other,
        };
        let (plan, refused) = (run.trace.take().unwrap_or_default(), std::mem::take(&mut run.refused));
        abort(&mut session);
        match (settle(result), refused.into_iter().next()) {
            (Ok(Outcome::Done(_)), None) => return Ok(Ok(plan)),
            (Ok(Outcome::Done(_)), Some(failed)) => return Ok(Err((Some(failed.index), failed.error))),
            (Ok(Outcome::Failed { .. }), _) if leaves_to_stages => leaves_to_stages = false,
            (Ok(Outcome::Failed { index, error }), _) => return Ok(Err((index, error))),
            (Err(error), _) => attempts.again(error, context).await?,
        }
    }
}

pub(crate) fn abort(session: &mut Session) {
    if let Some(transaction) = session.transaction.take() {
        transaction.abort();
    }
}
