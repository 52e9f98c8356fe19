//! Buckets on a real MongoDB: the statements that fill them, the view, the validator and pushed filters do there what our own
//! code does.

use bson::{Bson, Document, doc};
use document::filter::Filter;
use document::op::{Namespace, UpdateStatement};
use document::pipeline::expr::Names;
use document::update::Applied;
use document::{Doc, Env, Value};
use judge::client::Client;
use patterns::shapes::bucket::{
    Body, Bucket, BucketEntry, Dialect, Encoded, Grain, Grammar, Inexact, Layout, Period, ReadingId, Readings, Series,
    Slot, Slots, Stat, Unit,
};
use std::sync::Arc;

fn readings(every: Period, size: Grain, reading_id: ReadingId, stats: bool) -> Bucket {
    let stats =
        if stats { vec![("temp".into(), Stat::ALL.to_vec()), ("humid".into(), vec![Stat::Max])] } else { vec![] };
    Bucket {
        into: Namespace::new("shop", "stored"),
        time: "ts".into(),
        by: vec![Series { field: "sensorId".into(), hex: false }, Series { field: "probe".into(), hex: true }],
        every,
        body: Body::Readings(Readings {
            at_most: 60,
            unit: Unit { size, name: "m".into() },
            inexact: Inexact::Truncate,
            reading_id,
            stats,
        }),
        packed: false,
    }
}

fn slots(every: Period, slot: Slot, layout: Layout, packed: bool) -> Bucket {
    Bucket {
        into: Namespace::new("shop", "stored"),
        time: "date".into(),
        by: vec![Series { field: "key".into(), hex: true }],
        every,
        body: Body::Slots(Slots {
            slot,
            sums: vec![("approved".into(), "a".into()), ("noFunds".into(), "n".into())],
            layout,
        }),
        packed,
    }
}

fn buckets() -> Vec<Arc<Bucket>> {
    let mut all = vec![
        readings(Period::Hour, Grain::Minute, ReadingId::Stored, false),
        readings(Period::Quarter, Grain::Millisecond, ReadingId::Indexed, true),
        readings(Period::Day, Grain::Second, ReadingId::Time, true),
        readings(Period::Year, Grain::Month, ReadingId::Stored, false),
    ];
    for layout in [Layout::FieldNames, Layout::Array] {
        for packed in [true, false] {
            for (every, grain) in [
                (Period::Year, Grain::Month),
                (Period::Quarter, Grain::Day),
                (Period::Month, Grain::Hour),
                (Period::Day, Grain::Minute),
                (Period::Minute, Grain::Second),
            ] {
                all.push(slots(every, Slot::Time(grain), layout, packed));
            }
            let keys = Grammar::new("^[A-Z]{2}$").unwrap();
            all.push(slots(Period::Day, Slot::Field { field: "country".into(), keys, at_most: 3 }, layout, packed));
        }
    }
    let mut plain = slots(Period::Month, Slot::Time(Grain::Day), Layout::FieldNames, false);
    plain.by = vec![Series { field: "user".into(), hex: false }, Series { field: "app".into(), hex: false }];
    all.push(plain);
    all.into_iter().map(Arc::new).collect()
}

/// Readings of two series around the turn of a leap year's February.
fn documents(bucket: &Bucket) -> Vec<Document> {
    let start = bson::DateTime::parse_rfc3339_str("2024-02-29T22:58:10Z").unwrap().timestamp_millis();
    let steps = [0, 1, 49_000, 50_000, 3_600_000, 3_700_000, 90_000_000, 40 * 86_400_000, 330 * 86_400_000];
    let mut all = Vec::new();
    for (n, step) in (0_i32..).zip(steps) {
        for series in 0..2 {
            let mut doc = doc! { "_id": n * 2 + series, &*bucket.time: bson::DateTime::from_millis(start + step) };
            for by in &bucket.by {
                match (series, by.hex, bucket.packed) {
                    (0, true, _) => doc.insert(&*by.field, "AB".repeat(32)),
                    (_, true, true) => doc.insert(&*by.field, "00"),
                    (_, true, false) => None,
                    (0, false, _) => doc.insert(&*by.field, doc! { "site": 1 }),
                    (_, false, _) => doc.insert(&*by.field, Bson::Null),
                };
            }
            match &bucket.body {
                Body::Readings(_) => {
                    doc.insert(
                        "temp",
                        [Bson::from(n), Bson::from(0.1 * f64::from(n)), Bson::Null][n as usize % 3].clone(),
                    );
                    if n % 2 == 0 {
                        doc.insert("humid", doc! { "a.b": [1, n] });
                    }
                }
                Body::Slots(slots) => {
                    if let Some(field) = slots.slot.field() {
                        doc.insert(field, ["DE", "FR"][n as usize % 2]);
                    }
                    doc.insert(if n % 3 == 0 { "approved" } else { "noFunds" }, n);
                }
            }
            all.push(doc);
        }
    }
    all
}

/// The entries of each bucket, in order of arrival.
fn grouped(bucket: &Bucket) -> Vec<(Encoded, Vec<BucketEntry>)> {
    let mut groups: Vec<(Encoded, Vec<BucketEntry>)> = Vec::new();
    let mut ids = Vec::new();
    for doc in documents(bucket) {
        let encoded = bucket.encode(&Doc::from(&doc)).unwrap();
        // One reading per series and time: two that are cut may meet.
        if bucket.is_numbered() && ids.contains(&encoded.id) {
            continue;
        }
        ids.push(encoded.id.clone());
        match groups.iter_mut().find(|(first, _)| first.key.bytes() == encoded.key.bytes()) {
            Some((_, entries)) => entries.push(encoded.entry.clone()),
            None => groups.push((encoded.clone(), vec![encoded.entry])),
        }
    }
    groups
}

