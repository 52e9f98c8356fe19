//! Inserts of children of one hot host share a transaction (SEMANTICS R12): whoever has the turn on the host takes along what
//! waits for it, up to a limit: many inserts, one update of the host. One that fails is taken out and the rest run again.

use crate::active::Rules;
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::client_statement;
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::gate::Point;
use crate::execute::host_queue::{HostHash, Line, Turns, hash, of_fence};
use crate::execute::react::react;
use crate::execute::retry::RetryWindow;
use crate::execute::run::{Outcome, alone, commit, settle};
use crate::rule::fence::fence_key;
use crate::rule::key;
use document::backend::{Relay, Session};
use document::op::{Context, Durability, Insert, WriteOp, Written};
use document::{Code, Doc, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// So many inserts share a transaction.
const TOGETHER: usize = 100;

/// The outcome of a job, and whether its write concern was left unsatisfied.
pub(crate) type JobOutcome = (Result<Outcome>, Option<Error>);

/// An insert that waits for its turn.
pub(crate) struct Job {
    number: u64,
    op: Insert,
    id: Option<[u8; 16]>,
    retry: Option<i64>,
    relay: Option<Arc<dyn Relay>>,
    durability: Durability,
    concern: Option<Doc<'static>>,
    done: oneshot::Sender<JobOutcome>,
}

/// The hosts that inserted children are added to; none if they are not known, or more than `limit`.
pub(crate) fn hosts(rules: &Rules, op: &WriteOp, context: &Context, limit: usize) -> Result<Vec<HostHash>> {
    let WriteOp::Insert(insert) = op else { return Ok(Vec::new()) };
    let Some(local) = rules.of(&insert.ns) else { return Ok(Vec::new()) };
    let mut hosts: Vec<HostHash> = Vec::new();
    for kept in &local.sourced {
        // With `lag`, it is the job that all of them write to.
        let Some(field) = &kept.field else { continue };
        for doc in &insert.documents {
            // What is wrong with a document is said when it is written.
            for value in field.hosts_of_source(doc, &context.env).unwrap_or_default() {
                let host = hash(&kept.rule.host, &key::bytes(&value));
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            if hosts.len() > limit {
                return Ok(Vec::new());
            }
        }
    }
    Ok(hosts)
}

/// The sources that inserted hosts take a copy of.
pub(crate) fn sources(rules: &Rules, op: &WriteOp) -> Vec<HostHash> {
    let WriteOp::Insert(insert) = op else { return Vec::new() };
    let Some(local) = rules.of(&insert.ns) else { return Vec::new() };
    let mut sources = Vec::new();
    for kept in &local.hosted {
        let Some(field) = kept.field.as_ref().filter(|field| field.fences().change.is_some()) else { continue };
        for doc in &insert.documents {
            for value in field.keys(doc) {
                sources.push(of_fence(kept, &fence_key(&kept.rule, &value), &value));
            }
        }
    }
    sources
}

/// Inserts children of one host: alone if nobody waits for it, else together with others.
pub(crate) async fn insert(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &Insert,
    host: HostHash,
) -> Result<Outcome> {
    let line = executor.lines.line(host);
    let free = line.turn.clone().try_lock_owned();
    if let Ok(turn) = free {
        let turns = Turns::of(&executor.lines, host, line, turn);
        let op = WriteOp::Insert(op.clone());
        return alone(executor, client, context, &ClientWork::of(&op), turns, RetryWindow::new(context)).await;
    }
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (done, mut reply) = oneshot::channel();
    let mut place = Place { executor, host, line: Some(line), number };
    let Some(line) = place.line.clone() else { return Err(lost()) };
    line.waiting.lock().push(Job {
        number,
        op: op.clone(),
        id: client.id,
        retry: client.retry,
        relay: client.relay.clone(),
        durability: context.durability,
        concern: context.sent.write_concern.clone(),
        done,
    });
    let attempts = RetryWindow::new(context);
    let turn = tokio::select! {
        biased;
        outcome = &mut reply => return outcome_of(client, outcome),
        turn = line.turn.clone().lock_owned() => turn,
        error = attempts.past() => {
            if place.withdraw() {
                return Err(error);
            }
            return outcome_of(client, reply.await);
        }
    };
    if !line.waiting.lock().iter().any(|job| job.number == number) {
        // Somebody took it along and is about to tell.
        drop(turn);
        return outcome_of(client, reply.await);
    }
    let jobs = together(&line, number);
    let turns = Turns::of(&executor.lines, host, line, turn);
    // A task of its own: the others' inserts must not end with this client.
    let mut context = Context { deadline: None, ..context.clone() };
    context.env.interrupt = Arc::new(|| Ok(()));
    context.sent.unsatisfied = Some(Arc::default());
    let executor = executor.clone();
    let turns = turns.into_owned();
    tokio::spawn(async move { run(&executor, &context, jobs, turns.borrowed(&executor.lines)).await });
    outcome_of(client, reply.await)
}

pub(crate) fn outcome_of(
    client: &mut Session,
    reply: std::result::Result<JobOutcome, oneshot::error::RecvError>,
) -> Result<Outcome> {
    let (outcome, unsatisfied) = reply.unwrap_or_else(|_| (Err(lost()), None));
    client.concern_error = unsatisfied;
    outcome
}

/// A write concern that the last commit did not satisfy: it is that of all its inserts.
pub(crate) fn unsatisfied(context: &Context) -> Option<Error> {
    context.sent.unsatisfied.as_ref()?.lock().ok()?.take()
}

pub(crate) fn lost() -> Error {
    Error::new(Code::InternalError, "the transaction that an insert was part of was lost")
}

/// The place of a waiting insert, given up with the command.
struct Place<'s> {
    executor: &'s Arc<Executor>,
    host: HostHash,
    line: Option<Arc<Line>>,
    number: u64,
}

impl Place<'_> {
    /// Takes the insert back, if nobody has taken it along.
    fn withdraw(&mut self) -> bool {
        let Some(line) = &self.line else { return false };
        let mut waiting = line.waiting.lock();
        let before = waiting.len();
        waiting.retain(|job| job.number != self.number);
        waiting.len() < before
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.withdraw();
        if let Some(line) = self.line.take() {
            self.executor.lines.leave(self.host, line);
        }
    }
}

