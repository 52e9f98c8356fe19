//! `pleach advise` with traffic: what a running Pleach has counted, MongoDB's profiler, its log; and as a user who may only read.

use crate::doors::{At, at_each_door};
use crate::mongod::{Mongod, initiate};
use crate::serving::{Serving, pleach};
use crate::upstream::database;
use bson::{Document, doc};
use judge::client::Client;
use serde_json::Value;
use std::path::Path;

at_each_door!(what_a_running_pleach_has_counted_leads_to_rules_that_hold, own_reads_are_not_counted,);

const ORDERS: i32 = 400;
const REVIEWS: i32 = 2_000;

/// 40 customers with orders, 10 products with 200 reviews each.
fn fill(client: &mut Client, db: &str) {
    let mut insert = |collection: &str, documents: Vec<Document>| {
        client.must(&doc! { "insert": collection, "documents": documents, "$db": db }).unwrap();
    };
    let customer = |n: i32| doc! { "_id": format!("customer-{n}"), "name": format!("Ada {n}"), "tier": "gold", "notes": "n".repeat(400) };
    insert("customers", (0..40).map(customer).collect());
    let order = |n: i32| doc! { "_id": n, "customerId": format!("customer-{}", (n * 7) % 40), "text": "t".repeat(300) };
    insert("orders", (0..ORDERS).map(order).collect());
    insert("products", (0..10).map(|n| doc! { "_id": format!("product-{n}"), "title": "t" }).collect());
    let review = |n: i32| doc! { "_id": n, "productId": format!("product-{}", n % 10), "rating": n % 5, "text": format!("r{n}") };
    insert("reviews", (0..REVIEWS).map(review).collect());
}

/// What an application does with them, on one connection.
fn use_it(client: &mut Client, db: &str) {
    for n in 0..60 {
        let order = doc! { "find": "orders", "filter": { "_id": n }, "limit": 1, "singleBatch": true, "$db": db };
        client.must(&order).unwrap();
        let by_id = doc! { "_id": format!("customer-{}", (n * 7) % 40) };
        let customer = doc! { "find": "customers", "filter": by_id, "projection": { "name": 1, "tier": 1 }, "limit": 1, "$db": db };
        client.must(&customer).unwrap();
    }
    for n in 0..130 {
        let pipeline = vec![
            doc! { "$match": { "productId": format!("product-{}", n % 10) } },
            doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } },
        ];
        client.must(&doc! { "aggregate": "reviews", "pipeline": pipeline, "cursor": {}, "$db": db }).unwrap();
    }
}

fn advise(arguments: &[&str], db: &str) -> Value {
    let output = pleach().args(["advise", "--json", "--db", db]).args(arguments).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of<'r>(report: &'r Value, symptom: &str) -> Vec<&'r Value> {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["symptom"] == symptom).collect()
}

/// The two findings that only traffic shows, both a warning.
fn assert_found(report: &Value, source: &str) {
    for (symptom, collection, field) in
        [("second_read", "orders", "customerId"), ("repeated_aggregation", "products", "reviews.productId")]
    {
        let found = of(report, symptom);
        assert_eq!(found.len(), 1, "{symptom}: {report:#}");
        assert_eq!((&found[0]["collection"], &found[0]["field"]), (&collection.into(), &field.into()));
        assert_eq!(found[0]["severity"], "warn", "{:#}", found[0]);
        assert_eq!(found[0]["evidence"]["source"], source, "{:#}", found[0]);
        assert!(found[0]["declaration"].is_string(), "{:#}", found[0]);
    }
    let second = of(report, "second_read")[0];
    assert_eq!((&second["evidence"]["followed"], &second["evidence"]["reads"]), (&60.into(), &60.into()));
    assert_eq!(second["evidence"]["fields"], serde_json::json!(["name", "tier"]));
    assert_eq!(of(report, "repeated_aggregation")[0]["evidence"]["runs"], 130);
    assert_eq!(report["looked_at"]["traffic"].as_array().unwrap().iter().filter(|name| **name == source).count(), 1);
}

/// The declarations pass `check`; applied together, as one declaration of several files, they audit clean.
fn assert_rules_hold(report: &Value, folder: &Path, target: &[&str]) {
    let mut declare = Vec::new();
    for (number, finding) in report["findings"].as_array().unwrap().iter().enumerate() {
        let Some(text) = finding["declaration"].as_str() else { continue };
        let file = folder.join(format!("{number}.yaml"));
        std::fs::write(&file, text).unwrap();
        declare.extend(["--declare".to_owned(), file.display().to_string()]);
    }
    for (verb, target) in [("check", &[][..]), ("apply", target), ("audit", target)] {
        let output = pleach().arg(verb).args(&declare).args(target).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{verb}: {output:?}");
    }
}

fn what_a_running_pleach_has_counted_leads_to_rules_that_hold(at: At) {
    let door = at.door("advising");
    let mut client = door.client();
    fill(&mut client, &door.db);
    use_it(&mut client, &door.db);
    let uri = door.uri();
    let target = ["--server", &*uri];
    let report = advise(&target, &door.db);
    assert_found(&report, "pleach");
    let estimated = &of(&report, "repeated_aggregation")[0]["evidence"]["examined_is_estimated"];
    assert_eq!(estimated.as_bool(), Some(door.is_real()), "a real MongoDB's answers do not say what was examined");
    let folder = tempfile::tempdir().unwrap();
    assert_rules_hold(&report, folder.path(), &target);
    let report = advise(&target, &door.db);
    assert!(of(&report, "second_read").is_empty() && of(&report, "repeated_aggregation").is_empty(), "{report:#}");
    // The text form names the source.
    let told = pleach().args(["advise", "--db", &door.db]).args(target).output().unwrap();
    let out = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(out.contains("Traffic:\n  pleach, ") && out.lines().all(|line| line.chars().count() <= 80), "{out}");
    door.finish();
}

