//! `pleach advise` on every target: an embedded store, a running Pleach, a real MongoDB whose user may only read, and a dump; what it
//! prints, its exit codes, and that Ctrl-C ends it with a report.

use crate::audits::Place;
use crate::doors::{At, at_each_door};
use crate::mongod::{Mongod, initiate, key_file};
use crate::shop::{Shop, text};
use crate::upstream::log_in;
use bson::{Document, doc};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

at_each_door!(what_is_kept_by_hand_is_found_and_nothing_is_changed, notes_are_no_findings);

fn customers() -> Vec<Document> {
    (0..50)
        .map(|n| doc! { "_id": format!("c{n:03}"), "name": format!("customer {n}"), "code": format!("k-{}", n * 7) })
        .collect()
}

/// Orders with a copy of the customer's name; of every so many it is wrong.
fn orders(wrong: i32) -> Vec<Document> {
    let name = |n: i32| match wrong > 0 && n % wrong == 3 {
        true => format!("somebody {n}"),
        false => format!("customer {}", n % 50),
    };
    let order = |n: i32| doc! { "_id": n, "customerId": format!("c{:03}", n % 50), "customer": { "name": name(n) } };
    (0..400).map(order).collect()
}

fn fill(place: &Place, wrong: i32) {
    place.must(doc! { "insert": "customers", "documents": customers() });
    place.must(doc! { "insert": "orders", "documents": orders(wrong) });
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The only finding from `warn` on, whose form is the one that programs rely on.
fn copy_by_hand(report: &Value, db: &str) {
    let mut names = keys(&report["looked_at"]);
    names.sort_unstable();
    assert_eq!(
        names,
        ["collections", "databases", "documents", "sampled", "seconds", "sources", "traffic"],
        "{report:#}"
    );
    let findings = report["findings"].as_array().unwrap();
    let strong: Vec<&Value> = findings.iter().filter(|finding| finding["severity"] != "note").collect();
    assert_eq!(strong.len(), 1, "{findings:#?}");
    let finding = strong[0];
    let mut names = keys(finding);
    names.sort_unstable();
    let expected = [
        "against",
        "collection",
        "confidence",
        "database",
        "declaration",
        "evidence",
        "field",
        "gain",
        "pattern",
        "severity",
        "symptom",
        "verdict",
    ];
    assert_eq!(names, expected, "{finding:#}");
    let told = ["symptom", "pattern", "database", "collection", "field"].map(|name| finding[name].as_str().unwrap());
    assert_eq!(told, ["copy_by_hand", "extended_reference", db, "orders", "customer"], "{finding:#}");
    let evidence = &finding["evidence"];
    let wrong = orders(20)
        .iter()
        .filter(|order| !order.get_document("customer").unwrap().get_str("name").unwrap().starts_with("customer"))
        .count();
    assert_eq!((&evidence["checked"], &evidence["wrong"]), (&400.into(), &wrong.into()), "{evidence:#}");
    assert!(evidence["examples"].as_array().is_some_and(|examples| !examples.is_empty()), "{evidence:#}");
}

fn what_is_kept_by_hand_is_found_and_nothing_is_changed(at: At) {
    let mut place = Place::new(at, "advise-finds");
    fill(&place, 20);
    let before = place.collections();
    let output = place.run(&["advise", "--db", &place.db, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = json(&output);
    copy_by_hand(&found, &place.db);
    assert_eq!(found["looked_at"]["documents"], 450, "{found:#}");
    // As text, with what is next; the same again, by the running server too.
    let output = place.run(&["advise", "--db", &place.db]);
    let (code, out, _) = text(&output);
    assert!(code == Some(1) && out.contains("copy_by_hand") && out.contains("pleach lab"), "{out}");
    assert!(out.contains("extended_reference:\n") && out.contains("by: customerId"), "{out}");
    if let Some(serving) = place.serving.take() {
        let server = format!("mongodb://{}", serving.address);
        let output = place.shop.command(&["advise", "--server", &server, "--json"]).output().unwrap();
        assert_eq!(json(&output)["findings"], found["findings"]);
        place.shop.stop(serving);
        let (code, again) = place.shop.json(&["advise"]);
        assert_eq!((code, &again["findings"]), (Some(1), &found["findings"]), "nobody serves the folder");
    } else {
        assert_eq!(place.collections(), before);
        place.must(doc! { "dropDatabase": 1 });
    }
}

fn notes_are_no_findings(at: At) {
    let place = Place::new(at, "advise-notes");
    fill(&place, 0);
    let output = place.run(&["advise", "--db", &place.db, "--json"]);
    let found = json(&output);
    assert_eq!(output.status.code(), Some(0), "{found:#}");
    let severities: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|finding| finding["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["note"], "a copy that is right is listed: {found:#}");
    if place.uri.is_some() {
        place.must(doc! { "dropDatabase": 1 });
    }
}

/// What `mongodump` writes of a collection.
fn dumped(folder: &Path, collection: &str, documents: &[Document], is_compressed: bool) {
    let bytes: Vec<u8> = documents.iter().flat_map(|doc| doc.to_vec().unwrap()).collect();
    let metadata = serde_json::json!({
        "options": {}, "uuid": "b3f1c7a8c0de4a52a0d3bb4a4b7a57c1", "collectionName": collection, "type": "collection",
        "indexes": [{ "v": { "$numberInt": "2" }, "key": { "_id": { "$numberInt": "1" } }, "name": "_id_" }],
    });
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: String, bytes: &[u8]| match is_compressed {
        true => {
            let file = File::create(folder.join(name + ".gz")).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap();
        }
        false => std::fs::write(folder.join(name), bytes).unwrap(),
    };
    write(format!("{collection}.bson"), &bytes);
    write(format!("{collection}.metadata.json"), metadata.to_string().as_bytes());
}

#[test]
fn a_dump_is_looked_at_compressed_or_not() {
    let shop = Shop::new("advise-dump", "");
    for (name, is_compressed) in [("plain", false), ("compressed", true)] {
        let folder = shop.folder.join(name);
        dumped(&folder.join("store"), "customers", &customers(), is_compressed);
        dumped(&folder.join("store"), "orders", &orders(20), is_compressed);
        // Of the whole dump, and of one database's folder.
        for path in [name.to_owned(), format!("{name}/store")] {
            let output = shop.command(&["advise", "--dump", &path, "--json"]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            copy_by_hand(&json(&output), "store");
        }
    }
    for (args, says) in [
        (&["advise", "--dump", "gone"][..], "cannot read gone"),
        (&["advise", "--dump", "data"], "holds no dumped collections"),
        (&["advise", "--dump", "plain", "--log", "gone.log"], "cannot read gone.log"),
    ] {
        let output = shop.command(args).output().unwrap();
        let (code, _, error) = text(&output);
        assert!(code == Some(2) && error.contains(says), "{error}");
    }
    std::fs::write(shop.folder.join("plain/store/orders.bson"), b"no bson at all").unwrap();
    let output = shop.command(&["advise", "--dump", "plain"]).output().unwrap();
    assert!(text(&output).0 == Some(2) && text(&output).2.contains("no BSON document"), "{output:?}");
}

/// A pipe holds the load until the signal has come: no clock decides.
#[test]
fn ctrl_c_ends_it_with_a_report_on_what_it_saw() {
    let shop = Shop::new("advise-stopped", "");
    let folder = shop.folder.join("dump/store");
    dumped(&folder, "customers", &customers(), false);
    dumped(&folder, "orders", &orders(20), false);
    let pipe = folder.join("pages.bson");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = shop.command(&["advise", "--dump", "dump", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    let batch: Vec<u8> = (0..1_000).flat_map(|n| doc! { "_id": n, "text": "x" }.to_vec().unwrap()).collect();
    writer.write_all(&batch).unwrap();
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let stopped =
        BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).find(|line| line.contains("stopping"));
    assert!(stopped.is_some());
    let more: Vec<u8> = (1_000..2_000).flat_map(|n| doc! { "_id": n, "text": "x" }.to_vec().unwrap()).collect();
    let _ = writer.write_all(&more);
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    assert_eq!(report["looked_at"]["interrupted"], true, "{report:#}");
    let symptoms: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().map(|finding| &finding["symptom"]).collect();
    assert_eq!(symptoms, ["copy_by_hand"], "{report:#}");
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_right_to_read_one_database_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key_file(folder.path())]);
    initiate(&[&mongod]);
    let mut root = mongod.client();
    root.must(&doc! { "createUser": "root", "pwd": "s3cret", "roles": ["root"], "$db": "admin" }).unwrap();
    log_in(&mut root, "root", "s3cret").unwrap();
    let read = doc! { "role": "read", "db": "shop" };
    root.must(&doc! { "createUser": "reader", "pwd": "s3cret", "roles": [read], "$db": "admin" }).unwrap();
    root.must(&doc! { "insert": "customers", "documents": customers(), "$db": "shop" }).unwrap();
    root.must(&doc! { "insert": "orders", "documents": orders(20), "$db": "shop" }).unwrap();
    let times = doc! { "timeField": "ts", "metaField": "of" };
    root.must(&doc! { "create": "native", "timeseries": times, "$db": "shop" }).unwrap();
    let reading = |n: i64| doc! { "ts": bson::DateTime::from_millis(n * 1_000), "of": "a", "v": 1 };
    root.must(&doc! { "insert": "native", "documents": (0..2_000).map(reading).collect::<Vec<_>>(), "$db": "shop" })
        .unwrap();
    root.must(&doc! { "create": "capped", "capped": true, "size": 1_000_000, "$db": "shop" }).unwrap();
    root.must(&doc! { "insert": "capped", "documents": (0..2_000).map(reading).collect::<Vec<_>>(), "$db": "shop" })
        .unwrap();
    root.must(&doc! { "create": "shown", "viewOn": "orders", "pipeline": [], "$db": "shop" }).unwrap();
    let shop = Shop::new("advise-reader", "");
    let uri = format!("mongodb://reader:s3cret@{}/?authSource=admin&directConnection=true", mongod.address());
    for databases in [&["--db", "shop"][..], &[]] {
        let args = [&["advise", "--upstream", &uri, "--json"], databases].concat();
        let output = shop.command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let report = json(&output);
        copy_by_hand(&report, "shop");
        assert_eq!(report["looked_at"]["collections"], 3, "no views, no time series: {report:#}");
    }
}
