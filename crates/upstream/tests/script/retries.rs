//! Retryable writes: looked up and recorded in their own transaction, answered from the record when they come again.

use crate::step::{Step, bundle, expect};
use crate::words::*;
use bson::{Bson, Document, doc, spec::BinarySubtype};
use document::backend::{Backend, Remote, Session};

/// A client's retryable write.
fn retryable() -> Session {
    Session { id: Some(CLIENT), retry: Some(5), ..Session::default() }
}

fn binary(subtype: BinarySubtype, bytes: &[u8]) -> Bson {
    Bson::Binary(bson::Binary { subtype, bytes: bytes.to_vec() })
}

fn look_up() -> Step {
    let id = doc! { "l": binary(BinarySubtype::Uuid, &CLIENT), "t": 5_i64 };
    let filter = doc! { "_id": { "$gte": id.clone(), "$lte": id } };
    expect("find").on("shop").with(doc! { "find": "pleach.retries", "filter": filter })
}

fn found(records: Vec<Document>) -> Document {
    doc! { "cursor": { "id": 0_i64, "ns": "shop.pleach.retries", "firstBatch": records } }
}

fn save(record: Document) -> Step {
    expect("insert").on("shop").with(doc! { "insert": "pleach.retries", "documents": [record] }).answer(doc! { "n": 1 })
}

/// Two inserts of one command.
fn two_inserts() -> document::op::WriteOp {
    testing::insert(orders(), vec![doc! { "_id": 1 }, doc! { "_id": 2 }])
}

