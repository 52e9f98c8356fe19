//! Where new readings go, inside a transaction: grouped per bucket, one statement each (R16). The one placement: of clients'
//! readings and of those that are moved. The open bucket is read first, or remembered where a wrong memory costs only another
//! attempt.

use crate::mql;
use crate::rule::shape::{Stop, StoredAccess, StoredReads};
use crate::shapes::bucket::write::open_buckets::{self, OpenBucket, OpenBuckets};
use crate::shapes::bucket::write::single_statement::is_one_statement;
use crate::shapes::bucket::write::statements::StoredStatements;
use crate::shapes::bucket::{Body, Bucket, BucketEntry, Encoded, Key, ReadingId, Readings};
use crate::shapes::find;
use crate::shapes::refused::duplicate;
use document::error::label;
use document::filter::{Filter, InSet, Node, Test};
use document::op::{Find, Namespace, SortKey, SortSpec, WriteError};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::{Path, order};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// A bucket that has so many bytes takes no more: MongoDB's limit is 16 MB.
pub(super) const MOST_BYTES: usize = 15 << 20;

/// A reading to add, for the client's statement at this place.
pub(crate) struct NewReading {
    pub(crate) index: usize,
    pub(crate) encoded: Encoded,
}

/// The buckets that readings go to.
#[derive(Clone, Copy)]
pub(crate) struct Buckets<'b> {
    pub(crate) bucket: &'b Arc<Bucket>,
    pub(crate) stored: &'b Namespace,
    pub(crate) logical: &'b Namespace,
    pub(crate) open: &'b Arc<OpenBuckets>,
}

/// Readings to add, and how.
pub(crate) struct NewReadings<'r> {
    pub(crate) readings: &'r [NewReading],
    pub(crate) ordered: bool,
    pub(crate) bypass_validation: bool,
    /// Whether they come from another place. Then the keys of their buckets are wanted as stored, so each bucket is looked at; and
    /// a bucket of slots is written as a whole, so that its bytes do not depend on how many parts the move has.
    pub(crate) are_moved: bool,
}

/// What came of new readings.
#[derive(Default)]
pub(crate) struct Placed {
    /// Readings whose time is taken, with nothing written for them.
    pub(crate) refused: Vec<WriteError>,
    /// Of the others, series and period as their bucket has them, where it was looked at: 1 and 1.0 are one series.
    pub(crate) keys: Vec<(usize, Arc<Key>)>,
}

/// The readings of one series and period, in order of arrival.
pub(super) struct Group<'r> {
    key: &'r Key,
    host: u64,
    pub(super) readings: Vec<&'r NewReading>,
}

/// The bucket that a group begins with.
#[derive(Default)]
pub(super) struct Begin {
    pub(super) open: OpenBucket,
    /// Its key, if it is stored and was looked at.
    pub(super) key: Option<Key>,
    /// The slots that it has, if it is to be written as a whole.
    pub(super) slots: Option<Vec<BucketEntry>>,
}

/// Adds readings to buckets. Ordered, those behind the first that is refused are left out.
pub(crate) async fn add(at: &mut dyn StoredAccess, to: Buckets<'_>, new: NewReadings<'_>) -> Result<Placed, Stop> {
    let NewReadings { readings, ordered, bypass_validation, are_moved } = new;
    let mut groups = grouped(to.stored, readings);
    groups.iter().for_each(|group| at.touch(group.host));
    let mut placed = Placed::default();
    let mut begins = Vec::with_capacity(groups.len());
    if is_unique(to.bucket) {
        for group in &mut groups {
            begins.push(without_taken(at, to, group, &mut placed.refused).await?);
        }
        placed.refused.sort_by_key(|failed| failed.index);
        if ordered && let Some(first) = placed.refused.first().map(|failed| failed.index) {
            placed.refused.truncate(1);
            groups.iter_mut().for_each(|group| group.readings.retain(|reading| reading.index < first));
        }
    } else {
        begins = open_buckets(at, to, &groups, are_moved).await?;
    }
    let mut stored = StoredStatements::default();
    for (group, begin) in groups.iter().zip(begins) {
        let key = begin.key.clone().unwrap_or_else(|| group.key.clone());
        let last = stored.pack(to.bucket, group, &key, begin, are_moved)?;
        let (memory, host) = (to.open.clone(), group.host);
        at.once_committed(Box::new(move || memory.learn(host, Some(last))));
        let key = Arc::new(key);
        placed.keys.extend(group.readings.iter().map(|reading| (reading.index, key.clone())));
    }
    let adds = if at.is_watched() { added(to.bucket, &groups)? } else { None };
    stored.write(at, to.stored, bypass_validation, adds).await?;
    Ok(placed)
}

