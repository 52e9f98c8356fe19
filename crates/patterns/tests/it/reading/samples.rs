//! Bucket collections for tests, their documents in both forms, and questions as clients write them.

use bson::{Bson, DateTime, Document, doc};
use document::filter::Filter;
use document::op::{Aggregate, Count, Distinct, Find, Namespace, ReadOp};
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, sort_spec};
use document::project::Projection;
use document::value::Path;
use document::{Array, Doc};
use patterns::rule::{ClientWrites, Kind, Rule};
use patterns::shapes::bucket::*;
use std::sync::Arc;

/// What clients call the buckets, where they are, and the plain collection to compare with.
pub(crate) const LOGICAL: &str = "logical";
pub(crate) const STORED: &str = "stored";
pub(crate) const PLAIN: &str = "plain";

pub(crate) fn rule(bucket: Bucket) -> Arc<Rule> {
    Arc::new(Rule {
        name: "logical.bucket".into(),
        pattern: "bucket",
        host: Namespace::new(&bucket.into.db.clone(), LOGICAL),
        field: Path::new(""),
        lift: None,
        kind: Kind::Shape(Arc::new(BucketShape::new(Arc::new(bucket)))),
        client_writes: ClientWrites::default(),
        declaration: Doc::empty(),
    })
}

fn series(fields: &[(&str, bool)]) -> Vec<Series> {
    fields.iter().map(|(field, hex)| Series { field: (*field).into(), hex: *hex }).collect()
}

fn bucket(db: &str, time: &str, by: &[(&str, bool)], every: Period, body: Body, packed: bool) -> Bucket {
    Bucket { into: Namespace::new(db, STORED), time: time.into(), by: series(by), every, body, packed }
}

fn readings(unit: (Grain, &str), reading_id: ReadingId, stats: &[(&str, &[Stat])]) -> Body {
    Body::Readings(Readings {
        at_most: 4,
        unit: Unit { size: unit.0, name: unit.1.into() },
        inexact: Inexact::Reject,
        reading_id,
        stats: stats.iter().map(|(of, stats)| ((*of).into(), stats.to_vec())).collect(),
    })
}

/// Any series, a few readings to the hour, all figures of one field.
pub(crate) fn sensors(db: &str) -> Bucket {
    let stats: &[(&str, &[Stat])] = &[("temp", &[Stat::Min, Stat::Max, Stat::Sum, Stat::Avg])];
    let body = readings((Grain::Millisecond, "t"), ReadingId::Stored, stats);
    bucket(db, "ts", &[("sensorId", false)], Period::Hour, body, false)
}

/// Two fields make a series, one of them bytes; the `_id` is derived.
pub(crate) fn sites(db: &str) -> Bucket {
    let body = readings((Grain::Minute, "m"), ReadingId::Time, &[]);
    bucket(db, "ts", &[("site", false), ("key", true)], Period::Day, body, false)
}

fn slots(slot: Slot, layout: Layout) -> Body {
    let sum = |name: &str, short: &str| -> (Arc<str>, Arc<str>) { (name.into(), short.into()) };
    let sums = vec![sum("approved", "a"), sum("noFunds", "n"), sum("pending", "p")];
    Body::Slots(Slots { slot, sums, layout })
}

/// The case study's: a quarter's days by name, the `_id` packed.
pub(crate) fn events(db: &str, layout: Layout, packed: bool) -> Bucket {
    bucket(db, "ts", &[("key", true)], Period::Quarter, slots(Slot::Time(Grain::Day), layout), packed)
}

pub(crate) fn countries(db: &str) -> Bucket {
    let slot = Slot::Field { field: "country".into(), keys: Grammar::new("^[A-Z]{2}$").unwrap(), at_most: 250 };
    bucket(db, "ts", &[("sensorId", false)], Period::Month, slots(slot, Layout::FieldNames), false)
}