#[tokio::test]
async fn a_first_attempt_sends_look_up_and_write_together_and_saves_the_record_with_the_commit() {
    let (mongo, upstream) = with_script(bundle([
        look_up().with(doc! { "startTransaction": true }).answer(found(vec![])),
        expect("insert").with(doc! { "insert": "orders" }).answer(doc! { "n": 2 }),
    ]))
    .await;
    let mut session = begin_in(&upstream, retryable()).await;
    let written = write(&upstream, &mut session, two_inserts()).await.unwrap();
    assert_eq!((written.n, written.retried.len()), (2, 0));
    mongo.played().await;
    let id = doc! { "l": binary(BinarySubtype::Uuid, &CLIENT), "t": 5_i64, "s": 0 };
    let record =
        doc! { "_id": id, "ids": [0, 1], "n": 2, "m": 0, "at": bson::DateTime::from_millis(1_700_000_000_000) };
    mongo.script(bundle([save(record), expect("commitTransaction")]));
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_write_that_comes_again_is_answered_from_its_record() {
    let records = || found(vec![doc! { "ids": [0, 1], "n": 2_i64, "m": 0_i64 }]);
    let (mongo, upstream) = with_script([
        look_up().with(doc! { "txnNumber": 1, "startTransaction": true }).answer(records()),
        expect("insert").with(doc! { "insert": "orders" }).fail_statement(0, 11000),
        // The transaction in which it was sent once more is given up, and nothing is sent in the next.
        look_up().with(doc! { "txnNumber": 2, "startTransaction": true }).answer(records()),
        expect("commitTransaction").with(doc! { "txnNumber": 2 }),
    ])
    .await;
    let mut session = begin_in(&upstream, retryable()).await;
    let written = write(&upstream, &mut session, two_inserts()).await.unwrap();
    assert_eq!((written.n, written.retried, written.errors.len()), (2, vec![0, 1], 0));
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn statements_that_were_not_recorded_are_sent_when_a_write_comes_again() {
    let records = || found(vec![doc! { "ids": [0], "n": 1_i64, "m": 0_i64 }]);
    let (mongo, upstream) = with_script([
        look_up().answer(records()),
        expect("insert").with(doc! { "insert": "orders" }).fail_statement(0, 11000),
        look_up().answer(records()),
        expect("insert").with(doc! { "documents": [{ "_id": 2 }] }).answer(doc! { "n": 1 }),
        save(doc! { "_id": { "s": 1 }, "ids": [1], "n": 1 }),
        expect("commitTransaction"),
    ])
    .await;
    let mut session = begin_in(&upstream, retryable()).await;
    let written = write(&upstream, &mut session, two_inserts()).await.unwrap();
    assert_eq!((written.n, written.retried), (2, vec![0]));
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_record_met_in_a_transaction_that_did_more_gives_it_back_to_its_planner() {
    let (mongo, upstream) = with_script([expect("insert")]).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert("first")).await.unwrap();
    mongo.script([
        look_up().answer(found(vec![doc! { "ids": [0], "n": 1_i64 }])),
        expect("insert").fail_statement(0, 11000),
        expect("abortTransaction"),
    ]);
    (session.id, session.retry) = (Some(CLIENT), Some(5));
    let error = write(&upstream, &mut session, insert(1)).await.unwrap_err();
    assert_eq!((code_and_labels(&error), error.message()), ((112, vec![TRANSIENT]), "the write was done before"));
    drop(session);
    mongo.played().await;
}

#[tokio::test]
async fn a_write_that_shows_its_images_is_looked_up_with_its_first_command() {
    let records = || found(vec![doc! { "ids": [0], "n": 1_i64, "m": 1_i64 }]);
    let (mongo, upstream) = with_script(bundle([
        look_up().answer(records()),
        expect("findAndModify").answer(doc! { "value": { "_id": 1, "n": 4 }, "lastErrorObject": { "n": 1 } }),
    ]))
    .await;
    mongo.script([look_up().with(doc! { "txnNumber": 2 }).answer(records()), expect("abortTransaction")]);
    let mut session = begin_in(&upstream, retryable()).await;
    let written = capture(&upstream, &mut session, increment(1)).await.unwrap();
    assert_eq!((written.n, written.modified, written.retried, written.changes.len()), (1, 1, vec![0], 0));
    drop(session);
    mongo.played().await;
}

#[tokio::test]
async fn records_belong_to_the_user_who_sent_the_write() {
    let user = doc! { "authInfo": { "authenticatedUsers": [{ "user": "ada", "db": "shop" }] } };
    let digest = sha256("ada@shop");
    let id =
        doc! { "l": binary(BinarySubtype::Uuid, &CLIENT), "u": binary(BinarySubtype::Generic, &digest), "t": 5_i64 };
    let (mongo, upstream) = with_script([
        expect("connectionStatus").answer(user),
        expect("find").with(doc! { "filter": { "_id": { "$gte": id.clone() } } }).answer(found(vec![])),
        expect("insert").answer(doc! { "n": 1 }),
        save(doc! { "_id": id }),
        expect("commitTransaction"),
    ])
    .await;
    let relay = upstream.connect();
    relay.authenticating();
    relay.identify().await.unwrap();
    let mut session = begin_in(&upstream, Session { relay: Some(relay), ..retryable() }).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

fn sha256(text: &str) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).to_vec()
}

#[tokio::test]
async fn a_plan_may_recall_and_remember_for_itself() {
    let (mongo, upstream) = with_script([look_up().answer(found(vec![doc! { "ids": [1], "n": 1_i64 }]))]).await;
    let mut session = begin_in(&upstream, retryable()).await;
    let before = upstream.recall(&mut session, &context(), "shop", &[0, 1]).await.unwrap();
    assert_eq!((before.n, before.retried), (1, vec![1]));
    // What is remembered of the same statements last is what is saved.
    for n in [1, 3] {
        let written = document::op::Written { n, ..Default::default() };
        upstream.remember(&mut session, &context(), "shop", &[0], &written).await.unwrap();
    }
    mongo.script(bundle([save(doc! { "ids": [0], "n": 3 }), expect("commitTransaction")]));
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn outside_a_transaction_the_server_keeps_the_record_itself() {
    let numbered = doc! { "lsid": { "id": binary(BinarySubtype::Uuid, &CLIENT) }, "txnNumber": 5, "stmtIds": [0, 1] };
    let (mongo, upstream) = with_script([expect("insert")
        .with(numbered)
        .without(&["autocommit"])
        .answer(doc! { "n": 2, "retriedStmtIds": [0, 1] })])
    .await;
    let written = write(&upstream, &mut retryable(), two_inserts()).await.unwrap();
    assert_eq!((written.n, written.retried), (2, vec![0, 1]));
    mongo.played().await;
}
