//! Retryable writes and transactions: numbers, states, errors and labels.

use crate::client::{Client, Running};
use bson::{Bson, Document, doc};
use pleach_server::Options;
use std::time::Duration;

fn session() -> Document {
    doc! {"id": bson::Uuid::from_bytes([9; 16])}
}

/// The command as part of transaction `number`.
fn within(number: i64, mut command: Document) -> Document {
    command.extend(doc! {"lsid": session(), "txnNumber": number, "autocommit": false});
    command
}

fn starting(number: i64, command: Document) -> Document {
    let mut command = within(number, command);
    command.insert("startTransaction", true);
    command
}

fn retryable(number: i64, mut command: Document) -> Document {
    command.extend(doc! {"lsid": session(), "txnNumber": number});
    command
}

fn insert(id: i32) -> Document {
    doc! {"insert": "c", "documents": [{"_id": id}]}
}

fn count(client: &mut Client) -> i32 {
    client.run(doc! {"count": "c"}).get_i32("n").unwrap()
}

/// Code and labels of the error that the command must give.
fn failure(client: &mut Client, command: Document) -> (i32, Vec<String>) {
    let reply = client.run(command.clone());
    assert_eq!(reply.get_f64("ok").ok(), Some(0.0), "{command} gave {reply}");
    let labels = reply.get_array("errorLabels").cloned().unwrap_or_default();
    (reply.get_i32("code").unwrap(), labels.iter().filter_map(Bson::as_str).map(str::to_owned).collect())
}

const TRANSIENT: &str = "TransientTransactionError";

#[test]
fn a_transaction_is_seen_when_it_commits_and_may_be_committed_again() {
    let server = Running::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.run(starting(1, insert(1))), doc! {"n": 1, "ok": 1.0});
    assert_eq!(client.run(within(1, insert(2))), doc! {"n": 1, "ok": 1.0});
    let inside = client.run(within(1, doc! {"find": "c"}));
    assert_eq!(inside.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 2);
    assert_eq!(count(&mut other), 0);
    let commit = within(1, doc! {"commitTransaction": 1});
    assert_eq!(client.admin(commit.clone()), doc! {"ok": 1.0});
    assert_eq!(client.admin(commit), doc! {"ok": 1.0});
    assert_eq!(count(&mut other), 2);
    let mut abort = within(1, doc! {"abortTransaction": 1});
    abort.insert("$db", "admin");
    assert_eq!(failure(&mut client, abort), (256, vec![]));
    assert_eq!(failure(&mut client, within(1, insert(3))), (256, vec![]));
}

#[test]
fn an_abort_or_a_failing_statement_ends_it() {
    let server = Running::start();
    let mut client = server.connect();
    client.run(starting(1, insert(1)));
    assert_eq!(client.admin(within(1, doc! {"abortTransaction": 1})), doc! {"ok": 1.0});
    assert_eq!(failure(&mut client, within(1, insert(2))), (251, vec![TRANSIENT.into()]));
    assert_eq!(count(&mut client), 0);

    client.run(insert(1));
    client.run(starting(2, insert(2)));
    let duplicate = client.run(within(2, insert(1)));
    assert_eq!(duplicate.get_array("writeErrors").unwrap().len(), 1);
    assert_eq!(failure(&mut client, within(2, insert(3))), (251, vec![TRANSIENT.into()]));

    client.run(starting(3, insert(2)));
    assert_eq!(failure(&mut client, within(3, doc! {"find": "c", "foo": 1})), (40415, vec![]));
    let mut commit = within(3, doc! {"commitTransaction": 1});
    commit.insert("$db", "admin");
    assert_eq!(failure(&mut client, commit), (251, vec![TRANSIENT.into()]));

    assert_eq!(
        failure(&mut client, starting(4, doc! {"insert": "conflicts", "documents": [{}]})),
        (112, vec![TRANSIENT.into()])
    );
    assert_eq!(count(&mut client), 1);
}

#[test]
fn a_conflict_at_commit_is_not_transient_by_itself() {
    let server = Running::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    client.run(starting(1, insert(1)));
    other.run(insert(2));
    let mut commit = within(1, doc! {"commitTransaction": 1});
    commit.insert("$db", "admin");
    assert_eq!(failure(&mut client, commit), (112, vec![]));
}

#[test]
fn numbers_only_grow() {
    let server = Running::start();
    let mut client = server.connect();
    assert_eq!(failure(&mut client, within(5, insert(1))), (251, vec![TRANSIENT.into()]));
    client.run(starting(5, insert(1)));
    assert_eq!(failure(&mut client, starting(5, insert(1))), (117, vec![]));
    assert_eq!(failure(&mut client, within(4, insert(1))), (225, vec![]));
    assert_eq!(failure(&mut client, within(6, insert(1))), (251, vec![TRANSIENT.into()]));
    // A newer one ends the older.
    client.run(starting(7, insert(2)));
    assert_eq!(failure(&mut client, within(5, insert(3))), (225, vec![]));
    client.admin(within(7, doc! {"commitTransaction": 1}));
    assert_eq!(count(&mut client), 1);
}

