//! Every interleaving of the steps of two plans, enumerated from the plans themselves: whatever the order, nothing drifts;
//! outside a client's transaction no conflict is seen, inside one it is a transient error at most.

use crate::scheduler::{Scheduler, orders};
use crate::world::{Act, World, is_transient};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::{Code, Error};
use patterns::gate::{Gate, Point};
use std::pin::Pin;
use std::sync::Arc;

/// Two acts that meet, on data of their own: `n` keeps the schedules apart.
struct Pair {
    name: &'static str,
    before: fn(i32) -> Vec<Act>,
    first: fn(i32) -> Act,
    second: fn(i32) -> Act,
    /// What may be answered to the client besides success.
    refused: &'static [Code],
}

fn set(change: Document) -> Bson {
    Bson::Document(doc! { "$set": change })
}

fn product(n: i32) -> Act {
    Act::Insert("products", vec![doc! { "_id": n, "price": 10, "cost": 4 }])
}

fn review(n: i32, at: i32) -> Act {
    Act::Insert("reviews", vec![doc! { "_id": format!("{n}-{at}"), "productId": n, "rating": at }])
}

fn tick(n: i32, at: i32) -> Act {
    let when = bson::DateTime::from_millis(i64::from(at) * 1_000);
    Act::Insert("ticks", vec![doc! { "_id": format!("{n}-{at}"), "productId": n, "at": when, "amount": at }])
}

fn customer(n: i32) -> Act {
    Act::Insert("customers", vec![doc! { "_id": n, "name": "Ada", "tier": 1 }])
}

fn order(n: i32, at: i32) -> Act {
    Act::Insert("orders", vec![doc! { "_id": format!("{n}-{at}"), "customerId": n }])
}

fn rename(n: i32, name: &str) -> Act {
    Act::Update("customers", doc! { "_id": n }, set(doc! { "name": name }), false, false)
}

const PAIRS: &[Pair] = &[
    Pair {
        name: "a parent and its first child (G 4)",
        before: |_| vec![],
        first: product,
        second: |n| review(n, 1),
        refused: &[],
    },
    Pair {
        name: "two children of one parent",
        before: |n| vec![product(n)],
        first: |n| review(n, 1),
        second: |n| review(n, 2),
        refused: &[],
    },
    Pair {
        name: "a child and the end of its parent",
        before: |n| vec![product(n)],
        first: |n| review(n, 1),
        second: |n| Act::Delete("products", doc! { "_id": n }, false),
        refused: &[],
    },
    Pair {
        name: "a child moves while another goes",
        before: |n| vec![product(n), product(-n), review(n, 1), review(n, 2)],
        first: |n| Act::Update("reviews", doc! { "productId": n }, set(doc! { "productId": -n }), true, false),
        second: |n| Act::Delete("reviews", doc! { "_id": format!("{n}-2") }, false),
        refused: &[],
    },
    Pair {
        name: "one child changed twice",
        before: |n| vec![product(n), review(n, 1)],
        first: |n| Act::Update("reviews", doc! { "_id": format!("{n}-1") }, set(doc! { "rating": 5 }), false, false),
        second: |n| Act::Modify("reviews", doc! { "_id": format!("{n}-1") }, None),
        refused: &[],
    },
    Pair {
        name: "a child and a new version of its parent",
        before: |n| vec![product(n)],
        first: |n| review(n, 1),
        second: |n| {
            Act::Update("products", doc! { "_id": n }, Bson::Document(doc! { "price": 3, "cost": 1 }), false, false)
        },
        refused: &[],
    },
    Pair {
        name: "a parent upserted twice, and a child",
        before: |n| vec![review(n, 7)],
        first: |n| Act::Update("products", doc! { "_id": n }, set(doc! { "price": 5 }), false, true),
        second: |n| review(n, 1),
        refused: &[],
    },
    Pair {
        name: "into the filter and out of it",
        before: |n| {
            vec![
                product(n),
                Act::Insert("sales", vec![doc! { "_id": n, "productId": n, "amount": 2.5, "status": "open" }]),
            ]
        },
        first: |n| Act::Update("sales", doc! { "_id": n }, set(doc! { "status": "paid" }), false, false),
        second: |n| Act::Update("sales", doc! { "productId": n }, set(doc! { "amount": 7 }), true, false),
        refused: &[],
    },
    Pair {
        name: "a parent and its first reading, in a bucket (R34)",
        before: |_| vec![],
        first: product,
        second: |n| tick(n, 1),
        refused: &[],
    },
    Pair {
        name: "two readings of one parent and bucket",
        before: |n| vec![product(n), tick(n, 1)],
        first: |n| tick(n, 2),
        second: |n| tick(n, 3),
        refused: &[],
    },
    Pair {
        name: "a reading moves to another parent while one of its bucket goes",
        before: |n| vec![product(n), product(-n), tick(n, 1), tick(n, 2)],
        first: |n| Act::Update("ticks", doc! { "_id": format!("{n}-1") }, set(doc! { "productId": -n }), false, false),
        second: |n| Act::Delete("ticks", doc! { "_id": format!("{n}-2") }, false),
        refused: &[],
    },
    Pair {
        name: "readings are changed together while their parent goes",
        before: |n| vec![product(n), tick(n, 1), tick(n, 2)],
        first: |n| Act::Update("ticks", doc! { "productId": n }, set(doc! { "amount": -1 }), true, false),
        second: |n| Act::Delete("products", doc! { "_id": n }, false),
        refused: &[],
    },
    Pair {
        name: "a copy is filled while its source changes (G 1)",
        before: |n| vec![customer(n)],
        first: |n| order(n, 1),
        second: |n| rename(n, "Bob"),
        refused: &[],
    },
    Pair {
        name: "a copy is filled while its source appears",
        before: |_| vec![],
        first: |n| order(n, 1),
        second: customer,
        refused: &[],
    },
    Pair {
        name: "a reference is moved while the new source changes",
        before: |n| vec![customer(n), customer(-n), order(n, 1)],
        first: |n| {
            Act::Update("orders", doc! { "_id": format!("{n}-1") }, set(doc! { "customerId": -n }), false, false)
        },
        second: |n| rename(-n, "Bob"),
        refused: &[],
    },
    Pair {
        name: "a source changes twice",
        before: |n| vec![customer(n), order(n, 1), order(n, 2)],
        first: |n| rename(n, "Bob"),
        second: |n| rename(n, "Eve"),
        refused: &[],
    },
    Pair {
        name: "a copy of a copy is filled while the first source changes",
        before: |n| vec![customer(n), order(n, 1)],
        first: |n| Act::Insert("invoices", vec![doc! { "_id": n, "orderId": format!("{n}-1") }]),
        second: |n| rename(n, "Bob"),
        refused: &[],
    },
    Pair {
        name: "reject against an insert",
        before: |n| vec![customer(n)],
        first: |n| Act::Insert("contracts", vec![doc! { "_id": n, "customerId": n }]),
        second: |n| Act::Delete("customers", doc! { "_id": n }, false),
        refused: &[Code::OperationFailed],
    },
    Pair {
        name: "cascade against an insert",
        before: |n| vec![customer(n), Act::Insert("notes", vec![doc! { "_id": -n, "customerId": n }])],
        first: |n| Act::Insert("notes", vec![doc! { "_id": n, "customerId": n }]),
        second: |n| Act::Delete("customers", doc! { "_id": n }, false),
        refused: &[],
    },
    Pair {
        name: "unset against a move",
        before: |n| {
            vec![
                customer(n),
                order(n, 1),
                order(n, 2),
                Act::Insert("invoices", vec![doc! { "_id": n, "orderId": format!("{n}-2") }]),
            ]
        },
        first: |n| Act::Update("invoices", doc! { "_id": n }, set(doc! { "orderId": format!("{n}-1") }), false, false),
        second: |n| Act::Delete("orders", doc! { "_id": format!("{n}-1") }, false),
        refused: &[],
    },
];

