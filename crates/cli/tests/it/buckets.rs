//! The life of a bucket rule as people and programs meet it: on a folder, on a running server, and on a real MongoDB.

use crate::shop::{Shop, text};
use bson::{DateTime, Document, doc};
use judge::client::Client;
use serde_json::json;
use std::process::Output;

const DECLARATION: &str = "\
database: weather
collections:
  sensor_data:
    bucket:
      into: sensor_hours
      time: ts
      by: [sensorId]
      every: hour
      at_most: 10
      stats: { temp: [min, max] }
";

fn reading(number: i32) -> Document {
    let ts = DateTime::from_millis(1_709_251_200_000 + i64::from(number) * 97_000);
    doc! { "_id": number, "sensorId": number % 3, "ts": ts, "temp": f64::from(number) + 0.5 }
}

fn fill(client: &mut Client, db: &str, count: i32) {
    let readings: Vec<Document> = (0..count).map(reading).collect();
    client.must(&doc! { "insert": "sensor_data", "documents": readings, "$db": db }).unwrap();
}

fn all(client: &mut Client, db: &str, collection: &str) -> Vec<Document> {
    let find = doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000, "$db": db };
    let reply = client.must(&find).unwrap();
    let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    rows.iter().map(|row| row.as_document().unwrap().clone()).collect()
}

fn names(client: &mut Client, db: &str) -> Vec<String> {
    let reply = client.must(&doc! { "listCollections": 1, "nameOnly": true, "$db": db }).unwrap();
    let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let name = |row: &bson::Bson| {
        let row = row.as_document().unwrap();
        format!("{}:{}", row.get_str("name").unwrap(), row.get_str("type").unwrap())
    };
    let mut names: Vec<String> = rows.iter().map(name).collect();
    names.retain(|name| !name.starts_with("pleach.") && !name.starts_with("system."));
    names.sort();
    names
}

fn kinds(plan: &serde_json::Value) -> Vec<&str> {
    plan["steps"].as_array().unwrap().iter().map(|step| step["kind"].as_str().unwrap()).collect()
}