/// The logical documents that are added; `None` for slots, which may be there already.
fn added(bucket: &Bucket, groups: &[Group<'_>]) -> Result<Option<Vec<Doc<'static>>>> {
    if !bucket.is_numbered() {
        return Ok(None);
    }
    let mut documents = Vec::new();
    for reading in groups.iter().flat_map(|group| &group.readings) {
        documents.extend(bucket.logical(&reading.encoded)?);
    }
    Ok(Some(documents))
}

/// What is remembered of the open bucket is not true any more.
pub(super) fn outdated() -> Error {
    Error::new(Code::WriteConflict, "the open bucket changed meanwhile").with_label(label::TRANSIENT)
}

fn grouped<'r>(stored: &Namespace, readings: &'r [NewReading]) -> Vec<Group<'r>> {
    let mut groups: Vec<Group<'r>> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    for reading in readings {
        let key = &reading.encoded.key;
        let number = *known.entry(key.bytes()).or_insert_with(|| {
            groups.push(Group { key, host: open_buckets::host(stored, key), readings: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(number) {
            group.readings.push(reading);
        }
    }
    groups
}

/// The open bucket of each group. One read tells of all whose first bucket has room; others are looked at one by one.
async fn open_buckets(
    at: &mut dyn StoredAccess,
    to: Buckets<'_>,
    groups: &[Group<'_>],
    are_moved: bool,
) -> Result<Vec<Begin>> {
    let bucket = to.bucket;
    let guesses = at.may_guess();
    let guess = |group: &Group<'_>| match bucket.is_numbered() {
        _ if are_moved => None,
        false => Some(Begin::default()),
        true => to.open.get(group.host).filter(|_| guesses).map(|open| Begin { open, ..Begin::default() }),
    };
    let mut begins: Vec<Option<Begin>> = groups.iter().map(guess).collect();
    let unknown = groups.iter().zip(&begins).filter(|(_, begin)| begin.is_none());
    let ids: Vec<Value<'static>> = unknown.map(|(group, _)| bucket.id(group.key, 0)).collect();
    if !ids.is_empty() {
        let first = Find::matching(to.stored.clone(), Filter::among("_id", ids));
        let projection = if bucket.is_numbered() { Some(only_figures()?) } else { None };
        let found = find(at, Find { projection, ..first }).await?;
        for (group, begin) in groups.iter().zip(&mut begins).filter(|(_, begin)| begin.is_none()) {
            let id = bucket.id(group.key, 0);
            let same = |doc: &&Doc<'static>| doc.get("_id").is_some_and(|other| order::equal(&other, &id));
            let stored = found.iter().find(same);
            let open = stored.map(|doc| figures(0, doc)).unwrap_or_default();
            let key = stored.map(|doc| bucket.key_of(doc)).transpose()?.map(|(key, _)| key);
            *begin = match has_room(bucket, &open, group) {
                true if bucket.is_numbered() => Some(Begin { open, key, slots: None }),
                true => {
                    let slots = stored.map(|doc| bucket.entries(doc)).transpose()?.unwrap_or_default();
                    Some(Begin { open, key, slots: Some(slots) })
                }
                false => greatest(at, to, group.key, &[]).await?.map(Begin::from),
            };
        }
    }
    Ok(begins.into_iter().map(Option::unwrap_or_default).collect())
}

/// Whether all readings of the group fit into a bucket that need not be the last: what does not fit would go to the next one, and
/// that may be there already.
fn has_room(bucket: &Bucket, open: &OpenBucket, group: &Group<'_>) -> bool {
    if !bucket.is_numbered() {
        return true;
    }
    let bytes: usize = group.readings.iter().map(|reading| reading.encoded.entry.size()).sum();
    open.count as usize + group.readings.len() <= bucket.at_most() as usize && open.bytes + bytes <= MOST_BYTES
}

/// The last bucket of a series and period, as a look at it shows.
pub(super) struct LastBucket {
    pub(super) open: OpenBucket,
    key: Key,
    /// One of the readings, by its time, is in some bucket of the period.
    pub(super) is_taken: bool,
}

impl From<LastBucket> for Begin {
    fn from(last: LastBucket) -> Begin {
        Begin { open: last.open, key: Some(last.key), slots: None }
    }
}

/// The last bucket of a series and period, and whether one of these readings, by its time, is in any of them.
pub(super) async fn greatest(
    at: &mut dyn StoredReads,
    to: Buckets<'_>,
    key: &Key,
    entries: &[BucketEntry],
) -> Result<Option<LastBucket>> {
    let last = Find {
        sort: Some(SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending: true }] }),
        limit: Some(1),
        projection: Some(only_figures()?),
        ..Find::matching(to.stored.clone(), buckets_of(to.bucket, key))
    };
    let Some(found) = find(at, last).await?.into_iter().next() else { return Ok(None) };
    let (stored_key, n) = to.bucket.key_of(&found)?;
    let is_taken = is_unique(to.bucket) && !taken(at, to, key, entries).await?.is_empty();
    Ok(Some(LastBucket { open: figures(n, &found), key: stored_key, is_taken }))
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

/// Leaves out of a group what is there already, in a bucket or in the group; returns the open bucket.
async fn without_taken(
    at: &mut dyn StoredAccess,
    to: Buckets<'_>,
    group: &mut Group<'_>,
    refused: &mut Vec<WriteError>,
) -> Result<Begin> {
    let Body::Readings(readings) = &to.bucket.body else { return Ok(Begin::default()) };
    let entries: Vec<BucketEntry> = group.readings.iter().map(|reading| reading.encoded.entry.clone()).collect();
    let last = greatest(at, to, group.key, &[]).await?;
    let begin = last.map(Begin::from).unwrap_or_default();
    let mut taken = taken(at, to, group.key, &entries).await?;
    group.readings.retain(|reading| {
        let Some(offset) = offset_of(readings, &reading.encoded.entry) else { return true };
        if taken.iter().any(|other| order::equal(other, &offset)) {
            refused.push(WriteError { index: reading.index, error: duplicate(to.logical, &reading.encoded.id) });
            return false;
        }
        taken.push(offset);
        true
    });
    Ok(begin)
}

/// Which of these times are in some bucket of the series and period.
async fn taken(
    at: &mut dyn StoredReads,
    to: Buckets<'_>,
    key: &Key,
    entries: &[BucketEntry],
) -> Result<Vec<Value<'static>>> {
    let Body::Readings(readings) = &to.bucket.body else { return Ok(Vec::new()) };
    let wanted: Vec<Value<'static>> = entries.iter().filter_map(|entry| offset_of(readings, entry)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let set = Arc::new(InSet::new(wanted, Vec::new()));
    let having = Node::field(&format!("readings.{}", readings.unit.name), Test::In(set.clone()));
    let filter = buckets_of(to.bucket, key).and(Filter::from_node(having));
    let mut taken = Vec::new();
    for doc in find(at, Find::matching(to.stored.clone(), filter)).await? {
        let offsets = to.bucket.entries(&doc)?;
        taken.extend(
            offsets.iter().filter_map(|entry| offset_of(readings, entry)).filter(|offset| set.contains(offset)),
        );
    }
    Ok(taken)
}

/// A reading's distance from the start of its period.
pub(super) fn offset_of(readings: &Readings, entry: &BucketEntry) -> Option<Value<'static>> {
    match entry {
        BucketEntry::Reading(reading) => reading.get(&readings.unit.name),
        BucketEntry::Slot { .. } => None,
    }
}

/// `{ count: 1, bytes: { $bsonSize: "$$ROOT" } }`
fn only_figures() -> Result<Arc<Projection>> {
    let fields = mql::document([("count", Value::Int32(1)), ("bytes", mql::call("$bsonSize", Value::from("$$ROOT")))]);
    Ok(Arc::new(Projection::parse_find(&fields, &Filter::all(), &mut Names::new())?))
}

fn figures(n: i32, stored: &Doc<'_>) -> OpenBucket {
    let number =
        |name: &str| stored.get(name).and_then(|value| value.as_number().map(|value| value.to_i64_saturated()));
    let count = u32::try_from(number("count").unwrap_or_default()).unwrap_or(0);
    OpenBucket { n, count, bytes: usize::try_from(number("bytes").unwrap_or_default()).unwrap_or(0) }
}
