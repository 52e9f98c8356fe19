//! Readings in buckets, on either backend by the same code: nothing lost and nothing twice under concurrency, with a fault at any
//! step, and with the command sent again, to this process and to another (SEMANTICS R4, R16, R17).

use crate::failing::{Failing, Fault};
use bson::{Bson, DateTime, Document, doc};
use document::Doc;
use document::backend::Session;
use document::op::{WriteOp, Written};
use patterns::gate::Gate;
use patterns::shapes::bucket::Bucket;
use std::sync::Arc;
use std::time::Duration;
use testing::{Act, Opened, World, declared, shop};

const NAME: &str = "sensor_data";
const AT_MOST: usize = 5;

struct Buckets {
    world: World,
    bucket: Arc<Bucket>,
}

/// Puts the rule in force.
fn bucketed(world: World) -> Buckets {
    let collections = format!(
        "{NAME}:\n  bucket: {{ into: sensor_hours, time: ts, by: [s], every: hour, at_most: {AT_MOST}, stats: {{ temp: [min, max, avg] }} }}"
    );
    let bucket = declared(&world.db, &collections).rules[0].bucket().expect("a bucket").clone();
    Buckets { world: world.declaring(&collections), bucket }
}

impl Buckets {
    async fn new(opened: &Opened, gate: Arc<dyn Gate>) -> Buckets {
        bucketed(shop::empty(opened, gate).await)
    }

    /// Another process with the same data.
    fn another(&self) -> Buckets {
        bucketed(self.world.another())
    }

    async fn write(&self, session: &mut Session, op: &WriteOp) -> document::Result<Written> {
        self.world.write_at(session, op).await
    }

    async fn did(&self, act: Act) -> Written {
        self.world.act(&act).await.unwrap_or_else(|error| panic!("{act:?}: {error:?}"))
    }

    /// The readings; every bucket must be what its readings make of it.
    async fn logical(&self) -> Vec<Document> {
        let mut logical = Vec::new();
        for stored in self.world.sorted("sensor_hours").await {
            let doc = Doc::from(&stored);
            let (key, n) = self.bucket.key_of(&doc).unwrap();
            let built = self.bucket.build(&key, n, &self.bucket.entries(&doc).unwrap()).unwrap();
            assert_eq!(Document::try_from(&built).unwrap(), stored);
            self.bucket
                .decode(&doc, &mut |reading| {
                    logical.push(Document::try_from(&reading).unwrap());
                    Ok(())
                })
                .unwrap();
        }
        logical.sort_by_key(|doc| doc.get_i32("_id").unwrap_or(-1));
        logical
    }

    async fn counts(&self) -> Vec<i32> {
        self.world.sorted("sensor_hours").await.iter().map(|stored| stored.get_i32("count").unwrap()).collect()
    }
}

fn reading(id: i32, series: &str) -> Document {
    doc! { "_id": id, "s": series, "ts": DateTime::from_millis(1_717_545_600_000 + i64::from(id)), "temp": id % 7 }
}

fn readings(ids: std::ops::Range<i32>) -> Vec<Document> {
    ids.map(|id| reading(id, "a")).collect()
}

fn set(field: &str, value: impl Into<Bson>) -> Bson {
    Bson::Document(doc! { "$set": { field: value.into() } })
}

fn inc() -> Bson {
    Bson::Document(doc! { "$inc": { "temp": 100 } })
}

