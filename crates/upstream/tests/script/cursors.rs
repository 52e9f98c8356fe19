//! Cursors: each stays with its connection and its transaction, and is closed in the server when it is dropped.

use crate::step::expect;
use crate::words::*;
use bson::doc;
use document::backend::{Backend, BatchLimit, Remote, Session};
use document::op::{AdminOp, Context, Count, ReadOp, Sent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test]
async fn two_cursors_get_more_over_the_connections_that_opened_them() {
    let (mongo, upstream) = with_script([
        expect("find").with(doc! { "batchSize": 1 }).answer(cursor(11, "firstBatch", &[1])),
        expect("find").answer(cursor(22, "firstBatch", &[5])),
        expect("getMore")
            .on("shop")
            .with(doc! { "getMore": 11_i64, "collection": "orders", "batchSize": 2 })
            .answer(cursor(11, "nextBatch", &[2, 3])),
        expect("getMore").with(doc! { "getMore": 22_i64 }).answer(cursor(0, "nextBatch", &[6])),
        expect("getMore").with(doc! { "getMore": 11_i64 }).answer(cursor(0, "nextBatch", &[])),
    ])
    .await;
    let mut session = Session::default();
    let mut first = upstream.read(&mut session, &context(), all_orders()).await.unwrap();
    let mut second = upstream.read(&mut session, &context(), all_orders()).await.unwrap();
    assert_eq!(ids(&next(&mut *first, 1).await.unwrap()), [1]);
    assert_eq!(ids(&next(&mut *second, 1).await.unwrap()), [5]);
    assert_eq!(ids(&next(&mut *first, 2).await.unwrap()), [2, 3]);
    let last = next(&mut *second, 1).await.unwrap();
    assert_eq!((ids(&last), last.exhausted), (vec![6], true));
    let last = next(&mut *first, 1).await.unwrap();
    assert_eq!((ids(&last), last.exhausted), (vec![], true));
    let received = mongo.played().await;
    let connections: Vec<usize> = received.iter().map(|received| received.connection).collect();
    assert_eq!([connections[0], connections[1]], [connections[2], connections[3]]);
    assert_eq!(connections[0], connections[4]);
    assert_ne!(connections[0], connections[1]);
}

