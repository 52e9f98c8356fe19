//! `audit` says no more than it saw, and `repair --once` makes values right that nobody keeps: in a store and in a real MongoDB, on
//! the command line and over the wire.

use crate::doors::{At, at_each_door};
use crate::serving::Serving;
use crate::shop::{Shop, text};
use crate::upstream::database;
use bson::{Document, doc};
use judge::client::Client;
use serde_json::{Value, json};
use std::process::Output;

at_each_door!(
    values_that_nobody_keeps_are_compared_and_made_right_once,
    what_does_not_exist_was_not_checked,
    the_form_of_the_file_is_compared_and_a_difference_is_said,
    buckets_are_not_stored_once,
    what_a_validator_refuses_is_left_for_hands,
);

pub(crate) const RULES: &str = "\
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      rating: { avg: stars, from: reviews, by: productId }
      margin: { expr: { $subtract: [$price, 1] } }
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
";

/// A place that has data: a store, or a real MongoDB.
pub(crate) struct Place {
    pub(crate) shop: Shop,
    pub(crate) db: String,
    pub(crate) uri: Option<String>,
    pub(crate) serving: Option<Serving>,
}

impl Place {
    pub(crate) fn new(at: At, name: &str) -> Place {
        let place = match at.uri() {
            Some(uri) => {
                let shop = Shop::new(&format!("{name}-mongodb"), "");
                Place { shop, db: database(&name.replace('-', "_")), uri: Some(uri), serving: None }
            }
            None => {
                let shop = Shop::new(&format!("{name}-store"), "");
                let serving = shop.serve(&[]);
                Place { shop, db: "shop".to_owned(), uri: None, serving: Some(serving) }
            }
        };
        place.declare(RULES);
        place
    }

    pub(crate) fn declare(&self, rules: &str) {
        self.shop.declare(&format!("database: {}\n{rules}", self.db));
    }

    /// Past all rules that a proxy would keep; in a store they are not applied yet.
    pub(crate) fn client(&self) -> Client {
        match (&self.serving, &self.uri) {
            (Some(serving), _) => serving.client(),
            (None, uri) => Client::connect(uri.as_deref().unwrap()).unwrap(),
        }
    }

    pub(crate) fn must(&self, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        self.client().must(&command).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        match &self.uri {
            Some(uri) => self.shop.command(args).args(["--upstream", uri]).output().unwrap(),
            None => self.shop.run(args),
        }
    }

    /// By what is applied, not by the file.
    fn applied(&self, verb: &str) -> Output {
        self.run(&[verb, "--db", &self.db])
    }

    pub(crate) fn declared(&self, args: &[&str]) -> Output {
        self.run(&[args, &["--declare", "pleach.yaml"]].concat())
    }

    pub(crate) fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let output = self.declared(&[args, &["--json"]].concat());
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), json)
    }

    pub(crate) fn collections(&self) -> Vec<String> {
        let reply = self.must(doc! { "listCollections": 1, "nameOnly": true });
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let mut names: Vec<String> =
            batch.iter().map(|row| row.as_document().unwrap().get_str("name").unwrap().to_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn all(&self, collection: &str) -> Vec<bson::Bson> {
        let reply = self.must(doc! { "find": collection, "sort": { "_id": 1 } });
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
    }

    /// Values that somebody kept by hand, and not well.
    pub(crate) fn fill(&self) {
        self.must(doc! { "insert": "products", "documents": [
            { "_id": 1, "price": 10, "reviewCount": 2, "rating": 4.0, "margin": 9 },
            { "_id": 2, "price": 10, "reviewCount": 5, "rating": null, "margin": 9 },
            { "_id": 3, "price": 10, "margin": 9, "rating": null },
        ] });
        self.must(doc! { "insert": "reviews", "documents": [
            { "_id": 1, "productId": 1, "stars": 3 }, { "_id": 2, "productId": 1, "stars": 5 }, { "_id": 3, "productId": 2, "stars": 1 },
        ] });
        self.must(doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada" }] });
        self.must(doc! { "insert": "orders", "documents": [
            { "_id": 1, "customerId": 1, "customer": { "name": "Ada" } }, { "_id": 2, "customerId": 1 },
            { "_id": 3, "customerId": 9, "customer": { "name": "Eve" } },
        ] });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.uri.is_some() {
            // A proxy that starts at this moment must not find rules in a database that is being dropped.
            let _none = self.client().command(&doc! { "drop": "pleach.catalog", "$db": &self.db });
            self.must(doc! { "dropDatabase": 1 });
        }
    }
}

pub(crate) fn rule<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == name).unwrap()
}

