//! What rules keep by an order is what MongoDB's own accumulators give (`$topN`, `$first`, `$last`), over random documents of all types:
//! after random changes each stored value is compared with the accumulator of the same server.

use crate::failing::Failing;
use bson::{Bson, Document, bson, doc};
use document::Doc;
use document::backend::Session;
use document::op::{Aggregate, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
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
    last: { last: n, from: reviews, by: productId, sort: { at: 1 } }";

/// The same, as accumulators over the children. `$topN` takes arrays on a sorted path otherwise than `$sort`, whose order is the
/// declared one: there the first of those that are pushed in order.
const NAMES: [&str; 6] = ["newest", "whole", "untold", "inside", "first", "last"];

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
    match name {
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

async fn compare(living: &Living, has_arrays: bool, story: &str) {
    let products = living.sorted("products").await;
    for name in NAMES {
        let stages: document::Array<'static> = by_accumulator(name, has_arrays)
            .into_iter()
            .map(|stage| document::Value::Document(Doc::from(stage)))
            .collect();
        let op = ReadOp::Aggregate(Aggregate {
            ns: living.ns("reviews"),
            collectionless: false,
            pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
            hint: None,
            allow_disk_use: true,
        });
        let given = living.read(&mut Session::default(), op).await.unwrap();
        for product in &products {
            let row = given.iter().find(|row| row.get("_id") == product.get("_id"));
            let empty = if ["first", "last"].contains(&name) { Bson::Null } else { bson!([]) };
            let expected = row.map_or(empty, |row| row.get("v").unwrap().clone());
            // As text: NaN differs from itself.
            let (stored, expected) = (format!("{:?}", product.get(name)), format!("{:?}", Some(expected)));
            assert_eq!(stored, expected, "{story}: {name} of {:?}", product.get("_id"));
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
