//! The life of a rule against clients, step by step: seeding against a change of what it evaluates (SEMANTICS R2), a job
//! against a second change of its source (R13). Each transaction of the life is about one host, and what the client does
//! concerns the second of three: it falls before, at and behind the position.

use crate::interleave::run;
use crate::scheduler::Scheduler;
use bson::{Bson, Document, doc};
use document::Error;
use patterns::gate::{Gate, Point};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::pin::Pin;
use std::sync::Arc;
use testing::registry::{beside_versions, between, is_deferred, merged, owned, some};
use testing::shop::{self, set as setting};
use testing::{Act, Living, Opened, is_transient};

/// What the life does meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Seed,
    Jobs,
}

struct Schedule {
    name: &'static str,
    work: Work,
    /// The listed blocks that it is run with, one after the other.
    rules: fn() -> Vec<&'static str>,
    /// Before the rules are declared.
    before: fn() -> Vec<Act>,
    /// Under the rules: what a job comes from.
    cause: fn() -> Vec<Act>,
    client: fn() -> Act,
}

fn set(collection: &'static str, id: i32, change: Document) -> Act {
    Act::Update(collection, doc! { "_id": id }, setting(change), false, false)
}

fn shop() -> Vec<Act> {
    let reviews = (1..=9).map(|n| shop::review(n, (n - 1) % 3 + 1, n, n)).collect();
    vec![Act::Insert("products", (1..=3).map(|n| doc! { "_id": n }).collect()), Act::Insert("reviews", reviews)]
}

fn shop_without_the_second() -> Vec<Act> {
    let mut acts = shop();
    acts.push(Act::Delete("products", doc! { "_id": 2 }, false));
    acts
}

fn office() -> Vec<Act> {
    let customers = vec![shop::customer(7, "Ada", 1), shop::customer(8, "Bob", 2)];
    let mut orders: Vec<Document> = (1..=3).map(|n| doc! { "_id": n, "customerId": 7 }).collect();
    orders.push(doc! { "_id": 4, "customerId": 9 });
    vec![Act::Insert("customers", customers), Act::Insert("orders", orders.clone()), Act::Insert("receipts", orders)]
}

fn nothing() -> Vec<Act> {
    Vec::new()
}

fn rename(name: &str) -> Act {
    set("customers", 7, doc! { "name": name })
}

fn renamed() -> Vec<Act> {
    vec![rename("Eve")]
}

fn reviewed() -> Vec<Act> {
    vec![Act::Insert("reviews", vec![shop::review(20, 1, 5, 3), shop::review(21, 2, 5, 4)])]
}

macro_rules! schedules {
    ($($name:literal, $work:ident, $rules:expr, $before:ident, $cause:ident, $client:expr;)*) => {
        &[$(Schedule { name: $name, work: Work::$work, rules: $rules, before: $before, cause: $cause, client: || $client }),*]
    };
}

/// What is made of reviews …
fn of_reviews() -> Vec<&'static str> {
    between("products", "reviews").into_iter().filter(|block| !is_deferred(block)).collect()
}

/// … and later.
fn of_reviews_later() -> Vec<&'static str> {
    between("products", "reviews").into_iter().filter(|block| is_deferred(block)).collect()
}

fn of_customers() -> Vec<&'static str> {
    between("orders", "customers")
}

fn of_customers_later() -> Vec<&'static str> {
    between("receipts", "customers").into_iter().filter(|block| is_deferred(block)).collect()
}