/// All pairs on one backend; at most so many interleavings of each.
pub(crate) async fn check(
    inner: Arc<dyn Backend>,
    folder: Option<tempfile::TempDir>,
    scheduler: Scheduler,
    most: usize,
) {
    let scheduler = Arc::new(scheduler);
    let world = Arc::new(World::new(inner, folder, scheduler.clone()).await);
    let mut next = 1;
    for pair in PAIRS {
        for in_transaction in [false, true] {
            let mut lengths = Vec::new();
            for act in [pair.first, pair.second] {
                next += 1;
                prepare(&world, pair, next).await;
                let (world_, scheduler_, n) = (world.clone(), scheduler.clone(), next);
                let alone: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                    run(&world_, &scheduler_, &act(n), in_transaction).await.unwrap();
                });
                lengths.push(scheduler.steps(alone).await);
            }
            assert!(lengths.iter().all(|steps| *steps > 0), "{}: a plan without steps", pair.name);
            for order in orders(lengths[0], lengths[1], most) {
                next += 1;
                prepare(&world, pair, next).await;
                let plans = [(pair.first)(next), (pair.second)(next)].map(|act| {
                    let (world, scheduler) = (world.clone(), scheduler.clone());
                    let plan: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> =
                        Box::pin(async move { run(&world, &scheduler, &act, in_transaction).await });
                    plan
                });
                let (results, trace) = scheduler.run(plans.into(), &order).await;
                for result in results {
                    if let Err(error) = result {
                        let fine = pair.refused.contains(&error.code()) || (in_transaction && is_transient(&error));
                        assert!(fine, "{}, transaction {in_transaction}: {error:?}\n{trace:#?}", pair.name);
                    }
                }
            }
            let drift = world.drift().await;
            assert!(drift.is_empty(), "{}, transaction {in_transaction}: {drift:#?}", pair.name);
        }
    }
}

async fn prepare(world: &World, pair: &Pair, n: i32) {
    for act in (pair.before)(n) {
        let written = world.write(&act).await.unwrap();
        assert!(written.errors.is_empty(), "{}: {:?}", pair.name, written.errors);
    }
}

pub(crate) async fn run(world: &World, scheduler: &Scheduler, act: &Act, in_transaction: bool) -> Result<(), Error> {
    // A plan of one statement has no steps of its own: it is one as a whole.
    scheduler.pass(Point::Begin { attempt: 0 }).await?;
    let mut session = Session::default();
    if in_transaction {
        world.begin(&mut session).await?;
    }
    let written = world.write_at(&mut session, act).await?;
    if let Some(failed) = written.errors.into_iter().next() {
        return Err(failed.error);
    }
    match session.transaction.take() {
        Some(transaction) => {
            scheduler.pass(Point::Commit).await?;
            transaction.commit(&crate::world::context()).await
        }
        None => Ok(()),
    }
}
