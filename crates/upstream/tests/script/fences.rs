//! Fences as commands: a shared one is a slot counted up last, an exclusive one is an update of the whole row first.

use crate::mongo::Received;
use crate::step::{Step, bundle, expect};
use crate::words::*;
use bson::{Bson, doc, oid::ObjectId};
use document::backend::{Backend, FenceKey, FenceVersion, Landed, Mode, Remote, Session};
use std::ops::Range;

const SLOTS: i32 = 32;

/// An exclusive pass of one row.
fn pass_row() -> Step {
    expect("update")
        .with(doc! { "update": "pleach.fences", "updates": [{ "multi": true, "u": { "$inc": { "n": 1 } } }] })
}

fn pass_slot() -> Step {
    expect("update")
        .with(doc! { "update": "pleach.fences", "updates": [{ "multi": false, "u": { "$inc": { "n": 1 } } }] })
}

/// The slots that an exclusive pass updates, and the version that it leaves.
fn row(received: &Received) -> (Range<i32>, ObjectId) {
    let statement = received.command.get_array("updates").unwrap()[0].as_document().unwrap();
    let id = statement.get_document("q").unwrap().get_document("_id").unwrap();
    let version = statement.get_document("u").unwrap().get_document("$set").unwrap().get_object_id("v").unwrap();
    (id.get_i32("$gte").unwrap()..id.get_i32("$lt").unwrap(), version)
}

fn slot(received: &Received) -> i32 {
    let statement = received.command.get_array("updates").unwrap()[0].as_document().unwrap();
    statement.get_document("q").unwrap().get_i32("_id").unwrap()
}

#[tokio::test]
async fn a_shared_pass_waits_for_the_commit_and_an_exclusive_one_goes_ahead() {
    let (mongo, upstream) = with_fences([expect("find").answer(cursor(0, "firstBatch", &[]))]).await;
    let mut session = begin(&upstream).await;
    fence(&upstream, &mut session, "shared", Mode::Shared).await.unwrap();
    let mut rows = upstream.read(&mut session, &context(), all_orders()).await.unwrap();
    rows.next(&mut session, &context(), document::backend::BatchLimit { documents: 1, bytes: 1 }).await.unwrap();
    fence(&upstream, &mut session, "exclusive", Mode::Exclusive).await.unwrap();
    assert_eq!(mongo.played().await.len(), 3, "neither pass is sent by itself");
    mongo.script(bundle([pass_row().answer(doc! { "n": SLOTS }), expect("insert").answer(doc! { "n": 1 })]));
    write(&upstream, &mut session, insert(1)).await.unwrap();
    mongo.script(bundle([pass_slot().answer(doc! { "n": 1 }), expect("commitTransaction")]));
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn both_modes_of_a_key_meet_on_a_slot_and_every_exclusive_pass_leaves_another_version() {
    let (mongo, upstream) = with_fences([]).await;
    let mut passes = Vec::new();
    for mode in [Mode::Exclusive, Mode::Exclusive, Mode::Shared] {
        mongo.script(match mode {
            Mode::Exclusive => vec![pass_row().answer(doc! { "n": SLOTS }), expect("commitTransaction")],
            Mode::Shared => vec![pass_slot().answer(doc! { "n": 1 }), expect("commitTransaction")],
        });
        let mut session = begin(&upstream).await;
        fence(&upstream, &mut session, "a key", mode).await.unwrap();
        commit(&mut session).await.unwrap();
        passes.push(mongo.played().await.into_iter().rev().nth(1).unwrap());
    }
    let ((first, first_version), (second, second_version)) = (row(&passes[0]), row(&passes[1]));
    assert_eq!((first.clone(), first.len()), (second, 32));
    assert_ne!(first_version, second_version);
    assert!(first.contains(&slot(&passes[2])));
}

#[tokio::test]
async fn a_first_exclusive_pass_is_answered_before_anything_is_read() {
    let first = doc! { "startTransaction": true, "readConcern": { "level": "snapshot" } };
    let (mongo, upstream) = with_fences([pass_row().with(first).fail(112, &[TRANSIENT])]).await;
    let mut session = begin(&upstream).await;
    let error = fence(&upstream, &mut session, "a key", Mode::Exclusive).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (112, vec![TRANSIENT]));
    mongo.played().await;
    mongo.script([expect("abortTransaction")]);
    drop(session);
    mongo.played().await;
}

