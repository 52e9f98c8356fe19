//! `pleach adopt`: from a finding to a rule in force, and that any answer but yes changes nothing. Of an embedded store, and of a real
//! MongoDB with nothing between.

use crate::audits::Place;
use crate::doors::{At, at_each_door};
use crate::shop::Shop;
use bson::{Document, doc};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

at_each_door!(
    a_finding_becomes_a_rule_in_force,
    any_other_answer_changes_nothing,
    yes_at_the_terminal_does_it,
    what_apply_would_refuse_is_said_before_anybody_is_asked,
    what_cannot_be_meant_is_said,
    a_rule_that_is_there_is_changed_only_if_asked,
    without_a_report_the_data_is_looked_at,
);

/// A declaration as its owner writes it: nothing of it is in force yet.
const OURS: &str = "collections:\n  products:\n    computed:   # shown on every page\n      reviewCount: { count: reviews, by: productId }\n\n  # more to come\n";

fn rule(db: &str) -> String {
    format!(
        "database: {db}\ncollections:\n  orders:\n    extended_reference:\n      buyer: {{ from: customers, by: customerId, fields: [name] }}\n"
    )
}

fn finding(db: &str, symptom: &str, field: &str, severity: &str, declaration: &str) -> Value {
    json!({
        "symptom": symptom, "pattern": "extended_reference", "database": db, "collection": "orders", "field": field,
        "severity": severity, "confidence": 0.9, "evidence": { "share": 0.5, "examples": [1, 2] }, "against": [],
        "verdict": "two of three reads are followed by another one", "declaration": declaration, "gain": {},
    })
}

