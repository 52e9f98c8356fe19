//! Rules are applied to documents that have values of their own, and dropped with `restore`, again and again under load, and whoever
//! does it is killed at any moment: in the end every document has what it had before the first rule.

use crate::changing::{Place, Process, at_round, open};
use crate::living::drop_database;
use crate::world::{Act, World};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::{Doc, Error};
use parking_lot::Mutex;
use patterns::life::relocate::drop::Leaving;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

const RULES: &str = "{ products: { computed: { n: { count: reviews, by: productId },
                                               stats.sum: { sum: rating, from: reviews, by: productId },
                                               double: { expr: { $multiply: [$price, 2] } } } },
       orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name], when_deleted: unset } } } }";

const NAMES: [&str; 4] = ["products.n", "products.stats.sum", "products.double", "orders.customer"];

/// The fields that rules keep.
const FIELDS: [&str; 5] = ["n", "stats", "double", "customer", "_pleach"];

const HOSTS: i32 = 40;
const CLIENTS: u64 = 3;

fn product(id: i32) -> Document {
    let mut product = doc! { "_id": id, "price": 1 };
    match id % 4 {
        0 => product.extend(doc! { "n": 100 + id, "stats": { "own": 1 } }),
        1 => product.extend(doc! { "stats": { "sum": "old" }, "double": 2 }),
        2 => product.extend(doc! { "n": 0, "stats": {} }),
        _ => {}
    }
    product
}

fn order(id: i32) -> Document {
    let mut order = doc! { "_id": id, "customerId": id % 5 };
    if id % 3 > 0 {
        order.insert("customer", doc! { "name": if id % 3 == 1 { "Ada" } else { "stale" } });
    }
    order
}

pub(crate) async fn check(place: Place, seed: u64, rounds: i64) {
    let (inner, engine) = open(&place).await;
    let world = World::without_rules(inner, None, Arc::new(crate::failing::Failing::default())).await;
    for act in [
        Act::Insert("products", (0..HOSTS).map(product).collect()),
        Act::Insert("orders", (0..HOSTS).map(order).collect()),
        Act::Insert("customers", (0..4).map(|id| doc! { "_id": id, "name": "Ada" }).collect()),
    ] {
        assert!(world.write(&act).await.unwrap().errors.is_empty());
    }
    let db = world.db.clone();
    drop(world);
    if let Some(engine) = engine {
        engine.close();
    }
    let mut random = StdRng::seed_from_u64(seed);
    for round in 1..=rounds {
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (time, seed) = (Duration::from_millis(random.random_range(20..500)), random.random::<u64>());
        let (place_, db_, complaints_) = (place.clone(), db.clone(), complaints.clone());
        let killed = tokio::task::spawn_blocking(move || live_and_die(&place_, &db_, round, seed, time, &complaints_));
        if let Some(engine) = killed.await.unwrap() {
            engine.close();
        }
        assert!(complaints.lock().is_empty(), "round {round}: {:#?}", complaints.lock());
    }
    at_the_end(&Process::start(&place, &db, rounds + 1).await).await;
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
        tokio::spawn(async move { change(&changing, round, seed, &complaints).await });
        tokio::time::sleep(time).await;
        process.engine.clone()
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    engine
}

async fn write(process: &Process, round: i64, client: u64, seed: u64, complaints: &Mutex<Vec<String>>) {
    let mut random = StdRng::seed_from_u64(seed ^ client);
    for count in 0.. {
        let (host, key) = (random.random_range(0..HOSTS), random.random_range(0..5));
        let id = format!("{round}-{client}-{count}");
        let set = |change: Document| Bson::Document(doc! { "$set": change });
        let act = match random.random_range(0..7) {
            0 => Act::Update("products", doc! { "_id": host }, set(doc! { "price": key }), false, false),
            1 => Act::Update("products", doc! { "_id": host }, set(doc! { "note": key }), false, false),
            2 | 3 => Act::Insert("reviews", vec![doc! { "_id": id, "productId": host, "rating": key }]),
            4 => Act::Update("customers", doc! { "_id": key }, set(doc! { "name": id }), false, false),
            5 => Act::Update("orders", doc! { "_id": host }, set(doc! { "customerId": key }), false, false),
            _ => Act::Insert("orders", vec![doc! { "_id": id, "customerId": key }]),
        };
        let (op, context) = (act.op(&process.world), at_round(round));
        let layer = &process.world.layer;
        let written = layer.write(&mut Session::default(), &context, &op, &document::op::Capture::Nothing).await;
        let problem = match written {
            Ok(written) => written.errors.into_iter().next().map(|failed| failed.error),
            Err(error) => Some(error),
        };
        // A busy machine may renew a short lease too late.
        if let Some(error) = problem.filter(|error| !error.message().contains("holds no lease")) {
            complaints.lock().push(format!("{act:?}: {error:?}"));
            return;
        }
        tokio::time::sleep(Duration::from_micros(random.random_range(0..2_000))).await;
    }
}

