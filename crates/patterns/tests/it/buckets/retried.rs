//! R4: a write that is sent again has the same answer and one effect, wherever it was cut off.

use super::*;
use document::backend::Answer;
use document::op::Modify;
use document::{Code, Error};
use pleach_patterns::gate::Point;
use std::sync::atomic::{AtomicI64, Ordering};

fn numbered(number: i64) -> Session {
    Session { id: Some([9; 16]), retry: Some(number), ..Session::default() }
}

fn writes() -> Vec<WriteOp> {
    let batch = |from: i64, count: i64| (from..from + count).map(|n| reading("a", n, n as i32)).collect();
    vec![
        insert(NAME, batch(100, 1)),
        insert(NAME, batch(200, 7)),
        insert(NAME, vec![reading("x", 0, 1), reading("y", 0, 1)]),
        update(NAME, doc! {"s": "a"}, doc! {"$inc": {"temp": 1}}, &[]),
        update(NAME, doc! {"s": "a"}, doc! {"$set": {"s": "moved"}}, &[]),
        update(NAME, doc! {"s": "new", "ts": at(1)}, doc! {"$set": {"temp": 1}}, &["upsert"]),
        find_and_modify(NAME, doc! {"s": "a"}, modify(doc! {"$inc": {"temp": 1}}, false)),
        delete(NAME, doc! {"s": "a"}, false),
        find_and_modify(NAME, doc! {"s": "a"}, Modify::Remove),
    ]
}

fn same(first: &Written, again: &Written, op: &WriteOp) {
    assert_eq!((again.n, again.modified, again.errors.len()), (first.n, first.modified, 0), "{op:?}");
    assert_eq!((&again.upserted, &again.document), (&first.upserted, &first.document), "{op:?}");
}

async fn seeded(buckets: &Buckets) {
    buckets.did(insert(NAME, (0..4).map(|n| reading("a", n, n as i32)).collect())).await;
}

#[test]
fn the_same_answer_and_one_effect_also_after_a_restart() {
    let mut buckets = Buckets::new(hours(readings(3)));
    run(seeded(&buckets));
    for (number, op) in (1..).zip(writes()) {
        let (first, stored) = run(async {
            let first = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
            assert!(first.errors.is_empty() && first.retried.is_empty());
            (first, buckets.stored().await)
        });
        for restart in [false, true] {
            if restart {
                buckets = buckets.reopen();
            }
            run(async {
                // Others go on meanwhile; then the first one hears nothing and asks again.
                let again = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
                same(&first, &again, &op);
                assert!(!again.retried.is_empty(), "{op:?}");
                assert_eq!(buckets.stored().await, stored, "{op:?}");
            });
        }
    }
}

#[test]
fn what_others_wrote_meanwhile_does_not_matter() {
    let buckets = Buckets::new(hours(readings(3)));
    run(async {
        seeded(&buckets).await;
        for (number, op) in (1..).zip(writes()) {
            let first = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
            // The open bucket is another one now.
            buckets.did(insert(NAME, (0..4).map(|n| reading("a", 500 + n, 1)).collect())).await;
            let stored = buckets.stored().await;
            let again = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
            same(&first, &again, &op);
            assert_eq!(buckets.stored().await, stored, "{op:?}");
        }
    });
}

#[test]
fn slots_are_added_to_once() {
    let mut buckets = Buckets::new(slots::quarters(Layout::FieldNames, true));
    let inc =
        |n: i64| statement(doc! {"s": "AB", "ts": at(n * 24 * HOUR)}, doc! {"$inc": {"approved": 1}}, &["upsert"]);
    let events = (0..5).map(|n| doc! {"s": "AB", "ts": at(n), "approved": 1}).collect();
    let mixed = vec![
        inc(0),
        statement(doc! {"s": "AB", "ts": at(0)}, doc! {"$set": {"rejected": 7}}, &[]),
        inc(1),
        statement(doc! {"s": "AB", "ts": at(0)}, doc! {"$inc": {"rejected": 1}}, &[]),
    ];
    let ops = [insert(NAME, events), updates(NAME, (0..5).map(inc).collect(), true), updates(NAME, mixed, true)];
    for (number, op) in (1..).zip(ops) {
        let first = run(async {
            let first = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
            (first, buckets.stored().await)
        });
        buckets = buckets.reopen();
        run(async {
            let again = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
            same(&first.0, &again, &op);
            assert_eq!(buckets.stored().await, first.1, "{op:?}");
        });
    }
    run(async {
        let logical = buckets.logical().await;
        assert_eq!(logical[0].get_i32("approved").unwrap(), 7);
        assert_eq!(logical[0].get_i32("rejected").unwrap(), 8);
    });
}

