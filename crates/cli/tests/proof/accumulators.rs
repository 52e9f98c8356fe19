//! What rules keep is what MongoDB's own accumulators give (`$topN`, `$first`, `$last`, `$min`, `$max`, the size of `$addToSet`), over
//! random documents of all types: after random changes each stored value is compared with the accumulator of the same server.

use crate::failing::Failing;
use bson::{Bson, Document, bson, doc};
use document::backend::Session;
use document::op::{Aggregate, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::order;
use document::{Doc, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use testing::shop::{self, set};
use testing::{Act, Living, Opened};

const RULES: &str = "products:
  subset:
    newest: { from: reviews, by: productId, sort: { at: -1 }, keep: 3, fields: [at, n] }
    whole: { from: reviews, by: productId, sort: { n: 1, at: -1 }, keep: 2 }
    untold: { from: reviews, by: productId, sort: { at: 1 }, keep: 2, fields: { number: n } }
    inside: { from: reviews, by: productId, sort: { in.at: -1 }, keep: 2, fields: { id: _id, at: in.at } }
  computed:
    first: { first: n, from: reviews, by: productId, sort: { at: 1 } }
    last: { last: n, from: reviews, by: productId, sort: { at: 1 } }
    least: { min: n, from: reviews, by: productId }
    most: { max: at, from: reviews, by: productId }
    leastInside: { min: in.at, from: reviews, by: productId }
    mostInside: { max: in.at, from: reviews, by: productId, where: { n: { $ne: 2 } } }
    different: { distinct: at, from: reviews, by: productId }
    differentInside: { distinct: in.at, from: reviews, by: productId, where: { n: { $ne: 2 } } }
    elements: { distinct: at, each_value: true, from: reviews, by: productId }";

/// The same, as accumulators over the children. `$topN` takes arrays on a sorted path otherwise than `$sort`, whose order is the
/// declared one: there the first of those that are pushed in order.
const NAMES: [&str; 13] = [
    "newest",
    "whole",
    "untold",
    "inside",
    "first",
    "last",
    "least",
    "most",
    "leastInside",
    "mostInside",
    "different",
    "differentInside",
    "elements",
];

fn by_accumulator(name: &str, has_arrays: bool) -> Vec<Document> {
    let top = |n: i32, by: Document, output: Bson| match has_arrays {
        false => vec![
            doc! { "$group": { "_id": "$productId", "v": { "$topN": { "n": n, "sortBy": by, "output": output } } } },
        ],
        true => vec![
            doc! { "$sort": by },
            doc! { "$group": { "_id": "$productId", "v": { "$push": output } } },
            doc! { "$project": { "v": { "$slice": ["$v", n] } } },
        ],
    };
    let of = |accumulator: &str, path: &str| doc! { "$group": { "_id": "$productId", "v": { accumulator: path } } };
    let size = doc! { "$set": { "v": { "$size": "$v" } } };
    let other_than_two = doc! { "$match": { "n": { "$ne": 2 } } };
    match name {
        "least" => vec![of("$min", "$n")],
        "most" => vec![of("$max", "$at")],
        "leastInside" => vec![of("$min", "$in.at")],
        "mostInside" => vec![other_than_two, of("$max", "$in.at")],
        "different" => vec![of("$addToSet", "$at"), size],
        "differentInside" => vec![other_than_two, of("$addToSet", "$in.at"), size],
        // Null is a value, and stays where it is no array.
        "elements" => {
            let elements = doc! { "$set": { "at": { "$cond": [{ "$isArray": "$at" }, "$at", { "$cond": [{ "$eq": [{ "$type": "$at" }, "missing"] }, [], ["$at"]] }] } } };
            vec![elements, doc! { "$unwind": "$at" }, of("$addToSet", "$at"), size]
        }
        "newest" => top(3, doc! { "at": -1, "_id": 1 }, bson!({ "at": "$at", "n": "$n" })),
        "whole" => top(2, doc! { "n": 1, "at": -1, "_id": 1 }, bson!("$$ROOT")),
        "untold" => top(2, doc! { "at": 1, "_id": 1 }, bson!({ "number": "$n" })),
        "inside" => top(2, doc! { "in.at": -1, "_id": 1 }, bson!({ "id": "$_id", "at": "$in.at" })),
        // By its greatest element an array may be last that is not by its least: last is first from the other end.
        "last" if has_arrays => vec![
            doc! { "$sort": { "at": -1, "_id": -1 } },
            doc! { "$group": { "_id": "$productId", "v": { "$first": "$n" } } },
        ],
        end => vec![
            doc! { "$sort": { "at": 1, "_id": 1 } },
            doc! { "$group": { "_id": "$productId", "v": { format!("${end}"): "$n" } } },
        ],
    }
}

/// Of any type, often equal to another; no array, where `arrays` is not set: MongoDB does not sort by two of them.
fn value(random: &mut StdRng, arrays: bool) -> Bson {
    let number = random.random_range(0..4);
    match random.random_range(0..if arrays { 18 } else { 15 }) {
        0 => Bson::Null,
        1 => Bson::Int64(number.into()),
        2 => Bson::Double(number.into()),
        3 => Bson::Double(f64::NAN),
        4 => "1.0".parse::<bson::Decimal128>().map(Bson::Decimal128).unwrap(),
        5 => Bson::String(format!("text {number}")),
        6 => bson!({ "a": number }),
        7 => Bson::Boolean(number > 1),
        8 => Bson::DateTime(bson::DateTime::from_millis(number.into())),
        9 => Bson::ObjectId(bson::oid::ObjectId::from_bytes([1; 12])),
        10 => Bson::Timestamp(bson::Timestamp { time: 1, increment: 2 }),
        11 => [Bson::MinKey, Bson::MaxKey].choose(random).unwrap().clone(),
        12 => Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1] }),
        13 => {
            Bson::RegularExpression(bson::Regex { pattern: "x".try_into().unwrap(), options: "".try_into().unwrap() })
        }
        15 => bson!([]),
        16 => bson!([number, 9, 1]),
        17 => bson!([[number], null]),
        _ => Bson::Int32(number),
    }
}

