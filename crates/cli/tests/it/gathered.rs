//! The move that `plan` prints for a bucket rule, run as it stands on a real MongoDB by a client that knows nothing of Pleach:
//! byte for byte the buckets that `apply` makes of the same documents, or an error and nothing written.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{DateTime, Document, doc};
use judge::client::Client;

/// 2024-03-30T22:00:00Z: months and quarters turn soon after.
const BEGIN: i64 = 1_711_836_000_000;

fn at(minutes: i64) -> DateTime {
    DateTime::from_millis(BEGIN + minutes * 60_000)
}

/// Not in the order of time: arrival and time differ.
fn minutes(id: i32) -> i64 {
    i64::from(id * 37 % 400)
}

fn readings() -> Vec<Document> {
    let one = |id: i32| {
        let mut reading = doc! { "_id": id, "temp": f64::from(id % 7) + 0.25, "ts": at(minutes(id)), "number": id, "in": { "a": [id] } };
        match id % 11 {
            0 => {}
            1 => drop(reading.insert("sensorId", bson::Bson::Null)),
            2 => drop(reading.insert("sensorId", 1.0)),
            _ => drop(reading.insert("sensorId", id % 3)),
        }
        match id % 5 {
            0 => drop(reading.remove("temp")),
            1 => drop(reading.insert("temp", bson::Bson::Null)),
            _ => {}
        }
        reading
    };
    (0..120).map(one).collect()
}

/// Digits in either case, null, and none at all.
fn keyed() -> Vec<Document> {
    let keys = ["ab01", "AB01", "", "00ff"];
    let mut all = readings();
    for (key, reading) in keys.iter().cycle().zip(&mut all) {
        reading.insert("key", *key);
    }
    all[5].insert("key", bson::Bson::Null);
    all[6].remove("key");
    all
}

/// Days of several months and years.
fn events() -> Vec<Document> {
    let one = |id: i32| {
        let date = at(i64::from(id * 53 % 97) * 24 * 60 * 9 + i64::from(id));
        let key = format!("{:04x}", id % 3 + 0xab0);
        let mut event = doc! { "_id": id, "key": key, "date": date, "country": (["DE", "FR", "AT"][id as usize % 3]) };
        match id % 4 {
            0 => drop(event.insert("rejected", id)),
            1 => event.extend(doc! { "rejected": 0.5, "approved": i64::from(id) }),
            2 => drop(event.insert("approved", i32::MAX)),
            _ => {}
        }
        event
    };
    (0..90).map(one).collect()
}

fn without(mut all: Vec<Document>, name: &str) -> Vec<Document> {
    all.iter_mut().for_each(|one| drop(one.remove(name)));
    all
}

fn bucket(mut more: Document) -> Document {
    more.insert("into", "stored");
    more
}

fn of_readings(more: Document) -> Document {
    let mut all = doc! { "time": "ts", "by": ["sensorId"], "every": "hour", "at_most": 3 };
    all.extend(more);
    bucket(all)
}

fn of_slots(more: Document) -> Document {
    let mut all = doc! { "time": "date", "by": ["key"], "every": "quarter", "slot": "day", "sum": { "rejected": "r", "approved": "a" } };
    all.extend(more);
    bucket(all)
}

