//! Writes that are one single-document statement each, so that they need no transaction: a reading into its open bucket (R16)
//! and sums into a slot.
//!
//! Such a statement carries the client's own session and statement number: whoever is behind makes it exactly-once (R4). That
//! is why a reading that meets a full bucket is tried at the next one under the same number, and why nothing but the
//! command itself decides whether it goes this way: sent again it must go the same way.

use crate::execute::gate::Point;
use crate::execute::plan::Action;
use crate::execute::retry::RetryWindow;
use crate::layer::shaped::write::open_buckets::Open;
use crate::layer::shaped::write::place::{BYTES, greatest, is_unique};
use crate::layer::shaped::write::refused::{is_taken, is_too_large};
use crate::layer::shaped::write::steps::Steps;
use crate::layer::shaped::write::{open_buckets, refused};
use crate::layer::{Executor, statements};
use crate::shapes::Stack;
use crate::shapes::bucket::{Body, Bucket, Encoded, Entry, ReadingId, Slot};
use document::backend::Session;
use document::error::label;
use document::op::{Capture, Context, Insert, Namespace, UpdateOp, UpdateStatement, WriteError, WriteOp, Written};
use document::{Doc, Error, Result, Value};
use std::sync::Arc;

/// Whether one statement on the open bucket is the whole plan of a reading: not if its `_id` is its time and several buckets
/// of one period would have to be looked at.
pub(super) fn is_one_statement(bucket: &Bucket) -> bool {
    match &bucket.body {
        Body::Slots(_) => true,
        Body::Readings(readings) => {
            readings.reading_id != ReadingId::Time
                || bucket.every.units(readings.unit.size) <= u64::from(readings.at_most)
        }
    }
}

/// Inserts one reading.
pub(super) async fn reading(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    shaped: &Arc<Stack>,
    target: (&Arc<Bucket>, &Namespace),
    reading: Encoded,
    how: &CommandOptions,
) -> Result<Written> {
    let (bucket, stored) = target;
    let place = open_buckets::place(stored, &reading.key);
    let mut attempts = RetryWindow::new(context);
    if !executor.lines.is_empty() {
        attempts.in_time(executor.lines.make_way(vec![open_buckets::host(place)])).await?;
    }
    let entries = [reading.entry];
    let bytes = entries.first().map_or(0, size);
    let most = at_most(bucket);
    // Where the time is the `_id`, one bucket has room for all times of the period, and there is no other.
    let only_one = bucket.derives_id();
    let has_room = |open: &Open| only_one || open.count < most && (open.count == 0 || open.bytes + bytes <= BYTES);
    let mut n = match executor.opens.get(place) {
        // All times of the period fit into one bucket: it alone can say whether this one is taken.
        _ if is_unique(bucket) => 0,
        Some(open) if has_room(&open) => open.n,
        Some(open) => open.n + 1,
        None => 0,
    };
    // Buckets up to this one have no room for so many bytes.
    let mut closed = -1;
    loop {
        let statement = bucket.add(&reading.key, n, &entries)?;
        let op = how.op(stored, vec![statement], how.statement_ids.clone());
        let ticket = executor.opens.ticket(place);
        let mut written = loose(executor, session, context, &op).await?;
        let Some(failed) = written.errors.pop() else {
            if written.retried.is_empty() {
                executor.opens.added(place, ticket, n, bytes);
            }
            return Ok(Written { n: 1, retried: written.retried, ..Written::default() });
        };
        let error = failed.error;
        if !is_taken(&error) && (only_one || !is_too_large(&error)) {
            return Ok(statements::failed(0, error));
        }
        let mut own = session.sibling();
        let mut steps = Steps::new(executor, &mut own, context, shaped);
        let last = greatest(&mut steps, bucket, stored, &reading.key, &entries).await?;
        if is_too_large(&error) {
            match &last {
                Some(last) if last.open.n >= n => closed = n,
                // It does not fit into a bucket of its own.
                _ => return Ok(statements::failed(0, error)),
            }
        }
        n = match last {
            Some(last) if last.taken => {
                return Ok(statements::failed(0, refused::duplicate(&shaped.logical, &reading.id)));
            }
            Some(last) => {
                executor.opens.seen(place, last.open);
                if has_room(&last.open) && last.open.n > closed { last.open.n } else { last.open.n + 1 }
            }
            None => 0,
        };
        attempts.again(moved_on(), context).await?;
    }
}

/// Inserts one document as it is.
pub(super) async fn document(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    stored: &Namespace,
    document: Doc<'static>,
    how: &CommandOptions,
) -> Result<Written> {
    let op = WriteOp::Insert(Insert {
        ns: stored.clone(),
        documents: vec![document],
        ordered: true,
        bypass_validation: how.bypass_validation,
        statement_ids: how.statement_ids.clone(),
    });
    loose(executor, session, context, &op).await
}

/// What the command says about its statements.
#[derive(Clone)]
pub(super) struct CommandOptions {
    pub(super) ordered: bool,
    pub(super) bypass_validation: bool,
    pub(super) statement_ids: Vec<i32>,
}