#[test]
fn what_is_not_for_transactions_is_refused_before_one_begins() {
    let server = Running::start();
    let mut client = server.connect();
    client.run(starting(1, insert(1)));
    let rows = [
        (starting(2, doc! {"count": "c"}), 263),
        (starting(2, doc! {"listCollections": 1}), 263),
        (starting(2, doc! {"ping": 1}), 263),
        (starting(2, doc! {"killCursors": "c", "cursors": [1_i64]}), 263),
        (starting(2, doc! {"insert": "c", "documents": [{}], "writeConcern": {"w": 1}}), 72),
        (starting(2, doc! {"find": "c", "readConcern": {"level": "linearizable"}}), 72),
        (within(1, doc! {"find": "c", "readConcern": {"level": "snapshot"}}), 72),
        (doc! {"find": "c", "txnNumber": 2_i64}, 72),
        (doc! {"find": "c", "lsid": session(), "autocommit": false}, 72),
        (doc! {"find": "c", "lsid": session(), "txnNumber": 2_i64, "startTransaction": true}, 72),
        (doc! {"find": "c", "lsid": session(), "txnNumber": 2_i64, "autocommit": true}, 72),
        (doc! {"find": "c", "lsid": session(), "txnNumber": -1_i64, "autocommit": false}, 72),
        (doc! {"find": "c", "lsid": session(), "txnNumber": 2, "autocommit": false}, 14),
        (retryable(2, doc! {"find": "c"}), 50768),
        (doc! {"commitTransaction": 1, "$db": "admin"}, 125),
        (within(1, doc! {"commitTransaction": 1}), 13),
    ];
    for (command, code) in rows {
        assert_eq!(client.code(command.clone()), code, "{command}");
    }
    // The open one is still there.
    assert_eq!(client.admin(within(1, doc! {"commitTransaction": 1})), doc! {"ok": 1.0});
}

#[test]
fn a_transaction_past_its_time_is_aborted() {
    let server = Running::with(Options { transaction_lifetime: Duration::from_millis(50), ..Options::default() });
    let mut client = server.connect();
    client.run(starting(1, insert(1)));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(failure(&mut client, within(1, insert(2))), (251, vec![TRANSIENT.into()]));
    // One that runs is interrupted.
    assert_eq!(failure(&mut client, starting(2, doc! {"find": "never_ends"})).0, 290);
    assert_eq!(count(&mut client), 0);
}

#[test]
fn a_transaction_that_meets_a_fault_is_aborted() {
    let server = Running::start();
    let mut client = server.connect();
    client.run(starting(1, insert(1)));
    assert_eq!(failure(&mut client, within(1, doc! {"find": "panics"})).0, 1);
    assert_eq!(failure(&mut client, within(1, insert(2))), (251, vec![TRANSIENT.into()]));
}

#[test]
fn retryable_writes_carry_their_number_and_happen_once() {
    let server = Running::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.run(retryable(1, insert(1))), doc! {"n": 1, "ok": 1.0});
    let again = doc! {"n": 1, "retriedStmtIds": [0], "ok": 1.0};
    assert_eq!(client.run(retryable(1, insert(1))), again);
    assert_eq!(other.run(retryable(1, insert(1))), again);
    let more = doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]};
    assert_eq!(client.run(retryable(1, more)), doc! {"n": 2, "retriedStmtIds": [0], "ok": 1.0});
    assert_eq!(client.code(retryable(0, insert(9))), 225);
    let many = doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": true}]};
    let reply = client.run(retryable(2, many));
    assert_eq!(reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("code").ok(), Some(72));
    // A transaction's number is not for a retryable write.
    client.run(starting(3, insert(5)));
    assert_eq!(client.code(retryable(3, insert(6))), 217);
    // A newer retryable write ends the transaction.
    client.run(retryable(4, insert(7)));
    assert_eq!(client.code(within(3, insert(8))), 225);
    assert_eq!(count(&mut client), 3);
}

#[test]
fn cursors_of_a_transaction_end_with_it() {
    let server = Running::start();
    let mut client = server.connect();
    for id in 0..5 {
        client.run(insert(id));
    }
    let opened = client.run(starting(1, doc! {"find": "c", "batchSize": 2}));
    let id = opened.get_document("cursor").unwrap().get_i64("id").unwrap();
    assert_eq!(client.code(doc! {"getMore": id, "collection": "c", "lsid": session()}), 50740);
    let more = client.run(within(1, doc! {"getMore": id, "collection": "c", "batchSize": 2}));
    assert_eq!(more.get_document("cursor").unwrap().get_array("nextBatch").unwrap().len(), 2);
    client.admin(within(1, doc! {"commitTransaction": 1}));
    let more = doc! {"getMore": id, "collection": "c"};
    assert_eq!(client.code(more.clone()), 50737);
    assert_eq!(client.code(within(1, more)), 256);
}

#[test]
fn killing_a_session_aborts_its_transaction_and_ending_it_does_not() {
    let server = Running::start();
    let mut client = server.connect();
    client.run(starting(1, insert(1)));
    assert_eq!(client.run(doc! {"killSessions": [session()]}), doc! {"ok": 1.0});
    assert_eq!(failure(&mut client, within(1, insert(2))), (251, vec![TRANSIENT.into()]));
    assert_eq!(count(&mut client), 0);
    client.run(starting(2, insert(1)));
    assert_eq!(client.run(doc! {"endSessions": [session()]}), doc! {"ok": 1.0});
    assert_eq!(client.admin(within(2, doc! {"commitTransaction": 1})), doc! {"ok": 1.0});
    assert_eq!(count(&mut client), 1);
}