fn cases() -> Vec<(&'static str, Document, Vec<Document>)> {
    let hex = || vec![doc! { "field": "key", "as": "hex" }];
    let country = doc! { "field": "country", "keys": "^[A-Z]{2}$", "at_most": 10 };
    let events_only = || without(events(), "country");
    let stats = doc! { "temp": ["min", "max", "avg", "last", "count", "sum"], "number": ["last"] };
    let times: Vec<Document> = (0..100)
        .map(|id| doc! { "_id": 1000 - id, "sensorId": id % 2, "ts": at(i64::from(id * 7)), "v": id })
        .collect();
    vec![
        ("readings", of_readings(doc! {}), readings()),
        ("stats", of_readings(doc! { "stats": stats.clone() }), readings()),
        ("unit", of_readings(doc! { "unit": { "minute": "m" }, "every": "day", "at_most": 7 }), readings()),
        (
            "truncate",
            of_readings(doc! { "unit": { "hour": "h" }, "every": "month", "inexact": "truncate" }),
            readings(),
        ),
        ("days", of_readings(doc! { "unit": { "day": "d" }, "every": "year", "inexact": "truncate" }), readings()),
        // Milliseconds of a quarter are more than an int holds.
        ("long", bucket(doc! { "time": "date", "by": ["key"], "every": "quarter" }), events()),
        (
            "time",
            of_readings(doc! { "unit": { "minute": "m" }, "reading_id": "time", "stats": { "v": ["sum"] } }),
            times,
        ),
        (
            "indexed",
            of_readings(doc! { "by": ["sensorId", "number"], "every": "year", "reading_id": "indexed" }),
            readings(),
        ),
        ("hex", of_readings(doc! { "by": hex(), "stats": stats }), keyed()),
        ("array", of_slots(doc! {}), events_only()),
        ("names", of_slots(doc! { "layout": "field_names" }), events_only()),
        ("days of months", of_slots(doc! { "every": "month", "layout": "field_names" }), events_only()),
        ("months of years", of_slots(doc! { "every": "year", "slot": "month" }), events_only()),
        ("hours", of_slots(doc! { "every": "day", "slot": "hour", "layout": "field_names" }), events_only()),
        ("field", of_slots(doc! { "slot": country.clone() }), events()),
        ("named field", of_slots(doc! { "slot": country, "layout": "field_names", "by": hex() }), events()),
        ("hex slots", of_slots(doc! { "by": hex() }), events_only()),
        ("packed", of_slots(doc! { "by": hex(), "layout": "field_names", "bucket_id": "packed" }), events_only()),
        ("packed array", of_slots(doc! { "by": hex(), "every": "month", "bucket_id": "packed" }), events_only()),
        (
            "packed days",
            of_slots(doc! { "by": hex(), "every": "day", "slot": "hour", "bucket_id": "packed" }),
            events_only(),
        ),
    ]
}

fn declaration(db: &str, bucket: &Document) -> Document {
    doc! { "database": db, "collections": { "logical": { "bucket": bucket } } }
}

/// What is stored, as bytes.
fn stored(client: &mut Client, db: &str, collection: &str) -> Vec<Document> {
    let find = doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000, "$db": db };
    rows(&client.must(&find).unwrap(), "firstBatch").into_iter().map(|row| row.as_document().unwrap().clone()).collect()
}

/// The commands that `plan` prints, each with its kind and the database that takes it.
fn printed(proxy: &mut Client, db: &str, bucket: &Document) -> Vec<(String, Document)> {
    let plan = proxy.must(&doc! { "pleach": "plan", "declaration": declaration(db, bucket), "$db": db }).unwrap();
    let steps = plan.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap());
    steps
        .map(|step| {
            let mut command = step.get_document("command").unwrap().clone();
            command.insert("$db", if command.contains_key("renameCollection") { "admin" } else { db });
            (step.get_str("kind").unwrap().to_owned(), command)
        })
        .collect()
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn the_printed_move_makes_the_buckets_that_apply_makes() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut through, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    for (number, (name, bucket, documents)) in cases().into_iter().enumerate() {
        let (by_hand, applied) = (database(&format!("hand{number}x")), database(&format!("applied{number}x")));
        for db in [&by_hand, &applied] {
            direct.must(&doc! { "insert": "logical", "documents": &documents, "$db": db }).unwrap();
        }
        for (kind, command) in printed(&mut through, &by_hand, &bucket) {
            direct.must(&command).unwrap_or_else(|error| panic!("{name}, {kind}: {error}: {command}"));
        }
        let declaration = declaration(&applied, &bucket);
        // Slots and `reading_id: time` drop the `_id`s.
        let apply = doc! { "pleach": "apply", "declaration": declaration, "overwrite": true, "$db": &applied };
        through.must(&apply).unwrap();
        let (ours, theirs) = (stored(&mut direct, &by_hand, "stored"), stored(&mut direct, &applied, "stored"));
        assert!(ours.len() > 1, "{name}: {ours:?}");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.to_vec().unwrap(), theirs.to_vec().unwrap(), "{name}: by hand {ours}, applied {theirs}");
        }
        let (ours, theirs) = (stored(&mut direct, &by_hand, "logical"), stored(&mut direct, &applied, "logical"));
        assert_eq!(ours, theirs, "{name}");
        through.must(&doc! { "pleach": "drop", "rule": "logical.bucket", "with_data": true, "$db": &applied }).unwrap();
        for db in [&by_hand, &applied] {
            direct.must(&doc! { "dropDatabase": 1, "$db": db }).unwrap();
        }
    }
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn what_does_not_fit_fails_the_printed_move_before_anything_is_written() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut through, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    let hex = || vec![doc! { "field": "key", "as": "hex" }];
    let minute = || of_readings(doc! { "unit": { "minute": "m" }, "reading_id": "time" });
    let reading = |more: Document| {
        let mut reading = doc! { "_id": 2, "sensorId": 1, "ts": at(2) };
        reading.extend(more);
        reading
    };
    let event = |more: Document| {
        let mut event = doc! { "_id": 2, "key": "ab", "date": at(2) };
        event.extend(more);
        event
    };
    let (fits, is_event) =
        (doc! { "_id": 1, "sensorId": 1, "ts": at(1) }, doc! { "_id": 1, "key": "ab", "date": at(1) });
    let cases = [
        (minute(), &fits, reading(doc! { "ts": "2024" }), "_id 2: 'ts' is no date"),
        (minute(), &fits, doc! { "_id": 2, "sensorId": 1 }, "_id 2: 'ts' is no date"),
        (minute(), &fits, reading(doc! { "ts": DateTime::from_millis(BEGIN + 1) }), "'ts' is no whole minute"),
        (minute(), &fits, reading(doc! { "m": 1 }), "'m' is the name"),
        (minute(), &fits, reading(doc! { "ts": at(1) }), "_id 2: there is another reading of its series and time"),
        (
            of_readings(doc! { "time": "date", "by": hex() }),
            &is_event,
            event(doc! { "key": "abc" }),
            "'key' is no even number",
        ),
        (of_readings(doc! { "time": "date", "by": hex() }), &is_event, event(doc! { "key": 1 }), "'key' is no string"),
        (of_slots(doc! {}), &is_event, event(doc! { "approved": "1" }), "'approved' is no number"),
        (of_slots(doc! {}), &is_event, event(doc! { "more": 1 }), "it has fields that a slot cannot store"),
        (
            of_slots(doc! {}),
            &is_event,
            event(doc! { "date": DateTime::from_millis(-70_000_000_000_000) }),
            "the years 1 to 9999",
        ),
    ];
    for (number, (bucket, fits, misfit, why)) in cases.into_iter().enumerate() {
        let db = database(&format!("misfit{number}x"));
        direct.must(&doc! { "insert": "logical", "documents": [fits, &misfit], "$db": &db }).unwrap();
        for (kind, command) in printed(&mut through, &db, &bucket) {
            if kind != "move" {
                direct.must(&command).unwrap();
                continue;
            }
            let reply = direct.command(&command).unwrap().document;
            assert!(reply.get_str("errmsg").unwrap_or_default().contains(why), "{misfit}: {reply}");
            assert_eq!(stored(&mut direct, &db, "stored"), Vec::<Document>::new(), "{misfit}");
            break;
        }
        direct.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
    }
}

