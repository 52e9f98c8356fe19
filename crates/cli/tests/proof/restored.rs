//! Rules are applied to documents that have values of their own, and dropped with `restore`, again and again under load, and whoever
//! does it is killed at any moment: in the end every document has what it had before the first rule.

use crate::dying::{Task, lives};
use crate::failing::Failing;
use bson::{Bson, Document, doc};
use document::Error;
use patterns::life::relocate::drop::Leaving;
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use testing::registry::{between, field_blocks, merged, owned};
use testing::shop::{self, review, set, visit};
use testing::{Act, Data, Living, declared};

const HOSTS: i32 = 40;
const CLIENTS: u64 = 3;

/// The collections whose documents have values before there are rules.
const HAD: [&str; 2] = ["orders", "products"];

/// Every listed field of them.
fn rules() -> String {
    let everything = merged(&field_blocks().collect::<Vec<_>>());
    let of_them = |block: &&str| HAD.iter().any(|host| block.starts_with(host));
    assert!(between("products", "reviews").len() > 2, "{everything}");
    merged(&field_blocks().filter(of_them).collect::<Vec<_>>())
}

fn leaving() -> Leaving {
    Leaving { restore: true, ..Leaving::default() }
}

/// A document as applications leave it behind: some have values where rules will keep theirs, of any type.
fn had(collection: &str, paths: &[String], id: i32) -> Document {
    let mut document = match collection {
        "products" => doc! { "_id": id, "price": 1, "cost": 0 },
        _ => doc! { "_id": id, "customerId": id % 5, "n": 1 },
    };
    for (at, path) in paths.iter().enumerate() {
        let value = match (id + i32::try_from(at).unwrap()) % 4 {
            0 => Some(Bson::from(100 + id)),
            1 => Some(Bson::from("old")),
            2 => Some(Bson::from(doc! { "own": 1 })),
            _ => None,
        };
        match (path.split_once('.'), value) {
            (Some((outer, inner)), Some(value)) => drop(document.insert(outer, doc! { "own": 1, inner: value })),
            (Some((outer, _)), None) => drop(document.insert(outer, doc! {})),
            (None, Some(value)) => drop(document.insert(path, value)),
            (None, None) => {}
        }
    }
    document
}

/// The paths that rules keep in a collection.
fn paths(collection: &str) -> Vec<String> {
    let kept = owned(&rules()).into_iter().filter(|(of, _)| of == collection);
    kept.map(|(_, path)| path).collect()
}

pub(crate) async fn check(data: Data, seed: u64, rounds: i64) {
    let opened = data.open().await;
    let living = shop::open(&opened, Arc::new(Failing::default()), "").await;
    for collection in HAD {
        let documents = (0..HOSTS).map(|id| had(collection, &paths(collection), id)).collect();
        living.act(&Act::Insert(collection, documents)).await.unwrap();
    }
    let customers = (0..4).map(|id| shop::customer(id, "Ada", 1)).collect();
    living.act(&Act::Insert("customers", customers)).await.unwrap();
    let db = living.db.clone();
    drop(living);
    opened.close();
    let run = |task: Task| {
        match task.number {
            CLIENTS => tokio::spawn(change(task)),
            _ => tokio::spawn(write(task)),
        };
    };
    at_the_end(&lives(&data, &db, seed, rounds, CLIENTS + 1, Arc::new(run)).await).await;
}

async fn write(mut task: Task) {
    for count in 0.. {
        let (host, key) = (task.random.random_range(0..HOSTS), task.random.random_range(0..5));
        let id = format!("{}-{}-{count}", task.round, task.number);
        let update =
            |collection, id: i32, change| Act::Update(collection, doc! { "_id": id }, set(change), false, false);
        let act = match task.random.random_range(0..8) {
            0 => update("products", host, doc! { "price": key }),
            1 => update("products", host, doc! { "note": key }),
            2 | 3 => Act::Insert("reviews", vec![review(id, host, key, count)]),
            4 => update("customers", key, doc! { "name": id }),
            5 => update("orders", host, doc! { "customerId": key }),
            6 => visit(host, key, 1),
            _ => Act::Insert("orders", vec![doc! { "_id": id, "customerId": key }]),
        };
        if !task.act(&act).await {
            return;
        }
    }
}

/// Applies the rules and takes them off again, sometimes before they are on.
async fn change(mut task: Task) {
    let (process, rules) = (task.process.clone(), rules());
    loop {
        let mut done = vec![apply(&process, &rules).await];
        task.pause().await;
        for rule in declared(&process.db, &rules).rules {
            done.push(process.life.drop_rule(Some(&process.db), &rule.name, leaving()).await.map(drop));
        }
        task.pause().await;
        let is_expected = |error: &Error| {
            ["there is no rule", "are getting back what they had", "another Pleach is changing the rules"]
                .iter()
                .any(|text| error.message().contains(text))
        };
        if let Some(error) = done.into_iter().filter_map(Result::err).find(|error| !is_expected(error)) {
            return task.complain(format!("a change of rules: {error:?}"));
        }
    }
}

async fn apply(process: &Living, rules: &str) -> document::Result<()> {
    match process.overwriting(rules, false).await {
        // Nothing has to be said where nobody asks.
        Err(error) if error.message().contains("takes no field 'overwrite'") => {
            let declaration = testing::declaration(&process.db, rules);
            process.ask("apply", doc! { "declaration": declaration, "wait": false }).await.map(drop)
        }
        done => done.map(drop),
    }
}

async fn at_the_end(process: &Living) {
    for rule in declared(&process.db, &rules()).rules.iter().rev() {
        loop {
            match process.life.drop_rule(Some(&process.db), &rule.name, leaving()).await {
                // Killed while it changed the rules: until its lease ends.
                Err(error) if error.message().contains("another Pleach is changing the rules") => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => break assert!(error.message().contains("there is no rule"), "{error:?}"),
                Ok(_) => break,
            }
        }
    }
    process.life.settle(&process.db).await.unwrap();
    for collection in HAD {
        let paths = paths(collection);
        let mut found = 0;
        for now in process.all(collection).await {
            let had = now.get_i32("_id").map(|id| had(collection, &paths, id)).unwrap_or_default();
            for field in paths.iter().map(|path| path.split('.').next().unwrap()).chain(["_pleach"]) {
                assert_eq!(now.get(field), had.get(field), "{field} of {now}");
            }
            found += 1;
        }
        assert!(found >= HOSTS, "{found} of {collection}");
    }
    assert_eq!(process.all("pleach.replaced").await, Vec::<Document>::new());
    assert_eq!(process.all("pleach.catalog").await.iter().filter(|row| row.contains_key("declaration")).count(), 0);
    process.life.close().await;
    process.drop_database().await;
}
