//! Inserts of readings: filled in order of arrival, refused ones told by their place (R14–R16).

use super::*;
use document::op::Insert;

fn unordered(op: WriteOp) -> WriteOp {
    match op {
        WriteOp::Insert(insert) => WriteOp::Insert(Insert { ordered: false, ..insert }),
        other => other,
    }
}

#[test]
fn a_full_bucket_starts_the_next_one_by_one_and_in_batches() {
    for batch in [1, 2, 7, 61] {
        let buckets = Buckets::new(hours(readings(20)));
        run(async {
            let all: Vec<_> = (0..61).map(|n| reading("a", n * 1000, n as i32)).collect();
            for part in all.chunks(batch) {
                assert_eq!(buckets.did(insert(NAME, part.to_vec())).await.n, part.len() as u64);
            }
            assert_eq!(buckets.counts().await, [20, 20, 20, 1], "in batches of {batch}");
            buckets.check(&all).await;
        });
    }
}

#[test]
fn readings_of_one_command_go_to_the_buckets_of_their_series_and_hours() {
    let buckets = Buckets::new(hours(readings(4)));
    run(async {
        let mut all: Vec<_> =
            (0..30).map(|n| reading(["a", "b", "c"][n % 3], (n as i64 % 2) * HOUR + n as i64, 1.5)).collect();
        all.push(doc! {"_id": 1, "ts": at(5), "temp": 1});
        all.push(doc! {"_id": 2, "s": null, "ts": at(5), "temp": 1});
        buckets.did(insert(NAME, all.clone())).await;
        assert_eq!(buckets.stored().await.len(), 6 * 2 + 2);
        // Late data finds its hour, also in a process that remembers nothing.
        let buckets = buckets.reopen();
        let late = reading("a", 1, 2);
        buckets.did(insert(NAME, vec![late.clone()])).await;
        all.push(late);
        buckets.check(&all).await;
        assert_eq!(buckets.stored().await.len(), 14);
    });
}

#[test]
fn a_process_that_remembers_nothing_goes_on_where_the_last_one_ended() {
    let mut buckets = Buckets::new(hours(readings(3)));
    let mut all = Vec::new();
    for round in 0..3 {
        let (one, two) = (reading("a", round, 1), reading("a", round, 2));
        let more: Vec<_> = (0..2).map(|n| reading("a", round * 10 + n, 3)).collect();
        run(async {
            for op in [vec![one.clone()], more.clone(), vec![two.clone()]] {
                buckets.did(insert(NAME, op)).await;
            }
        });
        all.extend([one, two]);
        all.extend(more);
        buckets = buckets.reopen();
    }
    run(async {
        assert_eq!(buckets.counts().await, [3, 3, 3, 3]);
        buckets.check(&all).await;
    });
}

#[test]
fn readings_that_cannot_be_stored_are_told_by_their_place() {
    let buckets = Buckets::new(hours(readings(10)));
    run(async {
        let mut all: Vec<_> = (0..6).map(|n| reading("a", n, 1)).collect();
        all[2].insert("ts", "yesterday");
        all[4].insert("t", 5);
        let written = buckets.write(insert(NAME, all.clone())).await;
        assert_eq!((written.n, written.errors.len()), (2, 1));
        assert_eq!((written.errors[0].index, written.errors[0].error.code().number()), (2, 2));
        let written = buckets.write(unordered(insert(NAME, all.clone()))).await;
        let failed: Vec<usize> = written.errors.iter().map(|failed| failed.index).collect();
        assert_eq!((written.n, failed), (4, vec![2, 4]));
        let written = buckets.write(insert(NAME, vec![all[2].clone()])).await;
        assert_eq!((written.n, written.errors.len()), (0, 1));
        assert_eq!(buckets.counts().await, [6]);
    });
}

#[test]
fn one_reading_per_series_and_time_where_the_time_is_the_id() {
    // With room for every minute, and with several buckets in an hour.
    for (size, name, at_most) in [(Grain::Minute, "m", 60), (Grain::Millisecond, "t", 3)] {
        let unit = Unit { size, name: name.into() };
        let buckets = Buckets::new(hours(Readings { unit, reading_id: ReadingId::Time, ..readings(at_most) }));
        run(async {
            let minute = |n: i64| doc! {"s": "a", "ts": at(n * 60_000), "temp": n};
            let expected =
                |n: i64| doc! {"_id": {"s": "a", "ts": at(n * 60_000)}, "s": "a", "ts": at(n * 60_000), "temp": n};
            for n in 0..4 {
                buckets.did(insert(NAME, vec![minute(n)])).await;
            }
            for again in [0, 3] {
                let written = buckets.write(insert(NAME, vec![minute(again)])).await;
                assert_eq!((written.n, written.errors[0].error.code().number()), (0, 11000));
                let info = bson::Document::try_from(written.errors[0].error.info().unwrap()).unwrap();
                assert_eq!(
                    info,
                    doc! {"keyPattern": {"_id": 1}, "keyValue": {"_id": {"s": "a", "ts": at(again * 60_000)}}}
                );
            }
            let batch = || insert(NAME, [4, 5, 2, 6, 5].map(minute).to_vec());
            let written = buckets.write(batch()).await;
            assert_eq!((written.n, written.errors.len(), written.errors[0].index), (2, 1, 2));
            let written = buckets.write(unordered(batch())).await;
            let failed: Vec<usize> = written.errors.iter().map(|failed| failed.index).collect();
            assert_eq!((written.n, failed), (1, vec![0, 1, 2, 4]));
            buckets.check(&(0..7).map(expected).collect::<Vec<_>>()).await;
        });
    }
}

#[test]
fn a_bucket_that_would_be_too_large_starts_the_next() {
    let buckets = Buckets::new(hours(Readings { stats: Vec::new(), ..readings(1000) }));
    run(async {
        let large = |n: i64| reading("a", n, "x".repeat(4 << 20));
        for n in 0..5 {
            buckets.did(insert(NAME, vec![large(n)])).await;
        }
        assert_eq!(buckets.counts().await, [3, 2]);
        let Buckets { world, bucket } = buckets;
        let buckets = Buckets::on(world.reopen().declaring(OTHER), (*bucket).clone());
        buckets.did(insert(NAME, vec![large(5), large(6)])).await;
        buckets.did(insert(NAME, vec![large(7)])).await;
        assert_eq!(buckets.counts().await.iter().sum::<i32>(), 8);
    });
}

#[test]
fn clients_do_not_write_to_what_is_stored() {
    let buckets = Buckets::new(hours(readings(4)));
    run(async {
        for op in [
            insert("sensor_hours", vec![doc! {"_id": 1}]),
            update("sensor_hours", doc! {}, doc! {"$set": {"count": 7}}, &["multi"]),
            delete("sensor_hours", doc! {}, true),
        ] {
            let (code, message) = buckets.world.refused(op).await;
            assert_eq!(code, 96);
            assert!(message.contains("'shop.sensor_data'"), "{message}");
        }
    });
}
