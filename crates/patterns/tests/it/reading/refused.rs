//! What a view cannot do, in MongoDB's words and with the name of what is stored.

use super::shop::*;
use crate::harness::*;
use bson::doc;
use document::backend::{Backend, Class, Front, Head, Route, Session};
use document::op::{AdminOp, Find, ReadOp};
use document::{Doc, Value};

#[test]
fn indexes_and_streams_belong_to_the_stored_collection() {
    run(async {
        let world = world(sensors(DB), vec![doc! { "_id": 1, "sensorId": 1, "ts": at(START) }]).await;
        let index = Doc::from(doc! { "key": { "temp": 1 }, "name": "temp" });
        for op in [
            AdminOp::CreateIndexes { ns: ns(LOGICAL), indexes: vec![index] },
            AdminOp::ListIndexes { ns: ns(LOGICAL) },
            AdminOp::DropIndexes { ns: ns(LOGICAL), which: Value::from("*") },
        ] {
            let refused = world.front.admin(&mut Session::default(), &context(), op).await.unwrap_err();
            assert_eq!(refused.code().number(), 166);
            assert_eq!(refused.message(), "Namespace shop.logical is a view, not a collection");
            assert!(refused.hint().unwrap().contains("'shop.stored'"), "{:?}", refused.hint());
        }
        let stream = Doc::from(doc! { "aggregate": LOGICAL, "pipeline": [{ "$changeStream": {} }] });
        let head = |target| Head {
            name: "aggregate",
            class: Class::Aggregate,
            db: "shop",
            target: Some(target),
            user: None,
            body: &stream,
        };
        assert_eq!(world.front.refuse(&head(LOGICAL), None).await.unwrap_err().code().number(), 166);
        world.front.refuse(&head(STORED), None).await.unwrap();
        let hidden = ReadOp::Find(Find { show_record_id: true, ..find(LOGICAL, doc! {}) });
        let refused = world.read(&mut Session::default(), hidden).await.unwrap_err();
        assert_eq!(told(&refused), (168, "Option showRecordId not supported in aggregation.".to_owned()));
    });
}

fn class(name: &str) -> Class {
    match name {
        "find" => Class::Find,
        "count" => Class::Count,
        "distinct" => Class::Distinct,
        "aggregate" => Class::Aggregate,
        "createIndexes" => Class::CreateIndexes,
        other => panic!("which class is {other}?"),
    }
}

#[test]
fn what_is_planned_does_not_pass() {
    run(async {
        let world = world(sensors(DB), Vec::new()).await;
        let passes = |body: bson::Document| {
            let body = Doc::from(body);
            let (name, target) = body.iter().next().map(|(name, target)| (name.to_string(), target)).unwrap();
            let head =
                Head { name: &name, class: class(&name), db: "shop", target: target.as_str(), user: None, body: &body };
            world.front.route_of(&head) == Route::Forward
        };
        for (planned, body) in [
            (true, doc! { "find": LOGICAL }),
            (true, doc! { "count": LOGICAL, "query": { "temp": 1 } }),
            (true, doc! { "distinct": LOGICAL, "key": "temp" }),
            (true, doc! { "aggregate": LOGICAL, "pipeline": [{ "$match": {} }] }),
            (true, doc! { "aggregate": LOGICAL, "pipeline": [{ "$changeStream": {} }] }),
            (true, doc! { "createIndexes": LOGICAL, "indexes": [] }),
            (false, doc! { "find": PLAIN }),
            (false, doc! { "find": STORED }),
            (
                false,
                doc! { "aggregate": PLAIN, "pipeline": [{ "$lookup": { "from": LOGICAL, "localField": "a", "foreignField": "b", "as": "c" } }] },
            ),
            // Only a real MongoDB can answer these, from its own view.
            (false, doc! { "aggregate": LOGICAL, "pipeline": [{ "$setWindowFields": {} }] }),
            (false, doc! { "find": LOGICAL, "collation": { "locale": "de" } }),
        ] {
            assert_eq!(passes(body.clone()), !planned, "{body}");
        }
    });
}
