//! Writes to logical names: what is stored must be what a plain list of documents, given the same operations, says.

mod changes;
mod concurrent;
mod inserts;
mod model;
mod retried;
mod sides;
mod slots;
mod transactions;

use crate::harness::*;
use bson::{Bson, doc};
use document::Doc;
use document::backend::{Backend, Session};
use document::op::{Namespace, ReadOp, WriteOp, Written};
use document::value::Path;
use pleach_patterns::Patterned;
use pleach_patterns::gate::Gate;
use pleach_patterns::rule::State;
use pleach_patterns::rule::{ClientWrites, Kind, Rule};
use pleach_patterns::shapes::bucket::*;
use std::sync::Arc;

/// Some rule, which is replaced at once.
const OTHER: &str = "
  other:
    computed:
      twice: { expr: { $add: [$n, $n] } }
";

pub(super) const HOUR: i64 = 3_600_000;
/// 2024-06-05T00:00:00Z
pub(super) const DAY: i64 = 1_717_545_600_000;

/// `{ s: 1, ts: <DAY + hour>, m: <minute>, temp }` and the like.
pub(super) fn reading(series: impl Into<Bson>, ms: i64, temp: impl Into<Bson>) -> bson::Document {
    doc! {"_id": bson::oid::ObjectId::new(), "s": series.into(), "ts": at(ms), "temp": temp.into()}
}

pub(super) fn at(ms: i64) -> bson::DateTime {
    bson::DateTime::from_millis(DAY + ms)
}

pub(super) fn readings(at_most: u32) -> Readings {
    Readings {
        at_most,
        unit: Unit { size: Grain::Millisecond, name: "t".into() },
        inexact: Inexact::Reject,
        reading_id: ReadingId::Stored,
        stats: vec![("temp".into(), vec![Stat::Min, Stat::Max, Stat::Avg])],
    }
}

/// Buckets of an hour, by `s`.
pub(super) fn hours(readings: Readings) -> Bucket {
    Bucket {
        into: ns("sensor_hours"),
        time: "ts".into(),
        by: vec![Series { field: "s".into(), hex: false }],
        every: Period::Hour,
        body: Body::Readings(readings),
        packed: false,
    }
}

pub(super) struct Buckets {
    pub(super) world: World,
    pub(super) bucket: Arc<Bucket>,
}

pub(super) const NAME: &str = "sensor_data";

impl Buckets {
    pub(super) fn new(bucket: Bucket) -> Buckets {
        Buckets::on(World::new(OTHER), bucket)
    }

    pub(super) fn with_gate(bucket: Bucket, gate: Arc<dyn Gate>) -> Buckets {
        Buckets::on(World::with_gate(Opened::engine(), "shop", gate).declaring(OTHER), bucket)
    }

    fn on(world: World, bucket: Bucket) -> Buckets {
        let bucket = Arc::new(bucket);
        enforce(&world.layer, &bucket);
        Buckets { world, bucket }
    }

    pub(super) fn reopen(self) -> Buckets {
        let bucket = self.bucket;
        let world = self.world.reopen().declaring(OTHER);
        enforce(&world.layer, &bucket);
        Buckets { world, bucket }
    }

    pub(super) async fn write(&self, op: WriteOp) -> Written {
        self.world.write(op).await.unwrap()
    }

    pub(super) async fn did(&self, op: WriteOp) -> Written {
        self.world.did(op).await
    }

    /// What is stored, in the order of `_id`, behind the layer's back.
    pub(super) async fn stored(&self) -> Vec<bson::Document> {
        self.stored_at(&mut Session::default()).await
    }

    pub(super) async fn stored_at(&self, session: &mut Session) -> Vec<bson::Document> {
        all(&*self.world.opened.backend, session, &self.bucket.into).await
    }

    /// The readings, as clients see them. Every bucket must be exactly what its readings make of it.
    pub(super) async fn logical(&self) -> Vec<bson::Document> {
        let mut logical = Vec::new();
        for stored in self.stored().await {
            let doc = Doc::from(&stored);
            let (key, n) = self.bucket.key_of(&doc).unwrap();
            let built = self.bucket.build(&key, n, &self.bucket.entries(&doc).unwrap());
            assert_eq!(built.map(|doc| bson::Document::try_from(&doc).unwrap()), Some(stored.clone()));
            if let Body::Readings(readings) = &self.bucket.body {
                let count = stored.get_i32("count").unwrap();
                assert_eq!(stored.get_array("readings").unwrap().len(), usize::try_from(count).unwrap());
                assert!(u32::try_from(count).unwrap() <= readings.at_most);
            }
            self.bucket
                .decode(&doc, &mut |reading| {
                    logical.push(bson::Document::try_from(&reading).unwrap());
                    Ok(())
                })
                .unwrap();
        }
        logical
    }

    /// The counts of the buckets of one series, by period and `n`.
    pub(super) async fn counts(&self) -> Vec<i32> {
        self.stored().await.iter().map(|stored| stored.get_i32("count").unwrap()).collect()
    }

    /// As a set: the order within a bucket is that of arrival.
    pub(super) async fn check(&self, expected: &[bson::Document]) {
        let sorted = |documents: Vec<bson::Document>| {
            let mut texts: Vec<String> = documents.iter().map(|doc| canonical(doc).to_string()).collect();
            texts.sort();
            texts
        };
        assert_eq!(sorted(self.logical().await), sorted(expected.to_vec()));
    }
}

/// Fields in the order of their names: a logical document has its own order.
fn canonical(doc: &bson::Document) -> bson::Document {
    let mut names: Vec<&String> = doc.keys().collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), doc[name].clone())).collect()
}

pub(super) fn rule(bucket: &Arc<Bucket>) -> Arc<Rule> {
    Arc::new(Rule {
        name: "sensor_data.bucket".into(),
        pattern: "bucket",
        host: ns(NAME),
        field: Path::new("bucket"),
        lift: None,
        kind: Kind::Shape(Arc::new(BucketShape::new(bucket.clone()))),
        client_writes: ClientWrites::Override,
        declaration: Doc::empty(),
    })
}

fn enforce(layer: &Patterned, bucket: &Arc<Bucket>) {
    layer.set_rules(vec![(rule(bucket), State::On)]).unwrap();
}

pub(super) async fn all(backend: &dyn Backend, session: &mut Session, ns: &Namespace) -> Vec<bson::Document> {
    let context = context();
    let mut op = find(&ns.collection, doc! {});
    op.sort = Some(document::pipeline::sort_spec::parse(&Doc::from(doc! {"_id": 1})).unwrap());
    let mut cursor = backend.read(session, &context, ReadOp::Find(op)).await.unwrap();
    let mut all = Vec::new();
    loop {
        let limit = document::backend::BatchLimit { documents: 1000, bytes: 16 << 20 };
        let batch = cursor.next(session, &context, limit).await.unwrap();
        all.extend(batch.documents.iter().map(|doc| bson::Document::try_from(doc).unwrap()));
        if batch.exhausted {
            return all;
        }
    }
}