/// The buckets and readings that each move is said to move.
fn moved(plan: &serde_json::Value) -> Vec<(serde_json::Value, serde_json::Value)> {
    let steps = plan["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == "move");
    steps.map(|step| (step["buckets"].clone(), step["readings"].clone())).collect()
}

/// What is said about our rule; a real MongoDB may have others.
fn ours<'a>(told: &'a serde_json::Value, db: &str) -> &'a serde_json::Value {
    let is_ours = |rule: &&serde_json::Value| rule["rule"] == "sensor_data.bucket" && rule["database"] == db;
    told["rules"].as_array().unwrap().iter().find(is_ours).unwrap_or_else(|| panic!("{told}"))
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The verbs one after the other, wherever the data is; `run` gives a verb its target, `client` reads and writes there.
fn walk(shop: &Shop, run: &dyn Fn(&[&str]) -> Output, client: &mut dyn FnMut() -> Client, db: &str) {
    let readings: Vec<Document> = (0..100).map(reading).collect();
    fill(&mut client(), db, 100);
    let plan = run(&["plan", "--json"]);
    assert_eq!(plan.status.code(), Some(1), "{plan:?}");
    let plan = json(&plan);
    assert_eq!(kinds(&plan), ["rename", "create", "index", "view", "move", "view", "drop"]);
    assert_eq!(moved(&plan), [(json!(0), json!(100))], "{plan}");
    let applied = run(&["apply"]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    assert_eq!(run(&["plan"]).status.code(), Some(0));
    assert_eq!(names(&mut client(), db), ["sensor_data:view", "sensor_hours:collection"]);
    assert_eq!(all(&mut client(), db, "sensor_data"), readings);
    let audit = json(&run(&["audit", "--json"]));
    let audited = ours(&audit, db);
    let buckets = all(&mut client(), db, "sensor_hours").len();
    assert_eq!((&audited["checked"], &audited["drifted"]), (&json!(buckets), &json!(0)), "{audit}");
    let status = json(&run(&["status", "--json"]));
    let health = &ours(&status, db)["health"];
    assert_eq!((&ours(&status, db)["state"], &health["readings"]), (&json!("on"), &json!(100)), "{status}");
    assert!(health["splits"].as_i64().unwrap() > 0 && health["fill"].as_f64().unwrap() > 0.5, "{health}");

    // Another form, and back to documents.
    shop.declare(&DECLARATION.replace("weather", db).replace("every: hour", "every: day"));
    let plan = json(&run(&["plan", "--json"]));
    assert_eq!(moved(&plan), [(json!(buckets), json!(100))], "{plan}");
    assert_eq!(plan["cost"]["read"], json!(buckets), "{plan}");
    let told = run(&["plan"]);
    assert!(text(&told).1.contains(&format!("{buckets} buckets, 100 readings")), "{told:?}");
    let applied = run(&["apply"]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    assert_eq!(all(&mut client(), db, "sensor_data"), readings);
    assert!(all(&mut client(), db, "sensor_hours").iter().all(|bucket| bucket.contains_key("day")));
    let dropped = run(&["drop", "--db", db, "sensor_data.bucket"]);
    assert_eq!(text(&dropped).0, Some(0), "{dropped:?}");
    assert!(text(&dropped).1.contains("plain documents again"), "{dropped:?}");
    assert_eq!(names(&mut client(), db), ["sensor_data:collection"]);
    assert_eq!(all(&mut client(), db, "sensor_data"), readings);

    // Only the rule goes, then all of it.
    assert_eq!(run(&["apply"]).status.code(), Some(0));
    assert_eq!(run(&["drop", "--db", db, "sensor_data.bucket", "--keep-buckets"]).status.code(), Some(0));
    assert_eq!(names(&mut client(), db), ["sensor_data:view", "sensor_hours:collection"]);
    assert_eq!(all(&mut client(), db, "sensor_data"), readings);
    assert_eq!(run(&["apply"]).status.code(), Some(0));
    assert_eq!(run(&["drop", "--db", db, "sensor_data.bucket", "--with-data"]).status.code(), Some(0));
    assert_eq!(names(&mut client(), db), Vec::<String>::new());
}

#[test]
fn a_bucket_rule_on_a_running_server() {
    let shop = Shop::new("buckets-server", DECLARATION);
    let serving = shop.serve(&[]);
    let uri = format!("mongodb://{}", serving.address);
    let run = |args: &[&str]| shop.command(args).args(["--server", &uri]).output().unwrap();
    walk(&shop, &run, &mut || serving.client(), "weather");
    shop.stop(serving);
}

#[test]
fn a_bucket_rule_on_a_folder() {
    let shop = Shop::new("buckets-data", DECLARATION);
    let serving = shop.serve(&[]);
    fill(&mut serving.client(), "weather", 60);
    shop.stop(serving);
    let applied = shop.run(&["apply"]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    // What is declared stays in force without the declaration, and is served as it is.
    let serving = shop.serve(&[]);
    let mut client = serving.client();
    assert_eq!(all(&mut client, "weather", "sensor_data"), (0..60).map(reading).collect::<Vec<_>>());
    for (command, what) in [
        (doc! { "drop": "sensor_data", "$db": "weather" }, "is kept up by rule sensor_data.bucket"),
        (doc! { "drop": "sensor_hours", "$db": "weather" }, "holds the documents of rule sensor_data.bucket"),
        (
            doc! { "renameCollection": "weather.sensor_hours", "to": "weather.x", "$db": "admin" },
            "holds the documents of rule sensor_data.bucket",
        ),
    ] {
        let error = client.must(&command).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    client.must(&doc! { "dropDatabase": 1, "$db": "weather" }).unwrap();
    assert_eq!(names(&mut client, "weather"), ["sensor_data:view", "sensor_hours:collection"]);
    shop.stop(serving);
    let (code, audit) = shop.json(&["audit"]);
    assert_eq!((code, &audit["checked"]), (Some(0), &json!(0)));
    let (code, _) = shop.json(&["drop", "sensor_data.bucket"]);
    assert_eq!(code, Some(0));
}

#[test]
fn drift_in_buckets_is_found_and_mended() {
    let shop = Shop::new("buckets-drift", DECLARATION);
    let serving = shop.serve(&[]);
    fill(&mut serving.client(), "weather", 30);
    shop.stop(serving);
    assert_eq!(shop.run(&["apply"]).status.code(), Some(0));
    let serving = shop.serve(&["--raw"]);
    let wrong = doc! { "q": {}, "u": { "$inc": { "count": 1 }, "$set": { "stats.maxTemp": 99 } }, "multi": false };
    let update = doc! { "update": "sensor_hours", "updates": [wrong], "$db": "weather" };
    serving.client().must(&update).unwrap();
    shop.stop(serving);
    let (code, audit) = shop.json(&["audit"]);
    assert_eq!((code, &audit["drifted"]), (Some(1), &json!(1)), "{audit}");
    let drift = &audit["drift"][0];
    assert_eq!((&drift["collection"], &drift["field"]), (&json!("sensor_hours"), &json!("count")), "{drift}");
    assert_eq!(audit["rules"][0]["database"], "weather");
    let flaws: Vec<&str> =
        drift["flaws"].as_array().unwrap().iter().map(|flaw| flaw["field"].as_str().unwrap()).collect();
    assert_eq!(flaws, ["count", "stats.maxTemp"], "{drift}");
    let audit = shop.run(&["audit"]);
    let told = text(&audit).1;
    assert!(told.contains("stats.maxTemp") && told.contains("99"), "{told}");
    assert!(told.contains("  pleach repair --data data\n") && !told.contains("by hand"), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let (code, repaired) = shop.json(&["repair"]);
    assert_eq!((code, &repaired["drifted"]), (Some(0), &json!(1)), "{repaired}");
    assert_eq!(shop.json(&["audit"]).0, Some(0));

    // A bucket that does not tell what it should be.
    let serving = shop.serve(&["--raw"]);
    let wrong = doc! { "q": {}, "u": { "$set": { "readings.0": 7 } }, "multi": false };
    serving.client().must(&doc! { "update": "sensor_hours", "updates": [wrong], "$db": "weather" }).unwrap();
    shop.stop(serving);
    let (code, audit) = shop.json(&["audit"]);
    assert_eq!(
        (code, &audit["next"]),
        (Some(1), &json!([{ "action": "by_hand", "rules": ["sensor_data.bucket"], "database": "weather" }])),
        "{audit}"
    );
    let broken =
        audit["drift"][0]["flaws"].as_array().unwrap().iter().find(|flaw| flaw["repairable"] == false).unwrap();
    assert_eq!((&broken["stored"], broken.get("expected")), (&json!(7), None), "what nobody knows is left out");
    let audit = shop.run(&["audit"]);
    let told = text(&audit).1;
    assert!(told.contains("by hand") && told.contains("(unknown)") && !told.contains("  pleach repair"), "{told}");
    let repaired = shop.run(&["repair"]);
    assert_eq!(text(&repaired).0, Some(1), "{repaired:?}");
    assert!(text(&repaired).1.contains("not repaired") && text(&repaired).1.contains("by hand"), "{repaired:?}");
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_bucket_rule_on_a_real_mongodb() {
    let uri = judge::real::uri().unwrap();
    let db = format!("buckets{}", std::process::id());
    let shop = Shop::new("buckets-upstream", &DECLARATION.replace("weather", &db));
    let address = uri.trim_start_matches("mongodb://").split('/').next().unwrap().to_owned();
    let run = |args: &[&str]| shop.command(args).args(["--upstream", &uri]).output().unwrap();
    walk(&shop, &run, &mut || Client::connect(&address).unwrap(), &db);
    Client::connect(&address).unwrap().must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