/// Buckets with their readings in the order of time.
fn in_time(mut buckets: Vec<Document>) -> Vec<Document> {
    for bucket in &mut buckets {
        bucket
            .get_array_mut("readings")
            .unwrap()
            .sort_by_key(|reading| reading.as_document().unwrap().get_i32("t").unwrap());
    }
    buckets
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn the_printed_move_from_buckets_to_others_has_the_same_readings() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut through, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    let db = database("regathered");
    let one = |id: i32| doc! { "_id": id, "key": (["AB", "00FF"][id as usize % 2]), "ts": at(i64::from(id * 37 % 401)), "v": id };
    let documents: Vec<Document> = (0..200).map(one).collect();
    direct.must(&doc! { "insert": "logical", "documents": documents, "$db": &db }).unwrap();
    let hex = || vec![doc! { "field": "key", "as": "hex" }];
    let hours = of_readings(doc! { "by": hex() });
    let days = of_readings(doc! { "by": hex(), "every": "day", "at_most": 1000, "stats": { "v": ["sum", "last"] } });
    through.must(&doc! { "pleach": "apply", "declaration": declaration(&db, &hours), "$db": &db }).unwrap();
    let steps = printed(&mut through, &db, &days);
    let (_, mut command) = steps.into_iter().find(|(kind, _)| kind == "move").unwrap();
    // Read where the buckets still are, and not stored: Pleach does that itself below.
    command.insert("aggregate", "stored");
    assert!(command.get_array_mut("pipeline").unwrap().pop().unwrap().as_document().unwrap().contains_key("$merge"));
    command.get_array_mut("pipeline").unwrap().push(doc! { "$out": "elsewhere" }.into());
    direct.must(&command).unwrap();
    through.must(&doc! { "pleach": "apply", "declaration": declaration(&db, &days), "$db": &db }).unwrap();
    let (ours, theirs) = (stored(&mut direct, &db, "elsewhere"), stored(&mut direct, &db, "stored"));
    assert_eq!(ours.len(), 4, "{ours:?}");
    assert_eq!(in_time(ours), in_time(theirs));
    through.must(&doc! { "pleach": "drop", "rule": "logical.bucket", "with_data": true, "$db": &db }).unwrap();
    direct.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
