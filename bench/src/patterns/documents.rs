//! Patterns of single documents: an old document read through the lens of its versions, a filter by a field that a version has moved,
//! a push onto an array that overflows, its pages, an item that comes and goes. They stand beside the same on a collection that no rule concerns, through the same door.

use super::cases::{Case, Key, find, update};
use super::data::FIRST_PARENT;
use super::{KEPT, PLAIN};
use crate::connection::Connection;
use crate::doors::Door;
use crate::seeding::all_on;
use crate::template::{ID_MARK, KEY_MARK};
use crate::workload::fill_in;
use anyhow::{Result, bail};
use bson::{Document, doc};
use std::time::{Duration, Instant};

const USERS: i64 = 100_000;
const FANS: i64 = 10_000;
/// The owner of an array that overflows a thousand times.
const CELEBRITY: i64 = 7;
const MANY: i64 = 1_000_000;

/// The collections without rules, beside those with.
const BESIDE_USERS: &str = "users_beside";
const BESIDE_FANS: &str = "fans_beside";

pub(super) fn cases() -> Vec<Case> {
    let by_number =
        |collection: &str| doc! { "find": collection, "filter": { "phone.number": KEY_MARK }, "singleBatch": true };
    let push =
        |collection: &str| update(collection, doc! { "_id": KEY_MARK }, doc! { "$push": { "items": ID_MARK } }, false);
    let case = |name: &str, writes, key, kept: Document, beside: Document| Case {
        name: name.to_owned(),
        clients: 1,
        writes,
        key,
        none: vec![beside.clone()],
        by_hand: vec![beside],
        pleach: vec![kept],
        same_door: true,
    };
    let (any_user, any_fan) = (Key::Any(USERS), Key::Any(FANS));
    vec![
        case("versions: find an old document by _id", false, any_user, find("users"), find(BESIDE_USERS)),
        case(
            "versions: find old documents by a moved path",
            false,
            any_user,
            by_number("users"),
            by_number(BESIDE_USERS),
        ),
        case("outlier: push, a short array", true, any_fan, push("fans"), push(BESIDE_FANS)),
        // The other ways are about a short array: one of a million items would not fit into a document.
        Case {
            none: vec![push(BESIDE_FANS)],
            by_hand: vec![push("fans")],
            ..case("outlier: push, a million items", true, any_fan, of_celebrity(&push("fans")), push("fans"))
        },
        Case {
            none: come_and_go(BESIDE_FANS),
            by_hand: come_and_go("fans"),
            pleach: come_and_go("fans").iter().map(of_celebrity).collect(),
            ..case("outlier: an item comes and goes, a million", true, any_fan, doc! {}, doc! {})
        },
        page("outlier: a page near the front", 1_000),
        page("outlier: a page near the end", 900_000),
    ]
}

/// The same about the owner of the million.
fn of_celebrity(command: &Document) -> Document {
    let mut command = command.clone();
    for statement in command.get_array_mut("updates").into_iter().flatten().filter_map(bson::Bson::as_document_mut) {
        if let Ok(filter) = statement.get_document_mut("q") {
            filter.insert("_id", CELEBRITY);
        }
    }
    command
}

fn come_and_go(collection: &str) -> Vec<Document> {
    let change =
        |operator: &str| update(collection, doc! { "_id": KEY_MARK }, doc! { operator: { "items": ID_MARK } }, false);
    vec![change("$push"), change("$pull")]
}

/// Twenty items of the million, beside those of the collection that they are stored in, and a short array whole.
fn page(name: &str, from: i64) -> Case {
    let page = |collection: &str| {
        doc! {
            "find": collection, "filter": { "fanId": CELEBRITY, "index": { "$gte": KEY_MARK } }, "sort": { "index": 1 },
            "limit": 20, "singleBatch": true,
        }
    };
    Case {
        name: name.to_owned(),
        clients: 1,
        writes: false,
        key: Key::One(from),
        none: vec![doc! { "find": BESIDE_FANS, "filter": { "_id": FIRST_PARENT }, "singleBatch": true }],
        by_hand: vec![page("fan_items")],
        pleach: vec![page("fans.items")],
        same_door: true,
    }
}

