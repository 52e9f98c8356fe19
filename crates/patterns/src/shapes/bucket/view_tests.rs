//! Unpacking as code, the view's stages run by our own pipelines, and push-down: they agree.

use crate::shapes::bucket::*;
use bson::{Bson, doc};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::pipeline::{Collections, Pipeline, Rows, Run, from_documents};
use document::{Array, Doc, Env, Result, Value};

struct NoOthers;

impl Collections for NoOthers {
    fn open(&self, _: &str, _: &Pipeline, _: &Env) -> Result<Rows> {
        Ok(document::pipeline::empty())
    }
}

fn run(pipeline: &Pipeline, documents: Vec<Doc<'static>>) -> Vec<bson::Document> {
    let run = Run { env: Env::fixed(), collections: Arc::new(NoOthers) };
    let mut rows = pipeline.start(from_documents(documents), &run).unwrap();
    let mut all = Vec::new();
    while let Some(doc) = rows.next().unwrap() {
        all.push(bson::Document::try_from(&doc).unwrap());
    }
    all
}

/// A few buckets of different series and periods.
fn buckets(bucket: &Bucket, seed: u64) -> Vec<Doc<'static>> {
    (0..4)
        .map(|n| {
            let readings = random::readings(bucket, seed * 10 + n, 6);
            let encoded: Vec<Encoded> = readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap()).collect();
            let entries: Vec<BucketEntry> = encoded.iter().map(|one| one.entry.clone()).collect();
            bucket.build(&encoded[0].key, 0, &entries).unwrap()
        })
        .collect()
}

#[test]
fn the_view_gives_what_decoding_gives() {
    for bucket in samples::all() {
        let view = Pipeline::parse(&bucket.view(Dialect::Embedded), &mut Names::new()).unwrap();
        for seed in 0..5 {
            let stored = buckets(&bucket, seed);
            let unpacked = run(&bucket.unpack(), stored.clone());
            assert!(!unpacked.is_empty());
            assert_eq!(run(&view, stored), unpacked, "{bucket:?}");
        }
    }
}

/// Filters of all kinds; whatever is pushed, no document is lost, and something is pushed where the design says so.
#[test]
fn pushing_loses_nothing() {
    for bucket in samples::all() {
        let stored: Vec<_> = (0..2).flat_map(|seed| buckets(&bucket, seed)).collect();
        let unpack = bucket.unpack();
        let logical = run(&unpack, stored.clone());
        let (mut narrowed, mut whole) = (0, 0);
        for (n, filter) in filters(&bucket, &logical).into_iter().enumerate() {
            let filter = Filter::parse(&Doc::from(&filter), &mut Names::new()).unwrap();
            let matching = |docs: Vec<bson::Document>| -> Vec<bson::Document> {
                docs.into_iter().filter(|doc| filter.matches(&Doc::from(doc), &Env::fixed()).unwrap()).collect()
            };
            let pushed = bucket.push(&filter);
            let candidates: Vec<_> =
                stored.iter().filter(|doc| pushed.matches(doc, &Env::fixed()).unwrap()).cloned().collect();
            // What is written says the same as what is compiled.
            let written = Filter::parse(&pushed.source, &mut Names::new()).unwrap();
            assert!(stored.iter().all(|doc| {
                written.matches(doc, &Env::fixed()).unwrap() == pushed.matches(doc, &Env::fixed()).unwrap()
            }));
            if candidates.len() < stored.len() {
                narrowed += 1
            } else {
                whole += 1
            }
            assert_eq!(
                matching(run(&unpack, candidates)),
                matching(logical.clone()),
                "{n}: {:?} pushed as {:?} on {bucket:?}",
                filter.source,
                pushed.source
            );
        }
        assert!(narrowed > whole, "{narrowed} of {} are pushed: {bucket:?}", narrowed + whole);
    }
}

fn filters(bucket: &Bucket, logical: &[bson::Document]) -> Vec<bson::Document> {
    let mut filters = Vec::new();
    let series = bucket.by[0].field.to_string();
    let time = bucket.time.to_string();
    for doc in logical.iter().step_by(11) {
        let value = doc.get(&series).cloned().unwrap_or(Bson::Null);
        let at = doc.get_datetime(&time).unwrap().timestamp_millis();
        let date = |ms: i64| Bson::DateTime(bson::DateTime::from_millis(ms));
        let id = doc.get("_id").unwrap().clone();
        filters.extend([
            doc! { &series: value.clone() },
            doc! { &series: { "$in": [value.clone(), "ABCD", "nothing"] } },
            doc! { &time: date(at) },
            doc! { &time: { "$gte": date(at) } },
            doc! { &time: { "$gt": date(at - 1), "$lte": date(at) } },
            doc! { &time: { "$lt": date(at + 1) }, &series: value.clone() },
            doc! { &time: { "$in": [date(at), date(at + 86_400_000)] } },
            doc! { &series: value.clone(), &time: { "$gte": date(at - 5), "$lt": date(at + 5) }, "temp": { "$ne": 1 } },
            doc! { "$or": [{ &series: value.clone(), &time: { "$gt": date(at) } }, { &series: value.clone(), &time: date(at) }] },
            doc! { "$and": [{ "$or": [{ &series: value.clone() }, { &series: "ABCD" }] }, { &time: { "$gte": date(at) } }] },
            doc! { "_id": id.clone() },
            doc! { "_id": { "$in": [id.clone(), 7] } },
            doc! { &series: value.clone(), "_id": { "$ne": id } },
            doc! { &series: { "$exists": false } },
            doc! { &series: { "$nin": [value] }, &time: { "$gte": date(at) } },
        ]);
    }
    filters.extend([doc! { &series: "abcd" }, doc! { "_id": 99 }, doc! { "_id": { "x": 1 } }, doc! { &series: null }]);
    if let Body::Slots(Slots { slot: Slot::Field { field, .. }, .. }) = &bucket.body {
        filters.extend([doc! { &**field: "DE" }, doc! { &**field: { "$in": ["FR", "a.b"] } }, doc! { &**field: "XX" }]);
    }
    filters
}