/// What waits, the own insert first; only what may share a transaction with it.
fn together(line: &Line, own: u64) -> Vec<Job> {
    let mut waiting = line.waiting.lock();
    let at = waiting.iter().position(|job| job.number == own).unwrap_or_default();
    let first = waiting.remove(at);
    let mut jobs = vec![first];
    let mut rest = Vec::new();
    for job in waiting.drain(..) {
        let fits = jobs.len() < TOGETHER
            && jobs.first().is_some_and(|first| {
                first.op.ns == job.op.ns
                    && first.concern == job.concern
                    && match (&first.relay, &job.relay) {
                        (None, None) => true,
                        (Some(first), Some(other)) => first.shares_with(&**other),
                        _ => false,
                    }
            });
        if fits { jobs.push(job) } else { rest.push(job) }
    }
    *waiting = rest;
    jobs
}

/// Runs inserts in one transaction until all are done or have failed.
async fn run(executor: &Arc<Executor>, context: &Context, mut jobs: Vec<Job>, mut turns: Turns<'_>) {
    let synced = jobs.iter().any(|job| job.durability == Durability::Synced);
    let durability = if synced { Durability::Synced } else { Durability::Relaxed };
    let context = Context { durability, ..context.clone() };
    let mut attempts = RetryWindow::new(&context);
    while !jobs.is_empty() {
        match attempt(executor, &context, &jobs, attempts.made(), &mut turns).await {
            Ok(Together::Done(all)) => {
                let error = unsatisfied(&context);
                for (job, written) in jobs.drain(..).zip(all) {
                    let _gone = job.done.send((Ok(Outcome::Done(written)), error.clone()));
                }
            }
            Ok(Together::Failed { job, outcome }) => {
                let job = jobs.remove(job.min(jobs.len() - 1));
                let _gone = job.done.send((Ok(outcome), None));
            }
            Ok(Together::Apart) => {
                for job in jobs.drain(..) {
                    one(executor, &context, job).await;
                }
            }
            Err(error) => {
                if let Err(error) = attempts.again(error, &context).await {
                    for job in jobs.drain(..) {
                        let _gone = job.done.send((Err(error.clone()), None));
                    }
                }
            }
        }
    }
}

enum Together {
    Done(Vec<Written>),
    /// This one failed; nothing was written.
    Failed {
        job: usize,
        outcome: Outcome,
    },
    /// A derived step failed, for one of them.
    Apart,
}

async fn one(executor: &Arc<Executor>, context: &Context, job: Job) {
    let mut session = Session { id: job.id, retry: job.retry, relay: job.relay, ..Session::default() };
    let turns = Turns::none(&executor.lines);
    let op = WriteOp::Insert(job.op);
    let outcome = alone(executor, &mut session, context, &ClientWork::of(&op), turns, RetryWindow::new(context)).await;
    let _gone = job.done.send((outcome, unsatisfied(context)));
}

async fn attempt(
    executor: &Arc<Executor>,
    context: &Context,
    jobs: &[Job],
    number: u32,
    turns: &mut Turns<'_>,
) -> Result<Together> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Begin { attempt: number }).await?;
    }
    let enqueued = executor.jobs_so_far();
    let relay = jobs.first().and_then(|job| job.relay.clone());
    let mut session = Session::on_line(relay);
    executor.inner.begin(&mut session, context).await?;
    let mut run = Attempt::new(executor, &mut session, context, executor.rules());
    let mut changes = Changes::default();
    let mut all = Vec::with_capacity(jobs.len());
    for (at, job) in jobs.iter().enumerate() {
        (run.session.id, run.session.retry) = (job.id, job.retry);
        match settle(client_statement::insert(&mut run, &job.op, &mut changes).await)? {
            Outcome::Done(written) => all.push(written),
            outcome => return Ok(Together::Failed { job: at, outcome }),
        }
    }
    (run.session.id, run.session.retry) = (None, None);
    let result = match react(&mut run, changes).await {
        Ok(()) => run.finish().await,
        Err(error) => Err(error),
    };
    match settle(result.map(|()| Written::default()))? {
        Outcome::Done(_) => {}
        outcome if jobs.len() == 1 => return Ok(Together::Failed { job: 0, outcome }),
        Outcome::Failed { .. } => return Ok(Together::Apart),
    }
    commit(executor, &mut session, context, turns, enqueued).await?;
    Ok(Together::Done(all))
}
