//! `lift` at both doors: an array becomes documents and a window, under load, and back.

use crate::doors::{At, Door, at_each_door};
use crate::serving::pleach;
use bson::{Bson, Document, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

at_each_door!(
    items_become_documents_and_items_again,
    an_array_is_lifted_under_load,
    a_large_array_comes_and_goes,
    what_cannot_be_lifted_is_said,
    a_plan_says_what_would_be_moved,
    children_in_buckets_and_with_copies,
);

const BESIDE: &str = "products: { subset: { recent: { from: reviews, by: productId, sort: { n: -1 }, keep: 2, fields: [n], lift: info.reviews } } }";
const WITHIN: &str = "products: { subset: { info.reviews: { from: reviews, by: productId, sort: { n: -1 }, keep: 2, fields: [n], lift: info.reviews } } }";

fn name(rules: &str) -> &'static str {
    if rules.contains("recent") { "products.recent" } else { "products.info.reviews" }
}

impl Door {
    /// Runs a verb; its exit code and what it says.
    fn verb(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = pleach().args(args).args(["--server", &self.uri()]).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code(), text)
    }

    /// A file with these rules.
    fn file(&self, rules: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, format!("database: {}\ncollections: {{ {rules} }}\n", self.db)).unwrap();
        file
    }

    fn asked(&self, verb: &str, rules: &str) -> Document {
        self.ask(doc! { "pleach": verb, "declaration": format!("database: {}\ncollections: {{ {rules} }}\n", self.db) })
    }

    fn restore(&self, rule: &str) -> Document {
        self.must(doc! { "pleach": "drop", "rule": rule, "restore": true })
    }

    fn count(&self, collection: &str) -> i32 {
        self.must(doc! { "count": collection }).get_i32("n").unwrap()
    }
}

fn products() -> Vec<Document> {
    let items = |product: i32, number: i32| -> Vec<Bson> {
        let own = |n: i32| doc! { "n": n, "_id": product * 1_000 + n, "text": "own" };
        let bare = |n: i32| doc! { "n": n, "text": "bare" };
        (0..number).map(|n| Bson::Document(if n % 2 == 0 { own(n) } else { bare(n) })).collect()
    };
    let mut all: Vec<Document> =
        (0..30).map(|id| doc! { "_id": id, "info": { "a": 1, "reviews": items(id, id), "z": 1 }, "z": 1 }).collect();
    all.extend([doc! { "_id": 90 }, doc! { "_id": 91, "info": { "reviews": null } }, doc! { "_id": 92, "info": {} }]);
    all
}

/// As it was, in the order of fields too; an `_id` comes first in a document of its own.
fn assert_restored(door: &Door) {
    let text = |document: Document| document.to_string();
    let expected: Vec<String> = products().into_iter().map(text).collect();
    let found: Vec<String> = door.all("products").into_iter().map(text).collect();
    for (found, expected) in found.iter().zip(&expected) {
        let moved = |text: &str| -> Vec<String> {
            let mut parts: Vec<String> =
                text.split([',', '{', '}', '[', ']']).map(|part| part.trim().to_owned()).collect();
            parts.sort();
            parts
        };
        assert_eq!(moved(found), moved(expected));
    }
    assert_eq!(found.len(), expected.len());
    assert_eq!(door.count("reviews"), 0);
    assert_eq!(door.count("pleach.replaced"), 0);
}

