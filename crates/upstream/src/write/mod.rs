//! Writes. What needs no images is one command; what does runs in a transaction, statement by statement.

mod images;
pub(crate) mod plain;

use crate::answer;
use crate::client_or_own::ClientOrOwn;
use crate::retries::{self, Attempt};
use crate::transaction::{UpstreamTransaction, over};
use crate::upstream::Upstream;
use document::backend::Session;
use document::error::{Scope, label};
use document::op::{Capture, Context, Namespace, WriteOp, Written};
use document::{Code, Error, Result};
use std::time::{Duration, Instant};

pub(crate) async fn write(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let images = needs_images(op, capture);
    if session.transaction.is_none() {
        return match images {
            true => alone(upstream, session, context, op, capture).await,
            false => plain::write(upstream, session, context, op, capture).await,
        };
    }
    let Some(attempt) = attempt(session) else { return in_transaction(upstream, session, context, op, capture).await };
    let ids = statement_ids(op);
    let db = namespace(op).db.to_string();
    if !looks_first(session, attempt) {
        return match images {
            true => shown_at_once(upstream, session, context, op, capture, attempt).await,
            false => at_once(upstream, session, context, op, capture, attempt).await,
        };
    }
    let found = upstream.run(session, context, retries::look_up(&db, attempt)).await?;
    let Some(before) = retries::recall(&found, &ids) else {
        let written = in_transaction(upstream, session, context, op, capture).await?;
        return remembered(session, context, attempt, &ids, db, written);
    };
    let left: Vec<usize> =
        (0..ids.len()).filter(|at| !ids.get(*at).is_some_and(|id| before.retried.contains(id))).collect();
    if left.is_empty() {
        return Ok(before);
    }
    let rest = only(op, &left);
    let written = in_transaction(upstream, session, context, &rest, capture).await?;
    let rest_ids: Vec<i32> = left.iter().filter_map(|at| ids.get(*at).copied()).collect();
    let written = remembered(session, context, attempt, &rest_ids, db, written)?;
    Ok(merged(before, written, &left))
}

/// The look-up and the write back to back: an attempt is the first far more often than not. If it was not, the transaction
/// is begun again, or tried again by its planner, and the look-up comes first.
async fn at_once(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
    attempt: Attempt,
) -> Result<Written> {
    let alone = [(op, capture)];
    let mut outcomes = all_at_once(upstream, session, context, &alone, attempt).await?;
    outcomes.pop().unwrap_or_else(|| Ok(Written::default()))
}

/// As [`at_once`], of a write that shows what it changed: the look-up goes with its first command.
async fn shown_at_once(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
    attempt: Attempt,
) -> Result<Written> {
    let (ids, db) = (statement_ids(op), namespace(op).db.to_string());
    let fresh = UpstreamTransaction::of(session).is_some_and(|transaction| !transaction.is_started());
    let mut asked =
        images::RetryLookUp { look_up: Some(retries::look_up(&db, attempt)), ids: ids.clone(), ..Default::default() };
    let written = images::write(upstream, session, context, op, capture, &mut asked).await;
    if !asked.repeated {
        return remembered(session, context, attempt, &ids, db, written?);
    }
    let transaction = UpstreamTransaction::of(session).ok_or_else(over)?;
    transaction.line()?.repeated.lock().add(attempt.name());
    if !fresh {
        return Err(done_before());
    }
    transaction.restart()?;
    Box::pin(write(upstream, session, context, op, capture)).await
}

/// The transaction has begun as if the write were new: its planner tries it again.
fn done_before() -> Error {
    Error::new(Code::WriteConflict, "the write was done before").with_label(label::TRANSIENT)
}

