//! The end of a collected plan: all of it is sent at once, with its commit. What comes back is that all is done, or that
//! nothing is: then it is tried otherwise.

use crate::execute::client_statement::namespace;
use crate::execute::collect::{Collected, is_collectable};
use crate::execute::executor::Executor;
use crate::execute::gate::Point;
use crate::execute::host_queue::Turns;
use crate::execute::run::Outcome;
use crate::rule::undecided::is_undecided;
use document::backend::{Claim, Flight, Landed, Session};
use document::op::{Context, Insert, WriteOp};
use document::{Code, Error, Result};

/// What came of it.
pub(crate) enum Flown {
    Done,
    /// A host was not where it was thought to be, or a source not what it was: once more, now that this is known.
    Again,
    /// The statement at this place of the client's own failed, or something that has no place: statement by statement the
    /// reason is found, and whether it was done before.
    Apart(Option<usize>),
    /// A claim that was made before.
    Claimed(usize),
}

/// Whether a client's write can be sent as a whole. Where statements of a retryable write may have been done in other parts
/// before, their own ids must keep them from being done twice.
pub(crate) fn may_fly(executor: &Executor, op: &WriteOp, retryable: bool) -> bool {
    let WriteOp::Insert(insert) = op else { return false };
    executor.flights()
        && (!retryable || insert.documents.len() == 1 || insert.documents.iter().all(|doc| doc.contains("_id")))
        && is_collectable(&executor.rules(), insert)
}

/// The claim of a client's insert.
pub(crate) fn claim(id: Option<[u8; 16]>, retry: Option<i64>, op: &Insert) -> Option<Claim> {
    let (session, number) = (id?, retry?);
    let count = i32::try_from(op.documents.len()).unwrap_or(i32::MAX);
    let statements = if op.statement_ids.is_empty() { (0..count).collect() } else { op.statement_ids.clone() };
    Some(Claim { session, number, statements, n: op.documents.len() as u64, db: op.ns.db.clone() })
}

pub(crate) async fn land(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    collected: Collected,
    claims: Vec<Claim>,
    guarded: bool,
    turns: &mut Turns<'_>,
) -> Result<Flown> {
    let Some(pipelining) = executor.inner.pipelining() else {
        return Err(Error::new(Code::InternalError, "a collected plan cannot be sent"));
    };
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Commit).await?;
    }
    let Collected { legs, hosts, relied_on } = collected;
    let sizes: Vec<Option<u64>> = legs.iter().map(|leg| (!leg.must_match).then(|| statements(&leg.op))).collect();
    let waited_for = legs.first().is_some_and(|leg| executor.convoys.is_waited_for(namespace(&leg.op)));
    let mut visible = || turns.end();
    let visible = waited_for.then_some(&mut visible as &mut (dyn FnMut() + Send));
    match pipelining.fly(session, context, Flight { legs, claims, guarded }, visible).await? {
        Landed::Done(written) => {
            for ((written, size), hosts) in written.iter().zip(sizes).zip(&hosts) {
                if size.is_some_and(|size| written.n >= size) {
                    executor.missing_hosts.remove(hosts);
                }
            }
        }
        // The next attempt looks at the host.
        Landed::Unmatched { error, .. } if is_undecided(&error) => return Ok(Flown::Apart(None)),
        Landed::Unmatched { leg, index, .. } => {
            let host = hosts.get(leg).and_then(|hosts| hosts.get(index));
            return Ok(match host {
                Some(host) => {
                    executor.missing_hosts.add(*host);
                    Flown::Again
                }
                None => Flown::Apart(None),
            });
        }
        Landed::Failed { leg: 0, index, .. } => return Ok(Flown::Apart(Some(index))),
        Landed::Failed { .. } => return Ok(Flown::Apart(None)),
        Landed::Claimed { claim } => return Ok(Flown::Claimed(claim)),
        Landed::Outdated => {
            relied_on.iter().for_each(|(kept, key)| kept.recent.forget(key));
            return Ok(Flown::Again);
        }
    }
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Committed).await?;
    }
    Ok(Flown::Done)
}

fn statements(op: &WriteOp) -> u64 {
    match op {
        WriteOp::Update(op) => op.statements.len() as u64,
        _ => 0,
    }
}

/// What an attempt came to: an outcome, or how to go on.
pub(crate) enum Attempted {
    Outcome(Outcome),
    Again,
    Apart,
}
