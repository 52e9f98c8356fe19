//! Where new readings go, inside a transaction: grouped per bucket, one statement each (R16). The open bucket is read first, or
//! remembered where a wrong memory costs only another attempt.

use crate::execute::access::find;
use crate::layer::multi::among;
use crate::layer::shaped::write::open_buckets;
use crate::layer::shaped::write::open_buckets::Open;
use crate::layer::shaped::write::refused::{duplicate, is_taken, is_too_large};
use crate::layer::shaped::write::single_statement::{Last, at_most, is_one_statement, size};
use crate::layer::shaped::write::steps::{Steps, Stop};
use crate::mql;
use crate::shapes::bucket::{Body, Bucket, Encoded, Entry, Key, ReadingId, Readings};
use document::error::label;
use document::filter::{Filter, InSet, Node, Test};
use document::op::{Find, Namespace, SortKey, SortSpec, UpdateOp, UpdateStatement, WriteError, WriteOp};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::{Path, order};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// A bucket that has so many bytes takes no more: MongoDB's limit is 16 MB.
pub(super) const BYTES: usize = 15 << 20;

/// A reading to add, for the client's statement at this place.
pub(super) struct Reading {
    pub(super) at: usize,
    pub(super) encoded: Encoded,
}

/// The readings of one series and period, in order of arrival.
struct Group<'r> {
    key: &'r Key,
    place: u128,
    readings: Vec<&'r Reading>,
}

/// Adds readings to buckets; gives those that are there already. Ordered, those behind the first of them are left out.
pub(super) async fn add(
    steps: &mut Steps<'_>,
    (bucket, stored): (&Arc<Bucket>, &Namespace),
    readings: &[Reading],
    ordered: bool,
    bypass_validation: bool,
) -> Result<Vec<WriteError>, Stop> {
    let mut groups = grouped(stored, readings);
    steps.touched.extend(groups.iter().map(|group| open_buckets::host(group.place)));
    let mut errors = Vec::new();
    let mut opens = Vec::with_capacity(groups.len());
    if is_unique(bucket) {
        for group in &mut groups {
            opens.push(once(steps, bucket, stored, group, &mut errors).await?);
        }
        errors.sort_by_key(|failed| failed.index);
        if ordered && let Some(first) = errors.first().map(|failed| failed.index) {
            errors.truncate(1);
            groups.iter_mut().for_each(|group| group.readings.retain(|reading| reading.at < first));
        }
    } else {
        opens = open_buckets(steps, bucket, stored, &groups).await?;
    }
    let (mut statements, mut places) = (Vec::new(), Vec::new());
    for (group, open) in groups.iter().zip(opens) {
        let last = pack(bucket, group, open, &mut |statement, at| {
            statements.push(statement);
            places.push(at);
        })?;
        steps.learned.push((group.place, Some(last)));
    }
    if statements.is_empty() {
        return Ok(errors);
    }
    let op = WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(stored.clone(), statements) });
    let written = steps.write(&op).await?;
    match written.errors.into_iter().next() {
        None => Ok(errors),
        Some(failed) => {
            if steps.trusting && (is_taken(&failed.error) || is_too_large(&failed.error)) {
                return Err(Stop::Command(outdated()));
            }
            let at = places.get(failed.index).copied().unwrap_or_default();
            Err(Stop::Statement { at, error: failed.error })
        }
    }
}

/// What is remembered of the open bucket is not true any more.
fn outdated() -> Error {
    Error::new(Code::WriteConflict, "the open bucket changed meanwhile").with_label(label::TRANSIENT)
}

