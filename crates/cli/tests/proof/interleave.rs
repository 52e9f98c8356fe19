//! Every interleaving of the steps of two plans, enumerated from the plans themselves: whatever the order, nothing drifts;
//! outside a client's transaction no conflict is seen, inside one it is a transient error at most.

use crate::driver::Tries;
use crate::older;
use crate::scheduler::{Scheduler, orders};
use bson::{Bson, Document, doc};
use document::backend::Session;
use document::{Code, Error};
use patterns::gate::{Gate, Point};
use std::pin::Pin;
use std::sync::Arc;
use testing::registry::{Declared, focus_of, outliers};
use testing::shop::{self, set, visit};
use testing::{Act, Living, Opened, World, is_transient};

/// Two acts that meet, on data of their own: `n` keeps the schedules apart.
struct Pair {
    name: &'static str,
    before: fn(i32) -> Vec<Act>,
    first: fn(i32) -> Act,
    second: fn(i32) -> Act,
    /// What may be answered to the client besides success.
    refused: &'static [Code],
}

fn product(n: i32) -> Act {
    Act::Insert("products", vec![doc! { "_id": n, "price": 10, "cost": 4 }])
}

fn review(n: i32, at: i32) -> Act {
    Act::Insert("reviews", vec![shop::review(format!("{n}-{at}"), n, at, 1)])
}

fn rated(n: i32, at: i32, rating: i32, moment: i32) -> Act {
    Act::Insert("reviews", vec![shop::review(format!("{n}-{at}"), n, rating, moment)])
}

fn unreview(n: i32, at: i32) -> Act {
    Act::Delete("reviews", doc! { "_id": format!("{n}-{at}") }, false)
}

fn rate(n: i32, at: i32, rating: i32) -> Act {
    Act::Update("reviews", doc! { "_id": format!("{n}-{at}") }, set(doc! { "rating": rating }), false, false)
}

fn customer(n: i32) -> Act {
    Act::Insert("customers", vec![shop::customer(n, "Ada", 1)])
}

fn order(n: i32, at: i32) -> Act {
    Act::Insert("orders", vec![doc! { "_id": format!("{n}-{at}"), "customerId": n }])
}

fn rename(n: i32, name: &str) -> Act {
    Act::Update("customers", doc! { "_id": n }, set(doc! { "name": name }), false, false)
}