/// Fails once, before the step with this number.
struct Once(AtomicI64);

impl Gate for Once {
    fn pass<'a>(&'a self, _point: Point<'a>) -> Answer<'a, ()> {
        let fails = self.0.fetch_sub(1, Ordering::Relaxed) == 0;
        let failure = || Err(Error::new(Code::InterruptedAtShutdown, "the process is gone"));
        Box::pin(std::future::ready(if fails { failure() } else { Ok(()) }))
    }
}

#[test]
fn cut_off_before_any_step_and_sent_again_it_has_one_effect() {
    let mut number = 0;
    for (at, op) in writes().into_iter().enumerate() {
        let gate = Arc::new(Once(AtomicI64::new(i64::MAX)));
        let buckets = Buckets::with_gate(hours(readings(3)), gate.clone());
        run(async {
            // What it should come to.
            seeded(&buckets).await;
            buckets.did(op.clone()).await;
            let expected = buckets.logical().await.len();
            for step in 0..14 {
                gate.0.store(i64::MAX, Ordering::Relaxed);
                buckets.did(delete(NAME, doc! {}, true)).await;
                seeded(&buckets).await;
                gate.0.store(step, Ordering::Relaxed);
                number += 1;
                let told = buckets.world.write_at(&mut numbered(number), &op).await;
                gate.0.store(i64::MAX, Ordering::Relaxed);
                let again = buckets.world.write_at(&mut numbered(number), &op).await.unwrap();
                if let Ok(told) = &told {
                    same(told, &again, &op);
                }
                assert_eq!(buckets.logical().await.len(), expected, "write {at}, cut off before step {step}");
            }
        });
    }
}

/// A conflict once, before the step with this number.
struct OneConflict(AtomicI64);

impl Gate for OneConflict {
    fn pass<'a>(&'a self, point: Point<'a>) -> Answer<'a, ()> {
        let is_step = matches!(point, Point::Begin { .. } | Point::Step { .. });
        let conflicts = is_step && self.0.fetch_sub(1, Ordering::Relaxed) == 0;
        let conflict = || Err(Error::new(Code::WriteConflict, "the rules changed meanwhile"));
        Box::pin(std::future::ready(if conflicts { conflict() } else { Ok(()) }))
    }
}

#[test]
fn a_conflict_before_any_step_is_met_by_another_attempt() {
    let many = [
        update(NAME, doc! {"s": "a"}, doc! {"$inc": {"temp": 1}}, &["multi"]),
        delete(NAME, doc! {"temp": {"$gt": 1}}, true),
    ];
    // What is one statement on one stored document meets no conflict of ours.
    for (at, op) in writes().into_iter().skip(3).chain(many).enumerate() {
        let gate = Arc::new(OneConflict(AtomicI64::new(i64::MAX)));
        let buckets = Buckets::with_gate(hours(readings(3)), gate.clone());
        run(async {
            for step in 0..14 {
                gate.0.store(i64::MAX, Ordering::Relaxed);
                buckets.did(delete(NAME, doc! {}, true)).await;
                seeded(&buckets).await;
                gate.0.store(step, Ordering::Relaxed);
                let written = buckets.world.write(op.clone()).await;
                let written = written.unwrap_or_else(|error| panic!("write {at}, step {step}: {error}"));
                assert!(written.errors.is_empty(), "write {at}, step {step}: {:?}", written.errors);
            }
        });
    }
}