pub(crate) fn about(rule: &Value) -> Vec<&str> {
    rule["notes"]
        .as_array()
        .map_or_else(Vec::new, |notes| notes.iter().map(|note| note["about"].as_str().unwrap()).collect())
}

pub(crate) fn fits(out: &str) {
    // A connection string cannot be broken.
    let lines = out.lines().filter(|line| !line.starts_with("  pleach "));
    lines.for_each(|line| assert!(line.chars().count() <= 80, "{line}\n\n{out}"));
}

/// The file's text in a command, for a running server or a proxy.
pub(crate) fn wire(place: &Place, verb: &str, more: Document) -> Document {
    let declaration = std::fs::read_to_string(place.shop.folder.join("pleach.yaml")).unwrap();
    let mut command = doc! { "pleach": verb, "declaration": declaration, "$db": &place.db };
    command.extend(more);
    match &place.uri {
        Some(uri) => Serving::upstream(uri, &[]).client().command(&command).unwrap().document,
        None => place.client().command(&command).unwrap().document,
    }
}

fn values_that_nobody_keeps_are_compared_and_made_right_once(at: At) {
    let place = Place::new(at, "audit-once");
    place.fill();
    let (before, products) = (place.collections(), place.all("products"));
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, &report["outcome"]), (Some(1), &json!("drift")), "{report}");
    let entry = |rule: &str, id: i32| {
        let drift = report["drift"].as_array().unwrap();
        drift.iter().find(|entry| entry["rule"] == rule && entry["_id"] == id).unwrap().as_object().unwrap().clone()
    };
    // A missing value is left out, a stored null is shown.
    let counted = entry("products.reviewCount", 3);
    assert_eq!((counted.get("stored"), counted.get("expected")), (None, Some(&json!(0))), "{counted:?}");
    assert_eq!(counted["database"], json!(place.db));
    let rated = entry("products.rating", 2);
    assert_eq!((rated.get("stored"), rated.get("expected")), (Some(&Value::Null), Some(&json!(1.0))), "{rated:?}");
    assert_eq!(entry("orders.customer", 2).get("stored"), None);
    assert_eq!(rule(&report, "products.reviewCount")["state"], "not applied");
    assert_eq!((&report["drifted"], &report["unchecked"]), (&json!(4), &json!(0)), "{report}");
    assert_eq!(report["next"][0]["action"], "apply");

    let told = place.declared(&["audit"]);
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(1), "{told:?}");
    let target = place.uri.as_ref().map_or("--data data".to_owned(), |uri| format!("--upstream '{uri}'"));
    assert!(out.contains(&format!("  pleach apply --declare pleach.yaml {target}\n")), "{out}");
    assert!(!out.contains("pleach repair") && out.contains("(missing)") && out.contains("null"), "{out}");
    let row = out.lines().find(|line| line.contains("orders.customer") && line.contains("Ada")).unwrap();
    assert!(row.contains(&place.db), "{out}");
    fits(out);
    let none = place.declared(&["audit", "--examples", "0"]);
    let (code, out, _) = text(&none);
    assert_eq!(code, Some(1), "{none:?}");
    assert!(out.contains("4 values drifted") && !out.contains("what it should be"), "{out}");

    // Nothing was asked for in so many words, and nothing is changed.
    let refused = place.declared(&["repair"]);
    let (code, _, said) = text(&refused);
    assert_eq!(code, Some(2), "{refused:?}");
    assert!(said.contains("declared and not applied") && said.contains("--once"), "{said}");
    assert_eq!(place.all("products"), products);

    let once = place.declared(&["repair", "--once"]);
    let (code, out, _) = text(&once);
    assert_eq!(code, Some(0), "{once:?}");
    assert!(out.contains("4 values repaired") && out.contains("Nothing keeps the values right"), "{out}");
    fits(out);
    assert_eq!(
        place.all("products")[1],
        bson::Bson::from(doc! { "_id": 2, "price": 10, "reviewCount": 1, "rating": 1.0, "margin": 9 })
    );
    assert_eq!(
        place.all("orders")[1],
        bson::Bson::from(doc! { "_id": 2, "customerId": 1, "customer": { "name": "Ada" } })
    );
    assert_eq!(place.collections(), before, "no bookkeeping is left behind");
    let clean = place.declared(&["audit"]);
    assert_eq!(text(&clean).0, Some(0), "{clean:?}");
    assert!(text(&clean).1.ends_with("every derived value is what it should be\n"), "{clean:?}");

    // The same over the wire.
    place.must(
        doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$unset": { "reviewCount": 1 } } }] },
    );
    let report = wire(&place, "audit", doc! {});
    let drift = report.get_array("drift").unwrap()[0].as_document().unwrap();
    assert_eq!((drift.get("stored"), drift.get_i32("expected").unwrap()), (None, 2), "{report}");
    let refused = wire(&place, "repair", doc! {});
    assert!(refused.get_str("errmsg").unwrap().contains("declared and not applied"), "{refused}");
    let once = wire(&place, "repair", doc! { "once": true });
    assert_eq!((once.get_i64("drifted").unwrap(), once.get_str("outcome").unwrap()), (1, "right"), "{once}");
    assert_eq!(place.all("products")[0].as_document().unwrap().get_i32("reviewCount").unwrap(), 2);
}

