//! A bucketed collection becomes plain again, on both doors: with the indexes that it had, and with every reading, even those that share
//! an `_id`.

use crate::doors::{At, Door, at_each_door};
use crate::serving::pleach;
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;

at_each_door!(
    a_collection_has_its_indexes_again,
    a_collection_has_its_options_again,
    readings_that_share_an_id_do_not_stop_the_way_back,
);

fn bucket() -> Document {
    doc! { "bucket": { "time": "ts", "by": ["s"], "every": "hour" } }
}

fn reading(id: i32, s: i32, minute: i64) -> Document {
    doc! { "_id": id, "s": s, "ts": DateTime::from_millis(minute * 60_000), "temp": id * 10 + s }
}

fn run(door: &Door, arguments: &[&str]) -> (Option<i32>, String, String) {
    let server = format!("mongodb://{}", door.serving.address);
    let output = pleach().args(arguments).args(["--server", &server]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The indexes as `listIndexes` shows them, by name.
fn specs(door: &Door, client: &mut Client, collection: &str) -> Vec<Bson> {
    let reply = door.run(client, doc! { "listIndexes": collection });
    let mut specs = crate::upstream::rows(&reply, "firstBatch");
    specs.sort_by_key(ToString::to_string);
    specs
}

fn indexed(door: &Door, client: &mut Client) -> Vec<Bson> {
    door.insert(client, "m", (0..30).map(|id| reading(id, id % 3, i64::from(id))).collect());
    let indexes = [
        doc! { "key": { "temp": 1 }, "name": "temp_1" },
        doc! { "key": { "s": 1, "ts": -1 }, "name": "by series", "sparse": true },
        doc! { "key": { "temp": -1 }, "name": "warm", "partialFilterExpression": { "temp": { "$gt": 100 } } },
    ];
    door.run(client, doc! { "createIndexes": "m", "indexes": indexes.to_vec() });
    specs(door, client, "m")
}

fn a_collection_has_its_indexes_again(at: At) {
    let door = at.door("way_back_indexes");
    let mut client = door.client();
    let before = indexed(&door, &mut client);
    let documents = door.all("m");
    let declaration = doc! { "database": &door.db, "collections": { "m": bucket() } };
    let plan = client.must(&doc! { "pleach": "plan", "declaration": &declaration, "$db": "admin" }).unwrap();
    let note = "3 indexes of m are not used by buckets; they come back with `drop`: by series, temp_1, warm";
    assert!(plan.to_string().contains(note), "{}: {plan}", door.at.name());
    door.applied(&mut client, doc! { "m": bucket() });
    // Another form in between does not lose them.
    let other = doc! { "m": { "bucket": { "time": "ts", "by": ["s"], "every": "day" } } };
    let applied = door.applied(&mut client, other);
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{}: {applied}", door.at.name());
    let (code, out, error) = run(&door, &["drop", "m.bucket", "--db", &door.db]);
    assert_eq!(code, Some(0), "{}: {out}{error}", door.at.name());
    assert!(error.contains("indexes made again: "), "{error}");
    assert_eq!(specs(&door, &mut client, "m"), before, "{}", door.at.name());
    assert_eq!(door.all("m").len(), documents.len());

    door.applied(&mut client, doc! { "m": bucket() });
    // A document that one of them cannot hold.
    let parallel = doc! { "key": { "a": 1, "b": 1 }, "name": "parallel" };
    let (code, out, error) = run(&door, &["uninstall", "--yes", "--db", &door.db]);
    assert_eq!(code, Some(0), "{}: {out}{error}", door.at.name());
    assert!(out.contains("m: indexes made again: "), "{out}");
    assert_eq!(specs(&door, &mut client, "m"), before, "{}", door.at.name());

    door.run(&mut client, doc! { "createIndexes": "m", "indexes": [parallel] });
    door.applied(&mut client, doc! { "m": bucket() });
    let mut odd = reading(99, 1, 99);
    odd.extend(doc! { "a": [1, 2], "b": [1, 2] });
    door.insert(&mut client, "m", vec![odd]);
    let (code, out, error) = run(&door, &["uninstall", "--yes", "--db", &door.db]);
    assert_eq!(code, Some(1), "{}: {out}{error}", door.at.name());
    assert!(out.contains("stays: no index m.parallel ("), "{out}");
    assert_eq!(specs(&door, &mut client, "m"), before, "{}", door.at.name());
    assert_eq!(door.all("m").len(), documents.len() + 1);
    door.finish();
}

/// The options as `listCollections` shows them.
fn options(door: &Door, client: &mut Client, collection: &str) -> Document {
    let reply = door.run(client, doc! { "listCollections": 1, "filter": { "name": collection } });
    let row = crate::upstream::rows(&reply, "firstBatch").remove(0);
    row.as_document().unwrap().get_document("options").unwrap().clone()
}

fn a_collection_has_its_options_again(at: At) {
    let door = at.door("way_back_options");
    let mut client = door.client();
    let validator = doc! { "temp": { "$type": "number" } };
    let mut create =
        doc! { "create": "m", "validator": validator, "validationLevel": "moderate", "validationAction": "warn" };
    let mut indexes = vec![doc! { "key": { "note": 1 }, "name": "note_1" }];
    if door.is_real() {
        create.insert("collation", doc! { "locale": "en", "strength": 2 });
        indexes.push(doc! { "key": { "note": 1 }, "name": "as written", "collation": { "locale": "simple" } });
    }
    door.run(&mut client, create);
    door.run(&mut client, doc! { "createIndexes": "m", "indexes": indexes });
    let noted = |id: Bson, note: &str, minute: i64| {
        let mut document = reading(0, 1, minute);
        document.extend(doc! { "_id": id, "note": note });
        document
    };
    door.insert(&mut client, "m", vec![noted("a".into(), "Cold", 1), noted(2.into(), "COLD", 2)]);
    let (before, indexes) = (options(&door, &mut client, "m"), specs(&door, &mut client, "m"));
    let cold = |client: &mut Client| {
        door.run(client, doc! { "count": "m", "query": { "note": "cold" } }).get_i32("n").unwrap()
    };
    let matched = cold(&mut client);
    assert_eq!(matched, if door.is_real() { 2 } else { 0 });
    let declaration = doc! { "database": &door.db, "collections": { "m": bucket() } };
    let plan = client.must(&doc! { "pleach": "plan", "declaration": &declaration, "$db": "admin" }).unwrap();
    let note = "options of m that buckets do not have come back with `drop`: ";
    assert!(plan.to_string().contains(note), "{}: {plan}", door.at.name());
    let applied = door.applied(&mut client, doc! { "m": bucket() });
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{}: {applied}", door.at.name());
    // Another form in between does not lose them.
    let other = doc! { "m": { "bucket": { "time": "ts", "by": ["s"], "every": "day" } } };
    assert_eq!(door.applied(&mut client, other).get_f64("ok").ok(), Some(1.0));
    // One that the validator only warns of, and one whose `_id` is another's under the collation only.
    door.insert(&mut client, "m", vec![noted("A".into(), "warm", 3), noted("b".into(), "warm", 3)]);
    door.insert(&mut client, "m", vec![doc! { "_id": "B", "s": 1, "ts": DateTime::from_millis(0), "temp": "hot" }]);
    let (code, out, error) = run(&door, &["drop", "m.bucket", "--db", &door.db]);
    assert_eq!(code, Some(0), "{}: {out}{error}", door.at.name());
    assert!(error.contains("options given back: "), "{error}");
    assert_eq!(options(&door, &mut client, "m"), before, "{}", door.at.name());
    assert_eq!(specs(&door, &mut client, "m"), indexes, "{}", door.at.name());
    assert_eq!(cold(&mut client), matched);
    assert_eq!(door.all("m").len(), 5);
    door.finish();
}

fn readings_that_share_an_id_do_not_stop_the_way_back(at: At) {
    let door = at.door("way_back_ids");
    let mut client = door.client();
    for verb in ["drop", "uninstall"] {
        let rules = doc! { "a": bucket(), "b": bucket() };
        assert_eq!(door.applied(&mut client, rules).get_f64("ok").ok(), Some(1.0));
        // In one bucket, in another of the series, in another series.
        let readings = vec![reading(1, 1, 1), reading(1, 1, 2), reading(1, 1, 90), reading(1, 2, 1), reading(2, 1, 3)];
        door.insert(&mut client, "a", readings);
        door.insert(&mut client, "b", vec![reading(1, 1, 1)]);
        let (code, out, error) = match verb {
            "drop" => run(&door, &["drop", "a.bucket", "--db", &door.db]),
            _ => run(&door, &["uninstall", "--yes", "--db", &door.db]),
        };
        assert_eq!(code, Some(0), "{} {verb}: {out}{error}", door.at.name());
        let told = "3 readings had the `_id` of another: each has a new one, and the old one in `duplicateOf`";
        assert!(format!("{out}{error}").contains(told), "{} {verb}: {out}{error}", door.at.name());
        let plain = door.all("a");
        assert_eq!(plain.len(), 5, "{plain:?}");
        let mut temps: Vec<i32> = plain.iter().map(|document| document.get_i32("temp").unwrap()).collect();
        temps.sort_unstable();
        assert_eq!(temps, [11, 11, 11, 12, 21]);
        let (new, same): (Vec<Document>, Vec<Document>) =
            plain.into_iter().partition(|document| document.contains_key("duplicateOf"));
        assert_eq!(same.len(), 2, "{same:?}");
        assert!(new.iter().all(|document| document.get_i32("duplicateOf").unwrap() == 1), "{new:?}");
        assert!(new.iter().all(|document| document.get_object_id("_id").is_ok()), "{new:?}");
        door.run(&mut client, doc! { "drop": "a" });
        if verb == "drop" {
            run(&door, &["drop", "b.bucket", "--db", &door.db]);
        }
        door.run(&mut client, doc! { "drop": "b" });
    }
    door.finish();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_rule_that_does_not_get_on_keeps_only_itself() {
    let door = At::Upstream.door("way_back_stuck");
    let mut client = door.client();
    let counted = doc! { "computed": { "n": { "count": "reviews", "by": "productId" } } };
    let rules = doc! { "a": bucket(), "b": bucket(), "products": counted };
    assert_eq!(door.applied(&mut client, rules).get_f64("ok").ok(), Some(1.0));
    door.insert(&mut client, "a", vec![reading(1, 1, 1)]);
    door.insert(&mut client, "b", vec![reading(1, 1, 1)]);
    // Somebody writes a bucket that is none, past Pleach.
    let mut direct = Client::connect(&door.at.uri().unwrap()).unwrap();
    let broken =
        doc! { "insert": "a_buckets", "documents": [{ "_id": 5 }], "bypassDocumentValidation": true, "$db": &door.db };
    direct.must(&broken).unwrap();
    for _ in 0..2 {
        let (code, out, error) = run(&door, &["uninstall", "--yes", "--db", &door.db]);
        assert_eq!(code, Some(1), "{out}{error}");
        assert!(out.contains("stays: rule a.bucket (") && out.contains("stays: pleach.catalog ("), "{out}");
        assert_eq!(door.listed(&mut client, doc! { "name": { "$regex": "^b" } }), ["b"]);
    }
    assert_eq!(door.all("b").len(), 1);
    // What was wrong is mended: it is not told again.
    direct
        .must(&doc! { "delete": "a_buckets", "deletes": [{ "q": { "_id": 5 }, "limit": 1 }], "$db": &door.db })
        .unwrap();
    let (code, out, error) = run(&door, &["uninstall", "--yes", "--db", &door.db]);
    assert_eq!(code, Some(0), "{out}{error}");
    assert_eq!(door.all("a"), [reading(1, 1, 1)]);
    door.finish();
}
