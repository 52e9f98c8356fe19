//! A filter on an array that more owners match than are carried to where hosts are stored (SEMANTICS R18).

use crate::failing::Failing;
use bson::{Document, doc};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Count, Distinct, FindAndModify, Modify, ReadOp, SortKey, SortSpec, WriteOp};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Doc, Value};
use std::sync::Arc;
use testing::{Living, Opened, shop};

/// More than are carried.
const OWNERS: i32 = 10_050;
/// Others, without the item.
const OTHERS: i32 = 20;

fn filter(query: Document) -> Filter {
    Filter::parse(&Doc::from(query), &mut Names::new()).unwrap()
}

async fn count(living: &Living, session: &mut Session, query: Document) -> i64 {
    let ns = living.ns("users");
    let op = ReadOp::Count(Count { ns, filter: filter(query), skip: 0, limit: None, hint: None });
    let rows = living.read(session, op).await.unwrap();
    rows[0].get("n").and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from))).unwrap()
}

pub(crate) async fn very_many(opened: &Opened) {
    let living = Living::of(shop::empty(opened, Arc::new(Failing::default())).await);
    living.life.limit_database(&living.db);
    let host = |id: i32| doc! { "_id": id, "followers": [], "hasOverflow": true, "followerCount": 1 };
    let row =
        |id: i32| doc! { "userId": id, "followerId": if id < OWNERS { "everybody" } else { "somebody" }, "index": 0 };
    for from in (0..OWNERS + OTHERS).step_by(2_000) {
        let part = || from..(from + 2_000).min(OWNERS + OTHERS);
        living.behind(testing::insert(living.ns("users"), part().map(host).collect())).await;
        living.behind(testing::insert(living.ns("more"), part().map(row).collect())).await;
    }
    let names = "overflow: more, owner: userId, item: followerId, flag: hasOverflow, count: followerCount";
    living.set_rules(&format!("users:\n  outlier:\n    followers: {{ keep: 0, {names} }}")).await;
    living.rest().await;
    let mut none = Session::default();
    let everybody = || doc! { "followers": "everybody" };
    assert_eq!(count(&living, &mut none, everybody()).await, i64::from(OWNERS));
    assert_eq!(count(&living, &mut none, doc! { "followers": { "$ne": "everybody" } }).await, i64::from(OTHERS));
    let both = doc! { "followers": { "$all": ["everybody", "somebody"] } };
    assert_eq!(count(&living, &mut none, both).await, 0);
    let either = doc! { "followers": { "$in": ["everybody", "somebody"] }, "_id": { "$gte": OWNERS - 5 } };
    assert_eq!(count(&living, &mut none, either).await, i64::from(OTHERS) + 5);
    // The documents are as they are stored, and nothing that was joined is left in them.
    let found = living.find("users", doc! { "followers": "everybody", "_id": { "$lt": 3 } }).await;
    assert_eq!(found, (0..3).map(host).collect::<Vec<_>>());
    let key = Path::new("followerCount");
    let distinct = ReadOp::Distinct(Distinct { ns: living.ns("users"), key, filter: filter(everybody()), hint: None });
    assert_eq!(living.read(&mut none, distinct).await.unwrap()[0].get_array("values").unwrap().len(), 1);

    // In a client's own transaction.
    let mut session = living.begin().await;
    assert_eq!(count(&living, &mut session, everybody()).await, i64::from(OWNERS));
    session.transaction.take().unwrap().abort();

    // Statements: about many, about one, and in an order.
    let seen = doc! { "$set": { "seen": true } };
    let query = doc! { "followers": "everybody", "_id": { "$gte": OWNERS - 600 } };
    let written = living.did(testing::update(living.ns("users"), query, seen.clone(), &["multi"])).await;
    assert_eq!(written.n, 600);
    assert_eq!(count(&living, &mut none, doc! { "seen": true }).await, 600);
    let written = living.did(testing::update(living.ns("users"), everybody(), seen, &[])).await;
    assert_eq!(written.n, 1);
    let remove = testing::find_and_modify(living.ns("users"), everybody(), Modify::Remove);
    let sort = SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending: true }] };
    let remove = FindAndModify { sort: Some(sort), ..remove };
    let written = living.did(WriteOp::FindAndModify(Box::new(remove))).await;
    assert_eq!(written.document.unwrap().get("_id"), Some(Value::Int32(OWNERS - 1)));
    living.did(testing::delete(living.ns("users"), everybody(), false)).await;
    assert_eq!(count(&living, &mut none, everybody()).await, i64::from(OWNERS) - 2);
    assert_eq!(living.find("more", doc! { "followerId": "everybody" }).await.len(), OWNERS as usize - 2);
    living.drop_database().await;
}
