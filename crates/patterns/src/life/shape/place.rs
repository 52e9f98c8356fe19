//! Putting readings into buckets, many at a time, in an open transaction: behind what each series and period has, or into new
//! buckets.

use crate::life::records::{At, update_one};
use crate::life::walk;
use crate::shape::bucket::{Body, Bucket, Encoded, Entry, Key, ReadingId};
use document::filter::{Filter, InSet, Node, Test};
use document::op::{Find, SortKey, SortSpec, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Doc, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// A bucket is given no more than this.
const LARGEST: usize = 12 << 20;

/// Which bucket of a series and period is open, as last seen. Forgetting it costs a look.
#[derive(Default)]
pub(super) struct Open(HashMap<Vec<u8>, i32>);

/// How many series are remembered.
const REMEMBERED: usize = 100_000;

/// The readings of one series and period.
struct Group {
    key: Key,
    /// Beside each entry, which of the given it is.
    entries: Vec<(usize, Entry)>,
}

/// What became of readings, each by its number among those that were given.
#[derive(Default)]
pub(super) struct Put {
    /// Which have no place, and why.
    pub(super) refused: Vec<(usize, String)>,
    /// The series and period of the bucket that a reading is in now. The reading's own may be of other types: 1 and 1.0 are one series.
    pub(super) keys: Vec<(usize, Arc<Key>)>,
}

/// Puts them there.
pub(super) async fn put(
    at: &mut At<'_>,
    bucket: &Bucket,
    open: &mut Open,
    readings: Vec<(usize, Encoded)>,
) -> Result<Put> {
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    for (index, Encoded { key, entry, .. }) in readings {
        let bytes = key.bytes();
        let number = *numbers.entry(bytes).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.entries.push((index, entry)),
            None => groups.push(Group { key, entries: vec![(index, entry)] }),
        }
    }
    let mut known = open.look(at, bucket, &groups).await?;
    let (mut statements, mut put) = (Vec::new(), Put::default());
    for group in groups {
        let bytes = group.key.bytes();
        let there = match known.remove(&bytes) {
            Some(there) => there,
            None => all_of(at, bucket, &group.key).await?,
        };
        let last = fill(bucket, group, there, &mut statements, &mut put)?;
        open.remember(bytes, last);
    }
    if !statements.is_empty() {
        at.write(&written(bucket, statements)).await?;
    }
    Ok(put)
}

/// Validated, unlike other statements of our own: what a slot may be called and how many there may be is the validator's.
fn written(bucket: &Bucket, statements: Vec<UpdateStatement>) -> WriteOp {
    let bypass_validation = bucket.is_numbered();
    let (ns, statement_ids) = (bucket.into.clone(), Vec::new());
    WriteOp::Update(UpdateOp { ns, statements, ordered: true, bypass_validation, statement_ids })
}

/// Adds to the last bucket and to new ones behind it; gives the number of the last.
fn fill(
    bucket: &Bucket,
    group: Group,
    there: Vec<Doc<'static>>,
    statements: &mut Vec<UpdateStatement>,
    put: &mut Put,
) -> Result<i32> {
    let Group { key, entries } = group;
    let mut taken = taken(bucket, &there)?;
    let (key, mut n, mut held) = match there.last() {
        Some(last) => {
            let (key, n) = bucket.key_of(last)?;
            (key, n, bucket.entries(last)?)
        }
        None => (key, 0, Vec::new()),
    };
    let key = Arc::new(key);
    let at_most = match &bucket.body {
        Body::Readings(readings) => readings.at_most as usize,
        Body::Slots(_) => usize::MAX,
    };
    let mut bytes = there.last().map_or(0, |last| last.as_bytes().len());
    let mut changed = false;
    for (index, entry) in entries {
        if let (Some(taken), Some(offset)) = (&mut taken, offset(bucket, &entry))
            && !taken.insert(offset)
        {
            put.refused.push((index, "there is another reading of its series and time".to_owned()));
            continue;
        }
        let size = match &entry {
            Entry::Reading(element) => element.as_bytes().len() + 16,
            Entry::Slot { .. } => 0,
        };
        if held.len() >= at_most || (bucket.is_numbered() && bytes + size > LARGEST && !held.is_empty()) {
            if changed {
                statements.extend(statement(bucket, &key, n, &held)?);
            }
            (n, bytes) = (n + 1, 0);
            held.clear();
        }
        bytes += size;
        held.push(entry);
        put.keys.push((index, key.clone()));
        changed = true;
    }
    if changed {
        statements.extend(statement(bucket, &key, n, &held)?);
    }
    Ok(n)
}

