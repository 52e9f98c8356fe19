//! A plan in one go: what is sent, what a failure in the middle means, and what is done when its answers are lost.

use crate::step::{Step, bundle, expect};
use crate::words::*;
use bson::{Bson, doc};
use document::Doc;
use document::backend::{Backend, Flight, Landed, Leg, Mode, Pipelining};
use document::op::{Context, Sent};
use std::sync::Arc;
use tokio::sync::Notify;

/// What a server says to every command of a transaction that has ended.
fn over(name: &'static str) -> Step {
    expect(name).fail(251, &[TRANSIENT])
}

#[tokio::test]
async fn statements_fences_records_and_commit_are_sent_before_the_first_answer() {
    let slot =
        doc! { "multi": false, "upsert": true, "u": { "$inc": { "n": 1 }, "$setOnInsert": { "_id": Bson::MinKey } } };
    let first = doc! { "insert": "orders", "startTransaction": true, "readConcern": { "level": "snapshot" } };
    let (mongo, upstream) = with_fences(bundle([
        expect("insert").with(first).answer(doc! { "n": 1 }),
        expect("update").with(doc! { "update": "orders" }).answer(doc! { "n": 1, "nModified": 1 }),
        expect("update").with(doc! { "update": "pleach.fences", "updates": [slot] }).answer(doc! { "n": 1 }),
        expect("insert").with(doc! { "insert": "pleach.retries" }).answer(doc! { "n": 1 }),
        expect("commitTransaction").on("admin"),
    ]))
    .await;
    let mut session = begin(&upstream).await;
    fence(&upstream, &mut session, "a key", Mode::Shared).await.unwrap();
    let landed = send(&upstream, &mut session, vec![leg(insert(1)), leg(increment(2))], vec![claim(5)]).await.unwrap();
    let Landed::Done(written) = landed else { panic!("{landed:?}") };
    assert_eq!(written.iter().map(|leg| (leg.n, leg.modified)).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    assert!(session.transaction.is_none());
    let received = mongo.played().await.split_off(2);
    for command in received.iter().skip(1).map(|received| &received.command) {
        assert_eq!(command.get("lsid"), received[0].command.get("lsid"));
        assert_eq!(command.get("txnNumber"), received[0].command.get("txnNumber"));
        assert_eq!(command.get("autocommit"), Some(&Bson::Boolean(false)));
        assert!(!command.contains_key("startTransaction") && !command.contains_key("readConcern"), "{command}");
    }
}

#[tokio::test]
async fn the_first_failure_is_reported_and_nothing_is_asked_again() {
    let statement = || expect("insert").answer(doc! { "n": 1 });
    let update = || expect("update").answer(doc! { "n": 1 });
    let record = || expect("insert").with(doc! { "insert": "pleach.retries" });
    let none = |name| over(name);
    for (script, outcome) in [
        (
            [statement().fail(11000, &[]), none("update"), none("update"), none("insert")],
            "Ok(Failed { leg: 0, index: 0, error: 11000 })",
        ),
        (
            [statement().fail_statement(0, 11000), none("update"), none("update"), none("insert")],
            "Ok(Failed { leg: 0, index: 0, error: 11000 })",
        ),
        (
            [statement(), update().fail_statement(0, 66), none("update"), none("insert")],
            "Ok(Unmatched { leg: 1, index: 0, error: 66 })",
        ),
        ([statement(), update(), update().fail_statement(0, 241), none("insert")], "Ok(Outdated)"),
        (
            [statement(), update(), update().fail_statement(0, 66), none("insert")],
            "Err(112 [\"TransientTransactionError\"])",
        ),
        ([statement(), update(), update().fail_statement(0, 13), none("insert")], "Err(13 [])"),
        ([statement(), update(), update(), record().fail_statement(0, 11000)], "Ok(Claimed { claim: 0 })"),
        ([statement(), update(), update(), record().fail_statement(1, 11000)], "Ok(Claimed { claim: 1 })"),
        (
            [statement().fail(112, &[TRANSIENT]), none("update"), none("update"), none("insert")],
            "Err(112 [\"TransientTransactionError\"])",
        ),
        (
            [statement(), update().fail(112, &[TRANSIENT]), none("update"), none("insert")],
            "Err(112 [\"TransientTransactionError\"])",
        ),
        (
            [statement(), update(), update().fail(112, &[TRANSIENT]), none("insert")],
            "Err(112 [\"TransientTransactionError\"])",
        ),
        ([statement().fail(13, &[]), none("update"), none("update"), none("insert")], "Err(13 [])"),
    ] {
        let [first, second, third, fourth] = script;
        let (mongo, upstream) = with_fences(bundle([first, second, third, fourth, over("commitTransaction")])).await;
        let mut session = begin(&upstream).await;
        fence(&upstream, &mut session, "a key", Mode::Shared).await.unwrap();
        let legs = vec![leg(insert(1)), Leg { op: increment(2), must_match: true }];
        let landed = match send(&upstream, &mut session, legs, vec![claim(5), claim(6)]).await {
            Ok(Landed::Failed { leg, index, error }) => {
                format!("Ok(Failed {{ leg: {leg}, index: {index}, error: {} }})", error.code().number())
            }
            Ok(Landed::Unmatched { leg, index, error }) => {
                format!("Ok(Unmatched {{ leg: {leg}, index: {index}, error: {} }})", error.code().number())
            }
            Ok(landed) => format!("Ok({landed:?})"),
            Err(error) => format!("Err({} {:?})", error.code().number(), error.labels()),
        };
        assert_eq!(landed, outcome);
        assert!(session.transaction.is_none());
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_statement_that_must_find_a_document_is_an_upsert_that_cannot_be() {
    let by_operator = doc! {
        "q": { "_id": 2 }, "upsert": true, "u": { "$inc": { "n": 1 }, "$setOnInsert": { "_id": Bson::MinKey } },
    };
    let by_pipeline =
        doc! { "q": { "_id": { "$gte": 2, "$lte": 2 } }, "upsert": true, "u": [{}, { "$set": { "n": 1 } }] };
    let filter = doc! { "_id": { "$eq": 2 } };
    let pipeline = testing::update(orders(), filter, bson::bson!([{ "$set": { "n": 1 } }]), &[]);
    for (op, statement) in [(increment(2), by_operator), (pipeline, by_pipeline)] {
        let update = expect("update").with(doc! { "updates": [statement] }).answer(doc! { "n": 1 });
        let (mongo, upstream) = with_script(bundle([update, expect("commitTransaction")])).await;
        let mut session = begin(&upstream).await;
        let landed = send(&upstream, &mut session, vec![Leg { op, must_match: true }], vec![]).await;
        assert!(matches!(landed, Ok(Landed::Done(_))), "{landed:?}");
        mongo.played().await;
    }
}

/// What the server says to an abort, whether every write of the bundle has a claim, and what is reported then.
#[tokio::test]
async fn lost_answers_to_statements_end_in_an_abort_that_tells_what_happened() {
    let abort = || expect("abortTransaction").on("admin").with(doc! { "txnNumber": 1, "autocommit": false });
    let commit = || expect("commitTransaction").with(doc! { "writeConcern": { "w": "majority" } });
    let given_up = "251 [\"TransientTransactionError\"]";
    let unknown = "11602 [\"RetryableWriteError\", \"UnknownTransactionCommitResult\"]";
    for (claimed, answers, outcome) in [
        (false, vec![abort()], given_up),
        (false, vec![abort().fail(251, &[TRANSIENT])], unknown),
        (true, vec![abort()], given_up),
        (true, vec![abort().fail(251, &[TRANSIENT])], given_up),
        (true, vec![abort().fail(91, &[]), abort()], given_up),
        (true, vec![abort().cut(), abort()], given_up),
        (true, vec![abort().fail(256, &[]), commit()], "done"),
        (true, vec![abort().fail(256, &[]), commit().cut(), commit()], "done"),
    ] {
        let (mongo, upstream) = with_script([expect("insert").cut()]).await;
        mongo.script(answers);
        let mut session = begin(&upstream).await;
        let claims = claimed.then(|| claim(5)).into_iter().collect();
        let landed = match send(&upstream, &mut session, vec![leg(insert(1))], claims).await {
            Ok(Landed::Done(_)) => "done".to_owned(),
            Ok(landed) => format!("{landed:?}"),
            Err(error) => format!("{} {:?}", error.code().number(), error.labels()),
        };
        assert_eq!(landed, outcome);
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_bundle_whose_commit_alone_is_unanswered_sends_the_commit_again() {
    let again = expect("commitTransaction").with(doc! { "writeConcern": { "w": "majority" } });
    let (mongo, upstream) =
        with_script([expect("insert").answer(doc! { "n": 1 }), expect("commitTransaction").cut(), again]).await;
    let mut session = begin(&upstream).await;
    let landed = send(&upstream, &mut session, vec![leg(insert(1))], vec![]).await.unwrap();
    assert!(matches!(&landed, Landed::Done(written) if written[0].n == 1), "{landed:?}");
    mongo.played().await;
}

#[tokio::test]
async fn waiters_are_told_when_the_writes_are_visible_before_they_are_safe() {
    let safe = Doc::from(doc! { "w": "majority" });
    let (is_visible, was_called) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (mongo, upstream) = with_script([
        expect("insert").answer(doc! { "n": 1 }),
        expect("commitTransaction").with(doc! { "writeConcern": { "w": 1 } }),
        expect("commitTransaction").with(doc! { "writeConcern": { "w": "majority" } }).after(&is_visible),
    ])
    .await;
    let mut session = begin(&upstream).await;
    let context = Context { sent: Sent { write_concern: Some(safe), ..Sent::default() }, ..context() };
    let flight = Flight { legs: vec![leg(insert(1))], ..Flight::default() };
    let mut visible = || {
        is_visible.notify_one();
        was_called.notify_one();
    };
    let flights = upstream.pipelining().unwrap();
    let landed = flights.fly(&mut session, &context, flight, Some(&mut visible)).await.unwrap();
    assert!(matches!(landed, Landed::Done(_)), "{landed:?}");
    was_called.notified().await;
    mongo.played().await;
}

#[tokio::test]
async fn a_commit_that_waits_for_nothing_is_sent_once() {
    let relaxed = Doc::from(doc! { "w": 1 });
    let (mongo, upstream) = with_script([
        expect("insert").answer(doc! { "n": 1 }),
        expect("commitTransaction").with(doc! { "writeConcern": { "w": 1 } }),
    ])
    .await;
    let mut session = begin(&upstream).await;
    let context = Context { sent: Sent { write_concern: Some(relaxed), ..Sent::default() }, ..context() };
    let flight = Flight { legs: vec![leg(insert(1))], ..Flight::default() };
    let flights = upstream.pipelining().unwrap();
    flights.fly(&mut session, &context, flight, Some(&mut || {})).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn writes_back_to_back_end_with_the_first_failure() {
    let (mongo, upstream) = with_script(bundle([
        expect("insert").with(doc! { "startTransaction": true }).answer(doc! { "n": 1 }),
        expect("insert").without(&["startTransaction"]).fail_statement(0, 11000),
        over("insert"),
    ]))
    .await;
    let mut session = begin(&upstream).await;
    let ops = [insert(1), insert(2), insert(3)].map(|op| (op, document::op::Capture::Nothing));
    let outcomes = upstream.write_all(&mut session, &context(), &ops).await.unwrap();
    assert_eq!(outcomes.len(), 2);
    assert_eq!(outcomes[0].as_ref().unwrap().n, 1);
    assert_eq!(outcomes[1].as_ref().unwrap().errors[0].error.code(), document::Code::DuplicateKey);
    mongo.script([expect("abortTransaction")]);
    drop(session);
    mongo.played().await;
}