/// As [`at_once`], with what follows from the write behind it.
async fn all_at_once(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    ops: &[(&WriteOp, &Capture)],
    attempt: Attempt,
) -> Result<Vec<Result<Written>>> {
    let Some((op, capture)) = ops.first() else { return Ok(Vec::new()) };
    let (ids, db) = (statement_ids(op), namespace(op).db.to_string());
    let Some(transaction) = UpstreamTransaction::of(session) else { return Ok(Vec::new()) };
    let fresh = !transaction.is_started();
    let before = vec![retries::look_up(&db, attempt)];
    let (found, mut outcomes) = plain::run_all(transaction, context, before, ops).await?;
    let found = answer::checked(found.into_iter().next().unwrap_or_else(document::Doc::empty))?;
    if retries::recall(&found, &ids).is_none() {
        if let Some(Ok(written)) = outcomes.first_mut() {
            *written = remembered(session, context, attempt, &ids, db, std::mem::take(written))?;
        }
        return Ok(outcomes);
    }
    transaction.line()?.repeated.lock().add(attempt.name());
    if !fresh {
        return Err(done_before());
    }
    transaction.restart()?;
    Ok(vec![Box::pin(write(upstream, session, context, op, capture)).await])
}

/// Whether the attempt is known to have a record.
fn looks_first(session: &mut Session, attempt: Attempt) -> bool {
    let line = UpstreamTransaction::of(session).and_then(|transaction| transaction.line().ok());
    line.is_none_or(|line| line.repeated.lock().contains(attempt.name()))
}

/// Several writes of a transaction, back to back where none needs an answer of its own before the next.
pub(crate) async fn write_all(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    ops: &[(WriteOp, Capture)],
) -> Result<Vec<Result<Written>>> {
    let back_to_back = session.transaction.is_some() && ops.iter().all(|(op, capture)| !needs_images(op, capture));
    let attempt = attempt(session);
    if back_to_back && attempt.is_none_or(|attempt| !looks_first(session, attempt)) {
        let ops: Vec<(&WriteOp, &Capture)> = ops.iter().map(|(op, capture)| (op, capture)).collect();
        return match (attempt, UpstreamTransaction::of(session)) {
            (Some(attempt), _) => all_at_once(upstream, session, context, &ops, attempt).await,
            (None, Some(transaction)) => Ok(plain::run_all(transaction, context, Vec::new(), &ops).await?.1),
            (None, None) => Ok(Vec::new()),
        };
    }
    let mut outcomes = Vec::with_capacity(ops.len());
    let retry = session.retry;
    for (op, capture) in ops {
        let outcome = write(upstream, session, context, op, capture).await;
        session.retry = None;
        let over = |written: &Written| !written.errors.is_empty() || !written.retried.is_empty();
        let last = outcome.as_ref().map_or(true, over);
        outcomes.push(outcome);
        if last {
            break;
        }
    }
    session.retry = retry;
    Ok(outcomes)
}

/// Which statements of the session's retryable write were answered before.
pub(crate) async fn recall(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    db: &str,
    statements: &[i32],
) -> Result<Written> {
    let Some(attempt) = attempt(session) else { return Ok(Written::default()) };
    let found = upstream.run(session, context, retries::look_up(db, attempt)).await?;
    Ok(retries::recall(&found, statements).unwrap_or_default())
}

/// Notes what statements of the session's retryable write answer, in the place of what was noted before.
pub(crate) fn remember(
    session: &mut Session,
    context: &Context,
    db: &str,
    statements: &[i32],
    written: &Written,
) -> Result<()> {
    let Some(attempt) = attempt(session) else { return Ok(()) };
    if let Some(transaction) = UpstreamTransaction::of(session) {
        let record = retries::record(attempt, statements, written, context.env.now);
        transaction.records.retain(|(_, other)| other.get("_id") != record.get("_id"));
        transaction.records.push((db.to_owned(), record));
    }
    Ok(())
}

/// A client's retryable write in a transaction of our own.
fn attempt(session: &mut Session) -> Option<Attempt> {
    let (id, number) = (session.id?, session.retry?);
    let transaction = UpstreamTransaction::of(session)?;
    if transaction.is_joined() {
        return None;
    }
    Some(Attempt::new(&*transaction.line().ok()?, id, number))
}

/// Notes what the write answered; the record is saved with the commit.
fn remembered(
    session: &mut Session,
    context: &Context,
    attempt: Attempt,
    ids: &[i32],
    db: String,
    written: Written,
) -> Result<Written> {
    if written.errors.is_empty()
        && let Some(transaction) = UpstreamTransaction::of(session)
    {
        let record = retries::record(attempt, ids, &written, context.env.now);
        transaction.records.push((db, record));
    }
    Ok(written)
}

