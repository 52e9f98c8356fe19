//! What becomes of readings: written back as whole buckets, each once; an emptied bucket disappears. A reading whose series,
//! period or derived `_id` changes is taken out and added where it belongs, in the same transaction (R17).

use crate::layer::shaped::write::candidates::Found;
use crate::layer::shaped::write::place::Reading;
use crate::layer::shaped::write::refused::{duplicate, immutable_id};
use crate::layer::shaped::write::single_statement::size;
use crate::layer::shaped::write::steps::{Steps, Stop};
use crate::layer::shaped::write::{open_buckets, place};
use crate::shapes::bucket::{Body, Bucket, Encoded, Entry, Key, ReadingId};
use crate::shapes::{Form, Place, Stack};
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, Insert, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::order;
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

/// Readings of so many bytes leave room for a bucket's other fields: MongoDB's limit is 16 MB.
const MOST_BYTES: usize = (16 << 20) - (64 << 10);

/// What becomes of one reading.
pub(super) enum Fate {
    Gone,
    Becomes(Doc<'static>),
}

/// The reading after an update; nothing if that changes nothing.
pub(super) fn updated(shaped: &Stack, found: &Found, update: &Update, env: &Env) -> Result<Option<Doc<'static>>> {
    let Applied::Changed(mut after) = update.apply(&found.doc, &found.details, env)? else { return Ok(None) };
    if let Some(Form::Bucket(bucket)) = shaped.sides.get(found.side).map(|side| &side.form)
        && let Some(lower) = bucket.in_lower_case(&after)
    {
        if lower.as_bytes() == found.doc.as_bytes() {
            return Ok(None);
        }
        after = lower;
    }
    let id = |doc: &Doc<'static>| doc.get("_id").unwrap_or(Value::Missing);
    match order::equal(&id(&found.doc), &id(&after)) {
        true => Ok(Some(after)),
        false => Err(immutable_id(&id(&after))),
    }
}

/// Changes that are collected and then written together.
#[derive(Default)]
pub(super) struct Changes {
    /// By side: statements on stored documents.
    updates: Vec<(usize, UpdateStatement)>,
    deletes: Vec<(usize, DeleteStatement)>,
    moved: Vec<Doc<'static>>,
    places: Vec<u128>,
}

impl Changes {
    /// Decides what is stored instead of one document.
    pub(super) fn add(
        &mut self,
        shaped: &Stack,
        at: usize,
        stored: &Doc<'static>,
        fates: Vec<(usize, Fate)>,
    ) -> Result<()> {
        let Some(side) = shaped.sides.get(at) else { return Ok(()) };
        match &side.form {
            Form::Plain => self.add_plain(shaped, at, stored, fates),
            Form::Bucket(bucket) => self.add_bucket((at, side), bucket, stored, fates),
        }
    }

    fn add_plain(&mut self, shaped: &Stack, at: usize, stored: &Doc<'static>, fates: Vec<(usize, Fate)>) -> Result<()> {
        let id = stored.get("_id").unwrap_or(Value::Missing);
        for (_, fate) in fates {
            match fate {
                Fate::Gone => self.deletes.push((at, delete(&id))),
                Fate::Becomes(after) => {
                    // It must fit into a bucket, where it will be or was.
                    if let Some(bucket) = shaped.bucket() {
                        bucket.encode(&after)?;
                    }
                    self.updates.push((at, replace(&id, after)?));
                }
            }
        }
        Ok(())
    }

    fn add_bucket(
        &mut self,
        (at, side): (usize, &Place),
        bucket: &Arc<Bucket>,
        stored: &Doc<'static>,
        fates: Vec<(usize, Fate)>,
    ) -> Result<()> {
        let (key, n) = bucket.key_of(stored)?;
        let mut entries: Vec<Option<Entry>> = bucket.entries(stored)?.into_iter().map(Some).collect();
        let mut changed = Vec::new();
        for (index, fate) in fates {
            let Some(entry) = entries.get_mut(index) else { continue };
            *entry = match fate {
                Fate::Gone => None,
                Fate::Becomes(after) => {
                    let encoded = bucket.encode(&after)?;
                    match stays(bucket, &key, &encoded, entry.as_ref()) {
                        true => {
                            changed.push((index, after));
                            Some(encoded.entry)
                        }
                        false => {
                            self.moved.push(after);
                            None
                        }
                    }
                }
            };
        }
        // What has grown too large for its bucket goes to the next one, if there can be one.
        while bytes(&entries) > MOST_BYTES && entries.iter().flatten().count() > 1 && place::may_follow(bucket) {
            let Some((index, after)) = changed.pop() else { break };
            entries.get_mut(index).map(Option::take);
            self.moved.push(after);
        }
        let entries: Vec<Entry> = entries.into_iter().flatten().collect();
        let id = stored.get("_id").unwrap_or(Value::Missing);
        self.places.push(open_buckets::place(&side.stored, &key));
        match bucket.build(&key, n, &entries) {
            None => self.deletes.push((at, delete(&id))),
            Some(whole) => self.updates.push((at, replace(&id, whole)?)),
        }
        Ok(())
    }

