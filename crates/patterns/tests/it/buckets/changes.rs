//! Updates, deletes and findAndModify of single readings by any filter (R17), many of them (R9), with exact replies.

use super::*;
use document::Value;
use document::op::{Delete, Modify};

fn told(written: &Written) -> (u64, u64) {
    (written.n, written.modified)
}

/// Readings 0..count of series "a" and "b", two hours.
async fn seeded(count: i64) -> (Buckets, Vec<bson::Document>) {
    let buckets = Buckets::new(hours(readings(4)));
    let all: Vec<_> = (0..count)
        .map(|n| {
            let mut doc = reading(["b", "a"][n as usize % 2], (n % 4) / 2 * HOUR + 10 * n, n as i32);
            doc.insert("_id", n);
            doc
        })
        .collect();
    buckets.did(insert(NAME, all.clone())).await;
    (buckets, all)
}

#[test]
fn one_means_the_first_in_the_order_of_series_and_time() {
    run(async {
        let (buckets, mut all) = seeded(16).await;
        // Series a, hour 0: 1, 5, 9, 13. A late reading is before them.
        let mut late = reading("a", 3, 99);
        late.insert("_id", 99);
        buckets.did(insert(NAME, vec![late.clone()])).await;
        all.push(late);
        let written = buckets.did(update(NAME, doc! {}, doc! {"$set": {"mark": true}}, &[])).await;
        assert_eq!(told(&written), (1, 1));
        all[16].insert("mark", true);
        buckets.check(&all).await;
        assert_eq!(buckets.did(delete(NAME, doc! {"temp": {"$gte": 5}}, false)).await.n, 1);
        all.remove(16);
        buckets.check(&all).await;
        assert_eq!(buckets.did(delete(NAME, doc! {"temp": {"$gte": 5}}, false)).await.n, 1);
        all.remove(5);
        buckets.check(&all).await;
        assert_eq!(told(&buckets.did(update(NAME, doc! {"temp": 3}, doc! {"$set": {"temp": 3}}, &[])).await), (1, 0));
        assert_eq!(told(&buckets.did(update(NAME, doc! {"temp": 77}, doc! {"$set": {"temp": 3}}, &[])).await), (0, 0));
    });
}

#[test]
fn a_change_of_series_or_time_moves_the_reading() {
    run(async {
        let (buckets, mut all) = seeded(8).await;
        for (id, change) in [
            (1_usize, doc! {"$set": {"s": "c"}}),
            (2, doc! {"$set": {"ts": at(30 * HOUR)}}),
            (3, doc! {"$unset": {"s": ""}}),
            (4, doc! {"$inc": {"temp": 5}, "$set": {"ts": at(1)}}),
        ] {
            buckets.did(update(NAME, doc! {"_id": id as i64}, change, &[])).await;
        }
        all[1].insert("s", "c");
        all[2].insert("ts", at(30 * HOUR));
        all[3].remove("s");
        all[4].insert("ts", at(1));
        all[4].insert("temp", 9);
        buckets.check(&all).await;
        // A replacement, a pipeline.
        let new = doc! {"s": "a", "ts": at(7), "other": [1, 2]};
        assert_eq!(told(&buckets.did(update(NAME, doc! {"_id": 5_i64}, new.clone(), &[])).await), (1, 1));
        all[5] = doc! {"_id": 5_i64};
        all[5].extend(new);
        let pipeline = bson::bson!([{"$set": {"temp": {"$multiply": ["$temp", 10]}, "s": {"$concat": ["$s", "!"]}}}]);
        buckets.did(update(NAME, doc! {"_id": 6_i64}, pipeline, &[])).await;
        all[6].insert("temp", 60);
        all[6].insert("s", "b!");
        buckets.check(&all).await;
    });
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    run(async {
        let (buckets, all) = seeded(8).await;
        for (change, code) in [
            (doc! {"$set": {"_id": 7}}, 66),
            (doc! {"$unset": {"ts": ""}}, 2),
            (doc! {"$set": {"ts": "now"}}, 2),
            (doc! {"$inc": {"s": 1}}, 14),
            (doc! {"$set": {"t": 1}}, 2),
        ] {
            assert_eq!(buckets.world.refused(update(NAME, doc! {"_id": 3_i64}, change, &[])).await.0, code);
        }
        buckets.check(&all).await;
        let statements = vec![
            statement(doc! {"_id": 0_i64}, doc! {"$inc": {"temp": 1}}, &[]),
            statement(doc! {"_id": 1_i64}, doc! {"$inc": {"s": 1}}, &[]),
            statement(doc! {"_id": 2_i64}, doc! {"$inc": {"temp": 1}}, &[]),
        ];
        let written = buckets.write(updates(NAME, statements.clone(), true)).await;
        assert_eq!((told(&written), written.errors[0].index), ((1, 1), 1));
        let written = buckets.write(updates(NAME, statements, false)).await;
        assert_eq!((told(&written), written.errors.len()), ((2, 2), 1));
        let mut all = all;
        all[0].insert("temp", 2);
        all[2].insert("temp", 3);
        buckets.check(&all).await;
    });
}