#[tokio::test]
async fn a_dropped_cursor_is_killed_over_its_connection() {
    let (mongo, upstream) = with_script([
        expect("find").answer(cursor(11, "firstBatch", &[1])),
        expect("killCursors").on("shop").with(doc! { "killCursors": "orders", "cursors": [11_i64] }),
    ])
    .await;
    let mut rows = upstream.read(&mut Session::default(), &context(), all_orders()).await.unwrap();
    next(&mut *rows, 1).await.unwrap();
    drop(rows);
    let received = mongo.played().await;
    assert_eq!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn a_cursor_that_has_not_begun_or_has_ended_is_not_killed() {
    let (mongo, upstream) =
        with_script([expect("find").answer(cursor(0, "firstBatch", &[1])), expect("insert").answer(doc! { "n": 1 })])
            .await;
    let mut session = Session { relay: Some(upstream.connect()), ..Session::default() };
    let unread = upstream.read(&mut session, &context(), all_orders()).await.unwrap();
    assert_eq!(testing::rows(&upstream, &mut session, all_orders()).await.unwrap().len(), 1);
    drop(unread);
    // What is sent behind a dropped cursor has the line before the next command.
    tokio::task::yield_now().await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn an_error_of_get_more_is_passed_on_and_ends_the_cursor() {
    for (step, code, labels) in [
        (expect("getMore").fail(43, &[]), 43, vec![]),
        (expect("getMore").fail(11602, &[RETRYABLE]), 11602, vec![RETRYABLE]),
        (expect("getMore").cut(), 11602, vec![TRANSIENT, RETRYABLE]),
    ] {
        let (mongo, upstream) = with_script([expect("find").answer(cursor(11, "firstBatch", &[1])), step]).await;
        let mut rows = upstream.read(&mut Session::default(), &context(), all_orders()).await.unwrap();
        next(&mut *rows, 1).await.unwrap();
        let error = next(&mut *rows, 1).await.unwrap_err();
        assert_eq!(code_and_labels(&error), (code, labels));
        let after = next(&mut *rows, 1).await.unwrap();
        assert!(after.exhausted && after.documents.is_empty());
        mongo.played().await;
    }
}

#[tokio::test]
async fn rows_beyond_the_limits_wait_for_the_next_batch() {
    let (mongo, upstream) = with_script([expect("find").answer(cursor(0, "firstBatch", &[1, 2, 3, 4]))]).await;
    let mut rows = upstream.read(&mut Session::default(), &context(), all_orders()).await.unwrap();
    let (mut session, context) = (Session::default(), context());
    let mut batches = Vec::new();
    // A row of 14 bytes is given even where less is allowed.
    for limit in [(2, 1 << 20), (9, 20), (9, 1)] {
        let limit = BatchLimit { documents: limit.0, bytes: limit.1 };
        let batch = rows.next(&mut session, &context, limit).await.unwrap();
        batches.push((ids(&batch), batch.exhausted));
    }
    assert_eq!(batches, [(vec![1, 2], false), (vec![3], false), (vec![4], true)]);
    mongo.played().await;
}

#[tokio::test]
async fn in_a_transaction_every_batch_belongs_to_it_and_a_count_is_a_pipeline() {
    let own = || doc! { "txnNumber": 1, "autocommit": false };
    let counted = doc! { "cursor": { "id": 0_i64, "ns": "shop.orders", "firstBatch": [{ "n": 3 }] } };
    let (mongo, upstream) = with_script([
        expect("find").with(own()).answer(cursor(11, "firstBatch", &[1])),
        expect("getMore").with(own()).answer(cursor(0, "nextBatch", &[2])),
        expect("aggregate").with(own()).answer(counted),
        expect("commitTransaction"),
    ])
    .await;
    let mut session = begin(&upstream).await;
    let rows = testing::rows(&upstream, &mut session, all_orders()).await.unwrap();
    assert_eq!(rows.len(), 2);
    let count = Count { ns: orders(), filter: testing::filter(doc! {}), skip: 0, limit: None, hint: None };
    let rows = testing::rows(&upstream, &mut session, ReadOp::Count(count)).await.unwrap();
    assert_eq!(rows, [doc! { "n": 3 }]);
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn the_moment_of_a_snapshot_comes_back_to_the_client() {
    let mut found = cursor(0, "firstBatch", &[1]);
    let time = bson::Timestamp { time: 7, increment: 2 };
    found.get_document_mut("cursor").unwrap().insert("atClusterTime", time);
    found.insert("operationTime", time);
    let concern = doc! { "readConcern": { "level": "snapshot" } };
    let (mongo, upstream) = with_script([expect("find").with(concern).answer(found)]).await;
    let read_at = Arc::new(AtomicU64::new(0));
    let sent = Sent { read_at: Some(read_at.clone()), ..Sent::default() };
    let context = Context { sent, read_concern: document::op::ReadConcern::Snapshot, ..context() };
    let mut session = Session::default();
    let mut rows = upstream.read(&mut session, &context, all_orders()).await.unwrap();
    rows.next(&mut session, &context, BatchLimit { documents: 1, bytes: 1 }).await.unwrap();
    assert_eq!(read_at.load(Ordering::Relaxed), 7 << 32 | 2);
    assert_eq!(upstream.cluster_time(), 7 << 32 | 2);
    mongo.played().await;
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let list = |id: i64, batch: &str, name: &str| {
        doc! { "cursor": { "id": id, "ns": "shop.$cmd.listCollections", batch: [{ "name": name }] } }
    };
    let (mongo, upstream) = with_script([
        expect("listCollections").on("shop").answer(list(11, "firstBatch", "a")),
        expect("getMore").with(doc! { "getMore": 11_i64, "collection": "$cmd.listCollections" }).answer(list(
            0,
            "nextBatch",
            "b",
        )),
    ])
    .await;
    let filter = testing::filter(doc! {});
    let op = AdminOp::ListCollections { db: "shop".into(), filter, name_only: true };
    assert_eq!(upstream.admin(&mut Session::default(), &context(), op).await.unwrap().len(), 2);
    mongo.played().await;
}