const SCHEDULES: &[Schedule] = schedules![
    "seeding against a new child", Seed, of_reviews, shop, nothing,
        Act::Insert("reviews", vec![shop::review(10, 2, 5, 1)]);
    "seeding against a changed child", Seed, of_reviews, shop, nothing, set("reviews", 2, doc! { "rating": 50 });
    "seeding against a child that goes", Seed, of_reviews, shop, nothing,
        Act::Modify("reviews", doc! { "productId": 2 }, None);
    "seeding against a child that moves ahead", Seed, of_reviews, shop, nothing, set("reviews", 1, doc! { "productId": 3 });
    "seeding against a child that moves back", Seed, of_reviews, shop, nothing, set("reviews", 3, doc! { "productId": 1 });
    "seeding against a child of every host", Seed, of_reviews, shop, nothing,
        Act::Insert("reviews", (1..=3).map(|n| shop::review(10 + n, n, 1, n)).collect());
    "seeding against a new host", Seed, of_reviews, shop_without_the_second, nothing,
        Act::Insert("products", vec![doc! { "_id": 2 }]);
    "seeding against a new version of a host", Seed, of_reviews, shop, nothing,
        Act::Update("products", doc! { "_id": 2 }, Bson::Document(doc! { "price": 3 }), false, false);
    "seeding against the end of a host", Seed, of_reviews, shop, nothing, Act::Delete("products", doc! { "_id": 2 }, false);
    "seeding copies against a change of the source", Seed, of_customers, office, nothing, rename("Eve");
    "seeding copies against the end of the source", Seed, of_customers, office, nothing,
        Act::Delete("customers", doc! { "_id": 7 }, false);
    "seeding copies against a source that appears", Seed, of_customers, office, nothing,
        Act::Insert("customers", vec![doc! { "_id": 9, "name": "Flo" }]);
    "seeding copies against a re-point", Seed, of_customers, office, nothing, set("orders", 2, doc! { "customerId": 8 });
    "seeding copies against a new host", Seed, of_customers, office, nothing,
        Act::Insert("orders", vec![doc! { "_id": 0, "customerId": 7 }]);
    "a job against a second change of the source", Jobs, of_customers_later, office, renamed, rename("Flo");
    "a job against a new dependant", Jobs, of_customers_later, office, renamed,
        Act::Insert("receipts", vec![doc! { "_id": 0, "customerId": 7 }]);
    "a job against the end of the source", Jobs, of_customers_later, office, renamed,
        Act::Delete("customers", doc! { "_id": 7 }, false);
    "a job against a re-point", Jobs, of_customers_later, office, renamed, set("receipts", 2, doc! { "customerId": 8 });
    "a job against the end of a dependant", Jobs, of_customers_later, office, renamed,
        Act::Delete("receipts", doc! { "_id": 2 }, false);
    "a deferred count against a second child", Jobs, of_reviews_later, shop, reviewed,
        Act::Insert("reviews", vec![doc! { "_id": 30, "productId": 2 }]);
    "a deferred count against a new version of its host", Jobs, of_reviews_later, shop, reviewed,
        Act::Update("products", doc! { "_id": 2 }, Bson::Document(doc! { "price": 3 }), false, false);
];

type Plan<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// All schedules on one backend; at most so many blocks and orders of each.
pub(crate) async fn check(opened: &Opened, blocks: usize, most: usize) {
    let scheduler = Arc::new(Scheduler::default());
    for (number, schedule) in SCHEDULES.iter().enumerate() {
        let rules = (schedule.rules)();
        assert!(!rules.is_empty(), "{}: no block is listed", schedule.name);
        let rules: Vec<&str> = rules.into_iter().filter(|rules| crate::is_asked(rules)).collect();
        if rules.is_empty() {
            continue;
        }
        // Of its own: what was deleted often is slow to read.
        let living = Arc::new(shop::open(opened, scheduler.clone(), "").await);
        living.life.limit_hosts(1);
        let chosen = some(&rules, blocks, crate::seed() + number as u64);
        let mut chosen: Vec<String> = chosen.into_iter().map(str::to_owned).collect();
        // One of them over hosts and sources of several versions.
        if let Some(last) = chosen.last_mut() {
            *last = beside_versions(last);
        }
        for rules in &chosen {
            for in_transaction in [false, true] {
                prepare(&living, schedule, rules).await;
                let life = scheduler.steps(Box::pin(work(living.clone(), schedule.work))).await;
                let (living_, scheduler_) = (living.clone(), scheduler.clone());
                let act = (schedule.client)();
                let client: Plan<()> =
                    Box::pin(async move { run(&living_, &scheduler_, &act, in_transaction).await.unwrap() });
                let client = scheduler.steps(client).await;
                assert!(life > 8 && client > 0, "{}: {life} and {client} steps", schedule.name);
                for order in orders(life, client, most) {
                    one(&living, &scheduler, schedule, rules, in_transaction, &order).await;
                }
            }
        }
        living.drop_database().await;
    }
}

