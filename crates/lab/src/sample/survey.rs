//! One pass over the data: how many units of which size there are. Streams sorted by key are merged, so that memory stays
//! bounded whatever the collections hold.

use crate::keys::Key;
use crate::line::Rows;
use crate::plan::Plan;
use crate::random::place;
use crate::source::Source;
use crate::strata::Strata;
use bson::doc;
use document::value::order::compare;
use document::{Doc, DocWriter, Result, Value};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Units by their key, as a document `{ "": key }`.
pub(super) type Units = Strata<Vec<u8>>;

/// What the pass has found, by places in the plan.
pub(super) struct Surveyed {
    /// The units of each family, by its root.
    pub(super) units: HashMap<usize, Units>,
    /// How many documents a collection has. Those of which only some are looked at are missing.
    pub(super) counts: HashMap<usize, u64>,
}

pub(super) async fn survey(source: &Source, plan: &Plan, seed: u64) -> Result<Surveyed> {
    let mut surveyed = Surveyed { units: HashMap::new(), counts: HashMap::new() };
    for (at, root) in plan.members.iter().enumerate().filter(|(_, member)| member.follows.is_none()) {
        let mut streams = vec![Stream::open(source, at, &root.name, &root.key).await?];
        for (place, child) in plan.members.iter().enumerate() {
            let follows = child.follows.as_ref();
            if follows.is_some_and(|follows| follows.parent == at && follows.by == root.key) {
                streams.push(Stream::open(source, place, &child.name, &child.key).await?);
            }
        }
        surveyed.units.insert(at, merged(streams, &root.key, seed, &mut surveyed.counts).await?);
    }
    Ok(surveyed)
}

/// The groups of one collection, in the order of their keys.
struct Stream {
    /// The collection's place in the plan.
    place: usize,
    rows: Rows,
    next: Option<Group>,
}

struct Group {
    key: Value<'static>,
    documents: u64,
    bytes: u64,
}

impl Stream {
    async fn open(source: &Source, place: usize, collection: &str, key: &Key) -> Result<Stream> {
        let size = doc! { "$bsonSize": "$$ROOT" };
        let pipeline = match key.is_id() {
            // In the order of its own index: nothing is sorted.
            true => vec![doc! { "$sort": { "_id": 1 } }, doc! { "$project": { "n": { "$literal": 1 }, "b": size } }],
            false => {
                let group = doc! { "_id": key.grouping(), "n": { "$sum": 1 }, "b": { "$sum": size } };
                vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }]
            }
        };
        let command = doc! { "aggregate": collection, "pipeline": pipeline, "allowDiskUse": true, "cursor": { "batchSize": 5_000 } };
        let mut stream = Stream { place, rows: source.rows(command).await?, next: None };
        stream.step().await?;
        Ok(stream)
    }

    async fn step(&mut self) -> Result<()> {
        self.next = self.rows.next().await?.map(|row| {
            let count = |name: &str| match row.get(name) {
                Some(Value::Int32(number)) => u64::try_from(number).unwrap_or_default(),
                Some(Value::Int64(number)) => u64::try_from(number).unwrap_or_default(),
                Some(Value::Double(number)) if number > 0.0 => number as u64,
                _ => 0,
            };
            let key = row.get("_id").map_or(Value::Null, Value::into_owned);
            Group { key, documents: count("n"), bytes: count("b") }
        });
        Ok(())
    }
}

async fn merged(mut streams: Vec<Stream>, key: &Key, seed: u64, counts: &mut HashMap<usize, u64>) -> Result<Units> {
    let mut units = Units::default();
    loop {
        let keys = streams.iter().filter_map(|stream| stream.next.as_ref().map(|group| &group.key));
        let Some(lowest) = keys.min_by(|left, right| compare(left, right)).cloned() else { return Ok(units) };
        let (mut documents, mut bytes) = (0, 0);
        for stream in &mut streams {
            while let Some(group) = &stream.next
                && compare(&group.key, &lowest) == Ordering::Equal
            {
                documents += group.documents;
                *counts.entry(stream.place).or_default() += group.documents;
                bytes += group.bytes;
                stream.step().await?;
            }
        }
        let at = place(seed, &key.of_group(&lowest));
        units.add(packed(&lowest), at, documents, bytes);
    }
}

fn packed(key: &Value<'_>) -> Vec<u8> {
    let mut doc = DocWriter::new();
    doc.append("", key);
    doc.finish().as_bytes().to_vec()
}

pub(super) fn unpacked(key: &[u8]) -> Value<'static> {
    Doc::trusted(key).get("").map_or(Value::Null, Value::into_owned)
}