fn baskets(n: i32, change: Document) -> Act {
    Act::Update("baskets", doc! { "_id": n }, change.into(), false, false)
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
        name: "children are changed together while their parent goes",
        before: |n| vec![product(n), review(n, 1), review(n, 2)],
        first: |n| Act::Update("reviews", doc! { "productId": n }, set(doc! { "rating": 9 }), true, false),
        second: |n| Act::Delete("products", doc! { "_id": n }, false),
        refused: &[],
    },
    Pair {
        name: "the first child goes, and the second one too (G 3)",
        before: |n| vec![product(n), rated(n, 1, 9, 1), rated(n, 2, 5, 2), rated(n, 3, 1, 3)],
        first: |n| unreview(n, 1),
        second: |n| unreview(n, 2),
        refused: &[],
    },
    Pair {
        name: "both children of one value go",
        before: |n| vec![product(n), rated(n, 1, 9, 1), rated(n, 2, 9, 1), rated(n, 3, 1, 1)],
        first: |n| unreview(n, 1),
        second: |n| unreview(n, 2),
        refused: &[],
    },
    Pair {
        name: "the first child goes while one comes between it and the second",
        before: |n| vec![product(n), rated(n, 1, 9, 1), rated(n, 2, 3, 3)],
        first: |n| unreview(n, 1),
        second: |n| rated(n, 3, 5, 2),
        refused: &[],
    },
    Pair {
        name: "two children with the value of the first come before it, one with another",
        before: |n| vec![product(n), rated(n, 1, 5, 30)],
        first: |n| rated(n, 2, 5, 10),
        second: |n| rated(n, 3, 4, 20),
        refused: &[],
    },
    Pair {
        name: "a value comes in the place of another while it comes anew",
        before: |n| vec![product(n), rated(n, 1, 5, 1)],
        first: |n| rate(n, 1, 7),
        second: |n| rated(n, 2, 7, 2),
        refused: &[],
    },
    Pair {
        name: "the last child of a value goes while another comes",
        before: |n| vec![product(n), rated(n, 1, 5, 1)],
        first: |n| unreview(n, 1),
        second: |n| rated(n, 2, 5, 2),
        refused: &[],
    },
    Pair {
        name: "the first child becomes the last while the second goes",
        before: |n| vec![product(n), rated(n, 1, 9, 1), rated(n, 2, 5, 2), rated(n, 3, 3, 3)],
        first: |n| rate(n, 1, 1),
        second: |n| unreview(n, 2),
        refused: &[],
    },
    Pair {
        name: "a parent is made while its first child goes",
        before: |n| vec![rated(n, 1, 9, 1), rated(n, 2, 5, 2)],
        first: product,
        second: |n| unreview(n, 1),
        refused: &[],
    },
    Pair {
        name: "a fourth child beside three of its day",
        before: |n| vec![product(n), review(n, 1), review(n, 2)],
        first: |n| review(n, 3),
        second: |n| review(n, 4),
        refused: &[],
    },
    Pair {
        name: "two visits of one day",
        before: |n| vec![product(n)],
        first: |n| visit(n, 1, 1),
        second: |n| visit(n, 1, 2),
        refused: &[],
    },
    Pair {
        name: "a visit and the product that is visited",
        before: |n| vec![visit(n, 1, 1)],
        first: |n| visit(n, 2, 1),
        second: product,
        refused: &[],
    },
    Pair {
        name: "visits of a day end while there is another one",
        before: |n| vec![product(n), visit(n, 1, 1)],
        first: |n| Act::Delete("visits", doc! { "productId": n }, true),
        second: |n| visit(n, 1, 2),
        refused: &[],
    },
    Pair {
        name: "both sides of an expression change",
        before: |n| vec![product(n)],
        first: |n| Act::Update("products", doc! { "_id": n }, set(doc! { "price": 3 }), false, false),
        second: |n| Act::Update("products", doc! { "_id": n }, set(doc! { "cost": 5 }), false, false),
        refused: &[],
    },
    Pair {
        name: "copies in arrays are filled while a source changes",
        before: |n| vec![product(n), product(-n)],
        first: |n| {
            let items = vec![doc! { "productId": n }, doc! { "productId": -n }];
            Act::Insert("baskets", vec![doc! { "_id": n, "items": items, "productIds": [n, -n] }])
        },
        second: |n| Act::Update("products", doc! { "_id": n }, set(doc! { "price": 3 }), false, false),
        refused: &[],
    },
    Pair {
        name: "an item comes back while one spills",
        before: |n| vec![Act::Insert("baskets", vec![doc! { "_id": n, "productIds": [1, 2, 3] }])],
        first: |n| baskets(n, doc! { "$pull": { "productIds": 1 } }),
        second: |n| baskets(n, doc! { "$push": { "productIds": { "$each": [4, 5] } } }),
        refused: &[],
    },
    Pair {
        name: "items are taken from both parts while their host goes",
        before: |n| vec![Act::Insert("baskets", vec![doc! { "_id": n, "productIds": [1, 2, 3] }])],
        first: |n| baskets(n, doc! { "$pull": { "productIds": { "$in": [1, 3] } } }),
        second: |n| Act::Delete("baskets", doc! { "_id": n }, false),
        refused: &[],
    },
    Pair {
        name: "a copy of a child is filled while the child changes",
        before: |n| vec![product(n), review(n, 1)],
        first: |n| Act::Insert("answers", vec![doc! { "_id": n, "reviewId": format!("{n}-1") }]),
        second: |n| Act::Update("reviews", doc! { "_id": format!("{n}-1") }, set(doc! { "rating": 7 }), false, false),
        refused: &[],
    },
    Pair {
        name: "a copy by another key is filled while its source goes",
        before: |n| vec![customer(n)],
        first: |n| {
            Act::Insert("receipts", vec![doc! { "_id": n, "email": format!("{n}@example.org"), "customerId": n }])
        },
        second: |n| Act::Delete("customers", doc! { "_id": n }, false),
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

impl Pair {
    /// Whether one of its acts is about one of these collections.
    fn concerns(&self, focus: &[String]) -> bool {
        let acts = (self.before)(1).into_iter().chain([(self.first)(1), (self.second)(1)]);
        acts.into_iter().any(|act| focus.iter().any(|name| name == act.collection()))
    }
}

/// All pairs that concern these rules, on one backend; at most so many interleavings of each.
pub(crate) async fn check(opened: &Opened, declared: &Declared, scheduler: Scheduler, most: usize) {
    let scheduler = Arc::new(scheduler);
    let living = Arc::new(shop::open(opened, scheduler.clone(), &declared.collections).await);
    let (focus, has_arrays) = (focus_of(&declared.collections), !outliers(&declared.collections).is_empty());
    let mut next = 1;
    for pair in PAIRS.iter().filter(|pair| pair.concerns(&focus)) {
        for in_transaction in [false, true] {
            let story = format!("{}, {}, transaction {in_transaction}", declared.name, pair.name);
            let mut lengths = Vec::new();
            for act in [pair.first, pair.second] {
                next += 1;
                prepare(&living, pair, next).await;
                let (living, gate, act, story) = (living.clone(), scheduler.clone(), act(next), story.clone());
                let alone: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                    let mut tries = Tries::new();
                    let done = loop {
                        let done = run(&living, &gate, &act, in_transaction).await;
                        if !in_transaction || !tries.again(&done).await {
                            break done;
                        }
                    };
                    done.unwrap_or_else(|error| panic!("{story}, {act:?} alone: {error:?}"));
                });
                lengths.push(scheduler.steps(alone).await);
            }
            assert!(lengths.iter().all(|steps| *steps > 0), "{story}: a plan without steps");
            for order in orders(lengths[0], lengths[1], most) {
                next += 1;
                prepare(&living, pair, next).await;
                let plans = [(pair.first)(next), (pair.second)(next)].map(|act| {
                    let (living, gate) = (living.clone(), scheduler.clone());
                    let plan: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> =
                        Box::pin(async move { run(&living, &gate, &act, in_transaction).await });
                    plan
                });
                let (results, trace) = scheduler.run(plans.into(), &order).await;
                for error in results.into_iter().filter_map(Result::err) {
                    let fine = pair.refused.contains(&error.code()) || (in_transaction && is_transient(&error));
                    assert!(fine, "{story}: {error:?}\n{trace:#?}");
                }
            }
        }
        // Once for both: in a world of many rules this reads more than the plans do.
        living.rest().await;
        assert_eq!(living.drift().await, Vec::<String>::new(), "{}, {}", declared.name, pair.name);
        if has_arrays {
            assert_eq!(living.audit().await, Vec::<Document>::new(), "{}, {}", declared.name, pair.name);
        }
    }
    living.drop_database().await;
}

async fn prepare(living: &Living, pair: &Pair, n: i32) {
    for act in (pair.before)(n) {
        living.act(&act).await.unwrap_or_else(|error| panic!("{}: {error:?}", pair.name));
    }
    older::all(living).await;
}

pub(crate) async fn run(world: &World, scheduler: &Scheduler, act: &Act, in_transaction: bool) -> Result<(), Error> {
    // A plan of one statement has no steps of its own: it is one as a whole.
    scheduler.pass(Point::Begin { attempt: 0 }).await?;
    let mut session = if in_transaction { world.begin().await } else { Session::default() };
    let written = world.act_at(&mut session, act).await?;
    if let Some(failed) = written.errors.into_iter().next() {
        return Err(failed.error);
    }
    match session.transaction.take() {
        Some(transaction) => {
            scheduler.pass(Point::Commit).await?;
            transaction.commit(&world.context()).await
        }
        None => Ok(()),
    }
}