pub(crate) fn all(db: &str) -> Vec<Bucket> {
    vec![
        sensors(db),
        sites(db),
        events(db, Layout::FieldNames, true),
        events(db, Layout::FieldNames, false),
        events(db, Layout::Array, true),
        events(db, Layout::Array, false),
        countries(db),
    ]
}

/// Documents as buckets hold them, and as they come back.
pub(crate) fn both_forms(bucket: &Bucket, documents: Vec<Document>) -> (Vec<Document>, Vec<Document>) {
    let mut groups: Vec<(Key, Vec<BucketEntry>)> = Vec::new();
    for document in documents {
        let encoded = bucket.encode(&Doc::from(document)).unwrap();
        match groups.iter_mut().find(|(key, _)| key.bytes() == encoded.key.bytes()) {
            Some((_, entries)) => entries.push(encoded.entry),
            None => groups.push((encoded.key, vec![encoded.entry])),
        }
    }
    let (mut buckets, mut logical) = (Vec::new(), Vec::new());
    for (key, entries) in &groups {
        let size = match &bucket.body {
            Body::Readings(readings) => usize::try_from(readings.at_most).unwrap(),
            Body::Slots(_) => entries.len(),
        };
        for (n, entries) in entries.chunks(size).enumerate() {
            let built = bucket.build(key, i32::try_from(n).unwrap(), entries).unwrap();
            bucket
                .decode(&built, &mut |doc| {
                    logical.push(Document::try_from(&doc).unwrap());
                    Ok(())
                })
                .unwrap();
            buckets.push(Document::try_from(&built).unwrap());
        }
    }
    (buckets, logical)
}

fn filter(source: &Document) -> Filter {
    Filter::parse(&Doc::from(source.clone()), &mut Names::new()).unwrap()
}

pub(crate) fn at(ms: i64) -> Bson {
    Bson::DateTime(DateTime::from_millis(ms))
}

/// The 1st of January 2024.
pub(crate) const START: i64 = 1_704_067_200_000;

/// A find as a client writes it.
#[derive(Clone)]
pub(crate) struct Query {
    pub(crate) filter: Document,
    pub(crate) sort: Document,
    pub(crate) projection: Document,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

impl Query {
    pub(crate) fn all(filter: Document) -> Query {
        Query { filter, sort: doc! {}, projection: doc! {}, skip: 0, limit: None }
    }

    pub(crate) fn op(&self, ns: Namespace) -> ReadOp {
        let filter = filter(&self.filter);
        let sort = (!self.sort.is_empty()).then(|| sort_spec::parse(&Doc::from(self.sort.clone())).unwrap());
        let projection = (!self.projection.is_empty()).then(|| {
            let spec = Doc::from(self.projection.clone());
            let parsed = Projection::parse_find(&spec, &filter, &mut Names::new()).unwrap();
            Arc::new(parsed.with_sort(sort.as_ref()).unwrap())
        });
        let (skip, limit) = (self.skip, self.limit);
        ReadOp::Find(Find { sort, projection, skip, limit, ..Find::matching(ns, filter) })
    }
}

pub(crate) fn aggregate(ns: Namespace, stages: &[Document]) -> ReadOp {
    let stages: Array<'static> =
        stages.iter().map(|stage| document::Value::Document(Doc::from(stage.clone()))).collect();
    ReadOp::Aggregate(Aggregate {
        ns,
        collectionless: false,
        pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
        hint: None,
        allow_disk_use: true,
        collation: None,
    })
}

pub(crate) fn count(ns: Namespace, query: Document, skip: u64, limit: Option<u64>) -> ReadOp {
    ReadOp::Count(Count { ns, filter: filter(&query), skip, limit, hint: None })
}

pub(crate) fn distinct(ns: Namespace, key: &str, query: Document) -> ReadOp {
    ReadOp::Distinct(Distinct { ns, key: Path::new(key), filter: filter(&query), hint: None })
}