#[test]
fn many_at_once_each_changed_once() {
    run(async {
        let buckets = Buckets::new(hours(readings(30)));
        let mut all: Vec<_> = (0..1_200).map(|n| reading(n % 5, n * 20_000, n as i32)).collect();
        buckets.did(insert(NAME, all.clone())).await;
        let late = doc! {"$set": {"late": true}};
        let written = buckets.did(update(NAME, doc! {"temp": {"$gte": 600}}, late, &["multi"])).await;
        assert_eq!(told(&written), (600, 600));
        all[600..].iter_mut().for_each(|doc| drop(doc.insert("late", true)));
        buckets.check(&all).await;
        // Into the next hour's buckets, which are still to come.
        let shift = bson::bson!([{"$set": {"ts": {"$add": ["$ts", HOUR]}}}]);
        assert_eq!(told(&buckets.did(update(NAME, doc! {}, shift, &["multi"])).await), (1_200, 1_200));
        for (n, doc) in all.iter_mut().enumerate() {
            doc.insert("ts", at(n as i64 * 20_000 + HOUR));
        }
        buckets.check(&all).await;
        assert_eq!(buckets.did(delete(NAME, doc! {"temp": {"$mod": [2, 0]}}, true)).await.n, 600);
        all = all.into_iter().enumerate().filter(|(n, _)| n % 2 == 1).map(|(_, doc)| doc).collect();
        buckets.check(&all).await;
        let statements = [0, 1].map(|series| document::op::DeleteStatement {
            filter: filter(doc! {"s": series}),
            multi: true,
            hint: None,
        });
        let op = Delete::of(ns(NAME), statements.to_vec());
        assert_eq!(buckets.did(WriteOp::Delete(op)).await.n, 240);
        assert_eq!(buckets.did(delete(NAME, doc! {}, true)).await.n, 360);
        assert!(buckets.stored().await.is_empty());
    });
}

/// As MongoDB: what was changed before the failure stays, and the reply says nothing of it.
#[test]
fn many_that_fail_on_the_way_keep_what_was_done() {
    run(async {
        let (buckets, mut all) = seeded(8).await;
        buckets.did(update(NAME, doc! {"_id": 7_i64}, doc! {"$set": {"temp": "warm"}}, &[])).await;
        let written = buckets.write(update(NAME, doc! {}, doc! {"$inc": {"temp": 100}}, &["multi"])).await;
        assert_eq!((told(&written), written.errors.len()), ((0, 0), 1));
        assert_eq!(written.errors[0].error.code().number(), 14);
        let logical = buckets.logical().await;
        let changed = logical.iter().filter(|doc| doc.get_i32("temp").is_ok_and(|temp| temp >= 100)).count();
        assert!((1..8).contains(&changed), "{changed}");
        all.clear();
        assert_eq!(logical.len(), 8);
    });
}

#[test]
fn upserts_insert_what_filter_and_update_say() {
    run(async {
        let buckets = Buckets::new(hours(readings(2)));
        for n in 0..3 {
            let query = doc! {"s": "a", "ts": at(n), "kind": {"$exists": false}};
            let written = buckets.did(update(NAME, query, doc! {"$set": {"temp": 1, "kind": 2}}, &["upsert"])).await;
            assert_eq!((told(&written), written.upserted.len()), ((1, 0), 1));
        }
        assert_eq!(buckets.counts().await, [2, 1]);
        let written = buckets.did(update(NAME, doc! {"_id": 7}, doc! {"s": "b", "ts": at(1)}, &["upsert"])).await;
        assert_eq!(written.upserted[0].1, Value::from(Bson::Int32(7)));
        let none = update(NAME, doc! {"s": "a", "ts": at(9)}, doc! {"$set": {"temp": 5}}, &["upsert", "multi"]);
        assert_eq!(buckets.did(none).await.upserted.len(), 1);
        assert_eq!(
            buckets.world.refused(update(NAME, doc! {"s": "z"}, doc! {"$set": {"x": 1}}, &["upsert"])).await.0,
            2
        );
    });
}

