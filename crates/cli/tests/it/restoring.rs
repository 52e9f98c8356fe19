//! What was there before a rule, on both doors: kept while it is seeded, given back by `drop --restore`, freed by `forget`.

use crate::doors::{At, at_each_door};
use crate::serving::{Serving, pleach};
use crate::upstream::database;
use bson::{DateTime, Document, doc};
use judge::client::Client;
use std::process::Output;
use testing::legacy::{self, NAMES, RULES};

at_each_door!(
    every_document_gets_back_what_it_had,
    what_is_kept_outlives_the_rule_until_it_is_forgotten,
    numbers_of_a_series_come_back_with_their_types,
    what_is_kept_of_rules_that_are_gone_is_given_back,
    a_rule_that_is_applied_again_gives_back_what_was_there_before_its_first_life,
    a_field_that_was_removed_and_made_again_comes_back_in_its_place,
    readings_and_events_get_back_what_buckets_threw_away,
);

fn put(client: &mut Client, db: &str, collection: &str, documents: Vec<Document>) {
    client.must(&doc! { "insert": collection, "documents": documents, "$db": db }).unwrap();
}

fn all(client: &mut Client, db: &str, collection: &str) -> Vec<String> {
    let found = client.must(&doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 1000, "$db": db }).unwrap();
    let found = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    found.iter().map(ToString::to_string).collect()
}

/// Whatever becomes of the values that are there.
fn apply(client: &mut Client, db: &str, rules: &str) -> Document {
    let declaration = format!("database: {db}\ncollections: {rules}");
    let asked = doc! { "pleach": "apply", "declaration": declaration };
    let mut flagged = asked.clone();
    flagged.extend(doc! { "overwrite": true, "$db": db });
    match client.must(&flagged) {
        Err(error) if error.to_string().contains("takes no field 'overwrite'") => {
            let mut asked = asked;
            asked.insert("$db", db);
            client.must(&asked).unwrap()
        }
        answer => answer.unwrap(),
    }
}

