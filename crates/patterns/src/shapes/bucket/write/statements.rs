//! The statements by which new readings are written: additions to buckets that are there, or may be, and whole new buckets.
//!
//! A client's readings are added by upserts: one statement that also makes the bucket. A move writes whole documents where it can, so
//! that the bytes of a bucket do not depend on who adds a field in which order. A new bucket is inserted, never written over.

use crate::rule::shape::{Stop, StoredAccess};
use crate::shapes::bucket::write::open_buckets::OpenBucket;
use crate::shapes::bucket::write::place::{Begin, Group, MOST_BYTES, may_follow, outdated};
use crate::shapes::bucket::{Bucket, BucketEntry, Key};
use crate::shapes::evaluate::rewrite::replace;
use crate::shapes::refused::{is_taken, is_too_large};
use document::op::{Insert, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::{Doc, Result};
use std::sync::Arc;

/// Each with the place of the client's first statement that it is for.
#[derive(Default)]
pub(super) struct StoredStatements {
    updates: Vec<(usize, UpdateStatement)>,
    new: Vec<(usize, Doc<'static>)>,
}

impl StoredStatements {
    /// Fills buckets from the open one on; returns the one that is open then.
    pub(super) fn pack(
        &mut self,
        bucket: &Arc<Bucket>,
        group: &Group<'_>,
        key: &Key,
        begin: Begin,
        are_moved: bool,
    ) -> Result<OpenBucket> {
        let Some(first) = group.readings.first() else { return Ok(begin.open) };
        let mut open = begin.open;
        if let Some(mut slots) = begin.slots {
            slots.extend(group.readings.iter().map(|reading| reading.encoded.entry.clone()));
            if let Some(whole) = bucket.build(key, 0, &slots) {
                match begin.key {
                    Some(_) => self.updates.push((first.index, replace(&bucket.id(key, 0), whole)?)),
                    None => self.new.push((first.index, whole)),
                }
            }
            return Ok(open);
        }
        let (most, only_one) = (bucket.at_most(), !may_follow(bucket));
        let mut is_new = are_moved && begin.key.is_none();
        let mut entries: Vec<BucketEntry> = Vec::new();
        let mut index = first.index;
        for reading in &group.readings {
            let entry = &reading.encoded.entry;
            let bytes = entry.size();
            // A slot is added to one by one: what doubles add up to depends on the order.
            if entries.iter().any(|other| other.is_same_slot(entry)) {
                self.flush(bucket, key, open.n, (index, std::mem::take(&mut entries)), is_new)?;
            }
            if open.count >= most || (open.bytes + bytes > MOST_BYTES && open.count > 0 && !only_one) {
                self.flush(bucket, key, open.n, (index, std::mem::take(&mut entries)), is_new)?;
                (open, is_new) = (OpenBucket { n: open.n + 1, count: 0, bytes: 0 }, are_moved);
            }
            if entries.is_empty() {
                index = reading.index;
            }
            entries.push(entry.clone());
            open.bytes += bytes;
            if bucket.is_numbered() {
                open.count += 1;
            }
        }
        self.flush(bucket, key, open.n, (index, entries), is_new)?;
        Ok(open)
    }

    fn flush(
        &mut self,
        bucket: &Arc<Bucket>,
        key: &Key,
        n: i32,
        (index, entries): (usize, Vec<BucketEntry>),
        is_new: bool,
    ) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        match is_new {
            true => self.new.extend(bucket.build(key, n, &entries).map(|whole| (index, whole))),
            false => self.updates.push((index, bucket.add(key, n, &entries)?)),
        }
        Ok(())
    }

    pub(super) async fn write(
        self,
        at: &mut dyn StoredAccess,
        stored: &Namespace,
        bypass_validation: bool,
        mut adds: Option<Vec<Doc<'static>>>,
    ) -> Result<(), Stop> {
        let (indexes, documents): (Vec<usize>, Vec<Doc<'static>>) = self.new.into_iter().unzip();
        if !documents.is_empty() {
            let op = WriteOp::Insert(Insert { bypass_validation, ..Insert::of(stored.clone(), documents) });
            // What is added is said once, whichever statements add it.
            let adds = adds.as_mut().map(std::mem::take);
            run(at, &op, &indexes, adds).await?;
        }
        let (indexes, statements): (Vec<usize>, Vec<UpdateStatement>) = self.updates.into_iter().unzip();
        if !statements.is_empty() {
            let op = WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(stored.clone(), statements) });
            run(at, &op, &indexes, adds).await?;
        }
        Ok(())
    }
}

async fn run(
    at: &mut dyn StoredAccess,
    op: &WriteOp,
    indexes: &[usize],
    adds: Option<Vec<Doc<'static>>>,
) -> Result<(), Stop> {
    match at.write(op, adds).await?.errors.into_iter().next() {
        None => Ok(()),
        Some(failed) if at.may_guess() && (is_taken(&failed.error) || is_too_large(&failed.error)) => {
            Err(Stop::Command(outdated()))
        }
        Some(failed) => {
            let index = indexes.get(failed.index).copied().unwrap_or_default();
            Err(Stop::Statement { at: index, error: failed.error })
        }
    }
}
