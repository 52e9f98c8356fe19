//! Transactions that end otherwise than by a commit: a connection that dies, a plan that is dropped, a client's own.

use crate::step::{Step, expect};
use crate::words::*;
use bson::{Bson, doc, spec::BinarySubtype};
use document::Doc;
use document::backend::{Backend, Remote, Session};
use document::op::{Context, Sent};

fn of_client(number: i64) -> bson::Document {
    let id = Bson::Binary(bson::Binary { subtype: BinarySubtype::Uuid, bytes: CLIENT.to_vec() });
    doc! { "lsid": { "id": id }, "txnNumber": number, "autocommit": false }
}

#[tokio::test]
async fn a_connection_that_dies_between_two_statements_ends_the_clients_transaction() {
    for answered in [expect("insert").and_cut(), expect("insert").answer(doc! { "n": 1 }).and_cut()] {
        let (mongo, upstream) = with_script([answered.with(of_client(3))]).await;
        let client = joined(&upstream, 3, true);
        let mut session = begin_in(&upstream, client).await;
        write(&upstream, &mut session, insert(1)).await.unwrap();
        let error = write(&upstream, &mut session, insert(2)).await.unwrap_err();
        assert_eq!(code_and_labels(&error), (11602, vec![TRANSIENT, RETRYABLE]));
        let lost = format!("the connection to {} was lost while the command ran: ", mongo.address);
        assert!(error.message().starts_with(&lost), "{error:?}");
        assert_eq!(mongo.played().await.len(), 1);
    }
}

#[tokio::test]
async fn a_connection_that_dies_under_a_statement_is_not_tried_again() {
    let (mongo, upstream) = with_script([expect("insert").cut()]).await;
    let mut session = begin(&upstream).await;
    let error = write(&upstream, &mut session, insert(1)).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![TRANSIENT, RETRYABLE]));
    // What the server may have begun is ended.
    until(|| upstream.primary().is_some()).await;
    mongo.script([expect("abortTransaction").with(doc! { "txnNumber": 1 }).fail(251, &[TRANSIENT])]);
    drop(session);
    mongo.played().await;
}

#[tokio::test]
async fn a_clients_transaction_is_joined_under_its_number_and_its_read_concern() {
    let concern = doc! { "level": "majority" };
    let first = expect("insert").with(of_client(3));
    let (mongo, upstream) = with_script([
        first.with(doc! { "startTransaction": true, "readConcern": concern.clone() }),
        expect("insert").with(of_client(3)).without(&["startTransaction", "readConcern"]),
    ])
    .await;
    let mut client = joined(&upstream, 3, true);
    let sent = Sent { read_concern: Some(Doc::from(concern)), ..Sent::default() };
    upstream.begin(&mut client, &Context { sent, ..context() }).await.unwrap();
    write(&upstream, &mut client, insert(1)).await.unwrap();
    let next = Session { relay: client.relay.clone(), ..joined(&upstream, 3, false) };
    drop(client);
    let mut next = begin_in(&upstream, next).await;
    write(&upstream, &mut next, insert(2)).await.unwrap();
    let received = mongo.played().await;
    assert_eq!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn the_clients_transaction_is_left_alone_when_dropped_and_ended_when_aborted() {
    let (mongo, upstream) = with_script([expect("insert"), expect("insert")]).await;
    let client = joined(&upstream, 3, true);
    let relay = client.relay.clone();
    let mut session = begin_in(&upstream, client).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    drop(session);
    // An abort would have the line before the next statement, and the script would refuse it.
    tokio::task::yield_now().await;
    let mut session = begin_in(&upstream, Session { relay, ..joined(&upstream, 3, false) }).await;
    write(&upstream, &mut session, insert(2)).await.unwrap();
    mongo.script([expect("abortTransaction").with(of_client(3))]);
    session.transaction.take().unwrap().abort();
    mongo.played().await;
}

#[tokio::test]
async fn a_dropped_transaction_is_aborted_and_the_next_has_another_number() {
    let (mongo, upstream) = with_script([
        expect("insert").with(doc! { "txnNumber": 1, "startTransaction": true }),
        expect("abortTransaction").on("admin").with(doc! { "txnNumber": 1, "autocommit": false }),
    ])
    .await;
    let relay = upstream.connect();
    let on_line = || Session { relay: Some(relay.clone()), ..Session::default() };
    let mut session = begin_in(&upstream, on_line()).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    drop(session);
    mongo.played().await;
    mongo.script([
        expect("insert").with(doc! { "txnNumber": 2, "startTransaction": true }),
        expect("commitTransaction"),
    ]);
    let mut session = begin_in(&upstream, on_line()).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    commit(&mut session).await.unwrap();
    let received = mongo.played().await;
    assert_eq!(received[0].command.get("lsid"), received[2].command.get("lsid"));
}

/// A write that shows its images outside a transaction has one of its own.
fn image(number: i64) -> Step {
    expect("findAndModify").with(doc! { "txnNumber": number, "startTransaction": true })
}

#[tokio::test]
async fn a_write_with_images_is_tried_again_after_a_conflict() {
    let found = || doc! { "value": { "_id": 1, "n": 4 }, "lastErrorObject": { "n": 1, "updatedExisting": true } };
    let conflict = |name| expect(name).with(doc! { "txnNumber": 1 }).fail(112, &[TRANSIENT]);
    for first_attempt in [
        [conflict("findAndModify"), expect("abortTransaction")],
        [image(1).answer(found()), conflict("commitTransaction")],
    ] {
        let (mongo, upstream) = with_script(first_attempt).await;
        mongo.script([image(2).answer(found()), expect("commitTransaction")]);
        let mut session = Session { relay: Some(upstream.connect()), ..Session::default() };
        let written = capture(&upstream, &mut session, increment(1)).await.unwrap();
        let change = &written.changes[0];
        assert_eq!(change.before, Some(Doc::from(doc! { "_id": 1, "n": 4 })));
        assert_eq!(change.after, Some(Doc::from(doc! { "_id": 1, "n": 5 })));
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_write_with_images_is_not_tried_again_when_its_commit_may_have_been_done() {
    let found = doc! { "value": { "_id": 1, "n": 4 }, "lastErrorObject": { "n": 1, "updatedExisting": true } };
    let (mongo, upstream) = with_script([image(1).answer(found), expect("commitTransaction").cut()]).await;
    // Only the client could ask on a new connection, so the outcome is unknown at once.
    let relay = upstream.connect();
    relay.authenticating();
    let mut session = Session { relay: Some(relay), ..Session::default() };
    let error = capture(&upstream, &mut session, increment(1)).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![RETRYABLE, UNKNOWN]));
    assert_eq!(mongo.played().await.len(), 2);
}
