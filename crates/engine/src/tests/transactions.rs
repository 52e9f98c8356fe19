//! Transactions, conflicts and fences: SEMANTICS E1, E2, and the evidence in part G.

use super::harness::*;
use bson::doc;
use document::backend::{Backend, FenceKey, Mode};
use std::time::Duration;

fn set(id: i32, value: i32) -> document::op::WriteOp {
    update_op(doc! {"_id": id}, doc! {"$set": {"x": value}}, false, false)
}

#[test]
fn a_transaction_sees_its_own_writes_and_others_see_them_when_it_commits() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}, doc! {"_id": 2, "x": 0}])).await;
        let mut session = bench.begin().await;
        bench.write_at(&mut session, &set(1, 5)).await.unwrap();
        bench.write_at(&mut session, &delete_op(doc! {"_id": 2}, false)).await.unwrap();
        bench.write_at(&mut session, &insert(vec![doc! {"_id": 3, "x": 7}])).await.unwrap();
        let inside = bench.find_at(&mut session, doc! {}).await.unwrap();
        assert_eq!(inside, [doc! {"_id": 1, "x": 5}, doc! {"_id": 3, "x": 7}]);
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 1, "x": 0}, doc! {"_id": 2, "x": 0}]);
        bench.commit(&mut session).await.unwrap();
        assert_eq!(bench.find(doc! {}).await, inside);
        assert_eq!(bench.engine.catalog().get(&ns()).unwrap().count(), 2);
    });
}

#[test]
fn abort_leaves_nothing_not_even_the_collection() {
    let bench = Bench::new();
    run(async {
        let mut session = bench.begin().await;
        bench.write_at(&mut session, &insert(vec![doc! {"_id": 1}])).await.unwrap();
        assert_eq!(bench.find_at(&mut session, doc! {}).await.unwrap().len(), 1);
        session.transaction.take().unwrap().abort();
        assert!(bench.engine.catalog().get(&ns()).is_none());
        bench.did(insert(vec![doc! {"_id": 1}])).await;
        assert_eq!(bench.engine.inner.core.locks.len(), 0);
    });
}

#[test]
fn the_second_updater_in_a_transaction_fails_at_the_statement() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}, doc! {"_id": 2, "x": 0}])).await;
        let (mut first, mut second) = (bench.begin().await, bench.begin().await);
        bench.write_at(&mut first, &set(1, 1)).await.unwrap();
        // Held by the first.
        let error = bench.write_at(&mut second, &set(1, 2)).await.unwrap_err();
        assert_eq!((error.code().number(), error.labels()), (112, &["TransientTransactionError"][..]));
        let gone = bench.write_at(&mut second, &set(2, 2)).await.unwrap_err();
        assert_eq!(gone.code().number(), 251);
        // Newer than the snapshot.
        let mut third = bench.begin().await;
        bench.commit(&mut first).await.unwrap();
        assert_eq!(bench.write_at(&mut third, &set(1, 3)).await.unwrap_err().code().number(), 112);
        // Deleted since the snapshot, and written outside a transaction.
        let mut fourth = bench.begin().await;
        bench.did(delete_op(doc! {"_id": 2}, false)).await;
        assert_eq!(bench.write_at(&mut fourth, &set(2, 3)).await.unwrap_err().code().number(), 112);
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 1, "x": 1}]);
    });
}

#[test]
fn outside_a_transaction_the_statement_waits_and_reads_again() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}])).await;
        let mut session = bench.begin().await;
        let inc = update_op(doc! {"_id": 1}, doc! {"$inc": {"x": 10}}, false, false);
        bench.write_at(&mut session, &inc).await.unwrap();
        let waiting = bench.write(update_op(doc! {"_id": 1}, doc! {"$inc": {"x": 1}}, false, false));
        let mut waiting = std::pin::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        bench.commit(&mut session).await.unwrap();
        assert_eq!(waiting.await.unwrap().modified, 1);
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 1, "x": 11}]);
    });
}

#[test]
fn unique_keys_conflict_between_transactions_too() {
    let bench = Bench::new();
    run(async {
        let spec = document::Doc::from(doc! {"key": {"u": 1}, "name": "u_1", "unique": true});
        bench.admin(document::op::AdminOp::CreateIndexes { ns: ns(), indexes: vec![spec] }).await.unwrap();
        let (mut first, mut second) = (bench.begin().await, bench.begin().await);
        bench.write_at(&mut first, &insert(vec![doc! {"_id": 1, "u": 1}])).await.unwrap();
        let held = bench.write_at(&mut second, &insert(vec![doc! {"_id": 2, "u": 1}])).await.unwrap_err();
        assert_eq!(held.code().number(), 112);
        let mut third = bench.begin().await;
        bench.commit(&mut first).await.unwrap();
        let newer = bench.write_at(&mut third, &insert(vec![doc! {"_id": 3, "u": 1}])).await.unwrap_err();
        assert_eq!(newer.code().number(), 112);
        let mut fourth = bench.begin().await;
        let seen = bench.write_at(&mut fourth, &insert(vec![doc! {"_id": 4, "u": 1}])).await.unwrap();
        assert_eq!(only_error(&seen).0, 11000);
        assert_eq!(bench.write_at(&mut fourth, &insert(vec![doc! {"_id": 5}])).await.unwrap_err().code().number(), 251);
    });
}