/// Data, a declaration, and a report with one finding that asks for a rule.
fn place(at: At, name: &str) -> Place {
    let place = Place::new(at, name);
    place.declare(OURS);
    place.must(doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada" }, { "_id": 2, "name": "Bob" }] });
    let order = |id: i32| doc! { "_id": id, "customerId": 1 + id % 2 };
    place.must(doc! { "insert": "orders", "documents": (1..=20).map(order).collect::<Vec<_>>() });
    place.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    place.must(doc! { "insert": "reviews", "documents": [{ "_id": 1, "productId": 1 }] });
    report(
        &place,
        vec![
            finding(&place.db, "second_read", "customerId", "act", &rule(&place.db)),
            finding(&place.db, "old_shapes", "total", "note", ""),
        ],
    );
    place
}

fn report(place: &Place, findings: Vec<Value>) {
    let text = json!({ "looked_at": {}, "findings": findings }).to_string();
    std::fs::write(place.shop.folder.join("advise.json"), text).unwrap();
}

fn file(place: &Place) -> String {
    std::fs::read_to_string(place.shop.folder.join("pleach.yaml")).unwrap()
}

fn adopt(place: &Place, args: &[&str]) -> Output {
    place.run(&[&["adopt", "--from", "advise.json"], args].concat())
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Everything that a run could have changed.
fn state(place: &Place) -> (String, Vec<String>, Vec<bson::Bson>, Vec<bson::Bson>) {
    (file(place), place.collections(), place.all("orders"), place.all("products"))
}

/// Runs at a terminal, on which somebody has typed. All that is printed is in stdout then.
fn at_terminal(place: &Place, typed: &str) -> Output {
    let target = place.uri.as_ref().map_or_else(|| "--data data".to_owned(), |uri| format!("--upstream '{uri}'"));
    let line = format!("'{}' adopt --from advise.json {target}", env!("CARGO_BIN_EXE_pleach"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(&place.shop.folder);
    command.env_remove("PLEACH_DECLARE").env_remove("PLEACH_UPSTREAM").env_remove("PLEACH_DATA");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn a_finding_becomes_a_rule_in_force(at: At) {
    let place = place(at, "adopt-force");
    let before = file(&place);
    let output = adopt(&place, &["--yes", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["adopted"], &told["rules"]), (&json!(true), &json!(["orders.buyer"])));
    let lines =
        "  orders:\n    extended_reference:\n      buyer: { from: customers, by: customerId, fields: [name] }\n";
    let wanted = before.replace("  # more to come\n", "").trim_end().to_owned() + "\n" + lines + "\n  # more to come\n";
    assert_eq!(file(&place), wanted);
    let orders = place.all("orders");
    assert!(
        orders.iter().all(|order| order.as_document().unwrap().get_document("buyer").unwrap().contains_key("name"))
    );
    // All of the file is in force now, as the plan had said.
    let rules = told["audit"]["rules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    assert_eq!((names.len(), &told["audit"]["outcome"]), (2, &json!("right")), "{names:?}");
    let size = |when: &str| {
        let all = told[when]["collections"].as_array().unwrap();
        let orders = all.iter().find(|size| size["collection"] == "orders").unwrap();
        (orders["documents"].as_i64().unwrap(), orders["bytes"].as_i64().unwrap())
    };
    assert_eq!((size("before").0, size("after").0), (20, 20));
    assert!(size("after").1 > size("before").1, "a copy takes room: {told}");
    assert_eq!(told["before"]["read"]["name"], "one of orders with its buyer");
    assert!(told["after"]["read"]["ms"].as_f64().unwrap() > 0.0 && told["after"]["read"]["documents"] == json!(1.0));
    // Once more: there is nothing left to do, and it says why.
    let output = adopt(&place, &["--yes"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("declares `orders.buyer` already"), "{}", said(&output));
}

fn any_other_answer_changes_nothing(at: At) {
    let place = place(at, "adopt-no");
    let before = state(&place);
    let output = adopt(&place, &[]);
    assert_eq!(output.status.code(), Some(2));
    let told = said(&output);
    for part in [
        "second_read in orders.customerId",
        "+      buyer: { from: customers",
        "orders.buyer",
        "nobody could be asked",
        "--yes",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert_eq!(state(&place), before);
    let output = adopt(&place, &["--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &told["adopted"], &told["error"]["code"]),
        (Some(2), &json!(false), &json!("consent"))
    );
    assert_eq!(state(&place), before);
    for typed in ["n\n", "\n", "maybe\n", "yes please\n"] {
        let output = at_terminal(&place, typed);
        assert_eq!(output.status.code(), Some(1), "{typed:?}: {}", said(&output));
        assert_eq!(state(&place), before, "{typed:?}");
    }
}

fn yes_at_the_terminal_does_it(at: At) {
    let place = place(at, "adopt-yes");
    let second = rule(&place.db).replace("buyer", "customer");
    report(
        &place,
        vec![
            finding(&place.db, "second_read", "customerId", "act", &rule(&place.db)),
            finding(&place.db, "copy_by_hand", "customer", "warn", &second),
        ],
    );
    let output = at_terminal(&place, "2\ny\n");
    let told = said(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for part in ["second_read", "copy_by_hand", "adopted in", "before", "after", "index bytes"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(file(&place).contains("      customer: {") && !file(&place).contains("buyer"), "{}", file(&place));
}

fn what_apply_would_refuse_is_said_before_anybody_is_asked(at: At) {
    let place = place(at, "adopt-refused");
    // Most of them are something else today.
    place.must(doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "buyer": { "name": "Eve" } } }, "multi": true }] });
    let before = state(&place);
    let output = adopt(&place, &["--yes"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("nothing was changed; --overwrite goes on"), "{}", said(&output));
    assert_eq!(state(&place), before);
    let output = adopt(&place, &["--yes", "--overwrite"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

fn what_cannot_be_meant_is_said(at: At) {
    let place = place(at, "adopt-meant");
    let before = state(&place);
    let broken = rule(&place.db).replace("fields: [name]", "fields: [name], colour: red");
    report(
        &place,
        vec![
            finding(&place.db, "second_read", "customerId", "act", &rule(&place.db)),
            finding(&place.db, "copy_by_hand", "customer", "warn", &broken),
            finding(&place.db, "old_shapes", "total", "urgent", ""),
            finding("elsewhere", "second_read", "productId", "warn", &rule("elsewhere")),
        ],
    );
    for (args, says) in [
        (vec!["--yes"], "3 findings ask for a rule"),
        (vec!["--yes", "--finding", "9"], "there is no finding 9 among 4"),
        (vec!["--yes", "--finding", "second_read"], "second_read names 2 findings"),
        (vec!["--yes", "--finding", "old_shapes"], "has nothing to declare"),
        (vec!["--yes", "--finding", "orders.customer"], "is not a valid declaration"),
        (vec!["--yes", "--finding", "4"], "the rule for `elsewhere`"),
        (vec!["--yes", "--from", "gone.json"], "cannot read gone.json"),
        (vec!["--yes", "--from", "pleach.yaml"], "is not JSON"),
    ] {
        let args =
            if args.contains(&"--from") { place.run(&[&["adopt"], &*args].concat()) } else { adopt(&place, &args) };
        assert_eq!(args.status.code(), Some(2), "{}", said(&args));
        assert!(said(&args).contains(says), "{says}: {}", said(&args));
        assert_eq!(state(&place), before);
    }
}

fn a_rule_that_is_there_is_changed_only_if_asked(at: At) {
    let place = place(at, "adopt-change");
    let days = |layout: &str| {
        format!(
            "collections:\n  events:\n    bucket:\n      time: date\n      by: [key]\n      every: quarter\n      slot: day\n      sum: {{ approved: a }}\n      layout: {layout}  # for now\n      bucket_id: packed\n"
        )
    };
    place.declare(&days("array").replace("[key]", "[{ field: key, as: hex }]"));
    let event = |day: i64| doc! { "key": "00A1", "date": bson::DateTime::from_millis(day * 86_400_000), "approved": 1 };
    place.must(doc! { "insert": "events", "documents": (0..60).map(event).collect::<Vec<Document>>() });
    let applied = place.declared(&["apply", "--overwrite"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    let mut proposed = finding(
        &place.db,
        "repeated_discriminator",
        "readings.date",
        "warn",
        &format!("database: {}\ncollections:\n  events:\n    bucket: {{ layout: field_names }}\n", place.db),
    );
    proposed["collection"] = json!("events");
    report(&place, vec![proposed]);
    let before = file(&place);
    let output = adopt(&place, &["--yes"]);
    assert!(said(&output).contains("declares `events.bucket` already"), "{}", said(&output));
    assert_eq!((output.status.code(), file(&place)), (Some(2), before.clone()));
    let output = adopt(&place, &["--yes", "--change", "--overwrite", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(file(&place), before.replace("layout: array", "layout: field_names"));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = |when: &str| {
        let all = told[when]["collections"].as_array().unwrap();
        all.iter().find(|size| size["collection"] == "events_buckets").unwrap()["bytes"].as_i64().unwrap()
    };
    assert!(bytes("after") < bytes("before"), "{told:#}");
}

fn without_a_report_the_data_is_looked_at(at: At) {
    let place = place(at, "adopt-looks");
    place.declare("collections: {}\n");
    // Copies by hand, most of them right.
    let customer = |id: i32| doc! { "_id": format!("c{:04}", id * 7919 % 9973), "name": format!("name {}", id % 17), "city": format!("city {}", id % 7) };
    for collection in ["orders", "customers"] {
        place.must(doc! { "delete": collection, "deletes": [{ "q": {}, "limit": 0 }] });
    }
    place.must(doc! { "insert": "customers", "documents": (0..60).map(customer).collect::<Vec<_>>() });
    let order = |id: i32| {
        let name = if id % 40 == 0 { "old name".to_owned() } else { format!("name {}", id % 60 % 17) };
        doc! { "_id": id, "customerId": format!("c{:04}", id % 60 * 7919 % 9973), "customer": { "name": name } }
    };
    place.must(doc! { "insert": "orders", "documents": (1..=400).map(order).collect::<Vec<_>>() });
    let before = state(&place);
    let which = ["adopt", "--db", &place.db, "--finding", "copy_by_hand"];
    let output = place.run(&which);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for part in ["copy_by_hand", "customer: {", "nobody could be asked"] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    assert_eq!(state(&place), before);
    let output = place.run(&[&which[..], &["--yes", "--overwrite"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(file(&place).contains("extended_reference") && !format!("{:?}", place.all("orders")).contains("old name"));
}

/// Ctrl-D, and an input that is no terminal.
#[test]
fn the_end_of_the_input_is_no_answer() {
    let place = place(At::Embedded, "adopt-end");
    let before = state(&place);
    let output = at_terminal(&place, "\u{4}");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(state(&place), before);
    let mut command = place.shop.command(&["adopt", "--from", "advise.json", "--data", "data"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"y\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), state(&place)), (Some(2), before), "{}", said(&output));
}

/// The rules of that server are switched off: it plans, and applies nothing.
#[test]
fn an_apply_that_fails_leaves_the_file_as_it_was() {
    let shop = Shop::new("adopt-raw", "");
    let serving = shop.serve(&["--raw"]);
    serving
        .client()
        .must(&doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada" }], "$db": "shop" })
        .unwrap();
    serving
        .client()
        .must(&doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 1 }], "$db": "shop" })
        .unwrap();
    let text = json!({ "findings": [finding("shop", "second_read", "customerId", "act", &rule("shop"))] }).to_string();
    std::fs::write(shop.folder.join("advise.json"), text).unwrap();
    for before in [None, Some(format!("# ours\ndatabase: shop\n{OURS}"))] {
        let path = shop.folder.join("pleach.yaml");
        match &before {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let output = shop.run(&["adopt", "--from", "advise.json", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("nothing was changed: pleach.yaml is as it was"), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(&path).ok(), before);
    }
    let found = serving.client().must(&doc! { "find": "orders", "$db": "shop" }).unwrap();
    assert!(!found.to_string().contains("Ada"), "{found}");
}
