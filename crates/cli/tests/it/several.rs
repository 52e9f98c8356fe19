//! Two proxies in front of one real MongoDB (SEMANTICS R3): what one is told about rules, the other keeps.

use crate::mongod::{Mongod, initiate, key_file, until};
use crate::serving::{Serving, pleach};
use crate::upstream::{database, log_in, rows, session};
use bson::{Bson, Document, doc};
use judge::client::Client;
use std::time::Duration;

fn state(client: &mut Client, db: &str) -> Option<String> {
    let status = client.must(&doc! { "pleach": "status", "$db": db }).unwrap();
    let rule = status.get_array("rules").unwrap().first()?.as_document().unwrap().clone();
    Some(rule.get_str("state").unwrap().to_owned())
}

fn like(id: i32, db: &str) -> Document {
    doc! { "insert": "likes", "documents": [{ "_id": id, "postId": "p" }], "$db": db }
}

fn likes(client: &mut Client, db: &str) -> Option<Bson> {
    let found = rows(&client.must(&doc! { "find": "posts", "$db": db }).unwrap(), "firstBatch");
    found[0].as_document().unwrap().get("likeCount").cloned()
}

fn declaration(db: &str) -> Document {
    doc! { "database": db, "collections": { "posts": { "computed": { "likeCount": { "count": "likes", "by": "postId" } } } } }
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_proxy_that_knew_no_rule_keeps_the_first_one() {
    let uri = judge::real::uri().unwrap();
    let db = database("several");
    let (first, second) = (Serving::upstream(&uri, &[]), Serving::upstream(&uri, &[]));
    let (mut one, mut two) = (first.client(), second.client());
    one.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": &db }).unwrap();
    two.must(&like(1, &db)).unwrap();
    // Its index is there: none can be made beside an open transaction.
    let index = doc! { "key": { "postId": 1 }, "name": "postId_1" };
    one.must(&doc! { "createIndexes": "likes", "indexes": [index], "$db": &db }).unwrap();
    // A transaction of a client of the other proxy that knows of no rule, while one begins.
    let mut open = like(2, &db);
    open.extend(doc! { "lsid": session(31), "txnNumber": 1_i64, "autocommit": false, "startTransaction": true });
    two.must(&open).unwrap();
    one.must(&doc! { "pleach": "apply", "declaration": declaration(&db), "wait": false, "$db": &db }).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(state(&mut one, &db).as_deref(), Some("maintaining"));
    let end = doc! { "lsid": session(31), "txnNumber": 1_i64, "autocommit": false, "$db": "admin" };
    let mut commit = doc! { "commitTransaction": 1 };
    commit.extend(end);
    two.must(&commit).unwrap();
    until("the rule is on", || state(&mut one, &db).as_deref() == Some("on"));
    two.must(&like(3, &db)).unwrap();
    one.must(&like(4, &db)).unwrap();
    assert_eq!(likes(&mut one, &db), Some(Bson::Int32(4)));
    until("the other knows that it is on", || state(&mut two, &db).as_deref() == Some("on"));
    // Dropped by a third, beside both.
    let dropped =
        pleach().args(["drop", "posts.likeCount", "--db", &db, "--upstream", &uri, "--with-data"]).output().unwrap();
    assert!(dropped.status.success(), "{dropped:?}");
    for client in [&mut one, &mut two] {
        until("nobody keeps it", || state(client, &db).is_none());
    }
    two.must(&like(5, &db)).unwrap();
    assert_eq!(likes(&mut two, &db), None);
    one.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_proxy_that_was_paused_writes_nothing_that_it_does_not_know_of() {
    let uri = judge::real::uri().unwrap();
    let db = database("paused");
    let (first, second) = (Serving::upstream(&uri, &[]), Serving::upstream(&uri, &[]));
    let (mut one, mut two) = (first.client(), second.client());
    one.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": &db }).unwrap();
    two.must(&like(1, &db)).unwrap();
    second.signal("STOP");
    // It waits for the lease to end, and not for ever.
    let applied =
        one.command(&doc! { "pleach": "apply", "declaration": declaration(&db), "$db": &db }).unwrap().document;
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    assert_eq!(likes(&mut one, &db), Some(Bson::Int32(1)));
    second.signal("CONT");
    let mut refused = 0;
    until("it writes again", || {
        let reply = two.command(&like(2, &db)).unwrap().document;
        let is_done = reply.contains_key("n");
        if !is_done {
            refused += 1;
            assert_eq!(reply.get_i32("code").unwrap(), 10107, "{reply}");
        }
        is_done
    });
    assert_eq!(likes(&mut one, &db), Some(Bson::Int32(2)), "after {refused} refusals");
    one.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_user_of_one_database_announces_its_proxies_there() {
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path());
    let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key]);
    initiate(&[&mongod]);
    let mut root = mongod.client();
    let user =
        |name: &str, roles: Vec<Bson>| doc! { "createUser": name, "pwd": "s3cret", "roles": roles, "$db": "admin" };
    root.must(&user("root", vec!["root".into()])).unwrap();
    log_in(&mut root, "root", "s3cret").unwrap();
    let roles = |roles: &[&str]| roles.iter().map(|role| doc! { "role": *role, "db": "shop" }.into()).collect();
    root.must(&user("app", roles(&["readWrite", "dbAdmin"]))).unwrap();
    root.must(&user("writer", roles(&["readWrite"]))).unwrap();
    root.must(&doc! { "insert": "posts", "documents": [{ "_id": "p" }], "$db": "shop" }).unwrap();
    let uri = format!("mongodb://app:s3cret@{}/?replicaSet=rs&authSource=admin", mongod.address());
    let (first, second) = (Serving::upstream(&uri, &[]), Serving::upstream(&uri, &[]));
    let announced = doc! { "count": "pleach.processes", "query": { "until": { "$exists": true } }, "$db": "shop" };
    assert_eq!(root.must(&announced).unwrap().get_i32("n").unwrap(), 2);
    let (mut one, mut two) = (first.client(), second.client());
    for client in [&mut one, &mut two] {
        log_in(client, "writer", "s3cret").unwrap();
    }
    two.must(&like(1, "shop")).unwrap();
    one.must(&doc! { "pleach": "apply", "declaration": declaration("shop"), "$db": "shop" }).unwrap();
    two.must(&like(2, "shop")).unwrap();
    assert_eq!(likes(&mut one, "shop"), Some(Bson::Int32(2)));
    // Who may not drop the database may not do so in parts.
    let refused = one.command(&doc! { "dropDatabase": 1, "$db": "shop" }).unwrap().document;
    assert_eq!(refused.get_i32("code").unwrap(), 13, "{refused}");
    assert_eq!(likes(&mut one, "shop"), Some(Bson::Int32(2)));
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
    assert_eq!(root.must(&announced).unwrap().get_i32("n").unwrap(), 0);
}