fn what_does_not_exist_was_not_checked(at: At) {
    let place = Place::new(at, "audit-names");
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, &report["outcome"]), (Some(2), &json!("impossible")), "{report}");
    assert_eq!(about(&report["rules"][0]), ["no_database"]);
    place.fill();
    for (rules, name, note, near) in [
        (RULES.replace("  products:", "  productz:"), "productz.reviewCount", "no_collection", "`products`"),
        (RULES.replace("count: reviews", "count: review"), "products.reviewCount", "no_source", "`reviews`"),
        (RULES.replace("from: customers", "from: custmers"), "orders.customer", "no_source", "`customers`"),
    ] {
        place.declare(&rules);
        let (code, report) = place.json(&["audit"]);
        assert_eq!((code, &report["outcome"]), (Some(2), &json!("impossible")), "{report}");
        assert_eq!(about(rule(&report, name)), [note]);
        let said = rule(&report, name)["notes"][0]["text"].as_str().unwrap();
        assert!(said.contains(&format!("did you mean {near}?")), "{said}");
        let told = place.declared(&["audit", "--rule", name]);
        let (code, out, _) = text(&told);
        assert_eq!(code, Some(2), "{told:?}");
        assert!(out.contains("does not exist") && !out.contains("what it should be\n"), "{out}");
        assert!(out.contains("Correct the names"), "{out}");
        fits(out);
        let report = wire(&place, "audit", doc! { "rule": name });
        assert_eq!(report.get_str("outcome").unwrap(), "impossible", "{report}");
    }
    place.declare(RULES);
    let unknown = place.declared(&["audit", "--rule", "products.reviewCuont"]);
    assert_eq!(text(&unknown).0, Some(2), "{unknown:?}");
    assert!(text(&unknown).2.contains("did you mean `products.reviewCount`?"), "{unknown:?}");
    // A collection without documents is right as it is.
    place.must(doc! { "delete": "orders", "deletes": [{ "q": {}, "limit": 0 }] });
    let told = place.declared(&["audit", "--rule", "orders.customer"]);
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(0), "{told:?}");
    let empty = format!("nothing to check: `{}.orders` is empty", place.db);
    assert!(out.contains(&empty) && !out.contains("what it should be"), "{out}");
    // No rules at all.
    place.declare("collections: {}\n");
    let told = place.declared(&["audit"]);
    assert_eq!(text(&told).0, Some(2), "{told:?}");
    assert!(text(&told).1.contains("nothing was checked"), "{told:?}");
    let door = at.door("audit-fresh");
    let mut client = door.client();
    let rule = |source: &str| doc! { "products": { "computed": { "n": { "count": source, "by": "productId" } } } };
    let applied = door.applied(&mut client, rule("reviews"));
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    // A rule in force keeps its collections from their first document on.
    let report = door.run(&mut client, doc! { "pleach": "audit" });
    assert_eq!(report.get_str("outcome").unwrap(), "right", "{at:?}: {report}");
    door.finish();
    let shop = Shop::new("audit-nothing", "");
    shop.serve(&[]).stop();
    let told = shop.run(&["audit"]);
    assert_eq!(text(&told).0, Some(2), "{told:?}");
    assert!(text(&told).1.contains("no rules are applied"), "{told:?}");
}