#[test]
fn find_and_modify_shows_the_reading_before_or_after() {
    run(async {
        let (buckets, mut all) = seeded(8).await;
        let shown = |written: Written| bson::Document::try_from(&written.document.unwrap()).unwrap();
        let op = find_and_modify(NAME, doc! {"temp": {"$gt": 2}}, modify(doc! {"$inc": {"temp": 10}}, false));
        let after = shown(buckets.did(op).await);
        all[5].insert("temp", 15);
        assert_eq!(after, doc! {"_id": 5_i64, "s": "a", "ts": at(50), "temp": 15});
        let WriteOp::FindAndModify(mut op) = find_and_modify(NAME, doc! {}, Modify::Remove) else { unreachable!() };
        op.sort = Some(document::pipeline::sort_spec::parse(&Doc::from(doc! {"temp": -1})).unwrap());
        let gone = shown(buckets.did(WriteOp::FindAndModify(op)).await);
        assert_eq!(gone.get_i64("_id").unwrap(), 5);
        all.remove(5);
        let op = find_and_modify(NAME, doc! {"_id": 50_i64, "s": "n"}, modify(doc! {"$set": {"ts": at(0)}}, true));
        let written = buckets.did(op).await;
        assert_eq!((written.n, written.upserted.len()), (1, 1));
        let new = doc! {"_id": 50_i64, "s": "n", "ts": at(0)};
        assert_eq!(shown(written), new);
        all.push(new);
        let none = buckets.did(find_and_modify(NAME, doc! {"temp": 1000}, Modify::Remove)).await;
        assert_eq!((none.n, none.document.is_none()), (0, true));
        buckets.check(&all).await;
    });
}

#[test]
fn explain_shows_the_steps_and_keeps_nothing() {
    run(async {
        let (buckets, all) = seeded(8).await;
        for (op, reads, writes) in [
            (insert(NAME, vec![reading("a", 1, 1)]), 1, 1),
            (update(NAME, doc! {"_id": 3_i64}, doc! {"$inc": {"temp": 1}}, &[]), 1, 1),
            (update(NAME, doc! {"s": "a"}, doc! {"$set": {"s": "c"}}, &["multi"]), 3, 2),
            (delete(NAME, doc! {"s": "a"}, false), 1, 1),
        ] {
            let explained = document::op::Explained::Write(op.clone());
            let verbosity = document::op::Verbosity::QueryPlanner;
            let (mut session, context) = (Session::default(), context());
            let answer = buckets.world.layer.explain(&mut session, &context, explained, verbosity).await.unwrap();
            let answer = bson::Document::try_from(&answer).unwrap();
            assert!(answer.contains_key("queryPlanner"), "{answer}");
            let steps = answer.get_document("pleach").unwrap().get_array("steps").unwrap();
            let count = |kind: &str| {
                steps.iter().filter(|step| step.as_document().unwrap().get_str("kind").unwrap() == kind).count()
            };
            assert_eq!((count("read"), count("write")), (reads, writes), "{op:?} {steps:?}");
            let namespace = steps[0].as_document().unwrap().get_str("namespace").unwrap();
            assert_eq!(namespace, "shop.sensor_hours");
        }
        buckets.check(&all).await;
    });
}

#[test]
fn many_that_meet_a_taken_time_stop_there() {
    run(async {
        let buckets = Buckets::new(hours(Readings { reading_id: ReadingId::Time, ..readings(4) }));
        let there = |series: &str, ms: i64| (series.to_owned(), DAY + ms);
        buckets.did(insert(NAME, [10, 20, 30].map(|ms| reading("a", ms, 1)).to_vec())).await;
        buckets.did(insert(NAME, vec![reading("b", 20, 1)])).await;
        let written = buckets.write(update(NAME, doc! {"s": "a"}, doc! {"$set": {"s": "b"}}, &["multi"])).await;
        assert_eq!((written.errors.len(), written.n), (1, 0));
        assert_eq!(written.errors[0].error.code(), document::Code::DuplicateKey);
        let found = buckets.logical().await;
        let series = |doc: &bson::Document| {
            (doc.get_str("s").unwrap().to_owned(), doc.get_datetime("ts").unwrap().timestamp_millis())
        };
        let mut found: Vec<(String, i64)> = found.iter().map(series).collect();
        found.sort();
        assert_eq!(found, [there("a", 20), there("a", 30), there("b", 10), there("b", 20)]);
    });
}

#[test]
fn what_grows_too_large_for_its_bucket_goes_to_the_next() {
    run(async {
        let buckets = Buckets::new(hours(readings(100)));
        let mut all: Vec<_> = (0..4).map(|n| reading("a", n, n as i32)).collect();
        buckets.did(insert(NAME, all.clone())).await;
        let long = "x".repeat(6 << 20);
        for doc in &mut all {
            let one = doc! {"_id": doc.get("_id").unwrap()};
            assert_eq!(told(&buckets.did(update(NAME, one, doc! {"$set": {"long": &long}}, &[])).await), (1, 1));
            doc.insert("long", &long);
        }
        buckets.check(&all).await;
        assert_eq!(buckets.counts().await, [2, 2]);
        let more = doc! {"$set": {"more": "y".repeat(3 << 20)}};
        assert_eq!(told(&buckets.did(update(NAME, doc! {}, more, &["multi"])).await), (4, 4));
        assert_eq!(buckets.counts().await.iter().sum::<i32>(), 4);
    });
}
