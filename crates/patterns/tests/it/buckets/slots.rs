//! Slots: inserts add up, an `$inc` is one statement on the stored bucket.

use super::*;
use document::Value;
use document::backend::Answer;
use pleach_patterns::gate::Point;
use pleach_patterns::plan::Action;
use std::sync::Mutex;

/// Sums per day in buckets of a quarter.
pub(super) fn quarters(layout: Layout, packed: bool) -> Bucket {
    Bucket {
        into: ns("event_quarters"),
        time: "ts".into(),
        by: vec![Series { field: "s".into(), hex: packed }],
        every: Period::Quarter,
        body: Body::Slots(Slots {
            slot: Slot::Time(Grain::Day),
            sums: vec![("approved".into(), "a".into()), ("rejected".into(), "r".into())],
            layout,
        }),
        packed,
    }
}

fn forms() -> Vec<(Bucket, &'static str)> {
    vec![
        (quarters(Layout::FieldNames, true), "abcd"),
        (quarters(Layout::FieldNames, false), "k"),
        (quarters(Layout::Array, false), "k"),
    ]
}

fn slot(key: &str, day: i64, sums: bson::Document) -> bson::Document {
    let ts = at(day * 24 * HOUR);
    let mut slot = doc! {"_id": {"s": key, "ts": ts}, "s": key, "ts": ts};
    slot.extend(sums);
    slot
}

#[test]
fn inserts_add_up_and_drop_the_drivers_id() {
    for (bucket, key) in forms() {
        let buckets = Buckets::new(bucket);
        run(async {
            let event =
                |hour: i64| doc! {"_id": bson::oid::ObjectId::new(), "s": key, "ts": at(hour * HOUR), "approved": 1};
            let written = buckets.did(insert(NAME, [0, 5, 23, 24].map(event).to_vec())).await;
            assert_eq!((written.n, written.upserted.len()), (4, 0));
            buckets.did(insert(NAME, vec![doc! {"s": key, "ts": at(0), "rejected": 2.5}])).await;
            let expected = [slot(key, 0, doc! {"approved": 3, "rejected": 2.5}), slot(key, 1, doc! {"approved": 1})];
            buckets.check(&expected).await;
            assert_eq!(buckets.stored().await.len(), 1);
            // Only series, time and declared sums, and these are numbers.
            let wrong = vec![
                doc! {"s": key, "ts": at(0), "other": 1},
                doc! {"s": key, "ts": at(0), "approved": "one"},
                doc! {"s": key, "ts": at(0), "approved": 1},
            ];
            let WriteOp::Insert(op) = insert(NAME, wrong) else { unreachable!() };
            let op = WriteOp::Insert(document::op::Insert { ordered: false, ..op });
            let written = buckets.write(op).await;
            assert_eq!((written.n, written.errors.len()), (1, 2));
        });
    }
}

