//! The shop that proofs play in, and its clients. The declarations of the registries are written in its words: a field or a shape
//! that is listed with a block about these collections meets all of what clients do here.
//!
//! | collection | fields |
//! | --- | --- |
//! | `products` | `price`, `cost` |
//! | `reviews` | `productId`, `rating` (of any type), `at` (a date), `shelf`, `weight` |
//! | `sales` | `sold: { productId, amount }`, `status` (`open` or `paid`) |
//! | `visits` | `productId`, `at` (the start of a day), `n`: one document for each of both |
//! | `baskets` | `items: [{ productId }]`, `productIds: […]` |
//! | `customers` | `name`, `tier`, `email` (unique) |
//! | `orders`, `notes`, `contracts` | `customerId`; `n` |
//! | `receipts` | `customerId`, `email` |
//! | `invoices`, `answers` | `orderId`, `reviewId` |
//! | `days`, `shelves`, `wanted` | what rules make there |

use crate::{Act, Living, Opened, World};
use bson::{Bson, DateTime, Document, doc};
use document::backend::Session;
use document::op::AdminOp;
use patterns::gate::Gate;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

pub const COLLECTIONS: &[&str] = &[
    "answers",
    "baskets",
    "contracts",
    "customers",
    "days",
    "invoices",
    "notes",
    "orders",
    "products",
    "receipts",
    "reviews",
    "sales",
    "shelves",
    "visits",
    "wanted",
];

/// What is the same with rules and without: policies of deletes change the others.
pub const COMPARED: &[&str] = &["baskets", "customers", "orders", "products", "receipts", "reviews", "sales", "visits"];

const DAY: i64 = 86_400_000;

pub fn set(change: Document) -> Bson {
    Bson::Document(doc! { "$set": change })
}

/// A review of a product, on one of few days.
pub fn review(id: impl Into<Bson>, product: i32, rating: impl Into<Bson>, moment: i32) -> Document {
    let at = DateTime::from_millis(i64::from(moment % 4) * DAY + i64::from(moment));
    doc! { "_id": id.into(), "productId": product, "rating": rating.into(), "at": at, "shelf": product % 2, "weight": moment % 9 }
}

pub fn customer(id: i32, name: &str, tier: i32) -> Document {
    doc! { "_id": id, "name": name, "tier": tier, "email": format!("{id}@example.org") }
}

/// One more visit of a product on a day.
pub fn visit(product: i32, day: i32, n: i32) -> Act {
    let at = DateTime::from_millis(i64::from(day) * DAY);
    let more = Bson::Document(doc! { "$inc": { "n": n } });
    Act::Update("visits", doc! { "productId": product, "at": at }, more, false, true)
}

/// A fresh database of the shop; nothing is declared.
pub async fn empty(opened: &Opened, gate: Arc<dyn Gate>) -> World {
    let world = World::fresh(opened.clone(), gate).await;
    for name in COLLECTIONS {
        let op = AdminOp::Create { ns: world.ns(name), options: Default::default() };
        world.inner().admin(&mut Session::default(), &world.context(), op).await.unwrap();
    }
    world
}

/// The same with these rules on; no background work runs.
pub async fn open(opened: &Opened, gate: Arc<dyn Gate>, collections: &str) -> Living {
    let living = Living::of(empty(opened, gate).await);
    // Without a lease it would take the rules of every database for its own, and bring on what the proof beside it is bringing on.
    living.life.limit_database(&living.db);
    if !collections.is_empty() {
        living.set_rules(collections).await;
        living.rest().await;
    }
    living
}

/// A client that does something at random, always the same by one seed. Statements about one document name it, so that its
/// choice does not depend on how documents are stored.
pub struct Client {
    pub random: StdRng,
    reviews: Vec<i32>,
}

impl Client {
    pub fn new(seed: u64) -> Client {
        Client { random: StdRng::seed_from_u64(seed), reviews: vec![0] }
    }

    /// Of any type.
    fn rating(&mut self, number: i32) -> Bson {
        match self.random.random_range(0..8) {
            0 => Bson::Double(0.1 * f64::from(number)),
            1 => Bson::Int64(i64::from(number)),
            2 => Bson::String("no number".into()),
            3 => Bson::Double(f64::NAN),
            4 => "2.50".parse::<bson::Decimal128>().map(Bson::Decimal128).unwrap(),
            _ => Bson::Int32(number),
        }
    }