pub(crate) async fn concurrent(opened: &Opened) {
    let buckets = Arc::new(Buckets::new(opened, Arc::new(Failing::default())).await);
    buckets.did(Act::Insert(NAME, readings(0..20))).await;
    let mut writers: Vec<Vec<Act>> = Vec::new();
    for writer in 0..6 {
        let from = 100 + writer * 20;
        writers.push(match writer % 2 {
            0 => readings(from..from + 20).into_iter().map(|doc| Act::Insert(NAME, vec![doc])).collect(),
            _ => readings(from..from + 20).chunks(8).map(|part| Act::Insert(NAME, part.to_vec())).collect(),
        });
    }
    writers.push((0..5).map(|id| Act::Update(NAME, doc! { "_id": id }, inc(), false, false)).collect());
    writers.push((0..5).map(|id| Act::Update(NAME, doc! { "_id": id }, inc(), false, false)).collect());
    writers.push((5..10).map(|id| Act::Delete(NAME, doc! { "_id": id }, false)).collect());
    writers.push((10..13).map(|id| Act::Update(NAME, doc! { "_id": id }, set("s", "b"), false, false)).collect());
    let tasks: Vec<_> = writers
        .into_iter()
        .map(|acts| {
            let buckets = buckets.clone();
            tokio::spawn(async move {
                for act in acts {
                    buckets.did(act).await;
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("in time").unwrap();
    }
    let mut expected: Vec<Document> = readings(0..20).into_iter().chain(readings(100..220)).collect();
    expected[..5].iter_mut().for_each(|doc| {
        let temp = doc.get_i32("temp").unwrap();
        doc.insert("temp", temp + 200);
    });
    expected[10..13].iter_mut().for_each(|doc| drop(doc.insert("s", "b")));
    expected.drain(5..10);
    assert_eq!(buckets.logical().await, expected);
}

/// Writers of one series only: all buckets but the last are full.
pub(crate) async fn full(opened: &Opened) {
    let buckets = Arc::new(Buckets::new(opened, Arc::new(Failing::default())).await);
    let tasks: Vec<_> = (0..16)
        .map(|writer| {
            let buckets = buckets.clone();
            tokio::spawn(async move {
                for doc in readings(writer * 10..writer * 10 + 6) {
                    buckets.did(Act::Insert(NAME, vec![doc])).await;
                }
                buckets.did(Act::Insert(NAME, readings(writer * 10 + 6..writer * 10 + 10))).await;
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("in time").unwrap();
    }
    assert_eq!(buckets.counts().await, vec![5; 32]);
    assert_eq!(buckets.logical().await, readings(0..160));
}

fn acts() -> Vec<Act> {
    vec![
        Act::Insert(NAME, readings(100..101)),
        Act::Insert(NAME, readings(110..121)),
        Act::Insert(NAME, vec![reading(130, "x"), reading(131, "y")]),
        Act::Update(NAME, doc! { "_id": 2 }, inc(), false, false),
        Act::Update(NAME, doc! { "_id": 3 }, set("s", "moved"), false, false),
        Act::Update(NAME, doc! { "_id": 140, "s": "n", "ts": DateTime::from_millis(5) }, set("temp", 1), false, true),
        Act::Modify(NAME, doc! { "_id": 4 }, Some(doc! { "$inc": { "temp": 100 } })),
        Act::Delete(NAME, doc! { "_id": 5 }, false),
        Act::Modify(NAME, doc! { "_id": 6 }, None),
    ]
}

fn numbered(session: u8, number: i64) -> Session {
    let mut id = [session; 16];
    id[..4].copy_from_slice(&std::process::id().to_be_bytes());
    Session { id: Some(id), retry: Some(number), ..Session::default() }
}

fn same(first: &Written, again: &Written, act: &Act) {
    assert_eq!((again.n, again.modified, again.errors.len()), (first.n, first.modified, 0), "{act:?}");
    assert_eq!((&again.upserted, &again.document), (&first.upserted, &first.document), "{act:?}");
}

/// Sent again, to this process, to another one, and when the open bucket is another.
pub(crate) async fn sent_again(opened: &Opened, number: u8) {
    let buckets = Buckets::new(opened, Arc::new(Failing::default())).await;
    buckets.did(Act::Insert(NAME, readings(0..8))).await;
    for (number, act) in acts().into_iter().enumerate().map(|(at, act)| (i64::from(number) * 100 + at as i64, act)) {
        let op = act.op(&buckets.world);
        let first = buckets.write(&mut numbered(1, number), &op).await.unwrap();
        assert!(first.errors.is_empty() && first.retried.is_empty(), "{act:?}: {first:?}");
        let from = i32::try_from(number).unwrap() * 10 + 10_000;
        for other in 0..2 {
            let process = if other == 0 { None } else { Some(buckets.another()) };
            let process = process.as_ref().unwrap_or(&buckets);
            let stored = buckets.world.sorted("sensor_hours").await;
            let again = process.write(&mut numbered(1, number), &op).await.unwrap();
            same(&first, &again, &act);
            assert!(!again.retried.is_empty(), "{act:?}");
            assert_eq!(buckets.world.sorted("sensor_hours").await, stored, "{act:?}");
            buckets.did(Act::Insert(NAME, readings(from + other * 4..from + other * 4 + 4))).await;
        }
    }
    buckets.logical().await;
}

/// Cut off before any step, then sent again.
pub(crate) async fn cut_off(opened: &Opened, number: u8) {
    let gate = Arc::new(Failing::default());
    let buckets = Buckets::new(opened, gate.clone()).await;
    let mut number = i64::from(number) * 10_000;
    for act in acts() {
        let op = act.op(&buckets.world);
        let mut expected = None;
        for step in 0..20 {
            buckets.did(Act::Delete(NAME, doc! {}, true)).await;
            buckets.did(Act::Insert(NAME, readings(0..8))).await;
            number += 1;
            let mut session = numbered(2, number);
            if expected.is_some() {
                gate.arm(step, Fault::Error);
            }
            let told = buckets.write(&mut session, &op).await;
            let over = expected.is_some() && gate.disarm();
            let again = buckets.write(&mut numbered(2, number), &op).await.unwrap();
            if let Ok(told) = &told {
                same(told, &again, &act);
            }
            let logical = buckets.logical().await;
            match &expected {
                None => expected = Some(logical),
                Some(expected) => assert_eq!(&logical, expected, "{act:?}, cut off before step {step}"),
            }
            if over {
                break;
            }
        }
    }
}

/// In a transaction that is given up nothing stays; in one that is committed everything does.
pub(crate) async fn in_transactions(opened: &Opened) {
    let buckets = Buckets::new(opened, Arc::new(Failing::default())).await;
    buckets.did(Act::Insert(NAME, readings(0..8))).await;
    let before = buckets.world.sorted("sensor_hours").await;
    for commits in [false, true] {
        let mut session = buckets.world.begin().await;
        for act in acts() {
            let written = buckets.world.act_at(&mut session, &act).await.unwrap();
            assert!(written.errors.is_empty(), "{act:?}: {:?}", written.errors);
        }
        let transaction = session.transaction.take().unwrap();
        if commits {
            transaction.commit(&buckets.world.context()).await.unwrap();
        } else {
            transaction.abort();
            assert_eq!(buckets.world.sorted("sensor_hours").await, before);
        }
    }
    let ids: Vec<i32> = buckets.logical().await.iter().map(|doc| doc.get_i32("_id").unwrap()).collect();
    let mut expected: Vec<i32> = [0, 1, 2, 3, 4, 7, 100].into_iter().chain(110..121).collect();
    expected.extend([130, 131, 140]);
    assert_eq!(ids, expected);
}