fn run(serving: &Serving, args: &[&str]) -> (Output, String, String) {
    let server = format!("mongodb://{}", serving.address);
    let output = pleach().args(args).args(["--server", &server]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

fn rule(client: &mut Client, db: &str, name: &str) -> Document {
    let status = client.must(&doc! { "pleach": "status", "$db": db }).unwrap();
    let rules = status.get_array("rules").unwrap().clone();
    let mut rules = rules.iter().filter_map(|rule| rule.as_document().cloned());
    rules.find(|rule| rule.get_str("rule").is_ok_and(|rule| rule == name)).unwrap_or_else(|| panic!("{status}"))
}

fn every_document_gets_back_what_it_had(at: At) {
    let serving = at.serve();
    let (mut client, db) = (serving.client(), database("restored"));
    legacy(&mut client, &db);
    let before = all(&mut client, &db, "orders");
    apply(&mut client, &db, RULES);
    let double = rule(&mut client, &db, "orders.double");
    let seeded = double.get_document("seeded").unwrap();
    assert_eq!(*seeded, doc! { "corrected": 2_i64, "filled": 12_i64, "removed": 0_i64, "left": 2_i64 });
    let customer = rule(&mut client, &db, "orders.customer");
    let seeded = customer.get_document("seeded").unwrap();
    assert_eq!(seeded.get_i64("removed").unwrap(), 1, "{customer}");
    let kept = customer.get_document("kept").unwrap();
    assert_eq!(kept.get_i64("documents").unwrap(), 3, "{customer}");
    let (_, out, _) = run(&serving, &["status"]);
    assert!(out.contains("kept documents") && out.contains("orders.customer"), "{out}");
    // Clients go on: values change with what they are made of.
    put(&mut client, &db, "lines", vec![doc! { "_id": 100, "orderId": 2, "n": 5 }]);
    let change = doc! { "q": { "_id": 1 }, "u": { "$set": { "name": "Anna" } } };
    client.must(&doc! { "update": "customers", "updates": [change], "$db": &db }).unwrap();
    put(&mut client, &db, "orders", vec![doc! { "_id": true, "price": 5, "customerId": 2 }]);
    for name in NAMES {
        let (output, out, err) = run(&serving, &["drop", name, "--restore", "--db", &db]);
        assert!(output.status.success() && out.contains("has what it had before"), "{output:?}");
        assert!(!err.contains("forget"), "{err}");
    }
    let mut expected = before;
    expected.push(doc! { "_id": true, "price": 5, "customerId": 2 }.to_string());
    assert_eq!(all(&mut client, &db, "orders"), expected);
    assert!(all(&mut client, &db, "pleach.replaced").is_empty());
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

fn what_is_kept_outlives_the_rule_until_it_is_forgotten(at: At) {
    let serving = at.serve();
    let (mut client, db) = (serving.client(), database("forgotten"));
    let products = (0..3).map(|id| doc! { "_id": id, "reviewCount": 99 });
    put(&mut client, &db, "products", products.collect());
    put(&mut client, &db, "reviews", (0..9).map(|id| doc! { "_id": id, "productId": id % 3 }).collect());
    apply(&mut client, &db, "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }");
    let (output, _, err) = run(&serving, &["drop", "products.reviewCount", "--db", &db]);
    assert!(output.status.success() && err.contains("3 documents"), "{output:?}");
    assert!(err.contains("`pleach forget products.reviewCount` frees them"), "{err}");
    let (_, out, _) = run(&serving, &["status"]);
    assert!(out.contains("gone") && out.contains("products.reviewCount"), "{out}");
    for contradicting in [["--restore", "--with-data"], ["--restore", "--keep-buckets"]] {
        let args = [&["drop", "products.reviewCount"], &contradicting[..]].concat();
        assert_eq!(run(&serving, &args).0.status.code(), Some(2));
    }
    let (output, out, _) = run(&serving, &["forget", "products.reviewCount", "--db", &db]);
    assert!(output.status.success() && out.contains("freed 3 documents ("), "{output:?}");
    assert!(all(&mut client, &db, "pleach.replaced").is_empty());
    let (output, _, err) = run(&serving, &["forget", "products.reviewCount", "--db", &db]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(err.contains("nothing is kept of a rule products.reviewCount"), "{err}");
    let refused = client.must(&doc! { "insert": "pleach.replaced", "documents": [{}], "$db": &db }).unwrap_err();
    assert!(refused.to_string().contains("belongs to Pleach"), "{refused}");
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

/// Equal numbers of different types are one series; each document gets its own back.
fn numbers_of_a_series_come_back_with_their_types(at: At) {
    let forms = ["at_most: 3", "reading_id: time", "slot: minute, sum: [n]"];
    let series: [bson::Bson; 6] = [1.into(), 1.0.into(), 1_i64.into(), 1_i64.into(), 2.0.into(), 1.into()];
    let serving = at.serve();
    for form in forms {
        let (mut client, db) = (serving.client(), database("seriestypes"));
        let reading = |(number, s): (i32, &bson::Bson)| {
            doc! { "_id": number, "s": s.clone(), "ts": DateTime::from_millis(i64::from(number) * 60_000), "n": number }
        };
        put(&mut client, &db, "m", (0..12).zip(series.iter().cycle()).map(reading).collect());
        // As values, for texts do not tell an int from a long.
        let typed = |client: &mut Client| {
            let found = client.must(&doc! { "find": "m", "sort": { "_id": 1 }, "$db": &db }).unwrap();
            found.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
        };
        let before = typed(&mut client);
        let rule = format!("{{ m: {{ bucket: {{ into: hours, time: ts, by: [s], every: hour, {form} }} }} }}");
        apply(&mut client, &db, &rule);
        let grouped = doc! { "aggregate": "m", "pipeline": [{ "$group": { "_id": "$s" } }, { "$count": "n" }], "cursor": {}, "$db": &db };
        let counted = client.must(&grouped).unwrap();
        assert!(counted.to_string().contains("\"n\": 2"), "{form}: {counted}");
        let (output, out, err) = run(&serving, &["drop", "m.bucket", "--restore", "--db", &db]);
        assert!(output.status.success(), "{form}: {out}{err}");
        assert_eq!(typed(&mut client), before, "{form}");
        assert!(all(&mut client, &db, "pleach.replaced").is_empty(), "{form}");
        client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
    }
}

/// What was there before the rules.
fn legacy(client: &mut Client, db: &str) {
    for (collection, documents) in legacy::documents() {
        put(client, db, collection, documents);
    }
}

/// Takes all rules off, in one of the ways that do not restore.
fn leave(serving: &Serving, client: &mut Client, db: &str, way: &str) {
    match way {
        "drop" => NAMES.iter().for_each(|name| assert!(run(serving, &["drop", name, "--db", db]).0.status.success())),
        "drop --with-data" => NAMES.iter().for_each(|name| {
            assert!(run(serving, &["drop", name, "--with-data", "--db", db]).0.status.success());
        }),
        "uninstall" => {
            let (output, out, _) = run(serving, &["uninstall", "--yes", "--db", db]);
            assert!(output.status.code() == Some(1) && out.contains("stays: pleach.replaced"), "{output:?}");
        }
        other => {
            let with_data = other == "apply --remove --with-data";
            let declaration = format!("database: {db}\ncollections: {{}}");
            let flags = doc! { "remove": true, "with_data": with_data, "$db": db };
            let mut asked = doc! { "pleach": "apply", "declaration": declaration };
            asked.extend(flags);
            client.must(&asked).unwrap();
        }
    }
}

fn what_is_kept_of_rules_that_are_gone_is_given_back(at: At) {
    let serving = at.serve();
    for way in ["drop", "drop --with-data", "apply --remove", "apply --remove --with-data", "uninstall"] {
        for lives in [1, 2] {
            let (mut client, db) = (serving.client(), database("gone"));
            legacy(&mut client, &db);
            let before = all(&mut client, &db, "orders");
            for _ in 0..lives {
                apply(&mut client, &db, RULES);
                leave(&serving, &mut client, &db, way);
            }
            let status = client.must(&doc! { "pleach": "status", "$db": &db }).unwrap();
            assert!(status.get_array("rules").unwrap().is_empty(), "{status}");
            let kept = status.get_array("kept").unwrap().clone();
            let kept: Vec<&str> = kept.iter().map(|of| of.as_document().unwrap().get_str("rule").unwrap()).collect();
            assert_eq!(kept.len(), NAMES.len(), "{kept:?}");
            for name in kept {
                let (output, out, err) = run(&serving, &["drop", name, "--restore", "--db", &db]);
                assert!(output.status.success() && out.contains("has what it had before"), "{output:?}");
                assert!(!err.contains("forget"), "{err}");
            }
            assert_eq!(all(&mut client, &db, "orders"), before, "{way}, {lives}");
            assert!(all(&mut client, &db, "pleach.replaced").is_empty());
            let (output, _, err) = run(&serving, &["drop", "orders.customer", "--restore", "--db", &db]);
            assert!(output.status.code() == Some(2) && err.contains("there is no rule orders.customer"), "{err}");
            client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
        }
    }
}

fn a_rule_that_is_applied_again_gives_back_what_was_there_before_its_first_life(at: At) {
    let serving = at.serve();
    for way in ["drop", "drop --with-data"] {
        let (mut client, db) = (serving.client(), database("again"));
        legacy(&mut client, &db);
        let before = all(&mut client, &db, "orders");
        apply(&mut client, &db, RULES);
        leave(&serving, &mut client, &db, way);
        // Nobody keeps the field between the two lives.
        let change = doc! { "q": { "_id": 2 }, "u": { "$set": { "double": "between" } } };
        client.must(&doc! { "update": "orders", "updates": [change], "$db": &db }).unwrap();
        put(&mut client, &db, "orders", vec![doc! { "_id": true, "price": 5, "double": "own" }]);
        apply(&mut client, &db, RULES);
        for name in NAMES {
            let (output, _, err) = run(&serving, &["drop", name, "--restore", "--db", &db]);
            assert!(output.status.success() && !err.contains("forget"), "{output:?}");
        }
        let mut found = all(&mut client, &db, "orders");
        let new = found.pop().unwrap();
        // After a plain drop nobody knows any more which values the rule has filled.
        assert_eq!(new.contains("own"), way == "drop --with-data", "{new}");
        assert_eq!(found, before, "{way}");
        assert!(all(&mut client, &db, "pleach.replaced").is_empty());
        client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
    }
}

fn a_field_that_was_removed_and_made_again_comes_back_in_its_place(at: At) {
    const RULES: &str = "{ orders: { extended_reference: {
        customer: { from: customers, by: customerId, fields: [name], when_deleted: unset },
        info.customer: { from: customers, by: info.id, fields: [name], when_deleted: unset },
        items.product: { from: customers, by: items.id, fields: [name], when_deleted: unset } } } }";
    let serving = at.serve();
    let (mut client, db) = (serving.client(), database("places"));
    let orders = vec![
        doc! { "_id": 1, "customer": null, "customerId": 99, "z": 1 },
        doc! { "_id": 2, "customer": "x", "z": 1 },
        doc! { "_id": 3, "info": { "customer": 5, "id": 99, "z": 1 }, "z": 1 },
        doc! { "_id": 4, "items": [{ "product": 5, "id": 99, "z": 1 }, { "id": 1, "product": 6, "z": 1 }], "z": 1 },
    ];
    put(&mut client, &db, "orders", orders);
    put(&mut client, &db, "customers", vec![doc! { "_id": 1, "name": "Ann" }]);
    let mut expected = all(&mut client, &db, "orders");
    apply(&mut client, &db, RULES);
    put(&mut client, &db, "customers", vec![doc! { "_id": 99, "name": "Bob" }]);
    let change = doc! { "q": { "_id": 2 }, "u": { "$set": { "customerId": 99 } } };
    client.must(&doc! { "update": "orders", "updates": [change], "$db": &db }).unwrap();
    for name in ["orders.customer", "orders.info.customer", "orders.items.product"] {
        assert!(run(&serving, &["drop", name, "--restore", "--db", &db]).0.status.success());
    }
    expected[1] = doc! { "_id": 2, "customer": "x", "z": 1, "customerId": 99 }.to_string();
    assert_eq!(all(&mut client, &db, "orders"), expected);
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

fn readings_and_events_get_back_what_buckets_threw_away(at: At) {
    const BEGIN: i64 = 1_709_251_200_000;
    let reading = |number: i32| {
        let ts = DateTime::from_millis(BEGIN + i64::from(number) * 5_000_123);
        doc! { "_id": format!("r{number:02}"), "s": number % 2, "ts": ts, "n": number }
    };
    let serving = at.serve();
    for body in ["every: day, at_most: 50, reading_id: time", "every: month, slot: day, sum: { n: n }"] {
        let (mut client, db) = (serving.client(), database("thrown"));
        put(&mut client, &db, "data", (0..40).map(reading).collect());
        let before = all(&mut client, &db, "data");
        let rules = format!("{{ data: {{ bucket: {{ into: stored, time: ts, by: [s], {body} }} }} }}");
        apply(&mut client, &db, &rules);
        let applied = rule(&mut client, &db, "data.bucket");
        assert_eq!(*applied.get_document("seeded").unwrap(), doc! { "moved": 40_i64 });
        assert_eq!(applied.get_document("kept").unwrap().get_i64("documents").unwrap(), 40, "{applied}");
        assert_ne!(all(&mut client, &db, "data"), before);
        let (output, out, _) = run(&serving, &["drop", "data.bucket", "--restore", "--db", &db]);
        assert!(output.status.success() && out.contains("as they were before"), "{output:?}");
        assert_eq!(all(&mut client, &db, "data"), before, "{body}");
        // The same if the rule is gone first, or has come back since.
        for applied_again in [false, true] {
            apply(&mut client, &db, &rules);
            let (output, _, err) = run(&serving, &["drop", "data.bucket", "--db", &db]);
            assert!(output.status.success() && err.contains("40 documents"), "{output:?}");
            assert_ne!(all(&mut client, &db, "data"), before);
            if applied_again {
                apply(&mut client, &db, &rules);
            }
            let (output, _, err) = run(&serving, &["drop", "data.bucket", "--restore", "--db", &db]);
            assert!(output.status.success() && !err.contains("forget"), "{output:?}");
            assert_eq!(all(&mut client, &db, "data"), before, "{body}, again: {applied_again}");
            assert!(all(&mut client, &db, "pleach.replaced").is_empty());
        }
        // Readings that were deleted with their rule are not brought back.
        apply(&mut client, &db, &rules);
        let (output, _, err) = run(&serving, &["drop", "data.bucket", "--with-data", "--db", &db]);
        assert!(output.status.success() && !err.contains("stay in"), "{output:?}");
        assert!(all(&mut client, &db, "pleach.replaced").is_empty());
        client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
    }
}