async fn one(
    living: &Arc<Living>,
    scheduler: &Arc<Scheduler>,
    schedule: &Schedule,
    rules: &str,
    in_transaction: bool,
    order: &[usize],
) {
    prepare(living, schedule, rules).await;
    let (life, client) = (living.clone(), (living.clone(), scheduler.clone()));
    let (what, act) = (schedule.work, (schedule.client)());
    let plans: Vec<Plan<Result<(), Error>>> = vec![
        Box::pin(async move {
            work(life, what).await;
            Ok(())
        }),
        Box::pin(async move { run(&client.0, &client.1, &act, in_transaction).await }),
    ];
    let (results, trace) = scheduler.run(plans, order).await;
    for result in results {
        if let Err(error) = result {
            let fine = in_transaction && is_transient(&error);
            assert!(fine, "{}, transaction {in_transaction}: {error:?}\n{trace:#?}", schedule.name);
        }
    }
    living.rest().await;
    let drift = living.audit().await;
    assert!(drift.is_empty(), "{}, transaction {in_transaction}: {drift:#?}\n{trace:#?}", schedule.name);
}

async fn work(living: Arc<Living>, what: Work) {
    let done = match what {
        Work::Seed => living.life.bring_on().await,
        Work::Jobs => living.life.work_off().await,
    };
    done.unwrap();
}

/// No rules and fresh data; then the rules are declared and, if jobs are what it is about, on.
async fn prepare(living: &Living, schedule: &Schedule, rules: &str) {
    living.set_rules("{}").await;
    living.rest().await;
    for collection in ["products", "reviews", "orders", "receipts", "customers"] {
        living.behind(Act::Delete(collection, doc! {}, true).op(living)).await;
    }
    for act in (schedule.before)() {
        living.behind(act.op(living)).await;
    }
    living.set_rules(rules).await;
    if schedule.work == Work::Jobs {
        living.rest().await;
        for act in (schedule.cause)() {
            living.act(&act).await.unwrap();
        }
        assert!(!living.all("pleach.outbox").await.is_empty(), "{}: there is no job", schedule.name);
    }
}

/// Rules, and the same declared differently.
const COUNT: &str = "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }";
const OTHER_COUNT: &str =
    "{ products: { computed: { reviewCount: { count: reviews, by: productId, where: { rating: { $gt: 4 } } } } } }";
const JOBS: &str = "{ receipts: { extended_reference: { customer: { from: customers, by: customerId, fields: [name], when_deleted: unset, lag: 1ms } } } }";
const OTHER_COPY: &str = "{ receipts: { extended_reference: { customer: { from: customers, by: customerId, fields: [name, tier], when_deleted: unset } } } }";