async fn in_transaction(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    match needs_images(op, capture) {
        true => images::write(upstream, session, context, op, capture, &mut images::RetryLookUp::default()).await,
        false => plain::write(upstream, session, context, op, capture).await,
    }
}

/// What an insert leaves is what it was given.
fn needs_images(op: &WriteOp, capture: &Capture) -> bool {
    !matches!(capture, Capture::Nothing) && !matches!(op, WriteOp::Insert(_))
}

/// Outside a transaction images need one of our own: each statement has its own, tried again after conflicts.
async fn alone(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let (count, ordered) = match op {
        WriteOp::Update(op) => (op.statements.len(), op.ordered),
        WriteOp::Delete(op) => (op.statements.len(), op.ordered),
        WriteOp::Insert(_) | WriteOp::FindAndModify(_) => (1, true),
    };
    let mut total = Written::default();
    for at in 0..count {
        let one = only(op, &[at]);
        match alone_once(upstream, session, context, &one, capture).await {
            Ok(written) => {
                let failed = !written.errors.is_empty();
                total = merged(total, written, &[at]);
                if failed && ordered {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

async fn alone_once(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let until = context.deadline.unwrap_or_else(|| Instant::now() + Duration::from_secs(30));
    let mut pause = Duration::from_millis(1);
    loop {
        let via = ClientOrOwn::of(&upstream.shared, session);
        let mut own = session.attempt();
        own.transaction = Some(Box::new(UpstreamTransaction::begin(via, &own, context)));
        let result = match Box::pin(write(upstream, &mut own, context, op, capture)).await {
            Ok(written) if !written.errors.is_empty() => return Ok(written),
            Ok(written) => match own.transaction.take() {
                Some(transaction) => transaction.commit(context).await.map(|()| written),
                None => Ok(written),
            },
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.scope() == Scope::Transient && Instant::now() < until => {
                drop(own);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

pub(crate) fn namespace(op: &WriteOp) -> &Namespace {
    match op {
        WriteOp::Insert(op) => &op.ns,
        WriteOp::Update(op) => &op.ns,
        WriteOp::Delete(op) => &op.ns,
        WriteOp::FindAndModify(op) => &op.ns,
    }
}

/// The retry number of each statement.
fn statement_ids(op: &WriteOp) -> Vec<i32> {
    let counted = |given: &[i32], count: usize| match given.is_empty() {
        true => (0..i32::try_from(count).unwrap_or(i32::MAX)).collect(),
        false => given.to_vec(),
    };
    match op {
        WriteOp::Insert(op) => counted(&op.statement_ids, op.documents.len()),
        WriteOp::Update(op) => counted(&op.statement_ids, op.statements.len()),
        WriteOp::Delete(op) => counted(&op.statement_ids, op.statements.len()),
        WriteOp::FindAndModify(op) => vec![op.statement_id],
    }
}

/// The operation with only the statements at those places.
fn only(op: &WriteOp, places: &[usize]) -> WriteOp {
    fn pick<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
        places.iter().filter_map(|at| all.get(*at).cloned()).collect()
    }
    let statement_ids = pick(&statement_ids(op), places);
    let mut rest = op.clone();
    match &mut rest {
        WriteOp::Insert(op) => {
            op.documents = pick(&op.documents, places);
            op.statement_ids = statement_ids;
        }
        WriteOp::Update(op) => {
            op.statements = pick(&op.statements, places);
            op.statement_ids = statement_ids;
        }
        WriteOp::Delete(op) => {
            op.statements = pick(&op.statements, places);
            op.statement_ids = statement_ids;
        }
        WriteOp::FindAndModify(_) => {}
    }
    rest
}

/// Both outcomes; `places` are those of the statements behind `more`.
fn merged(mut total: Written, more: Written, places: &[usize]) -> Written {
    let place = |at: usize| places.get(at).copied().unwrap_or(at);
    total.n += more.n;
    total.modified += more.modified;
    total.upserted.extend(more.upserted.into_iter().map(|(at, id)| (place(at), id)));
    total.upserted.sort_by_key(|(at, _)| *at);
    total.errors.extend(more.errors.into_iter().map(|mut failed| {
        failed.index = place(failed.index);
        failed
    }));
    total.document = more.document.or(total.document);
    total.changes.extend(more.changes);
    total.retried.extend(more.retried);
    total
}
