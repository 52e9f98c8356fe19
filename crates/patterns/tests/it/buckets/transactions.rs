//! R5: in the client's own transaction everything is part of it, and vanishes with it.

use super::*;
use document::op::Modify;

fn writes() -> Vec<WriteOp> {
    vec![
        insert(NAME, vec![reading("a", 100, 1)]),
        insert(NAME, (0..6).map(|n| reading("a", 200 + n, 1)).collect()),
        update(NAME, doc! {"s": "a"}, doc! {"$inc": {"temp": 1}}, &["multi"]),
        update(NAME, doc! {"temp": {"$gte": 1}}, doc! {"$set": {"s": "b"}}, &[]),
        delete(NAME, doc! {"s": "a"}, false),
        find_and_modify(NAME, doc! {"s": "a"}, Modify::Remove),
        update(NAME, doc! {"s": "c", "ts": at(1)}, doc! {"$set": {"temp": 1}}, &["upsert"]),
    ]
}

#[test]
fn effects_are_visible_inside_and_vanish_on_abort() {
    let (inside, outside) = (Buckets::new(hours(readings(3))), Buckets::new(hours(readings(3))));
    run(async {
        let seed: Vec<_> = (0..5).map(|n| reading("a", n, n as i32)).collect();
        inside.did(insert(NAME, seed.clone())).await;
        outside.did(insert(NAME, seed.clone())).await;
        let before = inside.stored().await;
        let ops = writes();
        for commits in [false, true] {
            let mut session = inside.world.begin().await;
            for op in &ops {
                let written = inside.world.write_at(&mut session, op).await.unwrap();
                assert!(written.errors.is_empty(), "{:?}", written.errors);
                assert_eq!(inside.stored().await, before);
            }
            assert_ne!(inside.stored_at(&mut session).await, before);
            if commits {
                inside.world.commit(&mut session).await.unwrap();
            } else {
                session.transaction.take().unwrap().abort();
                assert_eq!(inside.stored().await, before);
            }
        }
        for op in ops {
            outside.did(op).await;
        }
        let logical = outside.logical().await;
        assert_eq!(inside.logical().await.len(), logical.len());
        assert_eq!(inside.counts().await.iter().sum::<i32>(), outside.counts().await.iter().sum::<i32>());
        let settled = inside.logical().await;
        outside.check(&settled.iter().map(|doc| same_id(doc, &logical)).collect::<Vec<_>>()).await;
    });
}

/// Upserts make ids of their own.
fn same_id(doc: &bson::Document, all: &[bson::Document]) -> bson::Document {
    let mut doc = doc.clone();
    let is_upserted = |doc: &bson::Document| doc.get_str("s").is_ok_and(|series| series == "c");
    if let Some(other) = all.iter().find(|other| is_upserted(other)).filter(|_| is_upserted(&doc)) {
        doc.insert("_id", other["_id"].clone());
    }
    doc
}

#[test]
fn two_transactions_on_one_bucket_conflict_and_nothing_is_lost() {
    let buckets = Buckets::new(hours(readings(3)));
    run(async {
        buckets.did(insert(NAME, vec![reading("a", 0, 1)])).await;
        let (mut one, mut two) = (buckets.world.begin().await, buckets.world.begin().await);
        buckets.world.write_at(&mut one, &insert(NAME, vec![reading("a", 1, 1)])).await.unwrap();
        let late = buckets.world.write_at(&mut two, &insert(NAME, vec![reading("a", 2, 1)])).await;
        assert_eq!(late.unwrap_err().code().number(), 112);
        buckets.world.commit(&mut one).await.unwrap();
        assert_eq!(buckets.counts().await, [2]);
    });
}

#[test]
fn what_fails_fails_the_transaction_without_a_trace() {
    let buckets = Buckets::new(hours(readings(3)));
    run(async {
        let mut session = buckets.world.begin().await;
        let wrong = insert(NAME, vec![reading("a", 1, 1), doc! {"s": "a"}]);
        let written = buckets.world.write_at(&mut session, &wrong).await.unwrap();
        assert_eq!((written.n, written.errors[0].index), (0, 1));
        drop(session);
        assert!(buckets.stored().await.is_empty());
    });
}

#[test]
fn slots_in_a_transaction() {
    let buckets = Buckets::new(slots::quarters(Layout::FieldNames, false));
    run(async {
        let inc = || {
            let one = |n: i64| {
                statement(doc! {"s": "k", "ts": at(n * 24 * HOUR)}, doc! {"$inc": {"approved": 1}}, &["upsert"])
            };
            updates(NAME, (0..3).map(one).collect(), true)
        };
        for commits in [false, true] {
            let mut session = buckets.world.begin().await;
            buckets.world.write_at(&mut session, &inc()).await.unwrap();
            buckets
                .world
                .write_at(&mut session, &insert(NAME, vec![doc! {"s": "k", "ts": at(0), "rejected": 1}]))
                .await
                .unwrap();
            match commits {
                true => buckets.world.commit(&mut session).await.unwrap(),
                false => session.transaction.take().unwrap().abort(),
            }
            assert_eq!(buckets.logical().await.len(), if commits { 3 } else { 0 });
        }
    });
}