fn the_form_of_the_file_is_compared_and_a_difference_is_said(at: At) {
    let mut place = Place::new(at, "audit-forms");
    place.fill();
    place.declare("collections: { products: { computed: { margin: { expr: { $subtract: [$price, 1] } } } } }\n");
    let applied = place.declared(&["apply"]);
    assert_eq!(text(&applied).0, Some(0), "{applied:?}");
    assert_eq!(place.json(&["audit"]).0, Some(0));
    place.declare("collections: { products: { computed: { margin: { expr: { $subtract: [$price, 2] } } } } }\n");
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, &report["drifted"]), (Some(1), &json!(3)), "{report}");
    let margin = rule(&report, "products.margin");
    assert_eq!((&margin["differs"], &margin["state"]), (&json!(true), &json!("on")), "{report}");
    assert_eq!((&report["drift"][0]["expected"], &report["next"][0]["action"]), (&json!(8), &json!("apply")));
    let told = place.declared(&["audit"]);
    let (_, out, _) = text(&told);
    assert!(out.contains("applied in another form than the declaration's"), "{out}");
    assert!(out.contains("pleach apply") && !out.contains("pleach repair"), "{out}");
    fits(out);
    for args in [&["repair"][..], &["repair", "--once"]] {
        let refused = place.declared(args);
        assert_eq!(text(&refused).0, Some(2), "{refused:?}");
        assert!(text(&refused).2.contains("applied") && text(&refused).2.contains("hint: "), "{refused:?}");
    }
    assert_eq!(place.applied("audit").status.code(), Some(0), "without the file, the applied form is compared");

    // The rules switched off: what was compared is true, and it is said that it need not stay so.
    let serving = match place.serving.take() {
        Some(serving) => {
            place.shop.stop(serving);
            place.shop.serve(&["--raw"])
        }
        None => Serving::upstream(place.uri.as_ref().unwrap(), &["--raw"]),
    };
    let server = format!("mongodb://{}", serving.address);
    let audit = |args: &[&str]| place.shop.command(args).args(["--server", &server]).output().unwrap();
    place.declare("collections: { products: { computed: { margin: { expr: { $subtract: [$price, 1] } } } } }\n");
    for args in [&["audit", "--declare", "pleach.yaml"][..], &["audit", "--db", &place.db]] {
        let told = audit(args);
        assert_eq!(text(&told).0, Some(0), "{told:?}");
        assert!(text(&told).1.contains("products.margin") && text(&told).1.contains("--raw"), "{told:?}");
    }
    let wrong = doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "margin": 5 } } }], "$db": &place.db };
    serving.client().must(&wrong).unwrap();
    let told = audit(&["audit", "--db", &place.db]);
    assert_eq!(text(&told).0, Some(1), "{told:?}");
    assert!(text(&told).1.contains("without --raw"), "{told:?}");
    match &place.uri {
        None => drop(place.shop.stop(serving)),
        Some(_) => assert_eq!(serving.stop(), Some(0)),
    }
    // Applied and drifted: repair helps.
    let told = place.applied("audit");
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(1), "{told:?}");
    assert!(out.contains("  pleach repair --") && !out.contains("pleach apply"), "{out}");
    assert_eq!(place.applied("repair").status.code(), Some(0));
    assert_eq!(place.applied("audit").status.code(), Some(0));
    if place.uri.is_none() {
        place.serving = Some(place.shop.serve(&[]));
    }
}

fn buckets_are_not_stored_once(at: At) {
    let place = Place::new(at, "audit-buckets");
    place.must(
        doc! { "insert": "weather", "documents": [{ "_id": 1, "sensor": 1, "at": bson::DateTime::now(), "t": 5 }] },
    );
    place.declare(
        "collections:\n  weather:\n    bucket: { into: hours, by: [sensor], time: at, every: hour, at_most: 60 }\n",
    );
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, about(&report["rules"][0])), (Some(2), vec!["not_in_buckets"]), "{report}");
    assert_eq!(report["next"][0]["action"], "apply");
    let refused = place.declared(&["repair", "--once"]);
    assert_eq!(text(&refused).0, Some(2), "{refused:?}");
    assert!(
        text(&refused).2.contains("cannot be done once") && text(&refused).2.contains("pleach apply"),
        "{refused:?}"
    );
    assert_eq!(place.collections(), ["weather"]);
}

fn what_a_validator_refuses_is_left_for_hands(at: At) {
    let place = Place::new(at, "audit-validator");
    place.fill();
    let most = doc! { "reviewCount": { "$not": { "$lt": 2 } } };
    place.must(doc! { "collMod": "products", "validator": most });
    let told = place.declared(&["repair", "--once", "--rule", "products.reviewCount"]);
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(1), "{told:?}");
    assert!(out.contains("not repaired: products.reviewCount of 2") && out.contains("by hand"), "{out}");
    fits(out);
    assert_eq!(place.all("products")[1].as_document().unwrap().get_i32("reviewCount").unwrap(), 5);
}
