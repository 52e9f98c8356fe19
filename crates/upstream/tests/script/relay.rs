//! A client's own line: its messages byte for byte, its authentication on its own connection, and the end of both.

use crate::mongo::ScriptedMongo;
use crate::step::expect;
use crate::words::*;
use bson::{Document, doc};
use document::Doc;
use document::backend::{Relay, Remote};
use wire::encode;
use wire::message::flags::MORE_TO_COME;

/// A client's message as it would come from a driver.
fn message(request: i32, flags: u32, command: Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = encode::begin_msg(&mut bytes, request, 0, flags);
    bytes.extend_from_slice(Doc::from(command).as_bytes());
    encode::finish(&mut bytes, start);
    bytes
}

async fn forward(relay: &dyn Relay, message: &[u8]) -> document::Result<Document> {
    let mut reply = b"before".to_vec();
    let forwarded = relay.forward(message, true, &mut reply).await;
    assert!(reply.starts_with(b"before"));
    if let Err(error) = forwarded {
        assert_eq!(reply, b"before", "half a reply is taken back");
        return Err(error);
    }
    let header = wire::Header::peek(&reply[6..]).unwrap().unwrap();
    let wire::Message::Msg(msg) = wire::message::parse(&header, &reply[6..]).unwrap() else { panic!("not an OP_MSG") };
    assert_eq!(header.response_to, i32::from_le_bytes(message[4..8].try_into().unwrap()));
    Ok(Document::try_from(&Doc::trusted(msg.body)).unwrap())
}

#[tokio::test]
async fn a_login_is_relayed_byte_for_byte_over_the_clients_own_connection() {
    let payload = |text: &str| bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: text.into() };
    let start = message(
        41,
        0,
        doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload("n,,n=ada"), "$db": "admin" },
    );
    let proof =
        message(42, 0, doc! { "saslContinue": 1, "conversationId": 1, "payload": payload("c=,p="), "$db": "admin" });
    let (mongo, upstream) = with_script([
        expect("saslStart").answer(doc! { "conversationId": 1, "done": false, "payload": payload("r=") }),
        expect("saslContinue").answer(doc! { "conversationId": 1, "done": true }),
        expect("find").answer(cursor(0, "firstBatch", &[1])),
        expect("insert"),
    ])
    .await;
    let relay = upstream.connect();
    relay.introduce(&Doc::from(doc! { "driver": { "name": "a driver" } }));
    relay.introduce(&Doc::from(doc! { "driver": { "name": "another name is too late" } }));
    relay.authenticating();
    assert_eq!(forward(&*relay, &start).await.unwrap().get_i32("conversationId").unwrap(), 1);
    assert!(forward(&*relay, &proof).await.unwrap().get_bool("done").unwrap());
    forward(&*relay, &message(43, 0, doc! { "find": "orders", "$db": "shop" })).await.unwrap();
    // Work of our own goes another way.
    write(&upstream, &mut document::backend::Session::default(), insert(1)).await.unwrap();
    let received = mongo.played().await;
    assert_eq!((&received[0].bytes, &received[1].bytes), (&start, &proof));
    assert_eq!([received[1].connection, received[2].connection], [received[0].connection; 2]);
    assert_ne!(received[3].connection, received[0].connection);
    let introduced = doc! { "driver": { "name": "a driver" } };
    assert_eq!(mongo.clients().iter().filter(|client| **client == introduced).count(), 1);
}

#[tokio::test]
async fn a_refused_login_is_the_servers_own_refusal() {
    let (mongo, upstream) = with_script([expect("saslStart").fail(18, &[])]).await;
    let relay = upstream.connect();
    relay.authenticating();
    let reply = forward(&*relay, &message(1, 0, doc! { "saslStart": 1, "$db": "admin" })).await.unwrap();
    assert_eq!((reply.get_i32("code").unwrap(), reply.get_str("errmsg").unwrap()), (18, "scripted failure 18"));
    assert!(!relay.is_lost());
    mongo.played().await;
}

#[tokio::test]
async fn an_authenticated_line_that_broke_is_lost_for_good() {
    let (mongo, upstream) = with_script([expect("saslStart"), expect("find").cut()]).await;
    let relay = upstream.connect();
    relay.authenticating();
    forward(&*relay, &message(1, 0, doc! { "saslStart": 1, "$db": "admin" })).await.unwrap();
    let find = message(2, 0, doc! { "find": "orders", "$db": "shop" });
    let error = forward(&*relay, &find).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![TRANSIENT, RETRYABLE]));
    assert!(relay.is_lost());
    let error = forward(&*relay, &find).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![TRANSIENT, RETRYABLE]));
    assert_eq!(error.message(), "the primary has changed since this connection was authenticated: connect again");
    mongo.played().await;
}