fn items_become_documents_and_items_again(at: At) {
    for rules in [BESIDE, WITHIN] {
        let door = at.door("lift");
        door.insert(&mut door.client(), "products", products());
        let file = door.file(rules);
        let path = file.path().to_str().unwrap();
        let (code, text) = door.verb(&["plan", "--declare", path]);
        assert_eq!(code, Some(1), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("lifts `info.reviews`: 435 items of 29 documents become documents of `reviews`"),
            "{text}"
        );
        let (code, text) = door.verb(&["apply", "--declare", path]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("435 items lifted"), "{text}");
        assert_eq!(door.count("reviews"), 435);
        let of_one = door.rows(doc! { "find": "reviews", "filter": { "productId": 9 }, "batchSize": 100 });
        assert_eq!(of_one.len(), 9);
        let (code, text) = door.verb(&["audit", "--db", &door.db]);
        assert_eq!(code, Some(0), "{text}");
        let push = doc! { "q": { "_id": 9 }, "u": { "$push": { "info.reviews": { "n": 1 } } } };
        let refused = door.ask(doc! { "update": "products", "updates": [push] });
        let error = refused.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        assert_eq!(error.get_i32("code").unwrap(), 66, "{error}");
        assert!(error.get_str("errmsg").unwrap().ends_with("write to reviews instead"), "{error}");
        let (code, text) = door.verb(&["plan", "--declare", path, "--as", "node"]);
        assert!(code.is_some_and(|code| code < 2), "{text}");
        let (code, text) = door.verb(&["drop", name(rules), "--restore", "--db", &door.db]);
        assert_eq!(code, Some(0), "{text}");
        assert_restored(&door);
        door.finish();
    }
}

fn an_array_is_lifted_under_load(at: At) {
    for rules in [BESIDE, WITHIN] {
        let door = at.door("liftload");
        let items: Vec<Bson> = (0..100).map(|n| Bson::Document(doc! { "n": n })).collect();
        let product = |id: i32| doc! { "_id": id, "info": { "reviews": items.clone() }, "views": 0 };
        door.insert(&mut door.client(), "products", (0..100).map(product).collect());
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
        let clients: Vec<_> = (0..3)
            .map(|number| {
                let (mut client, db) = (door.client(), door.db.clone());
                let (stop, sent) = (stop.clone(), sent.clone());
                std::thread::spawn(move || {
                    for made in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let product = (made * 7 + number) % 100;
                        let review =
                            doc! { "_id": format!("{number}-{made}"), "productId": product, "n": 1_000 + made };
                        let written =
                            client.must(&doc! { "insert": "reviews", "documents": [review], "$db": &db }).unwrap();
                        assert_eq!(written.get_i32("n").unwrap(), 1, "{written}");
                        sent.fetch_add(1, Ordering::Relaxed);
                        let seen = doc! { "q": { "_id": product }, "u": { "$inc": { "views": 1 } } };
                        client.must(&doc! { "update": "products", "updates": [seen], "$db": &db }).unwrap();
                    }
                })
            })
            .collect();
        let applied = door.asked("apply", rules);
        assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(door.count("reviews"), 10_000 + sent.load(Ordering::Relaxed));
        let audit = door.must(doc! { "pleach": "audit" });
        assert_eq!(audit.get_i64("drifted").unwrap(), 0, "{audit}");
        door.restore(name(rules));
        for product in door.all("products") {
            let found = product.get_document("info").unwrap().get_array("reviews").unwrap();
            assert_eq!(found.iter().take(100).collect::<Vec<_>>(), items.iter().collect::<Vec<_>>());
        }
        assert!(door.count("reviews") <= sent.load(Ordering::Relaxed));
        door.finish();
    }
}

fn a_large_array_comes_and_goes(at: At) {
    let door = at.door("liftlarge");
    let number = 20_000;
    let items: Vec<Bson> = (0..number).map(|n| Bson::Document(doc! { "n": n, "text": "x".repeat(300) })).collect();
    door.insert(&mut door.client(), "products", vec![doc! { "_id": 1, "info": { "reviews": items.clone() } }]);
    let applied = door.asked("apply", WITHIN);
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    assert_eq!(door.count("reviews"), number);
    door.restore(name(WITHIN));
    let found = door.rows(doc! { "find": "products", "filter": { "_id": 1 } });
    assert!(*found[0].get_document("info").unwrap().get_array("reviews").unwrap() == items);
    door.finish();
}

