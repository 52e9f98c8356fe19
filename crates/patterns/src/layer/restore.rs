//! What a client may do that restores a dump (see [`crate::life::restore`]): write rules into the catalog, bring whole buckets, drop
//! collections that rules use. Of the other bookkeeping nothing is taken from a dump.

use crate::layer::Executor;
use crate::layer::refused;
use crate::life::access::Access;
use crate::life::restorers::RestoredBy;
use crate::life::rights::Rights;
use crate::life::{Life, names};
use crate::mql;
use crate::shapes::Stack;
use document::backend::{Relay, Session};
use document::filter::Filter;
use document::op::{AdminOp, Capture, Context, Insert, Namespace, WriteOp, Written};
use document::{Doc, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether rules of the database come with a dump, so that writes wait for them.
pub(super) fn is_pending(executor: &Executor, db: &str) -> bool {
    executor.restoring.load(Ordering::Relaxed) && executor.life().is_some_and(|life| life.is_pending(db))
}

/// Lets a write wait that comes behind a restore, until the rules are in force.
pub(super) async fn until_over(executor: &Executor, session: &mut Session, ns: &Namespace) {
    let is_apart = session.restores() || session.transaction.is_some() || session.joined.is_some();
    if !is_apart
        && is_pending(executor, &ns.db)
        && let Some(life) = executor.life()
    {
        life.after_restore(Some(&ns.db), false).await;
    }
}

/// Runs a command of such a client about a whole collection; `None` if it is as any other client's.
pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    let Some(life) = executor.life().filter(|_| session.restores()) else { return Ok(None) };
    if !executor.inner.facts().own_time_series
        && let Some(answer) = timeseries(executor, &life, context, op).await?
    {
        return Ok(Some(answer));
    }
    match op {
        AdminOp::Drop { ns } => {
            let rights = rights(executor, session.relay.as_ref(), "drop", ns).await?;
            rights.need("dropCollection", ns)?;
            let by = RestoredBy::of(session);
            if is_dumped(&life, ns) {
                life.rest(&rights, by, context, ns).await?;
                return match names::is_bookkeeping(ns) {
                    true => executor.inner.admin(session, context, op.clone()).await.map(Some),
                    false => Ok(None),
                };
            }
            if *ns == names::catalog(&ns.db) {
                life.replace_catalog(&ns.db, by);
            }
            Ok(Some(vec![dropped(ns)]))
        }
        AdminOp::Create { ns, .. } if names::is_bookkeeping(ns) => {
            rights(executor, session.relay.as_ref(), "create", ns).await?.need("createCollection", ns)?;
            match is_dumped(&life, ns) {
                true => executor.inner.admin(session, context, op.clone()).await.map(Some),
                false => Ok(Some(vec![Doc::empty()])),
            }
        }
        AdminOp::CreateIndexes { ns, .. } if names::is_bookkeeping(ns) && !is_dumped(&life, ns) => {
            rights(executor, session.relay.as_ref(), "createIndexes", ns).await?.need("createIndex", ns)?;
            Ok(Some(vec![Doc::empty()]))
        }
        _ => Ok(None),
    }
}

fn dropped(ns: &Namespace) -> Doc<'static> {
    mql::document([("nIndexesWas", Value::Int32(1)), ("ns", Value::string(ns.to_string()))])
}

/// Time-series collections of the embedded store: a dump has them and, as another collection, their buckets. Either may come first,
/// so that neither takes the other with it.
async fn timeseries(
    executor: &Executor,
    life: &Arc<Life>,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    let is_stored = |ns: &Namespace| {
        executor.rules().stored(ns).is_some_and(|shaped| shaped.logical != *ns && life.is_timeseries(&shaped.logical))
    };
    match op {
        AdminOp::Drop { ns } if life.is_timeseries(ns) => Ok(Some(vec![dropped(ns)])),
        AdminOp::Drop { ns } if is_stored(ns) => {
            let mut session = Session::default();
            let mut at = Access { backend: &*executor.inner, session: &mut session, context };
            at.delete(ns, Filter::all()).await?;
            Ok(Some(vec![dropped(ns)]))
        }
        AdminOp::Create { ns, .. } if is_stored(ns) || life.is_timeseries(ns) => Ok(Some(vec![Doc::empty()])),
        AdminOp::Create { ns, options } => match &options.other {
            Some(other) if other.contains("timeseries") => {
                life.create_timeseries(context, ns, other, true).await?;
                Ok(Some(vec![Doc::empty()]))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Whether a collection holds documents of clients: those that are on their way to another form have a name of ours.
fn is_dumped(life: &Life, ns: &Namespace) -> bool {
    let is_aside = ns.collection.starts_with(names::ASIDE);
    !names::is_bookkeeping(ns) || (is_aside && !life.is_in_use(ns))
}

/// Takes an insert of such a client into a collection of ours.
pub(super) async fn insert(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &Insert,
) -> Result<Option<Written>> {
    let Some(life) = executor.life().filter(|_| session.restores() && session.transaction.is_none()) else {
        return Ok(None);
    };
    if is_dumped(&life, &op.ns) {
        let op = WriteOp::Insert(op.clone());
        return executor.inner.write(session, context, &op, &Capture::Nothing).await.map(Some);
    }
    let rights = rights(executor, session.relay.as_ref(), "insert", &op.ns).await?;
    rights.need("insert", &op.ns)?;
    if op.ns == names::catalog(&op.ns.db) {
        return life.restore_rows(&rights, RestoredBy::of(session), context, op).await.map(Some);
    }
    if op.ns == names::replaced(&op.ns.db) {
        return keep_values(executor, session, context, op).await.map(Some);
    }
    // Fences, jobs and leases are of the Pleach that was dumped: seeding does what its jobs would have done.
    Ok(Some(Written { n: op.documents.len() as u64, ..Written::default() }))
}

/// What rules have replaced is worth having; what is here stays.
async fn keep_values(executor: &Executor, session: &mut Session, context: &Context, op: &Insert) -> Result<Written> {
    let unordered = WriteOp::Insert(Insert { ordered: false, ..op.clone() });
    let mut written = executor.inner.write(session, context, &unordered, &Capture::Nothing).await?;
    let before = written.errors.len();
    written.errors.retain(|failed| failed.error.code() != document::Code::DuplicateKey);
    written.n += (before - written.errors.len()) as u64;
    Ok(written)
}

/// Takes whole buckets: each must be as the rule would have made it.
pub(super) async fn buckets(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Stack,
) -> Result<Option<Written>> {
    let WriteOp::Insert(insert) = op else { return Ok(None) };
    let place = shaped.place(&insert.ns);
    let bucket = match (place.and_then(|place| place.bucket()), shaped.rule.bucket()) {
        (Some(bucket), _) => bucket,
        // It is about to be made.
        (None, Some(bucket)) if place.is_none() && bucket.into == insert.ns => bucket,
        _ => return Ok(None),
    };
    if !session.restores() {
        return Ok(None);
    }
    if insert.documents.iter().any(|document| !bucket.flaws(document).is_empty()) {
        return Err(refused::stored(&insert.ns, shaped));
    }
    executor.inner.write(session, context, op, &Capture::Nothing).await.map(Some)
}

async fn rights(executor: &Executor, line: Option<&Arc<dyn Relay>>, command: &str, ns: &Namespace) -> Result<Rights> {
    let rights = Rights::of(&*executor.inner, line, &format!("{command}: \"{}\"", ns.collection)).await?;
    Ok(rights.naming([ns.clone()]))
}