/// Applies the rules and takes them off again, sometimes before they are on.
async fn change(process: &Process, round: i64, seed: u64, complaints: &Mutex<Vec<String>>) {
    let mut random = StdRng::seed_from_u64(!seed);
    let db = &process.world.db;
    loop {
        let mut done = vec![apply(process, round).await];
        wait(process, &mut random, complaints).await;
        for name in NAMES {
            let leaving = Leaving { restore: true, ..Leaving::default() };
            done.push(process.life.drop_rule(Some(db), name, leaving).await.map(drop));
        }
        wait(process, &mut random, complaints).await;
        let is_expected = |error: &Error| {
            ["there is no rule", "are getting back what they had", "another Pleach is changing the rules"]
                .iter()
                .any(|text| error.message().contains(text))
        };
        if let Some(error) = done.into_iter().filter_map(Result::err).find(|error| !is_expected(error)) {
            complaints.lock().push(format!("a change of rules: {error:?}"));
            return;
        }
    }
}

async fn apply(process: &Process, round: i64) -> document::Result<()> {
    let declaration = format!("database: {}\ncollections: {RULES}", process.world.db);
    let ask = async |flags: Document| {
        let mut body = doc! { "pleach": "apply", "declaration": &declaration, "wait": false };
        body.extend(flags);
        process
            .life
            .command(&mut Session::default(), &at_round(round), &process.world.db, &Doc::from(body))
            .await
            .map(drop)
    };
    match ask(doc! { "overwrite": true }).await {
        // Nothing has to be said where nobody asks.
        Err(error) if error.message().contains("takes no field 'overwrite'") => ask(doc! {}).await,
        done => done,
    }
}

async fn wait(process: &Process, random: &mut StdRng, complaints: &Mutex<Vec<String>>) {
    match random.random_bool(0.5) {
        true => tokio::time::sleep(Duration::from_millis(random.random_range(0..60))).await,
        false => {
            if let Err(error) = process.life.settle(&process.world.db).await {
                complaints.lock().push(format!("rules do not come on: {error:?}"));
            }
        }
    }
}

async fn at_the_end(process: &Process) {
    let Process { world, life, .. } = process;
    for name in NAMES {
        let leaving = Leaving { restore: true, ..Leaving::default() };
        loop {
            match life.drop_rule(Some(&world.db), name, leaving).await {
                // Killed while it changed the rules: until its lease ends.
                Err(error) if error.message().contains("another Pleach is changing the rules") => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => break assert!(error.message().contains("there is no rule"), "{error:?}"),
                Ok(_) => break,
            }
        }
    }
    life.settle(&world.db).await.unwrap();
    for (collection, had) in [("products", product as fn(i32) -> Document), ("orders", order)] {
        let mut found = 0;
        for now in world.all(collection).await {
            let had = now.get_i32("_id").map(had).unwrap_or_default();
            for field in FIELDS {
                assert_eq!(now.get(field), had.get(field), "{field} of {now}");
            }
            found += 1;
        }
        assert!(found >= HOSTS, "{found} of {collection}");
    }
    assert_eq!(world.all("pleach.replaced").await, Vec::<Document>::new());
    assert_eq!(world.all("pleach.catalog").await.iter().filter(|row| row.contains_key("declaration")).count(), 0);
    life.close().await;
    drop_database(&**world.layer.inner(), &world.db).await;
}
