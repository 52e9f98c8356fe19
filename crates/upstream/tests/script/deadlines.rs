//! A client's `maxTimeMS` holds over everything that is done for it, and what hangs is not waited for by others.

use crate::step::expect;
use crate::words::*;
use bson::doc;
use document::Code;
use document::backend::{Backend, BatchLimit, Flight, Remote, Session};
use document::op::{AdminOp, Capture};
use std::sync::Arc;
use tokio::sync::Notify;

/// Far more than a step that is answered takes.
const SHORT: u64 = 600;

#[tokio::test]
async fn every_operation_ends_when_the_time_is_over() {
    let hanging = async |name: &'static str| {
        let (mongo, upstream) = with_script([expect(name).hang()]).await;
        (mongo, upstream, within(SHORT / 10))
    };
    let mut errors = Vec::new();
    {
        let (_mongo, upstream, context) = hanging("find").await;
        let mut session = Session::default();
        let mut rows = upstream.read(&mut session, &context, all_orders()).await.unwrap();
        errors.extend(rows.next(&mut session, &context, BatchLimit { documents: 1, bytes: 1 }).await.err());
    }
    {
        let (_mongo, upstream, context) = hanging("insert").await;
        errors.extend(upstream.write(&mut Session::default(), &context, &insert(1), &Capture::Nothing).await.err());
    }
    {
        let (_mongo, upstream, context) = hanging("findAndModify").await;
        errors
            .extend(upstream.write(&mut Session::default(), &context, &increment(1), &Capture::Everything).await.err());
    }
    {
        let (_mongo, upstream, context) = hanging("insert").await;
        let mut session = begin(&upstream).await;
        errors.extend(upstream.write(&mut session, &context, &insert(1), &Capture::Nothing).await.err());
    }
    {
        let (_mongo, upstream, context) = hanging("drop").await;
        let op = AdminOp::Drop { ns: orders() };
        errors.extend(upstream.admin(&mut Session::default(), &context, op).await.err());
    }
    assert_eq!(errors.len(), 5);
    for error in errors {
        assert_eq!((error.code(), error.message()), (Code::MaxTimeMSExpired, "operation exceeded time limit"));
        assert!(error.labels().is_empty(), "{error:?}");
    }
}

#[tokio::test]
async fn the_time_is_one_for_all_batches_of_a_cursor() {
    let (mongo, upstream) = with_script([
        expect("find").answer(cursor(11, "firstBatch", &[1])),
        expect("getMore").hang(),
        // Nobody will ask for more.
        expect("killCursors").with(doc! { "cursors": [11_i64] }),
    ])
    .await;
    let (mut session, context) = (Session::default(), within(SHORT));
    let limit = BatchLimit { documents: 1, bytes: 1 };
    let mut rows = upstream.read(&mut session, &context, all_orders()).await.unwrap();
    rows.next(&mut session, &context, limit).await.unwrap();
    let error = rows.next(&mut session, &context, limit).await.unwrap_err();
    assert_eq!(error.code(), Code::MaxTimeMSExpired);
    mongo.played().await;
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_not_taken_for_that_of_the_next_command() {
    let late = Arc::new(Notify::new());
    let (mongo, upstream) = with_script([
        expect("insert").with(doc! { "documents": [{ "_id": 1 }] }).answer(doc! { "n": 77 }).after(&late),
        expect("insert").with(doc! { "documents": [{ "_id": 2 }] }).answer(doc! { "n": 1 }),
    ])
    .await;
    let mut session = Session { relay: Some(upstream.connect()), ..Session::default() };
    upstream.write(&mut session, &within(SHORT), &insert(1), &Capture::Nothing).await.unwrap_err();
    late.notify_one();
    let written = write(&upstream, &mut session, insert(2)).await.unwrap();
    assert_eq!(written.n, 1);
    let received = mongo.played().await;
    assert_ne!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn a_statement_that_hangs_in_a_bundle_ends_in_an_unknown_outcome() {
    let (mongo, upstream) = with_script([expect("insert").hang()]).await;
    let mut session = begin(&upstream).await;
    let flight = Flight { legs: vec![leg(insert(1))], ..Default::default() };
    let landed = upstream.pipelining().unwrap().fly(&mut session, &within(SHORT), flight, None).await;
    assert_eq!(code_and_labels(&landed.unwrap_err()), (11602, vec![RETRYABLE, UNKNOWN]));
    assert_eq!(mongo.played().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_accepts_connections_and_never_greets_is_refused_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let uri = format!("mongodb://{address}/?connectTimeoutMS=150&serverSelectionTimeoutMS=500");
    let reason = "it accepts connections but does not answer";
    let error = refusal(&uri, reason).await;
    assert!(error.message().contains(reason), "{error:?}");
}