/// Notes what is sent to the store.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Gate for Noted {
    fn pass<'a>(&'a self, point: Point<'a>) -> Answer<'a, ()> {
        let noted = match point {
            Point::Begin { .. } => Some("begin".to_owned()),
            Point::Step { action: Action::Write(WriteOp::Update(op)), .. } => {
                Some(format!("update {} of {}", op.ns.collection, op.statements.len()))
            }
            Point::Step { .. } => Some("other".to_owned()),
            _ => None,
        };
        self.0.lock().unwrap().extend(noted);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn a_bulk_of_increments_is_one_command_on_what_is_stored() {
    let gate = Arc::new(Noted::default());
    let buckets = Buckets::with_gate(quarters(Layout::FieldNames, true), gate.clone());
    run(async {
        let inc = |n: i64| {
            let query = doc! {"s": format!("{:02x}", n % 50), "ts": at(n % 3 * 24 * HOUR)};
            statement(query, doc! {"$inc": {"approved": 1, "rejected": 2}}, &["upsert"])
        };
        let written = buckets.did(updates(NAME, (0..250).map(inc).collect(), false)).await;
        assert_eq!(*gate.0.lock().unwrap(), ["update event_quarters of 250"]);
        assert_eq!(written.n, 250);
        assert_eq!(written.upserted.len(), 50);
        assert_eq!(written.upserted[0].1, Value::from(Bson::Document(doc! {"s": "00", "ts": at(0)})));
        let logical = buckets.logical().await;
        let sum = |name: &str| logical.iter().map(|slot| slot.get_i32(name).unwrap()).sum::<i32>();
        assert_eq!((sum("approved"), sum("rejected")), (250, 500));
    });
}

/// MongoDB would tell of a document that was made. Here it is one `$inc` on the bucket, which does not say whether the slot
/// was there.
#[test]
fn diff_an_upsert_of_a_slot_is_told_as_its_buckets() {
    let buckets = Buckets::new(quarters(Layout::FieldNames, false));
    run(async {
        let day = |n: i64| {
            update(NAME, doc! {"s": "k", "ts": at(n * 24 * HOUR)}, doc! {"$inc": {"approved": 1}}, &["upsert"])
        };
        let first = buckets.did(day(0)).await;
        assert_eq!((first.n, first.modified, first.upserted.len()), (1, 0, 1));
        let second = buckets.did(day(1)).await;
        assert_eq!((second.n, second.modified, second.upserted.len()), (1, 1, 0));
    });
}

#[test]
fn a_slot_is_a_document_to_update_and_delete() {
    for (bucket, key) in forms() {
        let buckets = Buckets::new(bucket);
        run(async {
            let days = (0..4).map(|day| doc! {"s": key, "ts": at(day * 24 * HOUR), "approved": day as i32 + 1});
            buckets.did(insert(NAME, days.collect())).await;
            let day = |day: i64| doc! {"s": key, "ts": at(day * 24 * HOUR)};
            let told = |written: Written| (written.n, written.modified);
            // Without upsert, only what is there.
            assert_eq!(told(buckets.did(update(NAME, day(0), doc! {"$inc": {"approved": 5}}, &[])).await), (1, 1));
            assert_eq!(told(buckets.did(update(NAME, day(9), doc! {"$inc": {"approved": 5}}, &[])).await), (0, 0));
            let by_id = doc! {"_id": day(1)};
            assert_eq!(told(buckets.did(update(NAME, by_id, doc! {"$set": {"approved": 20}}, &[])).await), (1, 1));
            assert_eq!(told(buckets.did(update(NAME, day(2), doc! {"$unset": {"approved": ""}}, &[])).await), (1, 1));
            assert_eq!(buckets.did(delete(NAME, day(3), false)).await.n, 1);
            let new = update(NAME, doc! {"_id": day(5)}, doc! {"$set": {"rejected": 7}}, &["upsert"]);
            let written = buckets.did(new).await;
            assert_eq!(written.upserted[0].1, Value::from(Bson::Document(day(5))));
            let expected = [
                slot(key, 0, doc! {"approved": 6}),
                slot(key, 1, doc! {"approved": 20}),
                slot(key, 2, doc! {}),
                slot(key, 5, doc! {"rejected": 7}),
            ];
            buckets.check(&expected).await;
            // A slot moves, but not onto another.
            let to = |day: i64| doc! {"$set": {"ts": at(day * 24 * HOUR)}};
            assert_eq!(buckets.world.refused(update(NAME, day(0), to(1), &[])).await.0, 11000);
            buckets.did(update(NAME, day(0), to(100), &[])).await;
            let mut expected = expected.to_vec();
            expected[0] = slot(key, 100, doc! {"approved": 6});
            buckets.check(&expected).await;
            assert_eq!(buckets.stored().await.len(), 2);
            assert_eq!(buckets.world.refused(update(NAME, day(1), doc! {"$set": {"x": 1}}, &[])).await.0, 2);
            assert_eq!(buckets.did(delete(NAME, doc! {}, true)).await.n, 4);
            assert!(buckets.stored().await.is_empty());
        });
    }
}
