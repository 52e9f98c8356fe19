//! Retryable writes, findAndModify, validators, expiry.

use super::harness::*;
use bson::doc;
use document::backend::{Backend, Session};
use document::op::*;
use document::{Doc, Value};
use std::time::Duration;

fn retryable(number: i64) -> Session {
    Session { id: Some([7; 16]), retry: Some(number), ..Session::default() }
}

#[test]
fn a_repeated_write_is_answered_and_not_run_again() {
    let bench = Bench::new();
    run(async {
        let two = insert(vec![doc! {"_id": 1, "x": 0}, doc! {"_id": 2, "x": 0}]);
        for repeated in [false, true] {
            let written = bench.write_at(&mut retryable(1), &two).await.unwrap();
            assert_eq!((written.n, written.errors.len()), (2, 0));
            assert_eq!(written.retried.len(), if repeated { 2 } else { 0 });
        }
        let inc = update_op(doc! {"_id": 1}, doc! {"$inc": {"x": 1}}, false, false);
        for _ in 0..3 {
            let written = bench.write_at(&mut retryable(2), &inc).await.unwrap();
            assert_eq!((written.n, written.modified), (1, 1));
        }
        let upsert = update_op(doc! {"_id": 9}, doc! {"$inc": {"x": 1}}, false, true);
        for _ in 0..2 {
            let written = bench.write_at(&mut retryable(3), &upsert).await.unwrap();
            assert_eq!(written.upserted, [(0, Value::Int32(9))]);
        }
        let old = bench.write_at(&mut retryable(2), &inc).await.unwrap_err();
        assert_eq!(old.code().number(), 225);
    });
    let bench = bench.reopen();
    run(async {
        let upsert = update_op(doc! {"_id": 9}, doc! {"$inc": {"x": 1}}, false, true);
        let written = bench.write_at(&mut retryable(3), &upsert).await.unwrap();
        assert_eq!((written.upserted.len(), written.retried), (1, vec![0]));
        let all = [doc! {"_id": 1, "x": 1}, doc! {"_id": 2, "x": 0}, doc! {"_id": 9, "x": 1}];
        assert_eq!(bench.find(doc! {}).await, all);
    });
}

fn find_and_modify(query: bson::Document, action: Modify) -> WriteOp {
    WriteOp::FindAndModify(Box::new(FindAndModify {
        ns: ns(),
        filter: filter(query),
        sort: None,
        action,
        projection: None,
        hint: None,
        bypass_validation: false,
        statement_id: 0,
    }))
}

#[test]
fn find_and_modify_gives_the_document_before_or_after() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}])).await;
        let set = |value: i32, upsert, return_new| Modify::Update {
            update: update(doc! {"$set": {"x": value}}),
            upsert,
            return_new,
        };
        let check = async |session: &mut Session, query, action, n: u64, document: Option<bson::Document>| {
            let written = bench.write_at(session, &find_and_modify(query, action)).await.unwrap();
            assert_eq!((written.n, written.document), (n, document.map(Doc::from)));
        };
        let mut none = Session::default();
        check(&mut none, doc! {"_id": 1}, set(1, false, false), 1, Some(doc! {"_id": 1, "x": 0})).await;
        check(&mut none, doc! {"x": 1}, set(2, false, true), 1, Some(doc! {"_id": 1, "x": 2})).await;
        check(&mut none, doc! {"_id": 5}, set(3, false, true), 0, None).await;
        check(&mut none, doc! {"_id": 5}, set(3, true, false), 1, None).await;
        for _ in 0..2 {
            check(&mut retryable(1), doc! {"_id": 5}, Modify::Remove, 1, Some(doc! {"_id": 5, "x": 3})).await;
        }
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 1, "x": 2}]);
    });
}

#[test]
fn a_validator_refuses_and_says_why() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 0, "x": 1}])).await;
        let change = |level: &str, action: &str| {
            let change = doc! {"validator": {"x": {"$gt": 5}}, "validationLevel": level, "validationAction": action};
            AdminOp::CollMod { ns: ns(), change: Doc::from(change) }
        };
        bench.admin(change("strict", "error")).await.unwrap();
        let refused = bench.write(insert(vec![doc! {"_id": 1, "x": 2}])).await.unwrap();
        assert_eq!(only_error(&refused), (121, "Document failed validation".to_owned()));
        let info = refused.errors[0].error.info().unwrap();
        assert_eq!(info.get("failingDocumentId"), Some(Value::Int32(1)));
        let touch = || update_op(doc! {"_id": 0}, doc! {"$set": {"y": 1}}, false, false);
        assert_eq!(only_error(&bench.write(touch()).await.unwrap()).0, 121);
        bench.admin(change("moderate", "error")).await.unwrap();
        bench.did(touch()).await;
        bench.admin(change("strict", "warn")).await.unwrap();
        bench.did(insert(vec![doc! {"_id": 1, "x": 2}])).await;
    });
    let bench = bench.reopen();
    assert!(bench.engine.catalog().get(&ns()).unwrap().validation.as_ref().unwrap().warn);
}

#[test]
fn expired_documents_go() {
    let bench = Bench::with(crate::Options { ttl_period: Duration::from_millis(20), ..options() });
    run(async {
        let (past, future) = (bson::DateTime::from_millis(0), bson::DateTime::from_millis(4_000_000_000_000));
        let spec = Doc::from(doc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 60});
        bench.admin(AdminOp::CreateIndexes { ns: ns(), indexes: vec![spec] }).await.unwrap();
        let documents = vec![
            doc! {"_id": 1, "t": past},
            doc! {"_id": 2, "t": [future, past]},
            doc! {"_id": 3, "t": future},
            doc! {"_id": 4, "t": "text"},
            doc! {"_id": 5},
        ];
        bench.did(insert(documents)).await;
        for _ in 0..200 {
            if bench.engine.catalog().get(&ns()).unwrap().count() == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let left: Vec<i32> = bench.find(doc! {}).await.iter().map(|found| found.get_i32("_id").unwrap()).collect();
        assert_eq!(left, [3, 4, 5]);
    });
}

/// SEMANTICS R4: the record is in the batch of the transaction, and an aborted one leaves none.
#[test]
fn a_retryable_write_in_a_transaction_leaves_its_record_in_it() {
    let bench = Bench::new();
    let bench = run(async {
        bench.did(insert(vec![doc! {"_id": 1, "x": 0}])).await;
        let inc = update_op(doc! {"_id": 1}, doc! {"$inc": {"x": 1}}, false, false);
        let mut session = retryable(1);
        bench.engine.begin(&mut session, &context()).await.unwrap();
        bench.write_at(&mut session, &inc).await.unwrap();
        session.transaction.take().unwrap().abort();
        for attempt in 0..3 {
            let mut session = retryable(1);
            bench.engine.begin(&mut session, &context()).await.unwrap();
            let written = bench.write_at(&mut session, &inc).await.unwrap();
            assert_eq!((written.n, written.modified, written.retried.len()), (1, 1, usize::from(attempt > 0)));
            if attempt == 0 {
                session.transaction.take().unwrap().publish(&context()).await.unwrap().await.unwrap();
            } else {
                bench.commit(&mut session).await.unwrap();
            }
        }
        assert_eq!(bench.engine.inner.core.locks.len(), 0);
        bench
    });
    let bench = bench.reopen();
    run(async {
        let inc = update_op(doc! {"_id": 1}, doc! {"$inc": {"x": 1}}, false, false);
        let written = bench.write_at(&mut retryable(1), &inc).await.unwrap();
        assert_eq!((written.n, written.retried.len()), (1, 1));
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 1, "x": 1}]);
    });
}