fn command(statement: &UpdateStatement, db: &str) -> Document {
    let mut update = readable_value(&statement.update.source);
    update = doc! { "q": readable(&statement.filter.source), "u": update.remove("v").unwrap(), "upsert": true };
    if let Some(constants) = &statement.update.constants {
        update.insert("c", readable(constants));
    }
    doc! { "update": "stored", "updates": [update], "$db": db }
}

fn readable(doc: &Doc<'_>) -> Document {
    Document::try_from(doc).unwrap()
}

fn readable_value(value: &Value<'_>) -> Document {
    let mut writer = document::DocWriter::new();
    writer.append("v", value);
    readable(&writer.finish())
}

fn found(client: &mut Client, collection: &str, filter: Document, db: &str) -> Vec<Document> {
    let find = doc! { "find": collection, "filter": filter, "batchSize": 1000, "$db": db };
    let reply = client.must(&find).unwrap();
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|doc| doc.as_document().unwrap().clone()).collect()
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn mongodb_fills_reads_and_guards_buckets_as_we_do() {
    let uri = judge::real::uri().unwrap();
    let mut client = Client::connect(judge::client::host_and_port(&uri)).unwrap();
    for (n, bucket) in buckets().into_iter().enumerate() {
        let db = &format!("buckets{}x{n}", std::process::id());
        let validator = readable(&bucket.validator());
        client.must(&doc! { "create": "stored", "validator": validator, "$db": db }).unwrap();
        let mut ours: Vec<Doc<'static>> = Vec::new();
        for (first, entries) in grouped(&bucket) {
            let mut stored: Option<Doc<'static>> = None;
            for batch in entries.chunks(3) {
                let statement = bucket.add(&first.key, 0, batch).unwrap();
                let reply = client.must(&command(&statement, db)).unwrap();
                assert_eq!(reply.get_i32("n").unwrap(), 1, "{reply}");
                stored = Some(match &stored {
                    None => statement.update.upsert(&statement.filter, &Env::fixed()).unwrap(),
                    Some(old) => match statement.update.apply(old, &Default::default(), &Env::fixed()).unwrap() {
                        Applied::Changed(new) => new,
                        Applied::Unchanged => panic!("unchanged"),
                    },
                });
            }
            ours.extend(stored);
        }
        // The same bytes: fields in the same order, numbers of the same type.
        let theirs = found(&mut client, "stored", doc! {}, db);
        assert_eq!(theirs, ours.iter().map(readable).collect::<Vec<_>>(), "{bucket:?}");
        for stored in &ours {
            assert_eq!(bucket.flaws(stored), [], "{bucket:?}");
        }

        let pipeline = readable_value(&Value::Array(bucket.view(Dialect::MongoDb))).remove("v").unwrap();
        client.must(&doc! { "create": "logical", "viewOn": "stored", "pipeline": pipeline, "$db": db }).unwrap();
        let mut decoded = Vec::new();
        for stored in &ours {
            let mut keep = |doc| {
                decoded.push(readable(&doc));
                Ok(())
            };
            bucket.decode(stored, &mut keep).unwrap();
        }
        assert_eq!(found(&mut client, "logical", doc! {}, db), decoded, "{bucket:?}");

        for doc in decoded.iter().step_by(4) {
            let (series, time) = (&*bucket.by[0].field, &*bucket.time);
            for filter in [
                doc! { series: doc.get(series).cloned().unwrap_or(Bson::Null), time: { "$gte": doc.get(time) } },
                doc! { "_id": doc.get("_id") },
                doc! { time: { "$lt": doc.get(time) }, series: { "$in": ["AB", doc.get(series)] } },
            ] {
                let parsed = Filter::parse(&Doc::from(&filter), &mut Names::new()).unwrap();
                let pushed = bucket.push(&parsed);
                let by_id = |mut docs: Vec<Document>| {
                    docs.sort_by_key(|doc| doc.get("_id").unwrap().to_string());
                    docs
                };
                let here = ours.iter().filter(|doc| pushed.matches(doc, &Env::fixed()).unwrap()).map(readable);
                let there = found(&mut client, "stored", readable(&pushed.source), db);
                assert_eq!(by_id(there), by_id(here.collect()), "{filter} {bucket:?}");
            }
        }
        for need in bucket.needs(&bucket.into).indexes {
            let index = need.spec(&need.name());
            client.must(&doc! { "createIndexes": "stored", "indexes": [readable(&index)], "$db": db }).unwrap();
        }
        guarded(&mut client, &bucket, &theirs[0], db);
        client.must(&doc! { "dropDatabase": 1, "$db": db }).unwrap();
    }
}

/// A writer that goes past us cannot break the grammar.
fn guarded(client: &mut Client, bucket: &Bucket, stored: &Document, db: &str) {
    let Body::Slots(slots) = &bucket.body else { return };
    let set = match slots.layout {
        Layout::FieldNames => doc! { "items.99999": { "a": 1 } },
        Layout::Array => doc! { "items.0.zz": 1 },
    };
    let update = doc! { "q": { "_id": stored.get("_id") }, "u": { "$set": set } };
    let reply = client.command(&doc! { "update": "stored", "updates": [update], "$db": db }).unwrap().document;
    let errors = reply.get_array("writeErrors").expect("refused");
    assert_eq!(errors[0].as_document().unwrap().get_i32("code").unwrap(), 121, "{reply}");
}
