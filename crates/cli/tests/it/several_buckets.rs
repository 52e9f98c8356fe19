//! Two proxies in front of one real MongoDB, and verbs beside them, while a collection comes into buckets, into others and back:
//! nothing is lost, nothing is there twice, and what a client sends again has one effect.

use crate::mongod::until;
use crate::serving::{Serving, pleach};
use crate::upstream::{database, rows, session};
use bson::{DateTime, Document, doc};
use judge::client::Client;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// 2024-03-01T00:00:00Z.
const BEGIN: i64 = 1_709_251_200_000;

fn reading(id: i32, value: i32) -> Document {
    let ts = DateTime::from_millis(BEGIN + i64::from(id % 5_000) * 7_000);
    doc! { "_id": id, "sensorId": id % 3, "ts": ts, "v": value }
}

fn declaration(db: &str, bucket: Document) -> Document {
    doc! { "database": db, "collections": { "sensor_data": { "bucket": bucket } } }
}

fn hours() -> Document {
    doc! { "into": "sensor_hours", "time": "ts", "by": ["sensorId"], "every": "hour", "at_most": 40, "stats": { "v": ["sum"] } }
}

fn days() -> Document {
    doc! { "into": "sensor_hours", "time": "ts", "by": ["sensorId"], "every": "day", "at_most": 25, "unit": { "second": "s" } }
}

fn apply(client: &mut Client, db: &str, bucket: Document) {
    let apply = doc! { "pleach": "apply", "declaration": declaration(db, bucket), "wait": false, "$db": db };
    client.must(&apply).unwrap();
    until("the rule is on", || {
        let status = client.must(&doc! { "pleach": "status", "$db": db }).unwrap();
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap();
        rule.get_str("state").unwrap() == "on"
    });
}

/// What is there, by `_id`; a reading that is there twice is none.
fn found(client: &mut Client, db: &str) -> BTreeMap<i32, i32> {
    let find = doc! { "find": "sensor_data", "batchSize": 100_000, "singleBatch": true, "$db": db };
    let mut all = BTreeMap::new();
    for row in rows(&client.must(&find).unwrap(), "firstBatch") {
        let row = row.as_document().unwrap();
        let (id, value) = (row.get_i32("_id").unwrap(), row.get_i32("v").unwrap());
        assert_eq!(all.insert(id, value), None, "{id} is there twice");
    }
    all
}