#[tokio::test]
async fn many_fences_of_a_database_are_one_command() {
    // So many that every row has one.
    let keys: Vec<(FenceKey, Mode)> =
        (0_i32..10_000).map(|n| (FenceKey::new("shop", n.to_be_bytes()), Mode::Exclusive)).collect();
    let (mongo, upstream) =
        with_fences([expect("update").answer(doc! { "n": 256 * SLOTS }), expect("commitTransaction")]).await;
    let mut session = begin(&upstream).await;
    upstream.fences(&mut session, &keys).await.unwrap();
    commit(&mut session).await.unwrap();
    let received = mongo.played().await;
    assert_eq!(received[2].command.get_array("updates").unwrap().len(), 256);
}

/// How a slot that is not there shows: by the count of an exclusive pass, by an error of a shared one.
#[tokio::test]
async fn fences_that_went_with_their_database_are_made_again_by_the_next_attempt() {
    for (mode, script) in [
        (Mode::Exclusive, vec![pass_row().answer(doc! { "n": 0 })]),
        (Mode::Shared, vec![pass_slot().fail_statement(0, 66), expect("commitTransaction").fail(251, &[TRANSIENT])]),
    ] {
        let aborts = mode == Mode::Exclusive;
        let (mongo, upstream) = with_fences(script).await;
        let mut session = begin(&upstream).await;
        let error = match fence(&upstream, &mut session, "a key", mode).await {
            Ok(()) => commit(&mut session).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(code_and_labels(&error), (112, vec![TRANSIENT]));
        assert_eq!(error.message(), "the fences of this database have just been made");
        if aborts {
            mongo.script([expect("abortTransaction")]);
        }
        drop(session);
        mongo.played().await;
        let made =
            expect("insert").with(doc! { "insert": "pleach.fences", "ordered": false }).answer(doc! { "n": 8192 });
        mongo.script([expect("count").answer(doc! { "n": 0 }), made, expect("createIndexes")]);
        let mut session = begin(&upstream).await;
        fence(&upstream, &mut session, "a key", Mode::Shared).await.unwrap();
        let received = mongo.played().await;
        let slots = received[received.len() - 2].command.get_array("documents").unwrap();
        assert_eq!((slots.len(), &slots[8191]), (8192, &Bson::from(doc! { "_id": 8191, "n": 0_i64 })));
    }
}

#[tokio::test]
async fn another_process_may_make_the_fences_at_the_same_time() {
    let count = || expect("count").answer(doc! { "n": 8191 });
    let made = || expect("insert").with(doc! { "insert": "pleach.fences" });
    let index = || expect("createIndexes").with(doc! { "createIndexes": "pleach.retries" });
    for (script, outcome) in [
        (vec![count(), made().fail_statement(0, 11000), index()], Ok(())),
        (vec![count(), made().fail_statement(0, 121)], Err(121)),
        (vec![count(), made().fail(13, &[])], Err(13)),
        (vec![count(), made(), index().fail(85, &[])], Ok(())),
        (vec![count(), made(), index().fail(68, &[])], Ok(())),
        (vec![count(), made(), index().fail(13, &[])], Err(13)),
    ] {
        let (mongo, upstream) = with_script(script).await;
        let prepared = upstream.prepare(&mut Session::default(), "shop").await;
        assert_eq!(prepared.map_err(|error| error.code().number()), outcome);
        mongo.played().await;
        // What failed is tried again, and what is done is done.
        if outcome.is_err() {
            mongo.script(preparing());
        }
        upstream.prepare(&mut Session::default(), "shop").await.unwrap();
        mongo.played().await;
    }
}

#[tokio::test]
async fn fences_are_not_made_behind_an_open_transaction_that_they_would_wait_for() {
    let begun = expect("insert").with(doc! { "startTransaction": true, "txnNumber": 1 });
    let (mongo, upstream) = with_script([begun, expect("abortTransaction").with(doc! { "txnNumber": 1 })]).await;
    mongo.script(preparing());
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let error = fence(&upstream, &mut session, "a key", Mode::Shared).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (112, vec![TRANSIENT]));
    mongo.played().await;
    mongo.script([
        expect("insert").with(doc! { "startTransaction": true, "txnNumber": 2 }),
        expect("commitTransaction"),
    ]);
    write(&upstream, &mut session, insert(1)).await.unwrap();
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn in_a_clients_transaction_every_pass_is_answered_at_once() {
    let joined_as = |number: i64| doc! { "lsid": { "id": uuid(CLIENT) }, "txnNumber": number, "autocommit": false };
    for (mode, pass, slots) in [(Mode::Shared, pass_slot(), 1), (Mode::Exclusive, pass_row(), SLOTS)] {
        let pass = pass.with(joined_as(9)).without(&["startTransaction"]).answer(doc! { "n": slots });
        let (mongo, upstream) = with_fences([pass]).await;
        let client = joined(&upstream, 9, false);
        let mut session = begin_in(&upstream, client).await;
        fence(&upstream, &mut session, "a key", mode).await.unwrap();
        drop(session);
        mongo.played().await;
    }
}

fn uuid(id: [u8; 16]) -> Bson {
    Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: id.to_vec() })
}