/// The rules of these cases. Old documents stay old.
fn declaration() -> Document {
    doc! { "database": KEPT, "collections": {
        "users": { "versions": {
            "field": "schemaVersion",
            "steps": [{ "nest": { "phone": { "into": "phone.number", "with": { "phone.countryCode": "+1" } } } }],
            "migrate": { "background": false },
        } },
        "fans": { "outlier": { "items": { "keep": 500, "overflow": "fan_items", "owner": "fanId", "item": "item" } } },
    } }
}

pub(super) async fn load(door: &Door) -> Result<()> {
    let mut plain = Connection::open(&door.plain.address).await?;
    let mut kept = Connection::open(&door.kept.address).await?;
    emptied(&mut plain, PLAIN).await?;
    without_rules(&mut kept, KEPT).await?;
    for (connection, db) in [(&mut plain, PLAIN), (&mut kept, KEPT)] {
        for users in ["users", BESIDE_USERS] {
            let index = |path: &str| doc! { "key": { path: 1 }, "name": format!("{path}_1") };
            let indexes = vec![index("phone"), index("phone.number")];
            connection.command(&doc! { "createIndexes": users, "indexes": indexes, "$db": db }).await?;
            let is_old = users == "users" && db == KEPT;
            fill_in(connection, db, users, USERS, |i| {
                let number = FIRST_PARENT + i;
                let common = doc! { "_id": FIRST_PARENT + i, "name": "a name", "text": "x".repeat(200) };
                let phone = match is_old {
                    true => doc! { "phone": number },
                    false => doc! { "phone": { "number": number, "countryCode": "+1" }, "schemaVersion": 2 },
                };
                common.into_iter().chain(phone).collect()
            })
            .await?;
        }
        for fans in ["fans", BESIDE_FANS] {
            fill_in(connection, db, fans, FANS, |i| doc! { "_id": FIRST_PARENT + i, "items": [1_i64, 2_i64] }).await?;
        }
    }
    kept.command(&doc! { "pleach": "apply", "declaration": declaration(), "$db": KEPT }).await?;
    wait_until_on(&mut kept, KEPT).await?;
    let owner = doc! { "_id": CELEBRITY, "items": [] };
    kept.command(&doc! { "insert": "fans", "documents": [owner], "$db": KEPT }).await?;
    let mut next = 0;
    while next < MANY {
        let items: Vec<i64> = (next..next + 5_000).collect();
        let mut push =
            update("fans", doc! { "_id": CELEBRITY }, doc! { "$push": { "items": { "$each": items } } }, false);
        push.insert("$db", KEPT);
        kept.command(&push).await?;
        next += 5_000;
    }
    Ok(())
}

/// A database without documents and without the rules of an earlier run, which would take what is loaded for theirs.
pub(super) async fn without_rules(kept: &mut Connection, db: &str) -> Result<()> {
    emptied(kept, db).await?;
    let status = kept.command(&doc! { "pleach": "status", "$db": db }).await?;
    for rule in status.get_array("rules")?.iter().filter_map(|rule| rule.as_document()?.get_str("rule").ok()) {
        kept.command(&doc! { "pleach": "drop", "rule": rule, "$db": db }).await?;
    }
    let start = Instant::now();
    while !kept.command(&doc! { "pleach": "status", "$db": db }).await?.get_array("rules")?.is_empty() {
        if start.elapsed() > Duration::from_secs(60) {
            bail!("rules of an earlier run do not go");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    emptied(kept, db).await
}

async fn emptied(connection: &mut Connection, db: &str) -> Result<()> {
    connection.command(&doc! { "dropDatabase": 1, "$db": db }).await.map(drop)
}

pub(super) async fn wait_until_on(kept: &mut Connection, db: &str) -> Result<()> {
    let start = Instant::now();
    loop {
        let status = kept.command(&doc! { "pleach": "status", "$db": db }).await?;
        if all_on(&status)? {
            return Ok(());
        }
        if start.elapsed() > Duration::from_secs(300) {
            bail!("the rules are still not on: {status}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