/// The life against a change of its own rules: what is declared first and meanwhile, then what a client does. Each listed field of
/// reviews and each listed job is dropped meanwhile, and seeded while another is added.
fn changes() -> Vec<(Schedule, String, String)> {
    let seeding = |name| Schedule { name, ..SCHEDULES[0] };
    let working = |name| Schedule { name, ..SCHEDULES[14] };
    let (of_reviews, none) = (of_reviews(), "{}".to_owned());
    let mut all = vec![
        (seeding("a rule is changed while it is seeded"), COUNT.to_owned(), OTHER_COUNT.to_owned()),
        (working("a rule is changed while its job is done"), JOBS.to_owned(), OTHER_COPY.to_owned()),
    ];
    for (block, other) in of_reviews.iter().zip(of_reviews.iter().cycle().skip(1)) {
        let both = merged(&[*block, *other]);
        all.push((seeding("a rule is added while one is seeded"), (*block).to_owned(), both));
        all.push((seeding("a rule is dropped while it is seeded"), (*block).to_owned(), none.clone()));
    }
    for block in of_customers_later() {
        all.push((working("a rule is dropped while its job is done"), block.to_owned(), none.clone()));
    }
    all
}

/// Cuts that once found drift.
const FAILED: &[(usize, usize)] = &[(13, 3)];

/// All changes of rules on one backend; at most so many orders of each.
pub(crate) async fn check_changes(opened: &Opened, most: usize) {
    let scheduler = Arc::new(Scheduler::default());
    for (schedule, rules, then) in changes().iter().filter(|(_, rules, _)| crate::is_asked(rules)) {
        let living = Arc::new(shop::open(opened, scheduler.clone(), "").await);
        living.life.limit_hosts(1);
        let mut cuts: Vec<(usize, usize)> = (0..24).flat_map(|first| (0..10).map(move |more| (first, more))).collect();
        cuts = cuts.sample(&mut StdRng::seed_from_u64(6), most).copied().collect();
        cuts.extend(FAILED);
        for (first, more) in cuts {
            prepare(&living, schedule, rules).await;
            let (life, other, gate) = (living.clone(), living.clone(), scheduler.clone());
            let (what, act, meanwhile) = (schedule.work, (schedule.client)(), then.clone());
            let plans: Vec<Plan<Result<(), Error>>> = vec![
                Box::pin(async move {
                    work(life, what).await;
                    Ok(())
                }),
                Box::pin(async move {
                    gate.pass(Point::Begin { attempt: 0 }).await?;
                    other.set_rules(&meanwhile).await;
                    if what == Work::Jobs {
                        other.life.bring_on().await?;
                    }
                    run(&other, &gate, &act, false).await
                }),
            ];
            // The rules change within a step of the life, and the client comes some of its steps later.
            let order = [vec![0; first], vec![1], vec![0; more], vec![1; 80], vec![0; 80]].concat();
            let (results, trace) = scheduler.run(plans, &order).await;
            assert!(results.iter().all(Result::is_ok), "{}: {results:?}\n{trace:#?}", schedule.name);
            living.rest().await;
            let drift = living.audit().await;
            assert!(drift.is_empty(), "{}, {first} and {more} steps: {drift:#?}\n{trace:#?}", schedule.name);
            if then == "{}" {
                no_traces(&living, rules, schedule.name).await;
            }
        }
        living.drop_database().await;
    }
}

/// A rule that went with its data has left nothing.
async fn no_traces(living: &Living, rules: &str, name: &str) {
    for (collection, path) in owned(rules) {
        let first = path.split('.').next().unwrap();
        for document in living.all(&collection).await {
            let left = ["_pleach", first].into_iter().find(|left| document.contains_key(left));
            assert_eq!(left, None, "{name}: {document}");
        }
    }
}

/// The life goes some steps, the client some, the life to its end, the client to its: every such order, if there are at most
/// `most`; else so many of them, always the same.
fn orders(life: usize, client: usize, most: usize) -> Vec<Vec<usize>> {
    let cut =
        |(first, then): (usize, usize)| [vec![0; first], vec![1; then], vec![0; 2 * life], vec![1; client]].concat();
    let all: Vec<(usize, usize)> = (0..=life).flat_map(|first| (1..=client).map(move |then| (first, then))).collect();
    all.sample(&mut StdRng::seed_from_u64(5), most).copied().map(cut).collect()
}