fn grouped<'r>(stored: &Namespace, readings: &'r [Reading]) -> Vec<Group<'r>> {
    let mut groups: Vec<Group<'r>> = Vec::new();
    let mut known: HashMap<u128, usize> = HashMap::new();
    for reading in readings {
        let key = &reading.encoded.key;
        let place = open_buckets::place(stored, key);
        let at = *known.entry(place).or_insert_with(|| {
            groups.push(Group { key, place, readings: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.readings.push(reading);
        }
    }
    groups
}

/// Fills buckets from the open one on; gives the one that is open then.
fn pack(
    bucket: &Arc<Bucket>,
    group: &Group<'_>,
    mut open: Open,
    made: &mut impl FnMut(UpdateStatement, usize),
) -> Result<Open> {
    let most = at_most(bucket);
    let only_one = !may_follow(bucket);
    let mut entries: Vec<Entry> = Vec::new();
    let mut first = 0;
    for reading in &group.readings {
        let entry = &reading.encoded.entry;
        let bytes = size(entry);
        if open.count >= most || (open.bytes + bytes > BYTES && open.count > 0 && !only_one) {
            if !entries.is_empty() {
                made(bucket.add(group.key, open.n, &std::mem::take(&mut entries))?, first);
            }
            open = Open { n: open.n + 1, count: 0, bytes: 0 };
        }
        if entries.is_empty() {
            first = reading.at;
        }
        entries.push(entry.clone());
        open.bytes += bytes;
        if bucket.is_numbered() {
            open.count += 1;
        }
    }
    if !entries.is_empty() {
        made(bucket.add(group.key, open.n, &entries)?, first);
    }
    Ok(open)
}

/// The open bucket of each group. One read tells of all whose first bucket has room; others are looked at one by one.
async fn open_buckets(
    steps: &mut Steps<'_>,
    bucket: &Bucket,
    stored: &Namespace,
    groups: &[Group<'_>],
) -> Result<Vec<Open>> {
    let mut opens: Vec<Option<Open>> = groups
        .iter()
        .map(|group| match bucket.is_numbered() {
            false => Some(Open::default()),
            true => steps.executor.opens.get(group.place).filter(|_| steps.trusting),
        })
        .collect();
    let unknown = groups.iter().zip(&opens).filter(|(_, open)| open.is_none());
    let ids: Vec<Value<'static>> = unknown.map(|(group, _)| bucket.id(group.key, 0)).collect();
    if !ids.is_empty() {
        let first = Find { projection: Some(only_figures()?), ..find(stored, among(&ids)) };
        let found = steps.find(first).await?;
        for (group, open) in groups.iter().zip(&mut opens).filter(|(_, open)| open.is_none()) {
            let id = bucket.id(group.key, 0);
            let same = |doc: &&Doc<'static>| doc.get("_id").is_some_and(|other| order::equal(&other, &id));
            let fits = |open: &Open| {
                let bytes: usize = group.readings.iter().map(|reading| size(&reading.encoded.entry)).sum();
                open.count as usize + group.readings.len() <= at_most(bucket) as usize && open.bytes + bytes <= BYTES
            };
            *open = match found.iter().find(same).map(|doc| figures(0, doc)) {
                None if fits(&Open::default()) => Some(Open::default()),
                Some(open) if fits(&open) => Some(open),
                _ => greatest(steps, bucket, stored, group.key, &[]).await?.map(|last| last.open),
            };
        }
    }
    Ok(opens.into_iter().map(Option::unwrap_or_default).collect())
}

/// The last bucket of a series and period, and whether one of these readings, by its time, is in any of them.
pub(super) async fn greatest(
    steps: &mut Steps<'_>,
    bucket: &Bucket,
    stored: &Namespace,
    key: &Key,
    entries: &[Entry],
) -> Result<Option<Last>> {
    let last = Find {
        sort: Some(SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending: true }] }),
        limit: Some(1),
        projection: Some(only_figures()?),
        ..find(stored, buckets_of(bucket, key))
    };
    let Some(found) = steps.find(last).await?.into_iter().next() else { return Ok(None) };
    let (_, n) = bucket.key_of(&found)?;
    let taken = is_unique(bucket) && !taken(steps, bucket, stored, key, entries).await?.is_empty();
    Ok(Some(Last { open: figures(n, &found), taken }))
}

