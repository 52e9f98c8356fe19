//! Which server commands go to: how the primary is found, given up and found again, and what is said while there is none.

use crate::mongo::ScriptedMongo;
use crate::step::expect;
use crate::words::*;
use bson::{Document, doc};
use document::Code;
use document::backend::{Remote, Session};

/// Hosts of a connection string that wait for a primary no longer than a test may.
fn impatient(hosts: &str, options: &str) -> String {
    format!("mongodb://{hosts}/?serverSelectionTimeoutMS=300{options}")
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_refused_with_the_reason_and_the_way_out() {
    let set = || doc! { "ok": 1, "maxWireVersion": 21, "setName": "rs" };
    let with = |mut greeting: Document, name: &str, value: bson::Bson| {
        greeting.insert(name, value);
        greeting
    };
    for (greeting, options, reason, hint) in [
        (doc! { "ok": 1, "maxWireVersion": 21 }, "", "is a standalone mongod, not a replica set", "--replSet rs"),
        (
            doc! { "ok": 1, "maxWireVersion": 21, "isreplicaset": true },
            "",
            "was started for a replica set that has not been initiated",
            "rs.initiate(",
        ),
        (
            with(set(), "maxWireVersion", 8.into()),
            "",
            "speaks wire version 8, at least 9 (MongoDB 4.4) is needed",
            "MongoDB 4.4 and newer",
        ),
        (
            with(set(), "isWritablePrimary", true.into()),
            "&replicaSet=other",
            "belongs to the replica set 'rs'",
            "write replicaSet=rs in the connection string",
        ),
        (
            doc! { "ok": 0, "code": 59, "errmsg": "no such command: 'hello'" },
            "",
            "speaks wire version 0, at least 9 (MongoDB 4.4) is needed",
            "MongoDB 4.4 and newer",
        ),
        (
            doc! { "ok": 0, "code": 11600, "errmsg": "interrupted at shutdown" },
            "",
            "does not answer (interrupted at shutdown) (waited 0.3 s)",
            "serverSelectionTimeoutMS",
        ),
        (set(), "", "is not primary (waited 0.3 s)", "serverSelectionTimeoutMS"),
    ] {
        let mongo = ScriptedMongo::greeting(greeting).await;
        let error = refusal(&impatient(&mongo.address, options), reason).await;
        assert_eq!(error.code(), Code::HostUnreachable);
        assert!(error.message().contains(&format!("{} {reason}", mongo.address)), "{error:?}");
        assert!(error.hint().unwrap().contains(hint), "{error:?}");
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_refused_with_the_time_waited() {
    let mongo = ScriptedMongo::primary().await;
    mongo.stop();
    let error = refusal(&impatient(&mongo.address, ""), "does not answer").await;
    assert!(error.message().contains(&format!("{} does not answer", mongo.address)), "{error:?}");
    assert!(error.message().ends_with("(waited 0.3 s)"), "{error:?}");
}

#[tokio::test]
async fn routers_and_primaries_of_old_greetings_are_used() {
    for greeting in [
        doc! { "ok": 1, "maxWireVersion": 21, "msg": "isdbgrid" },
        doc! { "ok": 1, "maxWireVersion": 9, "setName": "rs", "ismaster": true },
    ] {
        let mongo = ScriptedMongo::greeting(greeting).await;
        let upstream = open(&mongo.uri()).await.unwrap();
        assert_eq!(upstream.primary().as_deref(), Some(mongo.address.as_str()));
        assert!(!upstream.is_pleach());
    }
}

#[tokio::test]
async fn the_primary_is_found_through_a_secondary() {
    let [primary, secondary] = ScriptedMongo::replica_set().await;
    primary.script([expect("insert").answer(doc! { "n": 1 })]);
    let upstream = open(&secondary.uri()).await.unwrap();
    assert_eq!(upstream.primary().as_deref(), Some(primary.address.as_str()));
    write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
    primary.played().await;
    secondary.played().await;
}

#[tokio::test]
async fn a_direct_connection_asks_nobody_else() {
    let [_primary, secondary] = ScriptedMongo::replica_set().await;
    let error = refusal(&impatient(&secondary.address, "&directConnection=true"), "is not primary").await;
    assert!(error.message().ends_with(&format!("{} is not primary (waited 0.3 s)", secondary.address)), "{error:?}");
}

#[tokio::test]
async fn an_announced_step_down_moves_commands_before_one_fails() {
    let [first, second] = ScriptedMongo::replica_set().await;
    first.script([expect("insert").with(doc! { "documents": [{ "_id": 1 }] }).answer(doc! { "n": 1 })]);
    second.script([expect("insert").with(doc! { "documents": [{ "_id": 2 }] }).answer(doc! { "n": 1 })]);
    let upstream = open(&first.uri()).await.unwrap();
    write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
    second.elect(&[&first, &second], Some(2));
    first.elect(&[&first, &second], None);
    until(|| upstream.primary().as_deref() == Some(&second.address)).await;
    write(&upstream, &mut Session::default(), insert(2)).await.unwrap();
    first.played().await;
    second.played().await;
}

#[tokio::test]
async fn a_command_that_meets_a_former_primary_fails_and_the_next_goes_to_the_new_one() {
    for code in [91, 189, 10058, 10107, 11600, 11602, 13435, 13436] {
        let [first, second] = ScriptedMongo::replica_set().await;
        first.script([expect("insert").fail(code, &[RETRYABLE])]);
        second.script([expect("insert").answer(doc! { "n": 1 })]);
        let upstream = open(&first.uri()).await.unwrap();
        // Its connection to the watcher says nothing of the change: only the error does.
        second.elect(&[&first, &second], Some(2));
        let error = write(&upstream, &mut Session::default(), insert(1)).await.unwrap_err();
        assert_eq!(code_and_labels(&error), (code, vec![RETRYABLE]));
        assert!(pleach_upstream::is_failover(&error));
        first.elect(&[&first, &second], None);
        until(|| upstream.primary().as_deref() == Some(&second.address)).await;
        write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
        first.played().await;
        second.played().await;
    }
}

#[tokio::test]
async fn other_errors_leave_the_connection_to_the_primary_as_it_is() {
    for code in [2, 50, 112, 11000, 11601] {
        let (mongo, upstream) = with_script([expect("insert").fail(code, &[]), expect("insert")]).await;
        write(&upstream, &mut Session::default(), insert(1)).await.unwrap_err();
        write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
        let received = mongo.played().await;
        assert_eq!(received[0].connection, received[1].connection, "{code}");
    }
}

#[tokio::test]
async fn without_a_primary_commands_are_told_so_at_once() {
    let mongo = ScriptedMongo::primary().await;
    let upstream = open(&mongo.uri()).await.unwrap();
    mongo.elect(&[&mongo], None);
    until(|| upstream.primary().is_none()).await;
    let error = write(&upstream, &mut Session::default(), insert(1)).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (10107, vec![TRANSIENT, RETRYABLE]));
    assert_eq!(error.message(), "no primary of the upstream MongoDB is known at the moment");
    let relay = upstream.connect();
    assert_eq!(code_and_labels(&relay.standing().unwrap_err()), (10107, vec![TRANSIENT, RETRYABLE]));
    mongo.script([expect("insert")]);
    mongo.elect(&[&mongo], Some(2));
    until(|| upstream.primary().is_some()).await;
    write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_primary_of_an_older_election_is_not_believed() {
    let [old, new] = ScriptedMongo::replica_set().await;
    let upstream = open(&old.uri()).await.unwrap();
    new.elect(&[&old, &new], Some(2));
    old.elect(&[&old, &new], None);
    until(|| upstream.primary().as_deref() == Some(&new.address)).await;
    // It comes back from a partition, and has not heard of the second election.
    old.elect(&[&old, &new], Some(1));
    new.stop();
    until(|| upstream.primary().is_none()).await;
    let error = write(&upstream, &mut Session::default(), insert(1)).await.unwrap_err();
    assert_eq!(error.code(), Code::NotWritablePrimary);
    old.script([expect("insert")]);
    old.elect(&[&old, &new], Some(3));
    until(|| upstream.primary().as_deref() == Some(&old.address)).await;
    write(&upstream, &mut Session::default(), insert(1)).await.unwrap();
    old.played().await;
}
