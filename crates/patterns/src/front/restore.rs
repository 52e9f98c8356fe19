//! What a client may do that restores a dump (see [`crate::life::restore`]): write rules into the catalog, bring whole buckets, drop
//! collections that rules use. Of the other bookkeeping nothing is taken from a dump.

use crate::active::route::Role;
use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::front::{ClientFront, rights};
use crate::layer::{logical_names, switchover_wait};
use crate::life::Life;
use crate::life::restorers::RestoredBy;
use crate::mql;
use crate::rule::{Stack, names};
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Capture, Context, Insert, Namespace, WriteOp, Written};
use document::{Doc, Result, Value};
use std::sync::Arc;

/// Takes a write of such a client that is not as any other client's; `None` if it is. Others wait until the rules that come with
/// a dump are in force.
pub(super) async fn write(
    front: &ClientFront,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
) -> Result<Option<Written>> {
    let (executor, ns) = (front.executor(), op.ns());
    if !session.restores() {
        if front.life.is_pending(&ns.db) {
            executor.lease.check()?;
            front.life.until_restored(session, ns).await;
        }
        return Ok(None);
    }
    let WriteOp::Insert(insert) = op else { return Ok(None) };
    executor.lease.check()?;
    // Held for the whole write, as by the layer.
    let rules = switchover_wait::until_free(executor, session, context, ns).await?;
    match rules.role(ns.by_ref()) {
        Role::Stored(shaped) => buckets(executor, session, context, insert, shaped).await,
        Role::Bookkeeping if session.transaction.is_none() => {
            drop(rules);
            take(front, session, context, insert).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Runs a command of such a client about a whole collection; `None` if it is as any other client's.
pub(super) async fn run(
    front: &ClientFront,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    if !session.restores() {
        return Ok(None);
    }
    let (executor, life) = (front.executor(), &front.life);
    if life.keeps_timeseries()
        && let Some(answer) = timeseries(executor, life, context, op).await?
    {
        return Ok(Some(answer));
    }
    match op {
        AdminOp::Drop { ns } => {
            let rights = rights::for_collection(executor, session.relay.as_ref(), "drop", ns).await?;
            rights.need("dropCollection", ns)?;
            let by = RestoredBy::of(session);
            if is_dumped(life, ns) {
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
            rights::for_collection(executor, session.relay.as_ref(), "create", ns)
                .await?
                .need("createCollection", ns)?;
            match is_dumped(life, ns) {
                true => executor.inner.admin(session, context, op.clone()).await.map(Some),
                false => Ok(Some(vec![Doc::empty()])),
            }
        }
        AdminOp::CreateIndexes { ns, .. } if names::is_bookkeeping(ns) && !is_dumped(life, ns) => {
            rights::for_collection(executor, session.relay.as_ref(), "createIndexes", ns)
                .await?
                .need("createIndex", ns)?;
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
async fn take(front: &ClientFront, session: &mut Session, context: &Context, op: &Insert) -> Result<Written> {
    let (executor, life) = (front.executor(), &front.life);
    if is_dumped(life, &op.ns) {
        let op = WriteOp::Insert(op.clone());
        return executor.inner.write(session, context, &op, &Capture::Nothing).await;
    }
    let rights = rights::for_collection(executor, session.relay.as_ref(), "insert", &op.ns).await?;
    rights.need("insert", &op.ns)?;
    if op.ns == names::catalog(&op.ns.db) {
        return life.restore_rows(&rights, RestoredBy::of(session), context, op).await;
    }
    if op.ns == names::replaced(&op.ns.db) {
        return keep_values(executor, session, context, op).await;
    }
    // Fences, jobs and leases are of the Pleach that was dumped: seeding does what its jobs would have done.
    Ok(Written { n: op.documents.len() as u64, ..Written::default() })
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
async fn buckets(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    insert: &Insert,
    shaped: &Stack,
) -> Result<Option<Written>> {
    let place = shaped.place(&insert.ns);
    let shape = match (place, shaped.rule.shape()) {
        (Some(place), _) if !place.shape.is_plain() => &place.shape,
        // It is about to be made.
        (None, Some(shape)) if shape.declared_place() == Some(&insert.ns) => shape,
        _ => return Ok(None),
    };
    if insert.documents.iter().any(|document| !shape.flaws(document).is_empty()) {
        return Err(logical_names::stored(&insert.ns, shaped));
    }
    let op = WriteOp::Insert(insert.clone());
    executor.inner.write(session, context, &op, &Capture::Nothing).await.map(Some)
}
