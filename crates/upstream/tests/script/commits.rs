//! The end of a transaction: a commit whose answer is lost is sent again, a plan never is.

use crate::step::{Step, expect};
use crate::words::*;
use bson::doc;
use document::Code;
use document::Doc;
use document::backend::{Remote, Session};
use document::op::{Context, Sent};
use std::sync::{Arc, Mutex};

/// The commit of an outcome that is not known: for a majority, and not for ever.
fn commit_again() -> Step {
    expect("commitTransaction").with(doc! {
        "txnNumber": 1, "autocommit": false, "writeConcern": { "w": "majority", "wtimeout": 10_000 },
    })
}

#[tokio::test]
async fn a_commit_without_an_answer_is_sent_again_and_its_statements_are_not() {
    let commit_first = || expect("commitTransaction").without(&["writeConcern"]);
    for lost in [
        commit_first().cut(),
        commit_first().fail(91, &[]),
        commit_first().fail(262, &[]),
        commit_first().fail(11602, &[]),
        commit_first().fail(2, &[UNKNOWN]),
    ] {
        let first = expect("insert").with(doc! { "txnNumber": 1, "startTransaction": true, "autocommit": false });
        let (mongo, upstream) = with_script([first.answer(doc! { "n": 1 }), lost, commit_again()]).await;
        let mut session = begin(&upstream).await;
        write(&upstream, &mut session, insert(1)).await.unwrap();
        commit(&mut session).await.unwrap();
        let received = mongo.played().await;
        assert_eq!(received[1].command.get("lsid"), received[2].command.get("lsid"));
    }
}

#[tokio::test]
async fn the_commit_is_asked_for_until_it_is_answered() {
    let (mongo, upstream) =
        with_script([expect("insert"), expect("commitTransaction").cut(), commit_again().cut(), commit_again()]).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_commit_that_never_was_gives_the_transaction_back_to_its_planner() {
    let script = [expect("insert"), expect("commitTransaction").cut(), commit_again().fail(251, &[TRANSIENT])];
    let (mongo, upstream) = with_script(script).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let error = commit(&mut session).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (251, vec![TRANSIENT]));
    mongo.played().await;
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_invites_nobody_to_run_the_plan_again() {
    let script = [expect("insert"), expect("commitTransaction").cut(), commit_again().hang()];
    let (_mongo, upstream) = with_script(script).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let error = commit_with(&mut session, &within(250)).await.unwrap_err();
    assert_eq!(error.labels(), [RETRYABLE, UNKNOWN]);
    assert!(error.message().starts_with("it is not known whether the write was committed: "), "{error:?}");
}

#[tokio::test]
async fn a_commit_that_hangs_is_unknown_when_the_time_is_over() {
    let (mongo, upstream) = with_script([expect("insert"), expect("commitTransaction").hang()]).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let error = commit_with(&mut session, &within(50)).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![RETRYABLE, UNKNOWN]));
    mongo.played().await;
}

#[tokio::test]
async fn a_client_that_authenticated_is_told_that_the_outcome_is_unknown() {
    let (mongo, upstream) = with_script([expect("insert"), expect("commitTransaction").cut()]).await;
    let relay = upstream.connect();
    relay.authenticating();
    let mut session = begin_in(&upstream, Session { relay: Some(relay.clone()), ..Session::default() }).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let error = commit(&mut session).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![RETRYABLE, UNKNOWN]));
    assert!(relay.is_lost());
    mongo.played().await;
}

