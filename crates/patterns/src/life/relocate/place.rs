//! Putting readings into buckets, many at a time, in an open transaction: behind what each series and period has, or into new
//! buckets.

use crate::life::access::{Access, update_one};
use crate::life::walk;
use crate::shapes::bucket::{Body, Bucket, Encoded, Entry, Key, ReadingId};
use document::filter::{Filter, Node, Test};
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
    at: &mut Access<'_>,
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
        let size = size(&entry);
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

/// Whether all entries of the group fit into a bucket that need not be the last: what does not fit would go to the next one, and
/// that may be there already, with readings that clients have put there since.
fn has_room(bucket: &Bucket, stored: &Doc<'static>, group: &Group) -> bool {
    let Body::Readings(readings) = &bucket.body else { return true };
    let there = stored.get("count").and_then(|count| count.as_number().map(|count| count.to_i64_saturated()));
    let count = usize::try_from(there.unwrap_or(i64::MAX)).unwrap_or(usize::MAX);
    let bytes: usize = group.entries.iter().map(|(_, entry)| size(entry)).sum();
    count.saturating_add(group.entries.len()) <= readings.at_most as usize && stored.as_bytes().len() + bytes <= LARGEST
}

/// About how many bytes an entry adds to its bucket.
fn size(entry: &Entry) -> usize {
    match entry {
        Entry::Reading(element) => element.as_bytes().len() + 16,
        Entry::Slot { .. } => 0,
    }
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
async fn all_of(at: &mut Access<'_>, bucket: &Bucket, key: &Key) -> Result<Vec<Doc<'static>>> {
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

    /// Those that were last seen open and have room for all of their group, all at once.
    async fn look(
        &self,
        at: &mut Access<'_>,
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
        let wanted = Test::among(ids);
        let filter = Filter::from_node(Node::field("_id", wanted));
        for document in at.find(crate::life::access::find(&bucket.into, filter)).await? {
            let key = bucket.key_of(&document)?.0.bytes();
            let group = groups.iter().find(|group| group.key.bytes() == key);
            if group.is_some_and(|group| has_room(bucket, &document, group)) {
                found.insert(key, vec![document]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::backend::Session;
    use engine::{Engine, Options};

    const RULES: &str = "{ database: shop, collections: { sensor_data: { bucket: { into: hours, time: ts, by: [sensorId], every: hour, at_most: 4 } } } }";

    fn bucket() -> Arc<Bucket> {
        let rules = crate::declare::from_yaml("rules", RULES).into_result().unwrap().rules;
        rules.first().unwrap().bucket().unwrap().clone()
    }

    async fn put_all(at: &mut Access<'_>, bucket: &Bucket, open: &mut Open, ids: std::ops::Range<i32>) {
        let reading = |id: i32| {
            let ts = bson::DateTime::from_millis(i64::from(id) * 1_000);
            bucket.encode(&Doc::from(doc! { "_id": id, "sensorId": 1, "ts": ts })).unwrap()
        };
        let readings = ids.enumerate().map(|(index, id)| (index, reading(id))).collect();
        assert!(put(at, bucket, open, readings).await.unwrap().refused.is_empty());
    }

    /// The last bucket seen is full when clients begin the next one, and then they take a reading out of it.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_bucket_that_clients_have_begun_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), Options { memory_bytes: 64 << 20, ..Options::default() }).unwrap();
        let (mut session, context, bucket) = (Session::default(), testing::context(), bucket());
        let mut at = Access { backend: &engine, session: &mut session, context: &context };
        let mut open = Open::default();
        put_all(&mut at, &bucket, &mut open, 0..4).await;
        // Clients: by their own memory of open buckets.
        put_all(&mut at, &bucket, &mut Open::default(), 4..5).await;
        let full = at.one(&bucket.into, &bucket.id(&bucket_key(&bucket), 0)).await.unwrap().unwrap();
        let left: Vec<Entry> = bucket.entries(&full).unwrap().into_iter().skip(1).collect();
        at.put(&bucket.into, &bucket.build(&bucket_key(&bucket), 0, &left).unwrap()).await.unwrap();
        put_all(&mut at, &bucket, &mut open, 5..7).await;
        let all = at.find(crate::life::access::find(&bucket.into, Filter::all())).await.unwrap();
        let mut ids = Vec::new();
        for stored in &all {
            bucket
                .decode(stored, &mut |reading| {
                    ids.extend(reading.get("_id").and_then(|id| id.as_i64_exact()));
                    Ok(())
                })
                .unwrap();
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
        engine.close();
    }

    fn bucket_key(bucket: &Bucket) -> Key {
        bucket.encode(&Doc::from(doc! { "_id": 0, "sensorId": 1, "ts": bson::DateTime::from_millis(0) })).unwrap().key
    }
}
