//! Shapes: values do not matter, everything else does; fingerprint and description say the same.

use super::{Command, Statement, describe, fingerprint};
use crate::raw::{Doc, DocWriter, Text};
use crate::value::Value;
use bson::{RawDocumentBuf, rawdoc};

fn shape(body: &RawDocumentBuf) -> (u64, String) {
    let body = Doc::trusted(body.as_bytes());
    let (name, target) = body.iter().next().unwrap();
    let command = Command {
        name,
        collection: Text::from(target.as_str().unwrap().to_owned()),
        body: body.clone(),
        statement: None,
    };
    let statement = Statement::of(&command);
    let described = describe("shop", &command, &statement);
    (fingerprint("shop", &command, &statement), crate::value::show::document(&described).to_string())
}

fn shows(body: RawDocumentBuf, expected: &str) {
    assert_eq!(shape(&body).1, expected);
}

#[test]
fn values_do_not_matter() {
    let alike: &[(RawDocumentBuf, RawDocumentBuf)] = &[
        (
            rawdoc! { "find": "orders", "filter": { "customerId": 1 } },
            rawdoc! { "find": "orders", "filter": { "customerId": "x" } },
        ),
        (
            rawdoc! { "find": "orders", "limit": 3, "filter": { "_id": { "$in": [1, 2] } }, "lsid": { "id": 1 } },
            rawdoc! { "find": "orders", "filter": { "_id": { "$in": [] } }, "limit": 99 },
        ),
        (
            rawdoc! { "find": "orders", "filter": { "$or": [{ "a": 1, "b": 2 }, { "a": 2, "b": 3 }, { "a": 7, "b": 3 }] } },
            rawdoc! { "find": "orders", "filter": { "$or": [{ "a": 1, "b": 2 }] } },
        ),
        (
            rawdoc! { "aggregate": "orders", "pipeline": [{ "$match": { "d": { "$gt": 5 } } }, { "$limit": 3 }] },
            rawdoc! { "aggregate": "orders", "pipeline": [{ "$match": { "d": { "$gt": 6 } } }, { "$limit": 4 }] },
        ),
    ];
    for (one, other) in alike {
        assert_eq!(shape(one), shape(other));
    }
}

#[test]
fn everything_else_matters() {
    let all = [
        rawdoc! { "find": "orders", "filter": { "a": 1 } },
        rawdoc! { "find": "others", "filter": { "a": 1 } },
        rawdoc! { "count": "orders", "filter": { "a": 1 } },
        rawdoc! { "find": "orders", "filter": { "b": 1 } },
        rawdoc! { "find": "orders", "filter": { "a": { "$gt": 1 } } },
        rawdoc! { "find": "orders", "filter": { "a": 1 }, "sort": { "b": 1 } },
        rawdoc! { "find": "orders", "filter": { "a": 1 }, "sort": { "b": -1 } },
        rawdoc! { "find": "orders", "filter": { "a": 1 }, "projection": { "b": 1 } },
        rawdoc! { "find": "orders", "filter": { "a": 1 }, "projection": { "b": 0 } },
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$lookup": { "from": "users", "localField": "u", "foreignField": "_id", "as": "x" } }] },
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$lookup": { "from": "admins", "localField": "u", "foreignField": "_id", "as": "x" } }] },
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$group": { "_id": "$a" } }] },
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$group": { "_id": "$b" } }] },
    ];
    let mut numbers: Vec<u64> = all.iter().map(|body| shape(body).0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all.len());
}

#[test]
fn a_shape_is_described() {
    shows(
        rawdoc! { "find": "orders", "filter": { "status": "paid", "date": { "$gte": 1, "$lt": 2 } }, "sort": { "date": -1 } },
        r#"{ ns: "shop.orders", command: "find", filter: [ "status $eq", "date $gte", "date $lt" ], sort: [ "date -1" ] }"#,
    );
    shows(
        rawdoc! { "aggregate": "reviews", "pipeline": [
            { "$match": { "productId": 1 } },
            { "$group": { "_id": "$productId", "n": { "$sum": 1 }, "stars": { "$avg": "$rating" } } },
        ] },
        r#"{ ns: "shop.reviews", command: "aggregate", stages: [ { $match: [ "productId $eq" ] }, { $group: { by: [ "$productId" ], fold: [ "n $sum ?", "stars $avg $rating" ] } } ] }"#,
    );
    shows(
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$lookup": {
            "from": "customers", "let": { "c": "$customerId" },
            "pipeline": [{ "$match": { "$expr": { "$eq": ["$_id", "$$c"] } } }, { "$project": { "name": 1 } }], "as": "customer",
        } }] },
        r#"{ ns: "shop.orders", command: "aggregate", stages: [ { $lookup: { from: "customers", let: [ "c $customerId" ], stages: [ { $match: [ "$expr $eq $_id $$c" ] }, { $project: [ "name" ] } ], as: "customer" } } ] }"#,
    );
    shows(
        rawdoc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "price": 2 }, "$inc": { "n": 1 } } }] },
        r#"{ ns: "shop.products", command: "update", filter: [ "_id $eq" ], changes: [ "price $set", "n $inc" ] }"#,
    );
    shows(
        rawdoc! { "find": "orders", "projection": { "total": 1, "_id": 0, "items": { "$slice": 3 }, "last": { "$arrayElemAt": ["$items", 0] } } },
        r#"{ ns: "shop.orders", command: "find", projection: [ "total", "_id 0", "items $slice ?", "last $arrayElemAt $items ?" ] }"#,
    );
    shows(
        rawdoc! { "aggregate": "orders", "pipeline": [{ "$project": { "city": "$address.city", "b": true, "c": false } }] },
        r#"{ ns: "shop.orders", command: "aggregate", stages: [ { $project: [ "city $address.city", "b", "c 0" ] } ] }"#,
    );
    shows(
        rawdoc! { "distinct": "orders", "key": "city", "query": { "a": 1 } },
        r#"{ ns: "shop.orders", command: "distinct", key: "city", filter: [ "a $eq" ] }"#,
    );
}

#[test]
fn bytes_from_outside_are_walked_without_harm() {
    let mut deep = rawdoc! { "$and": [] };
    for _ in 0..300 {
        deep = rawdoc! { "$and": [deep] };
    }
    let (number, text) = shape(&rawdoc! { "find": "c", "filter": deep });
    assert!(number != 0 && text.len() < 200, "{text}");
    let mut wide = DocWriter::new();
    for index in 0..5_000 {
        wide.append(&format!("p{index}"), &Value::Int32(index));
    }
    let wide = RawDocumentBuf::from_bytes(wide.finish().as_bytes().to_vec()).unwrap();
    let (_, text) = shape(&rawdoc! { "find": "c", "filter": wide.clone() });
    assert!(text.len() < 4_000, "{}", text.len());
    let whole = rawdoc! { "find": "c", "filter": wide, "sort": { "a": 1 } };
    for cut in 5..80 {
        let torn = &whole.as_bytes()[..cut];
        let command = Command {
            name: Text::borrowed("find"),
            collection: Text::borrowed("c"),
            body: Doc::trusted(torn),
            statement: None,
        };
        let _ = fingerprint("shop", &command, &Statement::of(&command));
    }
}
