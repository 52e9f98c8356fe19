//! SEMANTICS R12: sixteen writers of one host's children, with every fold on that host at once. They insert, edit, move, and again and
//! again take the first, the last and the largest away. No conflict reaches them, and in the end every value is what its definition
//! says.

use crate::failing::Failing;
use bson::{Bson, Document, doc};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use testing::shop::{self, review, set};
use testing::{Act, Opened, World};

const WRITERS: i32 = 16;

/// Each fold, with and without `where`; the second window does not hold what it is sorted by.
const RULES: &str = "products:
  computed:
    number: { count: reviews, by: productId }
    total: { sum: rating, from: reviews, by: productId }
    mean: { avg: rating, from: reviews, by: productId }
    lowest: { min: rating, from: reviews, by: productId }
    highest: { max: rating, from: reviews, by: productId }
    highestOfLight: { max: rating, from: reviews, by: productId, where: { weight: { $lt: 4 } } }
    oldest: { first: rating, from: reviews, by: productId, sort: { at: 1 } }
    newest: { last: rating, from: reviews, by: productId, sort: { at: 1 } }
    weights: { distinct: weight, from: reviews, by: productId }
  subset:
    best: { from: reviews, by: productId, sort: { rating: -1 }, keep: 3, fields: [rating] }
    heaviest: { from: reviews, by: productId, sort: { weight: -1 }, keep: 3, fields: { stars: rating } }
";

/// In front of a real MongoDB the writers are those of two processes.
pub(crate) async fn check(opened: &Opened, seed: u64, acts: i32) {
    let first = shop::open(opened, Arc::new(Failing::default()), RULES).await;
    let products = vec![doc! { "_id": 1 }, doc! { "_id": 2 }];
    first.act(&Act::Insert("products", products)).await.unwrap();
    let second = opened.engine.is_none().then(|| first.another().declaring(RULES));
    let (first, second) = (Arc::new(first), second.map(Arc::new));
    let writers = (0..WRITERS).map(|writer| {
        let (first, second) = (first.clone(), second.clone());
        tokio::spawn(async move {
            let world: &World = match &second {
                Some(second) if writer % 2 == 1 => second,
                _ => &first,
            };
            write(world, writer, StdRng::seed_from_u64(seed + writer as u64), acts).await
        })
    });
    let mut taken = 0;
    for writer in writers.collect::<Vec<_>>() {
        taken += writer.await.unwrap();
    }
    assert!(taken > WRITERS, "{taken} extremes were deleted");
    assert_eq!(first.drift().await, Vec::<String>::new());
    let host = first.one("products", 1).await;
    let children = first.find("reviews", doc! { "productId": 1 }).await;
    let ratings = children.iter().map(|child| child.get_i32("rating").unwrap());
    assert!(children.len() > 16, "{host}");
    assert_eq!(host.get("number"), Some(&Bson::Int32(children.len() as i32)));
    assert_eq!(host.get("highest"), ratings.clone().max().map(Bson::Int32).as_ref());
    assert_eq!(host.get("lowest"), ratings.min().map(Bson::Int32).as_ref());
    first.drop_database().await;
}

/// Returns how often it deleted what the host had a value of.
async fn write(world: &World, writer: i32, mut random: StdRng, acts: i32) -> i32 {
    let mut taken = 0;
    for number in 0..acts {
        let rating = random.random_range(0..100);
        let act = match random.random_range(0..8) {
            // What keeps the host's values: whoever is slower deletes nothing.
            0..=2 => match extreme(world, &mut random).await {
                Some(id) => {
                    taken += 1;
                    Act::Delete("reviews", doc! { "_id": id }, false)
                }
                None => continue,
            },
            3 => match one(world, &mut random).await {
                Some(id) => Act::Update("reviews", doc! { "_id": id }, set(doc! { "rating": rating }), false, false),
                None => continue,
            },
            4 => match extreme(world, &mut random).await {
                Some(id) => Act::Update("reviews", doc! { "_id": id }, set(doc! { "productId": 2 }), false, false),
                None => continue,
            },
            5 => {
                let back = Bson::Document(doc! { "$set": { "productId": 1 }, "$inc": { "weight": 1 } });
                Act::Update("reviews", doc! { "productId": 2, "rating": { "$gt": rating } }, back, true, false)
            }
            _ => {
                let child =
                    |n: i32| review((writer + 1) * 10_000 + number * 10 + n, 1, (rating + 7 * n) % 100, rating + n);
                Act::Insert("reviews", (0..4).map(child).collect())
            }
        };
        world.act(&act).await.unwrap_or_else(|error| panic!("{act:?}: {error:?}"));
    }
    taken
}

/// The child that gives the host one of its values now.
async fn extreme(world: &World, random: &mut StdRng) -> Option<Bson> {
    let children = world.find("reviews", doc! { "productId": 1 }).await;
    let number = |child: &Document, path: &str| child.get_i32(path).unwrap();
    let found = match random.random_range(0..4) {
        0 => children.iter().max_by_key(|child| number(child, "rating")),
        1 => children.iter().min_by_key(|child| number(child, "rating")),
        2 => children.iter().max_by_key(|child| number(child, "weight")),
        _ => children.iter().max_by_key(|child| child.get_datetime("at").copied().unwrap()),
    };
    found.and_then(|child| child.get("_id").cloned())
}

async fn one(world: &World, random: &mut StdRng) -> Option<Bson> {
    let children = world.find("reviews", doc! { "productId": 1 }).await;
    children.choose(random).and_then(|child| child.get("_id").cloned())
}