#[test]
fn fences_order_evaluations_against_changes() {
    let bench = Bench::new();
    run(async {
        let key = FenceKey::new("db", b"link".to_vec());
        let (mut a, mut b, mut c) = (bench.begin().await, bench.begin().await, bench.begin().await);
        bench.engine.fences(&mut a, &[(key.clone(), Mode::Shared)]).await.unwrap();
        bench.engine.fences(&mut b, &[(key.clone(), Mode::Shared)]).await.unwrap();
        let error = bench.engine.fences(&mut c, &[(key.clone(), Mode::Exclusive)]).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        let mut late = bench.begin().await;
        bench.write_at(&mut a, &insert(vec![doc! {"_id": 1}])).await.unwrap();
        bench.commit(&mut a).await.unwrap();
        bench.commit(&mut b).await.unwrap();
        let error = bench.engine.fences(&mut late, &[(key.clone(), Mode::Exclusive)]).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        let mut after = bench.begin().await;
        bench.engine.fences(&mut after, &[(key.clone(), Mode::Exclusive)]).await.unwrap();
    });
}

#[test]
fn a_transaction_ends_at_its_lifetime() {
    let bench = Bench::with(crate::Options { transaction_lifetime: Duration::from_millis(1), ..options() });
    run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}])).await;
        let mut session = bench.begin().await;
        bench.write_at(&mut session, &set(1, 1)).await.unwrap();
        // Waits for the document until the transaction is ended for it.
        bench.did(set(1, 2)).await;
        assert_eq!(bench.write_at(&mut session, &set(1, 3)).await.unwrap_err().code().number(), 251);
        assert_eq!(bench.commit(&mut session).await.unwrap_err().code().number(), 251);
    });
}

#[test]
fn an_id_that_came_and_went_since_the_snapshot_conflicts() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 0}])).await;
        let (mut older, mut newest) = (bench.begin().await, None);
        for _ in 0..2 {
            bench.did(insert(vec![doc! {"_id": 1, "x": 1}])).await;
            bench.did(delete_op(doc! {"_id": 1}, false)).await;
            newest.get_or_insert(bench.begin().await);
        }
        let error = bench.write_at(&mut older, &insert(vec![doc! {"_id": 1}])).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        let error = bench.write_at(newest.as_mut().unwrap(), &insert(vec![doc! {"_id": 1}])).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        drop((older, newest));
        let mut last = bench.begin().await;
        bench.write_at(&mut last, &insert(vec![doc! {"_id": 1}])).await.unwrap();
        bench.commit(&mut last).await.unwrap();
    });
}

#[test]
fn a_committed_transaction_is_remembered_after_a_restart() {
    let bench = Bench::new();
    let session = [3; 16];
    run(async {
        for (number, commits) in [(4, true), (5, false)] {
            let mut open = document::backend::Session { id: Some(session), number: Some(number), ..Default::default() };
            bench.engine.begin(&mut open, &context()).await.unwrap();
            bench.write_at(&mut open, &insert(vec![doc! {"_id": number}])).await.unwrap();
            if commits {
                bench.commit(&mut open).await.unwrap();
            }
        }
    });
    let check = |bench: &Bench| [3, 4, 5].map(|number| bench.engine.committed(&session, number));
    assert_eq!(check(&bench), [false, true, false]);
    assert_eq!(check(&bench.reopen()), [false, true, false]);
}

#[test]
fn an_array_mark_of_an_aborted_transaction_is_recorded_by_who_comes_next() {
    let bench = Bench::new();
    run(async {
        bench.index(doc! {"a": 1}, "a_1").await;
        let mut aborted = bench.begin().await;
        bench.write_at(&mut aborted, &insert(vec![doc! {"_id": 1, "a": [1, 9]}])).await.unwrap();
        drop(aborted);
        bench.did(insert(vec![doc! {"_id": 2, "a": [1, 9]}])).await;
    });
    let bench = bench.reopen();
    run(async {
        // 9 is larger, 1 is smaller.
        assert_eq!(bench.find(doc! {"a": {"$gt": 3, "$lt": 5}}).await.len(), 1);
    });
}