fn what_cannot_be_lifted_is_said(at: At) {
    let door = at.door("unlifted");
    let products = vec![
        doc! { "_id": 1, "info": { "reviews": [1, { "n": 1 }] } },
        doc! { "_id": 2, "info": { "reviews": [{ "_id": 7, "n": 1 }, { "_id": 7, "n": 2 }, { "_id": 8, "n": 3 }] } },
        doc! { "_id": 3, "info": { "reviews": [{ "productId": 4 }] } },
        doc! { "_id": 4, "info": { "reviews": "none" } },
    ];
    door.insert(&mut door.client(), "products", products.clone());
    door.insert(&mut door.client(), "reviews", vec![doc! { "_id": 8, "n": 4 }]);
    let file = door.file(BESIDE);
    let path = file.path().to_str().unwrap();
    for args in [&["apply", "--declare", path, "--overwrite"][..], &["plan", "--declare", path]] {
        let (_, text) = door.verb(args);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "1 items are not documents, such as in the document with _id 1",
            "1 values of `_id` are used by several items, such as _id 7",
            "1 items have a `productId` of another document, such as in the document with _id 3",
            "1 documents have something else than an array there, such as in the document with _id 4",
            "1 items have the `_id` of a document of `reviews` with other content, such as in the document with _id 2",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
    assert_eq!(door.all("products"), products);
    assert_eq!(door.count("reviews"), 1);
    door.finish();
}

fn a_plan_says_what_would_be_moved(at: At) {
    let door = at.door("liftplan");
    door.insert(&mut door.client(), "products", products());
    let explained = door.asked("plan", WITHIN);
    let rule = explained.get_array("rules").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(rule.get_str("work").unwrap(), "lift", "{explained}");
    let lift = rule.get_document("lift").unwrap();
    assert_eq!((lift.get_i64("documents").unwrap(), lift.get_i64("items").unwrap()), (29, 435), "{lift}");
    let steps = explained.get_array("steps").unwrap();
    let kinds: Vec<&str> = steps.iter().map(|step| step.as_document().unwrap().get_str("kind").unwrap()).collect();
    assert_eq!(kinds, ["index", "lift", "lift", "seed"]);
    door.finish();
}

fn children_in_buckets_and_with_copies(at: At) {
    let door = at.door("liftstack");
    let date = |n: i32| bson::DateTime::from_millis(1_700_000_000_000 + i64::from(n) * 60_000);
    let log: Vec<Bson> = (0..50).map(|n| Bson::Document(doc! { "_id": n, "ts": date(n), "temp": n })).collect();
    let notes: Vec<Bson> = (0..3).map(|n| Bson::Document(doc! { "_id": n, "n": n, "userId": 1 })).collect();
    let sensor = doc! { "_id": 1, "log": log, "notes": notes, "z": 1 };
    door.insert(&mut door.client(), "sensors", vec![sensor.clone()]);
    door.insert(&mut door.client(), "users", vec![doc! { "_id": 1, "name": "Ann" }]);
    let buckets = "readings: { bucket: { time: ts, by: [sensorId], every: hour, at_most: 20 } }";
    let applied = door.asked("apply", buckets);
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    let rules = format!(
        "{buckets}, notes: {{ extended_reference: {{ user: {{ from: users, by: userId, fields: [name] }} }} }}, \
         sensors: {{ subset: {{ last: {{ from: readings, by: sensorId, sort: {{ ts: -1 }}, keep: 1, lift: log }}, \
         newest: {{ from: notes, by: sensorId, sort: {{ n: -1 }}, keep: 1, lift: notes }} }} }}"
    );
    let applied = door.asked("apply", &rules);
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    assert_eq!(door.all("readings").len(), 50);
    let note = doc! { "_id": 2, "n": 2, "userId": 1, "sensorId": 1, "user": { "name": "Ann" } };
    assert_eq!(door.all("notes")[2], note);
    let now = door.all("sensors").remove(0);
    assert_eq!(now.get_array("newest").unwrap(), &vec![Bson::Document(note)]);
    assert_eq!(now.get_array("last").unwrap()[0].as_document().unwrap().get_i32("temp").unwrap(), 49);
    let audit = door.must(doc! { "pleach": "audit" });
    assert_eq!(audit.get_i64("drifted").unwrap(), 0, "{audit}");
    door.restore("sensors.last");
    assert_eq!(door.all("readings"), Vec::<Document>::new());
    assert_eq!(door.all("sensors")[0].get("log"), sensor.get("log"));
    door.finish();
}