impl CommandOptions {
    pub(super) fn op(&self, stored: &Namespace, statements: Vec<UpdateStatement>, statement_ids: Vec<i32>) -> WriteOp {
        WriteOp::Update(UpdateOp {
            ns: stored.clone(),
            statements,
            ordered: self.ordered,
            bypass_validation: self.bypass_validation,
            statement_ids,
        })
    }

    /// The retry number of the client's statement at that place.
    pub(super) fn statement_id(&self, at: usize) -> i32 {
        self.statement_ids.get(at).copied().unwrap_or_else(|| i32::try_from(at).unwrap_or(i32::MAX))
    }
}

/// A client's statement that is one statement on a stored document: its place, that, and the `_id` it makes.
pub(super) struct SingleStatement {
    pub(super) at: usize,
    pub(super) statement: UpdateStatement,
    pub(super) id: Value<'static>,
}

/// Runs statements as one command, in the client's transaction or outside. The outcome's places are the client's.
pub(super) async fn all(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    (bucket, stored): (&Arc<Bucket>, &Namespace),
    left: Vec<SingleStatement>,
    how: &CommandOptions,
) -> Result<Written> {
    let how = &CommandOptions {
        bypass_validation: how.bypass_validation || is_valid_anyway(executor, bucket),
        ..how.clone()
    };
    let mut total = Written::default();
    let mut attempts = RetryWindow::new(context);
    let mut statements: Vec<UpdateStatement> = Vec::with_capacity(left.len());
    let mut places: Vec<(usize, Value<'static>)> = Vec::with_capacity(left.len());
    for SingleStatement { at, statement, id } in left {
        statements.push(statement);
        places.push((at, id));
    }
    while !places.is_empty() {
        let ids = places.iter().map(|(at, _)| how.statement_id(*at)).collect();
        let op = how.op(stored, std::mem::take(&mut statements), ids);
        let written = loose(executor, session, context, &op).await?;
        // Two upserts of one bucket at the same time: one of them finds it there and is run again.
        let again: Vec<usize> = match session.transaction {
            Some(_) => Vec::new(),
            None => written.errors.iter().filter(|failed| is_taken(&failed.error)).map(|failed| failed.index).collect(),
        };
        let first_again = again.first().copied();
        let place = |index: usize| places.get(index).map_or(index, |(at, _)| *at);
        total.n += written.n;
        total.modified += written.modified;
        let made = |(index, _): &(usize, Value<'static>)| places.get(*index).cloned();
        total.upserted.extend(written.upserted.iter().filter_map(made));
        total.retried.extend(written.retried);
        let failed = written.errors.into_iter().filter(|failed| !again.contains(&failed.index));
        total.errors.extend(failed.map(|failed| WriteError { index: place(failed.index), error: failed.error }));
        let (Some(first), WriteOp::Update(op)) = (first_again, op) else { break };
        if how.ordered && !total.errors.is_empty() {
            break;
        }
        let stays = |index: usize| if how.ordered { index >= first } else { again.contains(&index) };
        let kept = op.statements.into_iter().zip(places).enumerate().filter(|(index, _)| stays(*index));
        (statements, places) = kept.map(|(_, one)| one).unzip();
        attempts.again(moved_on(), context).await?;
    }
    total.errors.sort_by_key(|failed| failed.index);
    total.upserted.sort_by_key(|(index, _)| *index);
    Ok(total)
}

/// The client's own statement, under its own session and numbers.
async fn loose(executor: &Executor, session: &mut Session, context: &Context, op: &WriteOp) -> Result<Written> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Step { rules: &[], action: &Action::Write(op.clone()) }).await?;
    }
    let written = executor.inner.write(session, context, op, &Capture::Nothing).await?;
    if let Some(gate) = executor.gate()
        && session.transaction.is_none()
    {
        gate.pass(Point::Committed).await?;
    }
    Ok(written)
}

/// Whether adding to a slot leaves a valid bucket valid, so that the embedded store need not look at all of its slots again:
/// the calendar names and bounds slots of time, and sums stay numbers. A real MongoDB takes that only from who may bypass.
fn is_valid_anyway(executor: &Executor, bucket: &Bucket) -> bool {
    let by_calendar = matches!(&bucket.body, Body::Slots(slots) if matches!(slots.slot, Slot::Time(_)));
    by_calendar && !executor.inner.facts().has_users
}

pub(super) fn at_most(bucket: &Bucket) -> u32 {
    match &bucket.body {
        Body::Readings(readings) => readings.at_most,
        Body::Slots(_) => u32::MAX,
    }
}

/// About how many bytes an entry adds to its bucket.
pub(super) fn size(entry: &Entry) -> usize {
    match entry {
        Entry::Reading(reading) => reading.as_bytes().len() + 8,
        Entry::Slot { .. } => 64,
    }
}

/// The bucket that was tried is not the open one any more.
fn moved_on() -> Error {
    Error::new(document::Code::WriteConflict, "the open bucket changed meanwhile").with_label(label::TRANSIENT)
}

/// A bucket as a look at it shows.
pub(super) struct Last {
    pub(super) open: Open,
    /// One of the readings, by its time, is in some bucket of the period.
    pub(super) taken: bool,
}