#[tokio::test]
async fn an_authenticated_line_ends_with_its_primary_though_nothing_was_on_it() {
    let [first, second] = ScriptedMongo::replica_set().await;
    first.script([expect("saslStart")]);
    let upstream = open(&first.uri()).await.unwrap();
    let relay = upstream.connect();
    relay.authenticating();
    forward(&*relay, &message(1, 0, doc! { "saslStart": 1, "$db": "admin" })).await.unwrap();
    second.elect(&[&first, &second], Some(2));
    first.elect(&[&first, &second], None);
    until(|| upstream.primary().as_deref() == Some(&second.address)).await;
    let error = forward(&*relay, &message(2, 0, doc! { "find": "orders", "$db": "shop" })).await.unwrap_err();
    assert_eq!(error.message(), "the primary has changed since this connection was authenticated: connect again");
    assert!(relay.is_lost());
    first.played().await;
    second.played().await;
}

#[tokio::test]
async fn a_line_without_a_login_is_opened_again() {
    let (mongo, upstream) =
        with_script([expect("find").cut(), expect("find").answer(cursor(0, "firstBatch", &[1]))]).await;
    let relay = upstream.connect();
    let find = message(1, 0, doc! { "find": "orders", "$db": "shop" });
    let error = forward(&*relay, &find).await.unwrap_err();
    assert_eq!(code_and_labels(&error), (11602, vec![TRANSIENT, RETRYABLE]));
    assert!(!relay.is_lost());
    until(|| upstream.primary().is_some()).await;
    forward(&*relay, &find).await.unwrap();
    mongo.played().await;
}

#[tokio::test]
async fn a_forwarded_refusal_of_a_former_primary_is_passed_on_and_noticed() {
    let (mongo, upstream) = with_script([expect("insert").fail(10107, &[RETRYABLE]), expect("insert")]).await;
    let relay = upstream.connect();
    let insert = message(1, 0, doc! { "insert": "orders", "$db": "shop" });
    let reply = forward(&*relay, &insert).await.unwrap();
    assert_eq!(reply.get_i32("code").unwrap(), 10107);
    assert_eq!(reply.get_array("errorLabels").unwrap(), &[RETRYABLE.into()]);
    until(|| upstream.primary().is_some()).await;
    forward(&*relay, &insert).await.unwrap();
    let received = mongo.played().await;
    assert_ne!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn a_message_that_wants_no_answer_has_none() {
    let (mongo, upstream) = with_script([expect("insert"), expect("find").answer(cursor(0, "firstBatch", &[1]))]).await;
    let relay = upstream.connect();
    let mut reply = Vec::new();
    let unacknowledged = message(1, MORE_TO_COME, doc! { "insert": "orders", "$db": "shop" });
    relay.forward(&unacknowledged, false, &mut reply).await.unwrap();
    assert!(reply.is_empty());
    let found = forward(&*relay, &message(2, 0, doc! { "find": "orders", "$db": "shop" })).await.unwrap();
    assert!(found.contains_key("cursor"));
    let received = mongo.played().await;
    assert_eq!(received[0].connection, received[1].connection);
}

#[tokio::test]
async fn two_lines_share_transactions_only_when_both_users_are_known_and_the_same() {
    let users = |names: &[&str]| {
        let users: Vec<Document> = names.iter().map(|name| doc! { "user": *name, "db": "shop" }).collect();
        expect("connectionStatus").answer(doc! { "authInfo": { "authenticatedUsers": users } })
    };
    let (mongo, upstream) = with_script([users(&["ada"]), users(&["ada"]), users(&["bob"]), users(&[])]).await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        let relay = upstream.connect();
        assert!(relay.is_identified() && relay.user().is_none());
        relay.authenticating();
        assert!(!relay.is_identified() && !relay.shares_with(&*relay));
        relay.identify().await.unwrap();
        relay.identify().await.unwrap();
        lines.push(relay);
    }
    let [ada, again, bob, nobody] = &lines[..] else { panic!("four lines") };
    assert_eq!((ada.user().as_deref(), nobody.user()), (Some("ada@shop"), None));
    assert!(ada.shares_with(&**again) && !ada.shares_with(&**bob) && !ada.shares_with(&**nobody));
    mongo.played().await;
}
