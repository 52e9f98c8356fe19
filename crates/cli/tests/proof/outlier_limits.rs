//! What stays embedded of an array that overflows: so many items and bytes, whatever the items become; and items that may be there
//! once, whichever part they are in (SEMANTICS R18).

use crate::failing::Failing;
use crate::outliers::{items, update_of};
use bson::{Bson, Document, doc};
use document::op::{UpdateStatement, Written};
use std::sync::Arc;
use testing::{Living, Opened, shop};

const NAMES: &str = "overflow: more, owner: userId, item: followerId, flag: hasOverflow, count: followerCount";

async fn declared(opened: &Opened, limits: &str) -> Living {
    let living = Living::of(shop::empty(opened, Arc::new(Failing::default())).await);
    living.life.limit_database(&living.db);
    living.set_rules(&format!("users:\n  outlier:\n    followers: {{ {limits}, {NAMES} }}")).await;
    living.rest().await;
    living
}

async fn update(living: &Living, spec: Document, filters: &[Document]) -> Written {
    let statement = testing::statement(doc! { "_id": 1 }, doc! { "$set": { "x": 1 } }, &[]);
    let statement = UpdateStatement { update: update_of(spec, filters), ..statement };
    living.write(testing::updates(living.ns("users"), vec![statement], true)).await.unwrap()
}

/// What is embedded, and all items in their order.
async fn arrays(living: &Living) -> (Vec<Bson>, Vec<Bson>) {
    let embedded = items(&living.find("users", doc! { "_id": 1 }).await[0]);
    let mut rows = living.find("users.followers", doc! { "userId": 1 }).await;
    rows.sort_by_key(|row| row.get_i32("index").unwrap());
    (embedded, rows.iter().map(|row| row.get("followerId").unwrap().clone()).collect())
}

/// Embedded items that grow go to the overflow, in front of what is there already.
pub(crate) async fn by_bytes(opened: &Opened) {
    let living = declared(opened, "keep: 100, keep_bytes: 1000").await;
    let item = |n: i32| doc! { "n": n, "t": "x".repeat(100) };
    living.did(testing::insert(living.ns("users"), vec![doc! { "_id": 1, "followers": [] }])).await;
    for n in 0..12 {
        update(&living, doc! { "$push": { "followers": item(n) } }, &[]).await;
    }
    let numbers = |items: &[Bson]| -> Vec<i32> {
        items.iter().map(|item| item.as_document().unwrap().get_i32("n").unwrap()).collect()
    };
    let (embedded, all) = arrays(&living).await;
    assert_eq!((numbers(&embedded).len(), numbers(&all)), (7, (0..12).collect()));
    for (text, filters, fit) in [("$[]", vec![], 3), ("$[x]", vec![doc! { "x.n": { "$gte": 1 } }], 3), ("1", vec![], 1)]
    {
        let size = if text == "1" { 900 } else { 300 };
        let grown = doc! { "$set": { format!("followers.{text}.t"): "y".repeat(size) } };
        let written = update(&living, grown, &filters).await;
        assert_eq!((written.n, written.errors.len()), (1, 0), "{text}");
        let (embedded, all) = arrays(&living).await;
        assert_eq!((numbers(&embedded).len(), numbers(&all)), (fit, (0..12).collect()), "{text}");
    }
    let shrunk = doc! { "$set": { "followers.$[].t": "" } };
    update(&living, shrunk, &[]).await;
    update(&living, doc! { "$pull": { "followers": { "n": 3 } } }, &[]).await;
    let (embedded, all) = arrays(&living).await;
    assert_eq!((numbers(&embedded).len(), numbers(&all).len()), (11, 11));
    living.assert_clean().await;
    living.drop_database().await;
}

/// No item is there twice, however it came to be what it is; two may change places.
pub(crate) async fn once(opened: &Opened) {
    let living = declared(opened, "keep: 2, unique: true").await;
    living.did(testing::insert(living.ns("users"), vec![doc! { "_id": 1, "followers": [1, 2, 3, 4, 5] }])).await;
    let one = |n: i32| vec![doc! { "x": n }];
    for (spec, filters) in [
        (doc! { "$push": { "followers": 1 } }, vec![]),
        (doc! { "$push": { "followers": 4 } }, vec![]),
        (doc! { "$push": { "followers": { "$each": [8, 8] } } }, vec![]),
        // Into one that is embedded, one that overflows, and back.
        (doc! { "$set": { "followers.$[x]": 2 } }, one(1)),
        (doc! { "$set": { "followers.$[x]": 4 } }, one(1)),
        (doc! { "$set": { "followers.$[x]": 1 } }, one(4)),
        (doc! { "$set": { "followers.$[x]": 3 } }, one(4)),
        (doc! { "$set": { "followers.0": 5 } }, vec![]),
        (doc! { "$set": { "followers.$[]": 7 } }, vec![]),
        (doc! { "$set": { "followers": [6, 6] } }, vec![]),
    ] {
        let outcome = update(&living, spec.clone(), &filters).await;
        let codes: Vec<i32> = outcome.errors.iter().map(|failed| failed.error.code().number()).collect();
        assert_eq!(codes, [11000], "{spec}");
        let (_, all) = arrays(&living).await;
        assert_eq!(all, [1, 2, 3, 4, 5].map(Bson::from), "{spec}");
    }
    // Each becomes what the next was.
    let written = update(&living, doc! { "$inc": { "followers.$[]": 1 } }, &[]).await;
    assert_eq!((written.n, written.modified, written.errors.len()), (1, 1, 0));
    assert_eq!(arrays(&living).await.1, [2, 3, 4, 5, 6].map(Bson::from));
    update(&living, doc! { "$addToSet": { "followers": { "$each": [6, 7] } } }, &[]).await;
    assert_eq!(arrays(&living).await.1, [2, 3, 4, 5, 6, 7].map(Bson::from));
    living.assert_clean().await;
    living.drop_database().await;
}

/// An upsert that names a document and does not match it makes none, and leaves the one that is there and its overflow alone.
pub(crate) async fn named_and_not_matched(opened: &Opened) {
    let living = declared(opened, "keep: 2").await;
    living.did(testing::insert(living.ns("users"), vec![doc! { "_id": 1, "followers": [1, 2, 3, 4], "x": 0 }])).await;
    for query in [doc! { "_id": 1, "followers": { "$in": [8, 9] } }, doc! { "_id": 1, "x": 5 }] {
        for spec in [
            doc! { "$push": { "followers": 5 } },
            doc! { "$set": { "followers": [5, 6, 7, 8] } },
            doc! { "$unset": { "followers": 1 } },
            doc! { "$set": { "x": 9 } },
            doc! { "followers": [5, 6, 7, 8] },
        ] {
            let upsert = testing::update(living.ns("users"), query.clone(), spec.clone(), &["upsert"]);
            let written = living.write(upsert).await.unwrap();
            let error = &written.errors[0].error;
            let told = (written.n, written.upserted.len(), error.code().number(), error.message().contains(" _id_ "));
            assert_eq!(told, (0, 0, 11000, true), "{query} {spec}: {}", error.message());
            assert_eq!(arrays(&living).await.1, [1, 2, 3, 4].map(Bson::from), "{query} {spec}");
        }
    }
    living.assert_clean().await;
    living.drop_database().await;
}
