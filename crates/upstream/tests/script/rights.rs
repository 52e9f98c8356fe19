//! Access control: the login of the connection string's user, and what the server lets a user do.

use crate::mongo::ScriptedMongo;
use crate::step::{Step, expect};
use crate::words::*;
use bson::{Document, doc};
use document::Code;
use document::backend::{Remote, Session};
use document::op::{Insert, WriteOp};

fn logged_in(mongo: &ScriptedMongo, options: &str) -> String {
    format!("mongodb://ada:secret@{}/?authSource=shop{options}", mongo.address)
}

#[tokio::test]
async fn the_strongest_mechanism_that_the_server_offers_is_used() {
    for (offered, options, chosen) in [
        (vec!["SCRAM-SHA-1", "SCRAM-SHA-256"], "", "SCRAM-SHA-256"),
        (vec!["SCRAM-SHA-1"], "", "SCRAM-SHA-1"),
        (vec!["SCRAM-SHA-256"], "&authMechanism=SCRAM-SHA-1", "SCRAM-SHA-1"),
    ] {
        let greeting = doc! {
            "ok": 1, "setName": "rs", "isWritablePrimary": true, "maxWireVersion": 21, "saslSupportedMechs": offered,
        };
        let mongo = ScriptedMongo::greeting(greeting).await;
        mongo.script([expect("saslStart").on("shop").with(doc! { "mechanism": chosen }).fail(18, &[])]);
        let error = open(&logged_in(&mongo, options)).await.err().unwrap();
        assert_eq!(error.code(), Code::AuthenticationFailed);
        assert!(error.message().starts_with("cannot log in to mongodb://"), "{error:?}");
        assert!(error.message().ends_with("scripted failure 18"), "{error:?}");
        assert!(!error.message().contains("secret"), "{error:?}");
        assert!(error.hint().unwrap().starts_with("check user, password and authSource"));
        mongo.played().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_know_the_password_is_not_trusted() {
    let payload = |text: &str| bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: text.into() };
    let mongo = ScriptedMongo::primary().await;
    // The nonce is not the client's own, continued.
    let first = "r=somebody elses,s=c2FsdHNhbHRzYWx0c2FsdA==,i=15000";
    mongo.script([expect("saslStart").answer(doc! { "conversationId": 1, "done": false, "payload": payload(first) })]);
    let error = open(&logged_in(&mongo, "")).await.err().unwrap();
    assert_eq!(error.code(), Code::AuthenticationFailed);
    mongo.played().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_login_is_refused_in_time() {
    let mongo = ScriptedMongo::primary().await;
    mongo.script([expect("saslStart").hang()]);
    let error = open(&logged_in(&mongo, "&connectTimeoutMS=800")).await.err().unwrap();
    assert!(error.message().ends_with("the login was not answered within 800 ms"), "{error:?}");
    mongo.played().await;
}

/// `connectionStatus` of a user with one privilege.
fn privileges(collection: &str, action: &str) -> Step {
    let privilege = doc! { "resource": { "db": "shop", "collection": collection }, "actions": [action] };
    let info: Document =
        doc! { "authenticatedUsers": [{ "user": "ada", "db": "shop" }], "authenticatedUserPrivileges": [privilege] };
    expect("connectionStatus").with(doc! { "showPrivileges": true }).answer(doc! { "authInfo": info })
}

#[tokio::test]
async fn privileges_are_asked_only_where_a_nameless_client_is_refused() {
    let (mongo, upstream) = with_script([expect("hostInfo")]).await;
    assert_eq!(upstream.privileges(None).await.unwrap(), None);
    mongo.played().await;

    let (mongo, upstream) = with_script([expect("hostInfo").fail(13, &[]), privileges("orders", "find")]).await;
    let found = upstream.privileges(None).await.unwrap().unwrap();
    assert!(found.allows("find", &orders()) && !found.allows("insert", &orders()));
    mongo.played().await;

    let (mongo, upstream) = with_script([expect("hostInfo").fail(91, &[])]).await;
    assert_eq!(upstream.privileges(None).await.unwrap_err().code().number(), 91);
    mongo.played().await;
}

#[tokio::test]
async fn a_user_who_may_not_bypass_validators_writes_without() {
    let bypassing = || {
        let WriteOp::Insert(op) = insert(1) else { panic!("an insert") };
        WriteOp::Insert(Insert { bypass_validation: true, ..op })
    };
    let bypasses = || expect("insert").with(doc! { "bypassDocumentValidation": true });
    let does_not = || expect("insert").without(&["bypassDocumentValidation"]);
    for (script, written) in [
        (vec![expect("hostInfo")], bypasses()),
        (vec![expect("hostInfo").fail(13, &[]), privileges("orders", "bypassDocumentValidation")], bypasses()),
        (vec![expect("hostInfo").fail(13, &[]), privileges("others", "bypassDocumentValidation")], does_not()),
    ] {
        let (mongo, upstream) = with_script(script).await;
        mongo.script([written]);
        write(&upstream, &mut Session::default(), bypassing()).await.unwrap();
        mongo.played().await;
    }
    // A client's own statement is refused by the server if it may not.
    let (mongo, upstream) = with_script([bypasses().fail(13, &[])]).await;
    let mut session = Session { relay: Some(upstream.connect()), ..Session::default() };
    assert_eq!(write(&upstream, &mut session, bypassing()).await.unwrap_err().code(), Code::Unauthorized);
    mongo.played().await;
}

#[tokio::test]
async fn what_others_have_open_is_not_known_to_a_user_who_may_not_see_it() {
    let (mongo, upstream) = with_script([expect("aggregate").fail(13, &[]), expect("aggregate").fail(13, &[])]).await;
    assert_eq!(upstream.open_transactions().await.unwrap(), None);
    assert!(upstream.open_cursors(&[orders()]).await.unwrap().is_empty());
    mongo.played().await;
}

#[tokio::test]
async fn sessions_of_a_process_that_is_gone_are_ended_with_those_begun_since() {
    let (mongo, upstream) = with_script([]).await;
    drop(begin(&upstream).await);
    let trace = upstream.leftover().unwrap();
    assert!(!upstream.end_leftover(&trace, false).await.unwrap(), "this process is still there");
    mongo.script([expect("killSessions"), expect("killSessions"), expect("killSessions")]);
    assert!(upstream.end_leftover(&trace, true).await.unwrap());
    let received = mongo.played().await;
    let counts: Vec<usize> =
        received.iter().map(|received| received.command.get_array("killSessions").unwrap().len()).collect();
    assert_eq!(counts, [1000, 1000, 1]);
}