/// Inserts, changes and deletes readings of its own until it is told to stop; gives what must be there.
fn write(mut client: Client, db: &str, from: i32, stop: &AtomicBool) -> BTreeMap<i32, i32> {
    let mut model = BTreeMap::new();
    for id in from.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut done = |command: Document| {
            let reply = client.command(&command).unwrap().document;
            assert_eq!(reply.get_f64("ok").unwrap_or_default(), 1.0, "{command} gives {reply}");
            assert!(!reply.contains_key("writeErrors"), "{command} gives {reply}");
            assert_eq!(reply.get_i32("n").unwrap(), 1, "{command} gives {reply}");
        };
        done(doc! { "insert": "sensor_data", "documents": [reading(id, 0)], "$db": db });
        model.insert(id, 0);
        let earlier = from + (id - from) / 2;
        match id % 4 {
            0 if model.contains_key(&earlier) => {
                let change = doc! { "q": { "_id": earlier }, "u": { "$inc": { "v": 1 } } };
                done(doc! { "update": "sensor_data", "updates": [change], "$db": db });
                model.entry(earlier).and_modify(|value| *value += 1);
            }
            1 if model.contains_key(&earlier) => {
                let gone = doc! { "q": { "_id": earlier }, "limit": 1 };
                done(doc! { "delete": "sensor_data", "deletes": [gone], "$db": db });
                model.remove(&earlier);
            }
            _ => {}
        }
    }
    model
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn two_proxies_write_while_readings_become_buckets_others_and_documents_again() {
    let uri = judge::real::uri().unwrap();
    let db = database("sides");
    let (first, second) = (Serving::upstream(&uri, &[]), Serving::upstream(&uri, &[]));
    let (mut one, mut two) = (first.client(), second.client());
    let before: Vec<Document> = (0..2_000).map(|id| reading(id, 7)).collect();
    one.must(&doc! { "insert": "sensor_data", "documents": before, "$db": &db }).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = [(&first, 100_000), (&second, 200_000)]
        .map(|(proxy, from)| {
            let (client, db, stop) = (proxy.client(), db.clone(), stop.clone());
            std::thread::spawn(move || write(client, &db, from, &stop))
        })
        .into_iter()
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    apply(&mut one, &db, hours());
    // Another form, told to the other proxy; then the first again, by a verb beside both.
    apply(&mut two, &db, days());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pleach.yaml");
    let text = serde_json::to_string(&declaration(&db, hours())).unwrap();
    std::fs::write(&file, text).unwrap();
    let verb = |args: &[&str]| {
        let done = pleach().args(args).args(["--upstream", &uri]).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    verb(&["apply", "--declare", file.to_str().unwrap()]);
    verb(&["drop", "sensor_data.bucket", "--db", &db]);
    std::thread::sleep(Duration::from_millis(300));
    // Into buckets once more, so that there is something to audit.
    apply(&mut two, &db, hours());
    stop.store(true, Ordering::Relaxed);
    let mut model: BTreeMap<i32, i32> = (0..2_000).map(|id| (id, 7)).collect();
    for writer in writers {
        let own = writer.join().unwrap();
        assert!(own.len() > 20, "{} readings in all that time", own.len());
        model.extend(own);
    }
    assert_eq!(found(&mut one, &db), model);
    assert_eq!(found(&mut two, &db), model);
    let audit = one.must(&doc! { "pleach": "audit", "$db": &db }).unwrap();
    assert_eq!(audit.get_i64("drifted").unwrap(), 0, "{audit}");
    one.must(&doc! { "pleach": "drop", "rule": "sensor_data.bucket", "with_data": true, "$db": &db }).unwrap();
    one.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

/// Writes that a driver would send again, each with the number that it has.
fn retryable(db: &str, from: i32) -> Vec<Document> {
    let documents = |ids: std::ops::Range<i32>| ids.map(|id| reading(id, 1)).collect::<Vec<_>>();
    let commands = [
        doc! { "insert": "sensor_data", "documents": documents(from..from + 1), "$db": db },
        doc! { "insert": "sensor_data", "documents": documents(from + 1..from + 4), "$db": db },
        doc! { "update": "sensor_data", "updates": [{ "q": { "_id": from + 1 }, "u": { "$inc": { "v": 1 } } }], "$db": db },
        doc! { "delete": "sensor_data", "deletes": [{ "q": { "v": 1, "_id": { "$gt": from + 1, "$lt": from + 4 } }, "limit": 1 }], "$db": db },
        doc! { "findAndModify": "sensor_data", "query": { "_id": from }, "update": { "$inc": { "v": 10 } }, "new": true, "$db": db },
    ];
    let numbered = |(at, mut command): (usize, Document)| {
        command.extend(doc! { "lsid": session(77), "txnNumber": i64::from(from) + i64::try_from(at).unwrap() });
        command
    };
    commands.into_iter().enumerate().map(numbered).collect()
}

/// What a reply says about the effect.
fn effect(reply: &Document) -> Document {
    let mut effect = doc! {};
    for name in ["ok", "n", "nModified", "writeErrors"] {
        if let Some(value) = reply.get(name) {
            effect.insert(name, value);
        }
    }
    if let Ok(value) = reply.get_document("value") {
        effect.insert("value", value.get("v").cloned());
    }
    effect
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn what_is_sent_again_after_a_change_of_sides_has_one_effect() {
    let uri = judge::real::uri().unwrap();
    let db = database("resent");
    let (first, second) = (Serving::upstream(&uri, &[]), Serving::upstream(&uri, &[]));
    let (mut one, mut two) = (first.client(), second.client());
    one.must(&doc! { "insert": "sensor_data", "documents": [reading(1, 7)], "$db": &db }).unwrap();
    // Only the last command of a session can be sent again: one way at a time.
    for (at, nth) in (0..5).enumerate() {
        let from = 1_000 * (i32::try_from(at).unwrap() + 1);
        for step in 0..3 {
            let commands = retryable(&db, from + 100 * step);
            let sent: Vec<Document> =
                commands[..=nth].iter().map(|command| one.command(command).unwrap().document).collect();
            let before = found(&mut one, &db);
            match step {
                0 => apply(&mut one, &db, hours()),
                1 => apply(&mut one, &db, days()),
                _ => drop(one.must(&doc! { "pleach": "drop", "rule": "sensor_data.bucket", "$db": &db }).unwrap()),
            }
            // A plan leaves no trace where no rule is any more; a document that is there keeps its `_id` from coming twice.
            if step == 2 && nth > 0 {
                continue;
            }
            let again = two.command(&commands[nth]).unwrap().document;
            assert_eq!(effect(&again), effect(&sent[nth]), "{} sent again after step {step}", commands[nth]);
            assert_eq!(found(&mut two, &db), before, "{} sent again after step {step}", commands[nth]);
        }
    }
    one.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
