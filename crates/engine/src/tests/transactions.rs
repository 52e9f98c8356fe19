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
        assert_eq!(bench.engine.inner.ground.locks.len(), 0);
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
        // Deleted since the snapshot, and written by who was not in a transaction.
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
        bench.engine.fence(&mut a, &key, Mode::Shared).await.unwrap();
        bench.engine.fence(&mut b, &key, Mode::Shared).await.unwrap();
        let error = bench.engine.fence(&mut c, &key, Mode::Exclusive).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        let mut late = bench.begin().await;
        bench.write_at(&mut a, &insert(vec![doc! {"_id": 1}])).await.unwrap();
        bench.commit(&mut a).await.unwrap();
        bench.commit(&mut b).await.unwrap();
        let error = bench.engine.fence(&mut late, &key, Mode::Exclusive).await.unwrap_err();
        assert_eq!(error.code().number(), 112);
        let mut after = bench.begin().await;
        bench.engine.fence(&mut after, &key, Mode::Exclusive).await.unwrap();
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
