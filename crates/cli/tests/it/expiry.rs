//! What expires in front of a real MongoDB goes through the rules (SEMANTICS R7).

use crate::mongod::{Mongod, initiate, until};
use crate::serving::Serving;
use bson::{Bson, DateTime, Document, doc};
use document::Env;
use document::op::{Context, Durability, ReadConcern, Sent};
use judge::client::Client;
use patterns::Patterned;
use patterns::life::Life;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn new_context() -> Context {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Context {
        env: Env { now: i64::try_from(now.as_millis()).unwrap(), ..Env::fixed() },
        read_concern: ReadConcern::default(),
        durability: Durability::default(),
        deadline: None,
        sent: Sent::default(),
    }
}

/// The name and expiry of every index that has one.
fn expiries(client: &mut Client) -> Vec<(String, i64)> {
    let listed = client.must(&doc! { "listIndexes": "logins", "$db": "club" }).unwrap();
    let indexes = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    let expiry = |index: &Bson| {
        let index = index.as_document().unwrap();
        let after = index.get("expireAfterSeconds")?;
        let after = after.as_i64().or_else(|| after.as_i32().map(i64::from)).unwrap();
        Some((index.get_str("name").unwrap().to_owned(), after))
    };
    indexes.iter().filter_map(expiry).collect()
}

fn found(client: &mut Client, collection: &str) -> Vec<Document> {
    let reply = client.must(&doc! { "find": collection, "$db": "club" }).unwrap();
    let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    rows.iter().map(|row| row.as_document().unwrap().clone()).collect()
}

fn is_on(client: &mut Client) -> bool {
    let status = client.command(&doc! { "pleach": "status", "$db": "club" }).unwrap().document;
    let rules = status.get_array("rules").cloned().unwrap_or_default();
    rules
        .iter()
        .any(|rule| rule.as_document().is_some_and(|rule| rule.get_str("state").is_ok_and(|state| state == "on")))
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn documents_that_a_rule_counts_expire_through_it() {
    let eager = ["--replSet", "rs", "--setParameter", "ttlMonitorSleepSecs=1"];
    let mongod = Mongod::start(&eager);
    initiate(&[&mongod]);
    let uri = format!("mongodb://{}/?replicaSet=rs", mongod.address());
    let mut direct = mongod.client();
    let index = |field: &str, after: i32| doc! { "createIndexes": "logins", "indexes": [{ "key": { field: 1 }, "name": field, "expireAfterSeconds": after }], "$db": "club" };
    direct.must(&index("at", 3_600)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let declaration = folder.path().join("pleach.yaml");
    std::fs::write(
        &declaration,
        "database: club\ncollections:\n  members:\n    computed:\n      loginCount: { count: logins, by: memberId }\n",
    )
    .unwrap();
    let plan = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["plan", "--json", "--upstream", &uri, "--declare"])
        .arg(&declaration)
        .output()
        .unwrap();
    let said = String::from_utf8(plan.stdout).unwrap();
    assert!(said.contains("\"expiry\"") && said.contains("2147483647") && plan.status.code() == Some(1), "{said}");
    assert_eq!(expiries(&mut direct), [("at".to_owned(), 3_600)]);

    let proxy = Serving::upstream(&uri, &["--declare", declaration.to_str().unwrap()]);
    let mut client = proxy.client();
    until("the rule is on", || is_on(&mut client));
    let off = [("at".to_owned(), 2_147_483_647)];
    assert_eq!(expiries(&mut direct), off);
    assert_eq!(expiries(&mut client), [("at".to_owned(), 3_600)]);

    // Made through the proxy: without its expiry, and nobody sees that.
    client.must(&index("seen", 1)).unwrap();
    client.must(&index("seen", 1)).unwrap();
    client.must(&index("at", 3_600)).unwrap();
    let other = client.command(&index("seen", 2)).unwrap().document;
    let elsewhere = |after: i32| {
        let mut command = index("seen", after);
        command.insert("createIndexes", "elsewhere");
        command
    };
    direct.must(&elsewhere(1)).unwrap();
    let own = direct.command(&elsewhere(2)).unwrap().document;
    assert_eq!((other.get("code"), other.get("errmsg")), (own.get("code"), own.get("errmsg")));
    assert_eq!(expiries(&mut direct), off);
    assert_eq!(expiries(&mut client), [("at".to_owned(), 3_600), ("seen".to_owned(), 1)]);

    client.must(&doc! { "insert": "members", "documents": [{ "_id": "m" }], "$db": "club" }).unwrap();
    let (past, future) = (DateTime::from_millis(0), DateTime::from_millis(4_000_000_000_000));
    let logins = vec![
        doc! { "_id": 1, "memberId": "m", "seen": past },
        doc! { "_id": 2, "memberId": "m", "at": past },
        doc! { "_id": 3, "memberId": "m", "seen": future, "at": future },
    ];
    client.must(&doc! { "insert": "logins", "documents": logins, "$db": "club" }).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(found(&mut direct, "logins").len(), 3, "MongoDB deleted behind the rule's back");

    // Another process deletes them as planned.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let deleted = runtime.block_on(async {
        let upstream = upstream::Upstream::open(upstream::Uri::parse(&uri).unwrap()).await.unwrap();
        let life = Life::new(&Patterned::new(Arc::new(upstream)), Arc::new(new_context));
        life.load().await.unwrap();
        life.expire().await.unwrap()
    });
    assert_eq!((deleted, found(&mut direct, "logins").len()), (2, 1));
    assert_eq!(found(&mut direct, "members"), [doc! { "_id": "m", "loginCount": 1 }]);

    // Changed through the proxy.
    let modify =
        doc! { "collMod": "logins", "index": { "keyPattern": { "seen": 1 }, "expireAfterSeconds": 7 }, "$db": "club" };
    let reply = client.must(&modify).unwrap();
    let told = |name: &str| reply.get_i64(name).unwrap();
    assert_eq!((told("expireAfterSeconds_old"), told("expireAfterSeconds_new")), (1, 7));
    assert_eq!(expiries(&mut client), [("at".to_owned(), 3_600), ("seen".to_owned(), 7)]);
    client.must(&index("gone", 1)).unwrap();
    client.must(&doc! { "dropIndexes": "logins", "index": "gone", "$db": "club" }).unwrap();
    assert_eq!(expiries(&mut direct), off);

    // The last rule gives everything back.
    client.must(&doc! { "pleach": "drop", "rule": "members.loginCount", "$db": "club" }).unwrap();
    until("the expiry is back", || expiries(&mut direct) == [("at".to_owned(), 3_600), ("seen".to_owned(), 7)]);
    assert_eq!(expiries(&mut client), expiries(&mut direct));
}