    /// Writes all of it, for the client's statement at that place.
    pub(super) async fn write(self, steps: &mut Steps<'_>, at: usize, bypass_validation: bool) -> Result<(), Stop> {
        let shaped = steps.shaped.clone();
        steps.touched.extend(self.places.iter().map(|place| open_buckets::host(*place)));
        steps.learned.extend(self.places.into_iter().map(|place| (place, None)));
        let (mut updates, mut deletes) = (self.updates, self.deletes);
        for (number, side) in shaped.sides.iter().enumerate() {
            let statements = of_side(&mut updates, number);
            if !statements.is_empty() {
                let op =
                    WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(side.stored.clone(), statements) });
                run(steps, at, &op).await?;
            }
            let statements = of_side(&mut deletes, number);
            if !statements.is_empty() {
                let op = WriteOp::Delete(Delete::of(side.stored.clone(), statements));
                run(steps, at, &op).await?;
            }
        }
        let moved = self.moved.into_iter().map(|doc| (at, doc)).collect();
        put(steps, moved, bypass_validation, Existing::Refused).await
    }
}

fn of_side<T>(all: &mut Vec<(usize, T)>, side: usize) -> Vec<T> {
    let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(all).into_iter().partition(|(at, _)| *at == side);
    *all = others;
    mine.into_iter().map(|(_, statement)| statement).collect()
}

async fn run(steps: &mut Steps<'_>, at: usize, op: &WriteOp) -> Result<(), Stop> {
    match steps.write(op).await?.errors.into_iter().next() {
        Some(failed) => Err(Stop::Statement { at, error: failed.error }),
        None => Ok(()),
    }
}

/// What it means that a slot is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// Inserts add up.
    AddedTo,
    Refused,
}

/// Adds logical documents to where new ones go, each for the client's statement at its place.
pub(super) async fn put(
    steps: &mut Steps<'_>,
    documents: Vec<(usize, Doc<'static>)>,
    bypass_validation: bool,
    existing: Existing,
) -> Result<(), Stop> {
    let shaped = steps.shaped.clone();
    let (Some(side), false) = (shaped.sides.first(), documents.is_empty()) else { return Ok(()) };
    match &side.form {
        Form::Plain => {
            for (at, doc) in documents {
                plain(steps, &side.stored, at, doc, bypass_validation).await?;
            }
            Ok(())
        }
        Form::Bucket(bucket) => {
            let mut readings = Vec::with_capacity(documents.len());
            for (at, doc) in documents {
                let encoded = bucket.encode(&doc).map_err(Stop::of(at))?;
                if existing == Existing::Refused && has_slot(steps, bucket, &side.stored, &encoded).await? {
                    return Err(Stop::Statement { at, error: duplicate(&shaped.logical, &encoded.id) });
                }
                readings.push(Reading { at, encoded });
            }
            let target = (bucket, &side.stored);
            match place::add(steps, target, &readings, true, bypass_validation).await?.into_iter().next() {
                Some(failed) => Err(Stop::Statement { at: failed.index, error: failed.error }),
                None => Ok(()),
            }
        }
    }
}

async fn plain(
    steps: &mut Steps<'_>,
    stored: &Namespace,
    at: usize,
    doc: Doc<'static>,
    bypass_validation: bool,
) -> Result<(), Stop> {
    let op = WriteOp::Insert(Insert { bypass_validation, ..Insert::of(stored.clone(), vec![doc]) });
    run(steps, at, &op).await
}

/// Whether the bucket has the slot that a document would go to.
async fn has_slot(steps: &mut Steps<'_>, bucket: &Bucket, stored: &Namespace, encoded: &Encoded) -> Result<bool> {
    let Entry::Slot { key: wanted, .. } = &encoded.entry else { return Ok(false) };
    let id = bucket.id(&encoded.key, 0);
    let found = steps.find(crate::execute::access::find(stored, Filter::equality("_id", &id))).await?;
    for doc in &found {
        let same = |entry: &Entry| matches!(entry, Entry::Slot { key, .. } if key == wanted);
        if bucket.entries(doc)?.iter().any(same) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the changed reading belongs where it was.
fn stays(bucket: &Bucket, key: &Key, encoded: &Encoded, before: Option<&Entry>) -> bool {
    let same_series = |(one, other): (&Option<Value<'static>>, &Option<Value<'static>>)| match (one, other) {
        (Some(one), Some(other)) => order::equal(one, other),
        (None, None) => true,
        _ => false,
    };
    let same_key = key.start == encoded.key.start && key.series.iter().zip(&encoded.key.series).all(same_series);
    same_key
        && match (&bucket.body, before, &encoded.entry) {
            (Body::Readings(readings), Some(before), after) if readings.reading_id == ReadingId::Time => {
                place::offset_of(readings, before) == place::offset_of(readings, after)
            }
            (Body::Slots(_), Some(Entry::Slot { key: before, .. }), Entry::Slot { key: after, .. }) => before == after,
            _ => true,
        }
}

fn bytes(entries: &[Option<Entry>]) -> usize {
    entries.iter().flatten().map(size).sum()
}

fn delete(id: &Value<'_>) -> DeleteStatement {
    DeleteStatement { filter: Filter::equality("_id", id), multi: false, hint: None }
}

fn replace(id: &Value<'_>, whole: Doc<'static>) -> Result<UpdateStatement> {
    let update = Update::parse(&Value::Document(whole), &[], &mut Names::new())?;
    Ok(UpdateStatement { filter: Filter::equality("_id", id), update, multi: false, upsert: false, hint: None })
}
