//! What a server says about a write reaches the client as it was said: counts, errors, labels, concerns.

use crate::step::expect;
use crate::words::*;
use bson::doc;
use document::Doc;
use document::backend::Session;
use document::op::{Context, Modify, Sent, WriteOp};
use document::{Code, Value};

#[tokio::test]
async fn errors_of_a_command_keep_code_message_and_the_labels_that_are_known() {
    for (code, sent, kept) in [
        (112, vec![TRANSIENT], vec![TRANSIENT]),
        (189, vec![RETRYABLE, "NoWritesPerformed"], vec![RETRYABLE, "NoWritesPerformed"]),
        (50, vec![], vec![]),
        (8000, vec!["FromTheFuture", RETRYABLE], vec![RETRYABLE]),
    ] {
        for in_transaction in [false, true] {
            let (mongo, upstream) = with_script([expect("insert").fail(code, &sent)]).await;
            let mut session = if in_transaction { begin(&upstream).await } else { Session::default() };
            let error = write(&upstream, &mut session, insert(1)).await.unwrap_err();
            assert_eq!(
                (code_and_labels(&error), error.message()),
                ((code, kept.clone()), &*format!("scripted failure {code}"))
            );
            mongo.played().await;
        }
    }
}

#[tokio::test]
async fn errors_of_statements_come_beside_what_was_done() {
    let error =
        doc! { "index": 1, "code": 121, "errmsg": "Document failed validation", "errInfo": { "failingDocumentId": 2 } };
    let (mongo, upstream) = with_script([expect("insert")
        .answer(doc! { "n": 1, "writeErrors": [error], "operationTime": bson::Timestamp { time: 1, increment: 1 } })])
    .await;
    let op = testing::insert(orders(), vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
    let written = capture(&upstream, &mut Session::default(), op).await.unwrap();
    let failed = &written.errors[0];
    assert_eq!((written.n, failed.index, failed.error.code().number()), (1, 1, 121));
    assert_eq!(failed.error.info(), Some(&Doc::from(doc! { "failingDocumentId": 2 })));
    let changed: Vec<&Value<'_>> = written.changes.iter().map(|change| &change.id).collect();
    assert_eq!(changed, [&Value::Int32(1)], "what failed has no image");
    mongo.played().await;
}

#[tokio::test]
async fn a_write_concern_is_passed_on_and_what_is_wrong_with_it_comes_back() {
    let unsatisfied = doc! { "code": 64, "errmsg": "waiting for replication timed out" };
    let concern = doc! { "w": 3, "wtimeout": 5 };
    let (mongo, upstream) = with_script([expect("insert")
        .with(doc! { "writeConcern": concern.clone() })
        .answer(doc! { "n": 1, "writeConcernError": unsatisfied })])
    .await;
    let sent = Sent { write_concern: Some(Doc::from(concern)), ..Sent::default() };
    let (mut session, context) = (Session::default(), Context { sent, ..context() });
    let backend: &dyn document::backend::Backend = &upstream;
    let written = backend.write(&mut session, &context, &insert(1), &document::op::Capture::Nothing).await.unwrap();
    assert_eq!(written.n, 1);
    assert_eq!(session.concern_error.unwrap().code(), Code::WriteConcernFailed);
    mongo.played().await;
}

#[tokio::test]
async fn an_image_after_an_update_is_computed_or_read() {
    let found = || doc! { "value": { "_id": 1, "n": 4 }, "lastErrorObject": { "n": 1, "updatedExisting": true } };
    let after = doc! { "cursor": { "id": 0_i64, "ns": "shop.orders", "firstBatch": [{ "_id": 1, "n": 40 }] } };
    let pipeline = bson::bson!([{ "$set": { "n": { "$multiply": ["$n", 10] } } }]);
    let update = |change: bson::Bson| testing::update(orders(), doc! { "_id": 1 }, change, &[]);
    for (op, read, n) in [
        (update(doc! { "$inc": { "n": 1 } }.into()), None, 5),
        (update(doc! { "n": 9 }.into()), None, 9),
        (update(pipeline), Some(expect("find").with(doc! { "filter": { "_id": { "$eq": 1 } } }).answer(after)), 40),
    ] {
        let (mongo, upstream) = with_script([expect("findAndModify").answer(found())]).await;
        mongo.script(read);
        mongo.script([expect("commitTransaction")]);
        let written = capture(&upstream, &mut Session::default(), op).await.unwrap();
        let after = written.changes[0].after.as_ref().unwrap();
        assert_eq!((written.n, written.modified, after), (1, 1, &Doc::from(doc! { "_id": 1, "n": n })));
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_failed_find_and_modify_speaks_of_the_update_that_the_client_sent() {
    let reply = doc! {
        "ok": 0, "code": 11000, "keyPattern": { "a": 1 }, "keyValue": { "a": 5 },
        "errmsg": "Plan executor error during findAndModify :: caused by :: E11000 duplicate key error",
    };
    for is_update in [true, false] {
        let (mongo, upstream) = with_script([expect("findAndModify").answer(reply.clone())]).await;
        mongo.script([expect("abortTransaction")]);
        let change = testing::change(doc! { "$inc": { "n": 1 } });
        let action = Modify::Update { update: change, upsert: false, return_new: false };
        let op = match is_update {
            true => increment(1),
            false => WriteOp::FindAndModify(Box::new(testing::find_and_modify(orders(), doc! { "_id": 1 }, action))),
        };
        let error = match capture(&upstream, &mut Session::default(), op).await {
            Ok(written) => written.errors.into_iter().next().unwrap().error,
            Err(error) => error,
        };
        assert_eq!(error.message().starts_with("E11000"), is_update, "{error:?}");
        assert_eq!(error.info(), Some(&Doc::from(doc! { "keyPattern": { "a": 1 }, "keyValue": { "a": 5 } })));
        mongo.played().await;
    }
}
