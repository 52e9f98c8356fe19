//! Rules are added to, changed in and removed from live collections under load, and whoever does it is killed at any moment:
//! what comes next resumes it, with no gap and no double count.
//!
//! A process is a runtime of its own with a backend, a layer, its life, clients and one who changes the rules; a kill drops
//! all of its tasks where they are.

use crate::living::{declared, drop_database};
use crate::world::{Act, World, context};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::Context;
use document::{Doc, Env};
use parking_lot::Mutex;
use patterns::life::Life;
use patterns::life::apply::Consent;
use patterns::life::relocate::drop::Leaving;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the rules are changed between.
const VARIANTS: &[&str] = &[
    "{ products: { computed: { n: { count: reviews, by: productId } } },
       orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name] } } } }",
    "{ products: { computed: { n: { count: reviews, by: productId, where: { rating: { $gt: 2 } } },
                               mean: { avg: rating, from: reviews, by: productId } } },
       orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name, tier], when_deleted: unset } } } }",
    "{ products: { computed: { n: { sum: rating, from: reviews, by: productId }, mean: { avg: rating, from: reviews, by: productId } } },
       orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name, tier], lag: 1ms } } },
       invoices: { extended_reference: { order: { from: orders, by: orderId, fields: { who: customer.name }, when_deleted: unset } } } }",
    "{ products: { computed: { n: { count: reviews, by: productId } } } }",
];

const HOSTS: i32 = 40;
const CLIENTS: u64 = 4;

/// Where the processes find their data.
#[derive(Clone)]
pub(crate) enum Place {
    Folder(Arc<Path>),
    Upstream(Arc<str>),
}

/// A backend, and how it is left.
pub(crate) async fn open(place: &Place) -> (Arc<dyn Backend>, Option<engine::Engine>) {
    match place {
        Place::Folder(folder) => {
            let engine = engine::Engine::open(folder, engine::Options::default()).unwrap();
            (Arc::new(engine.clone()), Some(engine))
        }
        Place::Upstream(uri) => {
            let uri = upstream::Uri::parse(uri).unwrap();
            (Arc::new(upstream::Upstream::open(uri).await.unwrap()), None)
        }
    }
}

/// Every process lives a minute later than the one before.
pub(crate) fn at_round(round: i64) -> Context {
    let context = context();
    Context { env: Env { now: context.env.now + round * 60_000, ..context.env }, ..context }
}

pub(crate) struct Process {
    pub(crate) world: World,
    pub(crate) life: Arc<Life>,
    pub(crate) engine: Option<engine::Engine>,
}

impl Process {
    pub(crate) async fn start(place: &Place, db: &str, round: i64) -> Process {
        let (inner, engine) = open(place).await;
        let world = World::found(inner, db);
        let life = Life::new(&world.layer, Arc::new(move || at_round(round)));
        life.limit_hosts(3);
        life.load().await.unwrap();
        life.limit_lease(Duration::from_millis(500));
        life.start().await.unwrap();
        Process { world, life, engine }
    }
}

pub(crate) async fn check(place: Place, seed: u64, rounds: i64) {
    let db = {
        let (inner, engine) = open(&place).await;
        let world = World::without_rules(inner, None, Arc::new(crate::failing::Failing::default())).await;
        fill(&world).await;
        let db = world.db.clone();
        drop(world);
        if let Some(engine) = engine {
            engine.close();
        }
        db
    };
    let mut random = StdRng::seed_from_u64(seed);
    for round in 1..=rounds {
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (time, seed) = (Duration::from_millis(random.random_range(20..400)), random.random::<u64>());
        let (place_, db_, complaints_) = (place.clone(), db.clone(), complaints.clone());
        // The runtime is ended where waiting is allowed.
        let killed = tokio::task::spawn_blocking(move || live_and_die(&place_, &db_, round, seed, time, &complaints_));
        if let Some(engine) = killed.await.unwrap() {
            engine.close();
        }
        assert!(complaints.lock().is_empty(), "round {round}: {:#?}", complaints.lock());
    }
    let last = Process::start(&place, &db, rounds + 1).await;
    at_the_end(&last, rounds + 1).await;
}

async fn fill(world: &World) {
    let ids = |of: fn(i32) -> Document| (0..HOSTS).map(of).collect::<Vec<_>>();
    for act in [
        Act::Insert("products", ids(|n| doc! { "_id": n })),
        Act::Insert("reviews", ids(|n| doc! { "_id": format!("0-{n}"), "productId": n % 7, "rating": n % 5 })),
        Act::Insert("customers", ids(|n| doc! { "_id": n % 40, "name": "Ada", "tier": n })),
        Act::Insert("orders", ids(|n| doc! { "_id": n, "customerId": n % 3 })),
        Act::Insert("invoices", ids(|n| doc! { "_id": n, "orderId": n })),
    ] {
        assert!(world.write(&act).await.unwrap().errors.is_empty());
    }
}

