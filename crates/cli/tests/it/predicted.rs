//! `pleach lab`: what it predicts from a sample beside what `apply` makes of the whole, its ledger, and what it leaves alone. Of an
//! embedded store, and of a real MongoDB.

use crate::audits::Place;
use crate::doors::{At, at_each_door};
use bson::{Document, doc};
use serde_json::{Value, json};
use std::process::Output;

at_each_door!(
    all_of_it_is_predicted_as_apply_makes_it,
    the_keys_are_those_of_the_contract,
    rules_in_force_are_what_now_has,
    the_mix_is_that_of_the_traffic,
    nothing_is_written_where_the_data_is,
);

/// A random number from 0 to 1 that is the same in every run.
fn chance(number: i64) -> f64 {
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 29)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Few are many: by Pareto's law.
fn heavy(number: i64, most: i64) -> i64 {
    ((chance(number) + 1e-9).powf(-0.8) as i64).clamp(1, most)
}

/// Products with reviews, sensors with readings, users with events, in all sizes.
fn fill(place: &Place, units: i64) {
    let (mut products, mut reviews, mut readings, mut events) = (vec![], vec![], vec![], vec![]);
    for unit in 0..units {
        products.push(doc! { "_id": unit, "title": "x".repeat((chance(unit + 7) * 60.0) as usize), "kind": if unit % 3 == 0 { "book" } else { "tool" } });
        for at in 0..heavy(unit, 150) {
            let id = unit * 1_000 + at;
            reviews.push(doc! { "_id": id, "productId": unit, "stars": (id % 5) as i32, "text": "y".repeat((chance(id) * 80.0) as usize) });
        }
        for at in 0..heavy(unit + units, 150) * 4 {
            let ts = bson::DateTime::from_millis(1_700_000_000_000 + at * 1_800_000);
            readings.push(doc! { "_id": unit * 10_000 + at, "sensorId": unit, "ts": ts, "temp": chance(at) * 30.0 });
        }
        for at in 0..heavy(unit + 2 * units, 150) * 4 {
            let id = unit * 10_000 + at;
            let date = bson::DateTime::from_millis((19_000 + (chance(id + 3) * 500.0) as i64) * 86_400_000);
            events.push(doc! { "_id": id, "key": format!("{unit:08X}"), "date": date, "n": 1 });
        }
    }
    for (collection, documents) in
        [("products", products), ("reviews", reviews), ("readings", readings), ("events", events)]
    {
        for batch in documents.chunks(2_000) {
            place.must(doc! { "insert": collection, "documents": batch });
        }
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn declare(place: &Place, file: &str, rules: &str) {
    let text = format!("database: {}\ncollections:\n{rules}", place.db);
    std::fs::write(place.shop.folder.join(file), text).unwrap();
}

/// Runs it and gives its document.
fn lab(place: &Place, args: &[&str]) -> Value {
    let output = place.run(&[&["lab", "--json", "--seconds", "0.05"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn candidate(found: &Value, name: &str) -> Value {
    found["candidates"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
}

/// By figure.
fn verified(place: &Place, file: &str) -> Document {
    let output = place.run(&["lab", "--verify", "--declare", file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["verify"].as_array().unwrap();
    rows.iter().map(|row| (row["figure"].as_str().unwrap().to_owned(), row["off"].as_f64().unwrap().into())).collect()
}

/// A rule of every pattern, and stacks of them.
const CANDIDATES: [(&str, &str); 8] = [
    (
        "reference",
        "  reviews:\n    extended_reference:\n      product: { from: products, by: productId, fields: [title] }\n",
    ),
    (
        "computed",
        "  products:\n    computed:\n      n: { count: reviews, by: productId }\n      stars: { avg: stars, from: reviews, by: productId }\n",
    ),
    (
        "subset",
        "  products:\n    subset:\n      recent: { from: reviews, by: productId, sort: { _id: -1 }, keep: 3, fields: [text] }\n",
    ),
    ("bucket", "  readings:\n    bucket: { time: ts, by: [sensorId], every: day }\n"),
    (
        "names",
        "  events:\n    bucket: { time: date, by: [{ field: key, as: hex }], every: quarter, slot: day, sum: { n: n }, layout: field_names, bucket_id: packed }\n",
    ),
    (
        "kinds",
        "  products:\n    polymorphic:\n      discriminator: kind\n      kinds: { book: { indexes: [{ key: { title: 1 } }] }, tool: {} }\n",
    ),
    (
        "versions",
        "  products:\n    versions:\n      field: v\n      steps: [{ rename: { title: name } }]\n      migrate: { background: true }\n",
    ),
    (
        "stack",
        "  readings:\n    bucket: { time: ts, by: [sensorId], every: day }\n  products:\n    computed:\n      readings: { count: readings, by: sensorId }\n",
    ),
];

fn all_of_it_is_predicted_as_apply_makes_it(at: At) {
    for (name, rules) in CANDIDATES {
        // Hex series are moved by JavaScript on a real MongoDB, which not every one has.
        if at.is_real() && name == "names" {
            continue;
        }
        let place = Place::new(at, &format!("lab-{name}"));
        fill(&place, 60);
        declare(&place, "candidate.yaml", rules);
        lab(&place, &["--declare", "now", "--declare", "candidate.yaml", "--sample", "100%"]);
        let applied = place.run(&["apply", "--declare", "candidate.yaml", "--overwrite"]);
        assert_eq!(applied.status.code(), Some(0), "{name}: {}", said(&applied));
        let off = verified(&place, "candidate.yaml");
        for figure in ["documents", "bytes.data", "document.average", "document.p99"] {
            assert_eq!(off.get_f64(figure).unwrap(), 0.0, "{name}: {figure}: {off}");
        }
        if !at.is_real() {
            assert_eq!(off.get_f64("bytes.indexes").unwrap(), 0.0, "{name}: {off}");
        }
    }
}

/// Over many samples of one whole the truth lies inside the stated error nine times in ten.
#[test]
fn the_truth_lies_inside_the_stated_error() {
    const SEEDS: i64 = 12;
    for (name, rules) in CANDIDATES.into_iter().filter(|(name, _)| ["computed", "subset", "names"].contains(name)) {
        let place = Place::new(At::Embedded, &format!("lab-seeds-{name}"));
        fill(&place, 250);
        declare(&place, "candidate.yaml", rules);
        let measure = |seed: i64, sample: &str| {
            let seed = seed.to_string();
            let found = lab(&place, &["--declare", "candidate.yaml", "--sample", sample, "--seed", &seed]);
            let full = candidate(&found, "candidate")["full_size"].clone();
            (full["bytes"]["data"].as_f64().unwrap(), full["error"].as_f64().unwrap())
        };
        let (truth, certain) = measure(1, "100%");
        assert_eq!(certain, 0.0, "{name}");
        let runs: Vec<(f64, f64)> = (1..=SEEDS).map(|seed| measure(seed, "20%")).collect();
        let inside = runs.iter().filter(|(data, error)| (data - truth).abs() <= truth * error + 1.0).count();
        assert!(
            inside * 10 >= usize::try_from(SEEDS).unwrap() * 9 - 10,
            "{name}: {inside} of {SEEDS} around {truth}: {runs:?}"
        );
    }
}

fn the_keys_are_those_of_the_contract(at: At) {
    let place = Place::new(at, "lab-keys");
    fill(&place, 40);
    declare(&place, "a.yaml", CANDIDATES[1].1);
    declare(&place, "b.yaml", CANDIDATES[2].1);
    let found = lab(
        &place,
        &["--declare", "now", "--declare", "a.yaml", "--declare", "b.yaml", "--memory", "1KB", "--report", "r.html"],
    );
    let names: Vec<&Value> = found["candidates"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, [&json!("now"), &json!("a"), &json!("b")]);
    for row in found["candidates"].as_array().unwrap() {
        for pointer in [
            "/documents",
            "/bytes/data",
            "/bytes/indexes",
            "/bytes/disk",
            "/document/average",
            "/document/p99",
            "/amplification/statements",
            "/amplification/bytes",
            "/full_size/bytes/data",
            "/full_size/bytes/indexes",
            "/full_size/bytes/disk",
            "/full_size/error",
        ] {
            assert!(row.pointer(pointer).is_some_and(Value::is_number), "{pointer}: {row}");
        }
        for list in ["reads", "writes"] {
            let all = row[list].as_array().unwrap();
            assert!(!all.is_empty(), "{list}: {row}");
            for one in all {
                let is_measured = |name: &str| one[name].as_f64().unwrap() > 0.0;
                assert!(
                    ["per_second", "p50_ms", "p99_ms"].into_iter().all(is_measured) && one["name"].is_string(),
                    "{one}"
                );
            }
        }
    }
    assert!(
        candidate(&found, "a")["amplification"]["statements"].as_f64()
            > candidate(&found, "now")["amplification"]["statements"].as_f64()
    );
    let bottleneck = &found["bottleneck"];
    assert!(["before", "after", "because"].into_iter().all(|name| bottleneck[name].is_string()), "{bottleneck}");
    assert_ne!(bottleneck["before"], "cpu", "nothing fits into a kilobyte");
    let page = std::fs::read_to_string(place.shop.folder.join("r.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.matches("<svg").count() >= 3, "{page}");
    let history = place.shop.command(&["lab", "--history", "--json"]).output().unwrap();
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    assert_eq!(history["history"].as_array().unwrap().len(), 1);
    // A prediction belongs to rules, not to the name of a file.
    declare(&place, "a.yaml", CANDIDATES[2].1);
    let output = place.run(&["lab", "--verify", "--declare", "a.yaml"]);
    assert!(!said(&output).contains("has changed"), "that of the same rules is taken: {}", said(&output));
    declare(&place, "a.yaml", CANDIDATES[0].1);
    let output = place.run(&["lab", "--verify", "--declare", "a.yaml"]);
    assert!(said(&output).contains("has changed since it was measured"), "{}", said(&output));
}

fn rules_in_force_are_what_now_has(at: At) {
    let place = Place::new(at, "lab-force");
    fill(&place, 40);
    declare(&place, "bucket.yaml", CANDIDATES[3].1);
    let applied = place.run(&["apply", "--declare", "bucket.yaml", "--overwrite"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    declare(&place, "both.yaml", CANDIDATES[7].1);
    declare(&place, "count.yaml", "  products:\n    computed:\n      readings: { count: readings, by: sensorId }\n");
    let args = ["--declare", "now", "--declare", "both.yaml", "--declare", "count.yaml", "--sample", "100%"];
    let found = lab(&place, &args);
    let documents = |name: &str| candidate(&found, name)["documents"].as_i64().unwrap();
    assert!(documents("now") < documents("count"), "now has buckets: {found}");
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("count has not readings.bucket, which is in force") && !notes.contains("both has not"),
        "{notes}"
    );
    let applied = place.run(&["apply", "--declare", "both.yaml", "--overwrite"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    let off = verified(&place, "both.yaml");
    assert_eq!(off.get_f64("bytes.data").unwrap(), 0.0, "{off} {found}");
}

fn the_mix_is_that_of_the_traffic(at: At) {
    let place = Place::new(at, "lab-traffic");
    fill(&place, 40);
    if at.is_real() {
        place.must(doc! { "profile": 2 });
    }
    let mut client = place.client();
    for product in 0..30 {
        let mut ask = |mut command: Document| {
            command.insert("$db", &place.db);
            client.must(&command).unwrap()
        };
        ask(doc! { "count": "reviews", "query": { "productId": product } });
        ask(doc! { "find": "products", "filter": { "title": "x" }, "sort": { "_id": 1 } });
        ask(
            doc! { "update": "products", "updates": [{ "q": { "_id": product }, "u": { "$set": { "seen": product } } }] },
        );
    }
    if at.is_real() {
        place.must(doc! { "profile": 0 });
    }
    declare(&place, "candidate.yaml", CANDIDATES[1].1);
    let found = lab(&place, &["--declare", "now", "--declare", "candidate.yaml"]);
    let names = |list: &str| -> Vec<String> {
        let all = found["candidates"][1][list].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("reads"), ["find of products: title $eq", "products with n"], "{found}");
    assert!(names("writes").contains(&"update of products: _id $eq, seen $set".to_owned()), "{found}");
    let notes = found["notes"].to_string();
    let source = if at.is_real() { "system.profile" } else { "serverStatus.pleach.workload" };
    assert!(notes.contains(source), "{notes}");
}

fn nothing_is_written_where_the_data_is(at: At) {
    let place = Place::new(at, "lab-reads");
    fill(&place, 40);
    declare(&place, "candidate.yaml", CANDIDATES[3].1);
    let state =
        || (place.collections(), place.all("products"), place.must(doc! { "dbStats": 1 }).get("objects").cloned());
    let before = state();
    lab(&place, &["--declare", "now", "--declare", "candidate.yaml"]);
    assert_eq!(state(), before);
}

/// In a MongoDB candidates are built in databases of their own, which go, whatever happens; others stay.
#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn scratch_databases_go_whatever_happens() {
    let uri = judge::real::uri().unwrap();
    let place = Place::new(At::Embedded, "lab-scratch");
    fill(&place, 60);
    declare(&place, "candidate.yaml", CANDIDATES[1].1);
    let databases = || {
        let mut client = judge::client::Client::connect(&uri).unwrap();
        let reply = client.must(&doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" }).unwrap();
        let all = reply.get_array("databases").unwrap().iter();
        all.map(|database| database.as_document().unwrap().get_str("name").unwrap().to_owned())
            .filter(|name| name.starts_with("pleach_lab_"))
            .collect::<Vec<_>>()
    };
    let scratch = ["--declare", "now", "--declare", "candidate.yaml", "--sample", "100%", "--scratch", &uri];
    lab(&place, &scratch);
    assert_eq!(databases(), [""; 0]);
    // A candidate that cannot be built.
    declare(&place, "candidate.yaml", "  reviews:\n    bucket: { time: text, by: [productId], every: day }\n");
    let failed = place.run(&[&["lab"][..], &scratch].concat());
    assert_eq!((failed.status.code(), databases().len()), (Some(2), 0), "{}", said(&failed));
    // Somebody stops it.
    declare(&place, "candidate.yaml", CANDIDATES[1].1);
    let arguments = [&["lab", "--seconds", "60", "--data", "data"][..], &scratch].concat();
    let child = place.shop.command(&arguments).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while databases().is_empty() {
        assert!(begun.elapsed().as_secs() < 120, "no scratch database was made");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let stopped = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), databases().len()), (Some(2), 0));
}