#[tokio::test]
async fn a_version_is_read_with_the_transaction_and_is_the_condition_of_a_later_pass() {
    let (key, version) = (FenceKey::new("shop", "a key"), ObjectId::from_bytes([3; 12]));
    let rows =
        |rows: Vec<bson::Document>| doc! { "cursor": { "id": 0_i64, "ns": "shop.pleach.fences", "firstBatch": rows } };
    let read = expect("find").with(doc! { "find": "pleach.fences", "startTransaction": true, "singleBatch": true });
    let (mongo, upstream) = with_fences([read.answer(rows(vec![]))]).await;
    let flights = upstream.pipelining().unwrap();
    let mut session = begin(&upstream).await;
    let versions = flights.versions(&mut session, &context(), std::slice::from_ref(&key)).await.unwrap();
    assert_eq!(versions, [None]);
    let slots = mongo.played().await[2].command.get_document("filter").unwrap().get_document("_id").unwrap().clone();
    let slot = slots.get_array("$in").unwrap()[0].as_i32().unwrap();
    mongo.script([expect("find").answer(rows(vec![doc! { "_id": slot, "n": 4_i64, "v": version }]))]);
    let versions = flights.versions(&mut session, &context(), std::slice::from_ref(&key)).await.unwrap();
    assert_eq!(versions, [Some(FenceVersion([3; 12]))]);
    mongo.script([expect("abortTransaction")]);
    drop(session);
    mongo.played().await;

    let condition =
        doc! { "u": [{ "$set": { "n": { "$cond": [{ "$eq": ["$v", version] }, {}, {}] } } }], "upsert": true };
    mongo.script(bundle([
        expect("insert").answer(doc! { "n": 1 }),
        expect("update").with(doc! { "updates": [condition] }).answer(doc! { "n": 1 }),
        expect("commitTransaction"),
    ]));
    let mut session = begin(&upstream).await;
    flights.fence_at(&mut session, &key, FenceVersion([3; 12])).await.unwrap();
    let landed = send(&upstream, &mut session, vec![leg(insert(1))], vec![]).await;
    assert!(matches!(landed, Ok(Landed::Done(_))), "{landed:?}");
    mongo.played().await;
}