#[tokio::test]
async fn a_refused_commit_is_passed_on() {
    for (code, labels) in [(112, vec![TRANSIENT]), (251, vec![TRANSIENT]), (13, vec![])] {
        let (mongo, upstream) = with_script([expect("insert"), expect("commitTransaction").fail(code, &labels)]).await;
        let mut session = begin(&upstream).await;
        write(&upstream, &mut session, insert(1)).await.unwrap();
        let error = commit(&mut session).await.unwrap_err();
        assert_eq!(code_and_labels(&error), (code, labels));
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_commit_that_is_less_safe_than_asked_is_done_and_says_so() {
    let unsatisfied = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let asked = doc! { "w": 3, "wtimeout": 5 };
    let commit = expect("commitTransaction").with(doc! { "writeConcern": asked.clone() }).answer(unsatisfied);
    let (mongo, upstream) = with_script([expect("insert"), commit]).await;
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let found = Arc::new(Mutex::new(None));
    let sent = Sent { write_concern: Some(Doc::from(asked)), unsatisfied: Some(found.clone()), ..Sent::default() };
    commit_with(&mut session, &Context { sent, ..context() }).await.unwrap();
    let error = found.lock().unwrap().take().unwrap();
    assert_eq!((error.code(), error.message()), (Code::WriteConcernFailed, "waiting for replication timed out"));
    mongo.played().await;
}

#[tokio::test]
async fn a_commit_whose_primary_stepped_down_before_it_was_safe_is_sent_again() {
    let unsafe_commit = |code: i32| {
        expect("commitTransaction").answer(doc! { "writeConcernError": { "code": code, "errmsg": "stepped down" } })
    };
    for code in [91, 189, 11600, 11602] {
        // The new primary has it.
        let (mongo, upstream) = with_script([expect("insert"), unsafe_commit(code), commit_again()]).await;
        let mut session = begin(&upstream).await;
        write(&upstream, &mut session, insert(1)).await.unwrap();
        commit(&mut session).await.unwrap();
        mongo.played().await;
        // The old primary alone had it, and it was rolled back.
        let rolled_back = commit_again().fail(251, &[TRANSIENT]);
        let (mongo, upstream) = with_script([expect("insert"), unsafe_commit(code), rolled_back]).await;
        let mut session = begin(&upstream).await;
        write(&upstream, &mut session, insert(1)).await.unwrap();
        assert_eq!(code_and_labels(&commit(&mut session).await.unwrap_err()), (251, vec![TRANSIENT]));
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_client_that_authenticated_is_told_of_a_commit_that_may_not_be_safe() {
    let unsatisfied = doc! { "writeConcernError": { "code": 189, "errmsg": "stepped down" } };
    let (mongo, upstream) = with_script([expect("insert"), expect("commitTransaction").answer(unsatisfied)]).await;
    let relay = upstream.connect();
    relay.authenticating();
    let mut session = begin_in(&upstream, Session { relay: Some(relay), ..Session::default() }).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    let found = Arc::new(Mutex::new(None));
    let sent = Sent { unsatisfied: Some(found.clone()), ..Sent::default() };
    commit_with(&mut session, &Context { sent, ..context() }).await.unwrap();
    assert_eq!(found.lock().unwrap().take().unwrap().code().number(), 189);
    mongo.played().await;
}

#[tokio::test]
async fn background_work_commits_with_the_write_concern_of_the_connection_string() {
    let mongo = crate::mongo::ScriptedMongo::primary().await;
    let concern = doc! { "writeConcern": { "w": 2, "j": true } };
    let again = doc! { "writeConcern": { "w": "majority", "j": true, "wtimeout": 10_000 } };
    mongo.script([
        expect("insert"),
        expect("commitTransaction").with(concern).cut(),
        expect("commitTransaction").with(again),
    ]);
    let upstream = open(&format!("{}?w=2&journal=true", mongo.uri())).await.unwrap();
    let mut session = begin(&upstream).await;
    write(&upstream, &mut session, insert(1)).await.unwrap();
    commit(&mut session).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_transaction_that_sent_nothing_ends_without_a_command() {
    let (mongo, upstream) = with_script([expect("insert")]).await;
    let relay = upstream.connect();
    let on_line = || Session { relay: Some(relay.clone()), ..Session::default() };
    commit(&mut begin_in(&upstream, on_line()).await).await.unwrap();
    drop(begin_in(&upstream, on_line()).await);
    // What is sent behind a dropped transaction has the line before the next command.
    tokio::task::yield_now().await;
    write(&upstream, &mut on_line(), insert(1)).await.unwrap();
    mongo.played().await;
}