    /// Act number `at`.
    pub fn act(&mut self, at: i32) -> Act {
        let key = self.random.random_range(0..5);
        let other = self.random.random_range(0..6);
        let number = self.random.random_range(0..6);
        let rating = self.rating(number);
        let one = doc! { "_id": *self.reviews.choose(&mut self.random).unwrap_or(&0) };
        let of_product = doc! { "productId": key };
        let mut renamed = customer(key, &format!("n{number}"), other);
        renamed.remove("_id");
        let status = if number > 2 { "paid" } else { "open" };
        let update = |collection, query, change, multi| Act::Update(collection, query, change, multi, false);
        let upsert = |collection, id: i32, change| Act::Update(collection, doc! { "_id": id }, change, false, true);
        match self.random.random_range(0..36) {
            0 => upsert("products", key, set(doc! { "price": number })),
            1 => upsert("products", key, Bson::Document(doc! { "price": number, "cost": 1 })),
            2 => Act::Delete("products", doc! { "_id": key }, false),
            3 => {
                let bump = doc! { "$set": { "cost": { "$add": ["$price", 1] } } };
                update("products", doc! {}, Bson::Array(vec![bump.into()]), true)
            }
            4..=8 => {
                let ids: Vec<i32> = (0..self.random.random_range(1..4)).map(|i| at * 10 + i).collect();
                self.reviews.extend(&ids);
                let review = |id: &i32| review(*id, (key + id) % 5, rating.clone(), *id);
                Act::Insert("reviews", ids.iter().map(review).collect())
            }
            9 => update("reviews", of_product, set(doc! { "productId": other }), true),
            10 => update("reviews", one, set(doc! { "rating": rating }), false),
            11 => {
                let mut whole = review(0, other, rating, at);
                whole.remove("_id");
                update("reviews", one, whole.into(), false)
            }
            12 => update("reviews", one, Bson::Document(doc! { "$unset": { "productId": 1 } }), false),
            13 => Act::Modify("reviews", one, Some(doc! { "$set": { "rating": rating, "weight": number } })),
            14 => Act::Modify("reviews", one, None),
            15 => Act::Delete("reviews", doc! { "productId": key, "_id": { "$mod": [2, 0] } }, true),
            16 => update(
                "reviews",
                doc! { "productId": key, "shelf": 0 },
                set(doc! { "shelf": number, "rating": rating }),
                true,
            ),
            17 | 18 => {
                let sold = doc! { "productId": key, "amount": rating };
                Act::Insert("sales", vec![doc! { "_id": at, "sold": sold, "status": status }])
            }
            19 => update("sales", doc! { "sold.productId": key }, set(doc! { "status": status }), true),
            20 => Act::Delete("sales", doc! { "sold.productId": key }, true),
            21 => upsert("customers", key, set(renamed)),
            22 => Act::Delete("customers", doc! { "_id": key }, false),
            23 => Act::Insert("orders", vec![doc! { "_id": at, "customerId": key, "n": number }]),
            24 => update("orders", doc! { "customerId": key }, set(doc! { "customerId": other }), true),
            25 => update("orders", doc! { "_id": { "$lt": at } }, Bson::Document(doc! { "$inc": { "n": 1 } }), true),
            26 => Act::Insert(
                "receipts",
                vec![doc! { "_id": at, "customerId": key, "email": format!("{other}@example.org") }],
            ),
            27 => Act::Insert("notes", vec![doc! { "_id": at, "customerId": key }]),
            28 => upsert("invoices", key, set(doc! { "orderId": at - number })),
            29 => upsert("answers", key, set(doc! { "reviewId": one.get("_id") })),
            30 => {
                let items = [key, other].map(|id| doc! { "productId": id });
                upsert("baskets", number, set(doc! { "items": items.to_vec(), "productIds": [other, key] }))
            }
            31 => upsert("baskets", number, Bson::Document(doc! { "$push": { "items": { "productId": key } } })),
            32 => {
                let change = match number {
                    0 | 1 => doc! { "$pull": { "productIds": other } },
                    2 => doc! { "$pull": { "items": { "productId": other } } },
                    _ => doc! { "$addToSet": { "productIds": key } },
                };
                upsert("baskets", key, Bson::Document(change))
            }
            33 | 34 => visit(key, number, other + 1),
            _ => Act::Delete("visits", of_product, true),
        }
    }
}