#[test]
fn pushed_filters_are_ranges_of_keys() {
    let check = |bucket: &Bucket, filter: bson::Document, pushed: bson::Document| {
        let parsed = Filter::parse(&Doc::from(&filter), &mut Names::new()).unwrap();
        assert_eq!(bson::Document::try_from(&bucket.push(&parsed).source).unwrap(), pushed, "{filter}");
    };
    let date = |text: &str| bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap();
    let (from, to) = (date("2024-05-01T10:20:00"), date("2024-05-01T12:20:00"));
    let (first, last) = (date("2024-05-01T10:00:00"), date("2024-05-01T12:00:00"));
    let sensors = samples::sensors();
    check(
        &sensors,
        doc! { "sensorId": "A", "ts": { "$gte": from, "$lt": to }, "temp": 5 },
        doc! { "$and": [{ "sensorId": { "$eq": "A" } }, { "hour": { "$lte": last } }, { "hour": { "$gte": first } }] },
    );
    check(&sensors, doc! { "temp": 5 }, doc! {});
    check(&sensors, doc! { "$or": [{ "sensorId": 1 }, { "temp": 5 }] }, doc! {});
    check(&sensors, doc! { "_id": 5 }, doc! { "readings._id": { "$eq": 5 } });
    check(
        &samples::with_id(sensors, ReadingId::Time),
        doc! { "_id": { "sensorId": "A", "ts": from } },
        doc! { "$and": [{ "sensorId": { "$eq": "A" } }, { "hour": { "$eq": first } }] },
    );
    let bytes = |bytes: &[u8]| bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: bytes.to_vec() };
    check(
        &samples::events(true),
        doc! { "key": "AB", "date": { "$gte": date("2022-06-05T00:00:00"), "$lt": date("2023-06-05T00:00:00") } },
        doc! { "$and": [{ "_id": { "$gte": bytes(&[0xAB, 0x20, 0x22, 2]) } }, { "_id": { "$lte": bytes(&[0xAB, 0x20, 0x23, 2]) } }] },
    );
    check(&samples::events(true), doc! { "date": from }, doc! {});
    check(
        &samples::events(true),
        doc! { "key": "AB", "date": from },
        doc! { "_id": { "$eq": bytes(&[0xAB, 0x20, 0x24, 2]) } },
    );
    let range = doc! { "$and": [{ "_id": { "$gte": bytes(&[0xAB, 0, 0, 0]) } }, { "_id": { "$lte": bytes(&[0xAB, 255, 255, 255]) } }] };
    check(&samples::events(true), doc! { "key": "ab" }, range);
    check(&samples::events(true), doc! { "key": "no" }, doc! { "$alwaysFalse": 1 });
}

/// The stage stands for the view's stages: a backend that is a real MongoDB is sent these.
#[test]
fn the_stage_has_its_source() {
    let bucket = Arc::new(samples::sensors());
    let matching = Pipeline::parse(&stages(bson::bson!([{ "$match": { "hour": 1 } }])), &mut Names::new()).unwrap();
    let rest = Pipeline::parse(&stages(bson::bson!([{ "$limit": 2 }])), &mut Names::new()).unwrap();
    let all = matching.then(bucket.unpack()).then(rest);
    let names: Vec<_> = all.source.as_ref().unwrap().iter().map(|stage| first_name(&stage)).collect();
    assert_eq!(names, ["$match", "$unwind", "$replaceWith", "$limit"]);
    assert_eq!(all.stages.len(), 3);
}

/// A condition on a plain series is evaluated once per bucket, not once per reading.
#[test]
fn conditions_on_series_move_ahead_of_the_stage() {
    let ahead = |bucket: Bucket, field: &str| {
        let rest = Pipeline::parse(&stages(bson::bson!([{ "$match": { field: 1 } }])), &mut Names::new()).unwrap();
        Arc::new(bucket).unpack().then(rest).stages[0].name() == "$match"
    };
    assert!(ahead(samples::sensors(), "sensorId"));
    assert!(!ahead(samples::sensors(), "temp"));
    assert!(!ahead(samples::sensors(), "ts"));
    assert!(!ahead(samples::events(false), "key"));
    assert!(!ahead(samples::events(true), "key"));
}

fn stages(stages: Bson) -> Array<'static> {
    match Value::from(stages) {
        Value::Array(stages) => stages,
        other => panic!("{other:?}"),
    }
}

fn first_name(stage: &Value<'_>) -> String {
    match stage {
        Value::Document(stage) => stage.iter().next().unwrap().0.to_string(),
        other => panic!("{other:?}"),
    }
}