fn statement(bucket: &Bucket, key: &Key, n: i32, entries: &[Entry]) -> Result<Option<UpdateStatement>> {
    let Some(document) = bucket.build(key, n, entries) else { return Ok(None) };
    let update = Update::parse(&Value::Document(document), &[], &mut Names::new())?;
    let filter = Filter::equality("_id", &bucket.id(key, n));
    Ok(Some(UpdateStatement { upsert: true, ..update_one(filter, update) }))
}

/// The offsets that are taken, where there may be one reading of a time only.
fn taken(bucket: &Bucket, there: &[Doc<'static>]) -> Result<Option<HashSet<i64>>> {
    match &bucket.body {
        Body::Readings(readings) if readings.reading_id == ReadingId::Time => {}
        Body::Readings(_) | Body::Slots(_) => return Ok(None),
    }
    let mut offsets = HashSet::new();
    for document in there {
        offsets.extend(bucket.entries(document)?.iter().filter_map(|entry| offset(bucket, entry)));
    }
    Ok(Some(offsets))
}

fn offset(bucket: &Bucket, entry: &Entry) -> Option<i64> {
    match (&bucket.body, entry) {
        (Body::Readings(readings), Entry::Reading(element)) => {
            element.get(&readings.unit.name)?.as_number().map(|number| number.to_i64_saturated())
        }
        _ => None,
    }
}

/// The buckets of a series and period that matter: all where a reading's time must be the only one, else the last.
async fn all_of(at: &mut At<'_>, bucket: &Bucket, key: &Key) -> Result<Vec<Doc<'static>>> {
    if !bucket.is_numbered() {
        return Ok(at.one(&bucket.into, &bucket.id(key, 0)).await?.into_iter().collect());
    }
    let (from, to) = (bucket.id(key, 0), bucket.id(key, i32::MAX));
    let by_id = SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending: true }] };
    let limit = (!needs_all(bucket)).then_some(1);
    let range = Find { sort: Some(by_id), limit, ..walk::range(&bucket.into, Some(&from), Some(&to)) };
    let mut found = at.find(range).await?;
    found.reverse();
    Ok(found)
}

fn needs_all(bucket: &Bucket) -> bool {
    matches!(&bucket.body, Body::Readings(readings) if readings.reading_id == ReadingId::Time)
}

impl Open {
    fn remember(&mut self, key: Vec<u8>, n: i32) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(key, n);
    }

    /// Those that were last seen open and still are the last, all at once.
    async fn look(
        &self,
        at: &mut At<'_>,
        bucket: &Bucket,
        groups: &[Group],
    ) -> Result<HashMap<Vec<u8>, Vec<Doc<'static>>>> {
        let mut found = HashMap::new();
        if needs_all(bucket) {
            return Ok(found);
        }
        let id = |group: &Group| {
            let n = if bucket.is_numbered() { *self.0.get(&group.key.bytes())? } else { 0 };
            Some(bucket.id(&group.key, n))
        };
        let ids: Vec<Value<'static>> = groups.iter().filter_map(id).collect();
        if ids.is_empty() {
            return Ok(found);
        }
        let wanted = Test::In(Arc::new(InSet::new(ids, Vec::new())));
        let filter = Filter::from_node(Node::field("_id", wanted));
        for document in at.find(crate::life::records::find(&bucket.into, filter)).await? {
            let is_full = match &bucket.body {
                // Somebody may have begun the next meanwhile.
                Body::Readings(readings) => bucket.entries(&document)?.len() >= readings.at_most as usize,
                Body::Slots(_) => false,
            };
            if !is_full {
                found.insert(bucket.key_of(&document)?.0.bytes(), vec![document]);
            }
        }
        if !bucket.is_numbered() {
            // What was not found is not there.
            for group in groups {
                found.entry(group.key.bytes()).or_default();
            }
        }
        Ok(found)
    }
}