fn own_reads_are_not_counted(at: At) {
    let door = at.door("advising_own");
    let mut client = door.client();
    fill(&mut client, &door.db);
    use_it(&mut client, &door.db);
    let uri = door.uri();
    let figures = |report: &Value| -> Vec<Value> {
        ["second_read", "repeated_aggregation"]
            .iter()
            .map(|symptom| of(report, symptom)[0]["evidence"]["share"].clone())
            .collect()
    };
    let first = advise(&["--server", &uri], &door.db);
    let second = advise(&["--server", &uri], &door.db);
    assert_eq!(figures(&first), figures(&second));
    assert_eq!(
        of(&first, "repeated_aggregation")[0]["evidence"]["runs"],
        of(&second, "repeated_aggregation")[0]["evidence"]["runs"]
    );
    door.finish();
}

#[test]
fn the_profiler_of_an_embedded_store_is_a_source() {
    let door = At::Embedded.door("advising_profile");
    let mut client = door.client();
    fill(&mut client, &door.db);
    door.must(doc! { "profile": 2 });
    use_it(&mut client, &door.db);
    door.must(doc! { "profile": 0 });
    let report = advise(&["--server", &door.uri()], &door.db);
    let sources = report["looked_at"]["sources"].as_array().unwrap();
    let profile = sources.iter().find(|source| source["name"] == format!("system.profile of {}", door.db)).unwrap();
    assert!(profile["seconds"].as_f64().unwrap() > 0.0, "{profile}");
    door.finish();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn the_profiler_of_a_real_mongodb_is_a_source() {
    let uri = judge::real::uri().unwrap();
    let mut client = Client::connect(&uri).unwrap();
    let db = database("advising_real");
    fill(&mut client, &db);
    client.must(&doc! { "profile": 2, "$db": &db }).unwrap();
    use_it(&mut client, &db);
    let source = format!("system.profile of {db}");
    // The profiler goes on while the advisor reads.
    advise(&["--upstream", &uri], &db);
    let report = advise(&["--upstream", &uri], &db);
    assert_found(&report, &source);
    client.must(&doc! { "profile": 0, "$db": &db }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert_rules_hold(&report, folder.path(), &["--upstream", &uri]);
    let forgotten = pleach().args(["uninstall", "--forget", "--db", &db, "--upstream", &uri]).output().unwrap();
    assert!(forgotten.status.code().is_some());
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_log_of_a_real_mongodb_is_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mongod.log");
    let log = path.to_str().unwrap();
    let mongod = Mongod::start(&["--replSet", "rs", "--logpath", log]);
    initiate(&[&mongod]);
    let mut client = mongod.client();
    fill(&mut client, "shop");
    client.must(&doc! { "profile": 0, "slowms": -1, "$db": "shop" }).unwrap();
    use_it(&mut client, "shop");
    client.must(&doc! { "profile": 0, "slowms": 100, "$db": "shop" }).unwrap();
    let uri = format!("mongodb://{}/?replicaSet=rs", mongod.address());
    let report = advise(&["--upstream", &uri, "--log", log], "shop");
    assert_found(&report, &format!("log {log}"));
    let rate = &of(&report, "second_read")[0]["evidence"];
    assert!(rate.get("an_hour").is_none(), "a few seconds say nothing about an hour: {rate}");
    // The log alone, of data that is elsewhere.
    let other = Serving::start(&[]);
    fill(&mut other.client(), "shop");
    let report = advise(&["--server", &format!("mongodb://{}", other.address), "--log", log], "shop");
    assert_found(&report, &format!("log {log}"));
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_right_to_read_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let key = crate::mongod::key_file(folder.path());
    let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key]);
    initiate(&[&mongod]);
    let mut root = mongod.client();
    let user = |name: &str, role: &str, db: &str| {
        doc! { "createUser": name, "pwd": "s3cret", "roles": [{ "role": role, "db": db }], "$db": "admin" }
    };
    root.must(&user("root", "root", "admin")).unwrap();
    crate::upstream::log_in(&mut root, "root", "s3cret").unwrap();
    root.must(&user("reader", "read", "shop")).unwrap();
    fill(&mut root, "shop");
    root.must(&doc! { "profile": 2, "$db": "shop" }).unwrap();
    use_it(&mut root, "shop");
    let uri = format!("mongodb://reader:s3cret@{}/?replicaSet=rs&authSource=admin", mongod.address());
    let report = advise(&["--upstream", &uri], "shop");
    let sources = report["looked_at"]["sources"].as_array().unwrap();
    let note = |name: &str| {
        let source =
            sources.iter().find(|source| source["name"] == name).unwrap_or_else(|| panic!("{name}: {report:#}"));
        source["note"].as_str().unwrap().to_owned()
    };
    assert_eq!(note("system.profile of shop"), "not read: the user has no right to it");
    assert_eq!(note("$indexStats"), "not read: the user has no right to it");
    assert!(note("$collStats").starts_with("reads and writes of each collection"));
    assert_eq!(report["looked_at"]["collections"], 4);
    let told = pleach().args(["advise", "--db", "shop", "--upstream", &uri]).output().unwrap();
    let out = String::from_utf8_lossy(&told.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("rests on the data alone"), "{out}");
}