fn child(random: &mut StdRng, id: Option<i32>, arrays: bool) -> Document {
    let mut child = doc! { "productId": random.random_range(0..3) };
    if let Some(id) = id {
        child.insert("_id", id);
    }
    if random.random_bool(0.9) {
        child.insert("at", value(random, arrays));
    }
    if random.random_bool(0.9) {
        child.insert("n", value(random, false));
    }
    child.insert(
        "in",
        match random.random_range(0..4) {
            0 if arrays => bson!([{ "at": value(random, false) }, {}]),
            1 => value(random, arrays),
            _ => bson!({ "at": value(random, arrays) }),
        },
    );
    child
}

enum Kind {
    Window,
    End,
    Extreme,
    Distinct,
}

fn kind(name: &str) -> Kind {
    match name {
        "first" | "last" => Kind::End,
        "least" | "most" | "leastInside" | "mostInside" => Kind::Extreme,
        "different" | "differentInside" | "elements" => Kind::Distinct,
        _ => Kind::Window,
    }
}

/// What a host without children has.
fn empty(name: &str) -> Bson {
    match kind(name) {
        Kind::Window => bson!([]),
        Kind::End | Kind::Extreme => Bson::Null,
        Kind::Distinct => Bson::Int32(0),
    }
}

async fn compare(living: &Living, has_arrays: bool, story: &str) {
    let products = living.sorted("products").await;
    for name in NAMES {
        let stages: document::Array<'static> =
            by_accumulator(name, has_arrays).into_iter().map(|stage| Value::Document(Doc::from(stage))).collect();
        let op = ReadOp::Aggregate(Aggregate {
            ns: living.ns("reviews"),
            collectionless: false,
            pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
            hint: None,
            allow_disk_use: true,
            collation: None,
        });
        let given = living.read(&mut Session::default(), op).await.unwrap();
        for product in &products {
            let row = given.iter().find(|row| row.get("_id") == product.get("_id"));
            let expected = row.map_or_else(|| empty(name), |row| row.get("v").unwrap().clone());
            let stored = product.get(name).cloned().unwrap();
            let is_same = match kind(name) {
                // Of equal numbers of different types either is right.
                Kind::Extreme => order::equal(&Value::from(stored.clone()), &Value::from(expected.clone())),
                // As text: NaN differs from itself.
                _ => format!("{stored:?}") == format!("{expected:?}"),
            };
            assert!(is_same, "{story}: {name} of {:?}: {stored:?} instead of {expected:?}", product.get("_id"));
        }
    }
}

pub(crate) async fn check(opened: &Opened, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let living = shop::open(opened, Arc::new(Failing::default()), RULES).await;
        let (mut random, arrays) = (StdRng::seed_from_u64(seed), seed % 2 == 1);
        living.act(&Act::Insert("products", (0..3).map(|id| doc! { "_id": id }).collect())).await.unwrap();
        for step in 0..40 {
            let one = doc! { "_id": random.random_range(0..step + 1) };
            let act = match random.random_range(0..8) {
                0 => Act::Delete("reviews", one, false),
                1 => Act::Update("reviews", one, child(&mut random, None, arrays).into(), false, false),
                2 => Act::Update("reviews", one, set(doc! { "at": value(&mut random, arrays) }), false, false),
                3 => Act::Update("reviews", one, set(doc! { "n": value(&mut random, false) }), false, false),
                4 => Act::Update("reviews", doc! { "productId": 1 }, set(doc! { "productId": 2 }), true, false),
                _ => Act::Insert("reviews", vec![child(&mut random, Some(step), arrays)]),
            };
            living.act(&act).await.unwrap();
            compare(&living, arrays, &format!("seed {seed}, step {step}: {act:?}")).await;
        }
        living.drop_database().await;
    }
}