fn live_and_die(
    place: &Place,
    db: &str,
    round: i64,
    seed: u64,
    time: Duration,
    complaints: &Arc<Mutex<Vec<String>>>,
) -> Option<engine::Engine> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = runtime.block_on(async {
        let process = Arc::new(Process::start(place, db, round).await);
        for client in 0..CLIENTS {
            let (process, complaints) = (process.clone(), complaints.clone());
            tokio::spawn(async move { write(&process, round, client, seed, &complaints).await });
        }
        let (changing, complaints) = (process.clone(), complaints.clone());
        tokio::spawn(async move { change(&changing, seed, &complaints).await });
        tokio::time::sleep(time).await;
        process.engine.clone()
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    engine
}

async fn write(process: &Process, round: i64, client: u64, seed: u64, complaints: &Mutex<Vec<String>>) {
    let mut random = StdRng::seed_from_u64(seed ^ client);
    let mut count = 0;
    loop {
        count += 1;
        let act = act(&mut random, &format!("{round}-{client}-{count}"));
        let problem = match process
            .world
            .layer
            .write(&mut Session::default(), &at_round(round), &act.op(&process.world), &document::op::Capture::Nothing)
            .await
        {
            Ok(written) => written.errors.into_iter().next().map(|failed| failed.error),
            Err(error) => Some(error),
        };
        if let Some(error) = problem {
            complaints.lock().push(format!("{act:?}: {error:?}"));
            return;
        }
        tokio::time::sleep(Duration::from_micros(random.random_range(0..2_000))).await;
    }
}

fn act(random: &mut StdRng, id: &str) -> Act {
    let (host, key, rating) = (random.random_range(0..HOSTS), random.random_range(0..7), random.random_range(0..5));
    let set = |change: Document| Bson::Document(doc! { "$set": change });
    match random.random_range(0..10) {
        0 => Act::Update("products", doc! { "_id": host }, set(doc! { "price": rating }), false, true),
        1 => Act::Delete("products", doc! { "_id": host }, false),
        2 | 3 => Act::Insert("reviews", vec![doc! { "_id": id, "productId": host % 7, "rating": rating }]),
        4 => Act::Update(
            "reviews",
            doc! { "productId": key },
            set(doc! { "productId": host, "rating": rating }),
            false,
            false,
        ),
        5 => Act::Modify("reviews", doc! { "productId": host }, None),
        6 => Act::Update("customers", doc! { "_id": host % 4 }, set(doc! { "name": id, "tier": rating }), false, true),
        7 => Act::Delete("customers", doc! { "_id": 3 }, false),
        8 => Act::Update("orders", doc! { "_id": host }, set(doc! { "customerId": key % 4 }), false, true),
        _ => Act::Update("invoices", doc! { "_id": host }, set(doc! { "orderId": (host + key) % HOSTS }), false, true),
    }
}

/// Applies one variant after the other, and drops rules in between.
async fn change(process: &Process, seed: u64, complaints: &Mutex<Vec<String>>) {
    let mut random = StdRng::seed_from_u64(!seed);
    let db = &process.world.db;
    loop {
        let with_data = random.random_bool(0.5);
        let done = match random.random_range(0..4) {
            0 => process
                .life
                .drop_rule(Some(db), "products.n", Leaving { with_data, ..Leaving::default() })
                .await
                .map(drop),
            _ => {
                let variant = VARIANTS[random.random_range(0..VARIANTS.len())];
                let extent =
                    Consent { remove: true, with_data, overwrite: true, create_missing: true, additions_only: false };
                process.life.apply(&declared(db, variant), extent).await.map(drop)
            }
        };
        if let Err(error) = done
            && !error.message().contains("there is no rule")
        {
            complaints.lock().push(format!("a change of rules: {error:?}"));
            return;
        }
        match random.random_bool(0.5) {
            true => tokio::time::sleep(Duration::from_millis(random.random_range(0..40))).await,
            false => {
                if let Err(error) = process.life.settle(db).await {
                    complaints.lock().push(format!("rules do not come on: {error:?}"));
                    return;
                }
            }
        }
    }
}

/// Whatever was under way is brought to its end: then it is right, can be changed once more, and goes without a trace.
async fn at_the_end(process: &Process, round: i64) {
    let Process { world, life, .. } = process;
    life.settle(&world.db).await.unwrap();
    clean(process, round, "as it was found").await;
    let extent =
        Consent { remove: true, with_data: true, overwrite: true, create_missing: true, additions_only: false };
    for variant in [VARIANTS[2], VARIANTS[1]] {
        life.apply(&declared(&world.db, variant), extent).await.unwrap();
        life.settle(&world.db).await.unwrap();
        clean(process, round, variant).await;
    }
    life.apply(&declared(&world.db, "{}"), extent).await.unwrap();
    life.settle(&world.db).await.unwrap();
    for product in world.all("products").await {
        let left: Vec<&String> =
            product.keys().filter(|name| ["_pleach", "n", "mean"].contains(&name.as_str())).collect();
        assert!(left.is_empty(), "{left:?} of {product}");
    }
    life.close().await;
    drop_database(&**world.layer.inner(), &world.db).await;
}

async fn clean(process: &Process, round: i64, when: &str) {
    let Process { world, life, .. } = process;
    for _ in 0..200 {
        if world.all("pleach.outbox").await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(world.all("pleach.outbox").await.is_empty(), "{when}: the outbox does not empty");
    let report = life
        .command(&mut Session::default(), &at_round(round), &world.db, &Doc::from(doc! { "pleach": "audit" }))
        .await
        .unwrap();
    let report = Document::try_from(&report).unwrap();
    assert_eq!(report.get_i64("drifted").unwrap(), 0, "{when}: {report}");
}
