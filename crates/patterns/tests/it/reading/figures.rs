//! Reports from counts, stats and slots.

use super::questions::{Dice, documents};
use super::shop::*;
use crate::harness::*;
use bson::{Document, doc};
use document::backend::{Backend, Session};
use document::op::{Explained, ReadOp, Verbosity};
use patterns::shapes::bucket::Layout;

const DAY: i64 = 86_400_000;

async fn told(world: &World, op: ReadOp) -> Document {
    let (op, verbosity) = (Explained::Read(op), Verbosity::ExecutionStats);
    let told = world.layer.explain(&mut Session::default(), &context(), op, verbosity).await.unwrap();
    Document::try_from(&told).unwrap().get_document("pleach").unwrap().clone()
}

async fn figures(world: &World, stages: &[Document]) -> Option<String> {
    told(world, aggregate(ns(LOGICAL), stages)).await.get_str("figures").ok().map(str::to_owned)
}

#[test]
fn a_report_of_the_case_study_is_a_sum_over_slots() {
    for (layout, packed) in [(Layout::FieldNames, true), (Layout::FieldNames, false), (Layout::Array, true)] {
        let bucket = events(DB, layout, packed);
        let documents = documents(&bucket, &mut Dice(5), 400);
        run(async {
            let world = world(bucket, documents).await;
            for (from, to) in
                [(0, 400), (1, 91), (17, 100), (30, 31), (91, 182), (90, 92), (5, 5), (500, 600), (33, 399)]
            {
                let date = doc! { "$gte": at(START + from * DAY + 3), "$lt": at(START + to * DAY) };
                let group = doc! {
                    "_id": null, "a": { "$sum": "$approved" }, "n": { "$sum": "$noFunds" }, "p": { "$sum": "$pending" },
                    "days": { "$sum": 1 }, "most": { "$max": "$approved" }, "mean": { "$avg": "$pending" },
                };
                let stages = [doc! { "$match": { "key": "ab01", "ts": date } }, doc! { "$group": group }];
                assert_eq!(figures(&world, &stages).await.as_deref(), Some("slots"));
                same(&world, |ns| aggregate(ns, &stages), true, &format!("{stages:?}")).await;
            }
        });
    }
}

#[test]
fn counts_and_stats_of_whole_buckets_are_not_looked_for_in_readings() {
    let bucket = sensors(DB);
    let hour = 3_600_000;
    let documents: Vec<Document> = (0..40)
        .map(|n| doc! { "_id": n, "sensorId": n % 2, "ts": at(START + i64::from(n) * hour / 4), "temp": n })
        .collect();
    run(async {
        let world = world(bucket, documents).await;
        // A figure that is wrong shows where the answer comes from.
        let lie = doc! { "$set": { "stats.maxTemp": 1000, "stats.sumTemp": 500, "count": 100 } };
        let stored = update(STORED, doc! { "sensorId": 0, "hour": at(START + hour) }, lie, &[]);
        world.behind(stored).await;
        let group = doc! { "_id": null, "n": { "$sum": 1 }, "most": { "$max": "$temp" }, "sum": { "$sum": "$temp" } };
        let stages = |from: i64, to: i64| {
            let date = doc! { "$gte": at(START + from), "$lt": at(START + to) };
            [doc! { "$match": { "sensorId": 0, "ts": date } }, doc! { "$group": group.clone() }]
        };
        let found = world.read(&mut Session::default(), aggregate(ns(LOGICAL), &stages(0, 2 * hour))).await.unwrap();
        assert_eq!(found, [doc! { "_id": null, "n": 102, "most": 1000, "sum": 502 }]);
        // At the edge the readings themselves count.
        let found =
            world.read(&mut Session::default(), aggregate(ns(LOGICAL), &stages(0, 2 * hour - 1))).await.unwrap();
        assert_eq!(found, [doc! { "_id": null, "n": 4, "most": 6, "sum": 12 }]);
        assert_eq!(figures(&world, &stages(0, hour)).await.as_deref(), Some("buckets"));
        let everything = world.read(&mut Session::default(), count(ns(LOGICAL), doc! {}, 0, None)).await.unwrap();
        assert_eq!(everything, [doc! { "n": 138_i64 }]);
    });
}

#[test]
fn what_figures_cannot_tell_is_read() {
    let bucket = sensors(DB);
    let documents = documents(&bucket, &mut Dice(9), 60);
    run(async {
        let world = world(bucket, documents).await;
        for group in [
            doc! { "_id": "$ts", "n": { "$sum": 1 } },
            doc! { "_id": null, "n": { "$sum": "$t" } },
            doc! { "_id": null, "n": { "$sum": { "$add": [1, 1] } } },
            doc! { "_id": { "$literal": 1 }, "n": { "$sum": 1 } },
        ] {
            let stages = [doc! { "$group": group }];
            assert_eq!(figures(&world, &stages).await, None, "{stages:?}");
            same(&world, |ns| aggregate(ns, &stages), false, &format!("{stages:?}")).await;
        }
        let filtered = [doc! { "$match": { "temp": 1 } }, doc! { "$count": "n" }];
        assert_eq!(figures(&world, &filtered).await, None);
    });
}
