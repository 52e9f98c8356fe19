//! Writes that are one single-document statement each, so that they need no transaction: a reading into its open bucket (R16)
//! and sums into a slot.
//!
//! Such a statement carries the client's own session and statement number: the backend makes it exactly-once (R4). That is why
//! a reading that meets a full bucket is tried at the next one under the same number, and why nothing but the command itself
//! decides whether it goes this way: sent again it must go the same way.

use crate::rule::shape::{CommandOptions, DirectAccess};
use crate::shapes::bucket::write::open_buckets::{self, OpenBucket};
use crate::shapes::bucket::write::place::{Buckets, MOST_BYTES, greatest, is_unique, outdated};
use crate::shapes::bucket::{Body, Bucket, Encoded, ReadingId, Slot};
use crate::shapes::refused::{duplicate, is_taken, is_too_large};
use document::op::{Namespace, UpdateOp, UpdateStatement, WriteError, WriteOp, Written};
use document::{Error, Result, Value};

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
    at: &mut dyn DirectAccess,
    to: Buckets<'_>,
    reading: Encoded,
    how: &CommandOptions,
) -> Result<Written> {
    let Buckets { bucket, stored, logical, open: memory } = to;
    let host = open_buckets::host(stored, &reading.key);
    at.make_way(host).await?;
    let entries = [reading.entry];
    let bytes = entries.first().map_or(0, |entry| entry.size());
    let most = bucket.at_most();
    // Where the time is the `_id`, one bucket has room for all times of the period, and there is no other.
    let only_one = bucket.derives_id();
    let has_room =
        |open: &OpenBucket| only_one || open.count < most && (open.count == 0 || open.bytes + bytes <= MOST_BYTES);
    let mut n = match memory.get(host) {
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
        let op = update(how, stored, vec![statement], how.statement_ids.clone());
        let look = memory.look(host);
        let mut written = at.send(&op).await?;
        let Some(failed) = written.errors.pop() else {
            if written.retried.is_empty() {
                memory.added(host, look, n, bytes);
            }
            return Ok(Written { n: 1, retried: written.retried, ..Written::default() });
        };
        let error = failed.error;
        if !is_taken(&error) && (only_one || !is_too_large(&error)) {
            return Ok(failure(0, error));
        }
        let last = greatest(at, to, &reading.key, &entries).await?;
        if is_too_large(&error) {
            match &last {
                Some(last) if last.open.n >= n => closed = n,
                // It does not fit into a bucket of its own.
                _ => return Ok(failure(0, error)),
            }
        }
        n = match last {
            Some(last) if last.is_taken => return Ok(failure(0, duplicate(logical, &reading.id))),
            Some(last) => {
                memory.seen(host, last.open);
                if has_room(&last.open) && last.open.n > closed { last.open.n } else { last.open.n + 1 }
            }
            None => 0,
        };
        at.again(outdated()).await?;
    }
}

pub(super) fn failure(index: usize, error: Error) -> Written {
    Written { errors: vec![WriteError { index, error }], ..Written::default() }
}

fn update(how: &CommandOptions, stored: &Namespace, statements: Vec<UpdateStatement>, ids: Vec<i32>) -> WriteOp {
    WriteOp::Update(UpdateOp {
        ns: stored.clone(),
        statements,
        ordered: how.ordered,
        bypass_validation: how.bypass_validation,
        statement_ids: ids,
    })
}

/// A client's statement that is one statement on a stored document: its place, that, and the `_id` it makes.
pub(super) struct SingleStatement {
    pub(super) index: usize,
    pub(super) statement: UpdateStatement,
    pub(super) id: Value<'static>,
}

/// Runs statements as one command, in the client's transaction or outside. The outcome's places are the client's.
pub(super) async fn all(
    at: &mut dyn DirectAccess,
    to: Buckets<'_>,
    left: Vec<SingleStatement>,
    how: &CommandOptions,
) -> Result<Written> {
    let bypass_validation = how.bypass_validation || at.may_bypass_validation() && stays_valid(to.bucket);
    let how = &CommandOptions { bypass_validation, ..how.clone() };
    let mut total = Written::default();
    let mut statements: Vec<UpdateStatement> = Vec::with_capacity(left.len());
    let mut places: Vec<(usize, Value<'static>)> = Vec::with_capacity(left.len());
    for SingleStatement { index, statement, id } in left {
        statements.push(statement);
        places.push((index, id));
    }
    while !places.is_empty() {
        let ids = places.iter().map(|(index, _)| how.statement_id(*index)).collect();
        let op = update(how, to.stored, std::mem::take(&mut statements), ids);
        let written = at.send(&op).await?;
        // Two upserts of one bucket at the same time: one of them finds it there and is run again.
        let again: Vec<usize> = match at.is_in_transaction() {
            true => Vec::new(),
            false => {
                written.errors.iter().filter(|failed| is_taken(&failed.error)).map(|failed| failed.index).collect()
            }
        };
        let first_again = again.first().copied();
        let place = |index: usize| places.get(index).map_or(index, |(index, _)| *index);
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
        at.again(outdated()).await?;
    }
    total.errors.sort_by_key(|failed| failed.index);
    total.upserted.sort_by_key(|(index, _)| *index);
    Ok(total)
}

/// Whether adding to a slot leaves a valid bucket valid, so that not all of its slots need be looked at again: the calendar names
/// and bounds slots of time, and sums stay numbers.
fn stays_valid(bucket: &Bucket) -> bool {
    matches!(&bucket.body, Body::Slots(slots) if matches!(slots.slot, Slot::Time(_)))
}