/// The buckets of a series and period, as a range of `_id`s.
fn buckets_of(bucket: &Bucket, key: &Key) -> Filter {
    if !bucket.is_numbered() {
        return Filter::equality("_id", &bucket.id(key, 0));
    }
    Filter::from_node(Node::all_of([
        Node::field("_id", Test::Gte(bucket.id(key, 0))),
        Node::field("_id", Test::Lte(bucket.id(key, i32::MAX))),
    ]))
}

/// Whether a series and period may have several buckets.
pub(super) fn may_follow(bucket: &Bucket) -> bool {
    bucket.is_numbered() && !(is_unique(bucket) && is_one_statement(bucket))
}

/// Where a reading's time is its `_id`.
pub(super) fn is_unique(bucket: &Bucket) -> bool {
    matches!(&bucket.body, Body::Readings(Readings { reading_id: ReadingId::Time, .. }))
}

/// Leaves out of a group what is there already, in a bucket or in the group; gives the open bucket.
async fn once(
    steps: &mut Steps<'_>,
    bucket: &Bucket,
    stored: &Namespace,
    group: &mut Group<'_>,
    errors: &mut Vec<WriteError>,
) -> Result<Open> {
    let Body::Readings(readings) = &bucket.body else { return Ok(Open::default()) };
    let entries: Vec<Entry> = group.readings.iter().map(|reading| reading.encoded.entry.clone()).collect();
    let open = greatest(steps, bucket, stored, group.key, &[]).await?.map(|last| last.open).unwrap_or_default();
    let mut there = taken(steps, bucket, stored, group.key, &entries).await?;
    let logical = steps.shaped.logical.clone();
    group.readings.retain(|reading| {
        let Some(offset) = offset_of(readings, &reading.encoded.entry) else { return true };
        if there.iter().any(|other| order::equal(other, &offset)) {
            errors.push(WriteError { index: reading.at, error: duplicate(&logical, &reading.encoded.id) });
            return false;
        }
        there.push(offset);
        true
    });
    Ok(open)
}

/// Which of these times are in some bucket of the series and period.
async fn taken(
    steps: &mut Steps<'_>,
    bucket: &Bucket,
    stored: &Namespace,
    key: &Key,
    entries: &[Entry],
) -> Result<Vec<Value<'static>>> {
    let Body::Readings(readings) = &bucket.body else { return Ok(Vec::new()) };
    let wanted: Vec<Value<'static>> = entries.iter().filter_map(|entry| offset_of(readings, entry)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let set = Arc::new(InSet::new(wanted, Vec::new()));
    let having = Node::field(&format!("readings.{}", readings.unit.name), Test::In(set.clone()));
    let filter = buckets_of(bucket, key).and(Filter::from_node(having));
    let mut there = Vec::new();
    for doc in steps.find(find(stored, filter)).await? {
        let offsets = bucket.entries(&doc)?;
        there.extend(
            offsets.iter().filter_map(|entry| offset_of(readings, entry)).filter(|offset| set.contains(offset)),
        );
    }
    Ok(there)
}

/// A reading's distance from the start of its period.
pub(super) fn offset_of(readings: &Readings, entry: &Entry) -> Option<Value<'static>> {
    match entry {
        Entry::Reading(reading) => reading.get(&readings.unit.name),
        Entry::Slot { .. } => None,
    }
}

/// `{ count: 1, bytes: { $bsonSize: "$$ROOT" } }`
fn only_figures() -> Result<Arc<Projection>> {
    let fields = mql::document([("count", Value::Int32(1)), ("bytes", mql::call("$bsonSize", Value::from("$$ROOT")))]);
    Ok(Arc::new(Projection::parse_find(&fields, &Filter::all(), &mut Names::new())?))
}

fn figures(n: i32, stored: &Doc<'_>) -> Open {
    let number =
        |name: &str| stored.get(name).and_then(|value| value.as_number().map(|value| value.to_i64_saturated()));
    let count = u32::try_from(number("count").unwrap_or_default()).unwrap_or(0);
    Open { n, count, bytes: usize::try_from(number("bytes").unwrap_or_default()).unwrap_or(0) }
}
