//! What is stored instead of a bucket in which readings change. A reading whose series, period or derived `_id` changes does not
//! belong there any more, nor does one that has grown too large for it; an emptied bucket disappears.

use crate::rule::shape::{LogicalFate, Rewrite, StoredChange};
use crate::shapes::bucket::write::open_buckets;
use crate::shapes::bucket::write::place::{may_follow, offset_of};
use crate::shapes::bucket::{Body, Bucket, BucketEntry, Encoded, Key, ReadingId};
use crate::shapes::evaluate::rewrite::{delete, replace};
use document::op::Namespace;
use document::value::order;
use document::{Doc, Result, Value};

/// Readings of so many bytes leave room for a bucket's other fields: MongoDB's limit is 16 MB.
const MOST_BYTES: usize = (16 << 20) - (64 << 10);

pub(super) fn rewrite(
    bucket: &Bucket,
    namespace: &Namespace,
    stored: &Doc<'static>,
    fates: Vec<(usize, LogicalFate)>,
) -> Result<Rewrite> {
    let (key, n) = bucket.key_of(stored)?;
    let mut entries: Vec<Option<BucketEntry>> = bucket.entries(stored)?.into_iter().map(Some).collect();
    let (mut changed, mut moved) = (Vec::new(), Vec::new());
    for (index, fate) in fates {
        let Some(entry) = entries.get_mut(index) else { continue };
        *entry = match fate {
            LogicalFate::Gone => None,
            LogicalFate::Becomes(after) => {
                let encoded = bucket.encode(&after)?;
                match stays(bucket, &key, &encoded, entry.as_ref()) {
                    true => {
                        changed.push((index, after));
                        Some(encoded.entry)
                    }
                    false => {
                        moved.push(after);
                        None
                    }
                }
            }
        };
    }
    // What has grown too large for its bucket goes to the next one, if there can be one.
    while bytes(&entries) > MOST_BYTES && entries.iter().flatten().count() > 1 && may_follow(bucket) {
        let Some((index, after)) = changed.pop() else { break };
        entries.get_mut(index).map(Option::take);
        moved.push(after);
    }
    let entries: Vec<BucketEntry> = entries.into_iter().flatten().collect();
    let id = stored.get("_id").unwrap_or(Value::Missing);
    let change = match bucket.build(&key, n, &entries) {
        None => StoredChange::Delete(delete(&id)),
        Some(whole) => StoredChange::Update(replace(&id, whole)?),
    };
    Ok(Rewrite { change, moved, host: Some(open_buckets::host(namespace, &key)) })
}

/// Whether the changed reading belongs where it was.
fn stays(bucket: &Bucket, key: &Key, encoded: &Encoded, before: Option<&BucketEntry>) -> bool {
    let same_series = |(one, other): (&Option<Value<'static>>, &Option<Value<'static>>)| match (one, other) {
        (Some(one), Some(other)) => order::equal(one, other),
        (None, None) => true,
        _ => false,
    };
    let same_key = key.start == encoded.key.start && key.series.iter().zip(&encoded.key.series).all(same_series);
    same_key
        && match (&bucket.body, before, &encoded.entry) {
            (Body::Readings(readings), Some(before), after) if readings.reading_id == ReadingId::Time => {
                offset_of(readings, before) == offset_of(readings, after)
            }
            (Body::Slots(_), Some(BucketEntry::Slot { key: before, .. }), BucketEntry::Slot { key: after, .. }) => {
                before == after
            }
            _ => true,
        }
}

fn bytes(entries: &[Option<BucketEntry>]) -> usize {
    entries.iter().flatten().map(BucketEntry::size).sum()
}
