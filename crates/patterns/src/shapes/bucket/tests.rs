//! Readings to buckets and back: what is stored, what it weighs, what is refused.

use crate::mql::document;
use crate::shapes::bucket::*;
use bson::{Bson, bson, doc};
use document::update::Applied;
use document::{Doc, Env, Value};

fn date(text: &str) -> bson::DateTime {
    bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap()
}

fn decoded(bucket: &Bucket, stored: &Doc<'_>) -> Vec<bson::Document> {
    let mut all = Vec::new();
    bucket
        .decode(stored, &mut |doc| {
            all.push(bson::Document::try_from(&doc).unwrap());
            Ok(())
        })
        .unwrap();
    all
}

fn readable(doc: &Doc<'_>) -> bson::Document {
    bson::Document::try_from(doc).unwrap()
}

/// The bucket that these readings make, all in one.
fn stored(bucket: &Bucket, readings: &[bson::Document]) -> Doc<'static> {
    let encoded: Vec<Encoded> = readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap()).collect();
    let entries: Vec<BucketEntry> = encoded.iter().map(|one| one.entry.clone()).collect();
    bucket.build(&encoded[0].key, 0, &entries).unwrap()
}

#[test]
fn readings_are_stored_in_the_declared_form_and_come_back() {
    let bucket = samples::with_stats(samples::sensors());
    let hour = date("2024-05-01T10:00:00");
    let readings = [
        doc! { "_id": 1, "sensorId": "A", "ts": date("2024-05-01T10:05:00"), "temp": 21.5, "humid": 40 },
        doc! { "temp": 20, "ts": date("2024-05-01T10:00:00"), "_id": 2, "note": { "x": [1, 2] }, "sensorId": "A" },
    ];
    let stored = stored(&bucket, &readings);
    assert_eq!(
        readable(&stored),
        doc! {
            "_id": { "sensorId": "A", "hour": hour, "n": 0 }, "sensorId": "A", "hour": hour, "count": 2,
            "readings": [
                { "m": 5, "_id": 1, "temp": 21.5, "humid": 40 },
                { "m": 0, "_id": 2, "temp": 20, "note": { "x": [1, 2] } },
            ],
            "stats": {
                "avgTemp": 20.75, "countTemp": 2, "lastTemp": 21.5, "maxTemp": 21.5, "minTemp": 20, "sumTemp": 41.5,
                "maxHumid": 40,
            },
        }
    );
    assert_eq!(
        decoded(&bucket, &stored),
        [
            doc! { "_id": 1, "sensorId": "A", "ts": date("2024-05-01T10:05:00"), "temp": 21.5, "humid": 40 },
            doc! { "_id": 2, "sensorId": "A", "ts": date("2024-05-01T10:00:00"), "temp": 20, "note": { "x": [1, 2] } },
        ]
    );
}

#[test]
fn a_missing_series_is_absent_and_null_is_null() {
    let bucket = samples::sensors();
    let hour = date("2024-05-01T10:00:00");
    let missing = stored(&bucket, &[doc! { "_id": 1, "ts": hour }]);
    assert_eq!(
        readable(&missing),
        doc! { "_id": { "hour": hour, "n": 0 }, "hour": hour, "count": 1, "readings": [{ "m": 0, "_id": 1 }] }
    );
    assert_eq!(decoded(&bucket, &missing), [doc! { "_id": 1, "ts": hour }]);
    let null = stored(&bucket, &[doc! { "_id": 1, "ts": hour, "sensorId": null }]);
    assert_eq!(readable(&null).get_document("_id").unwrap().get("sensorId"), Some(&Bson::Null));
    assert_eq!(decoded(&bucket, &null), [doc! { "_id": 1, "sensorId": null, "ts": hour }]);
}

#[test]
fn ids_that_are_not_stored_are_series_and_time() {
    let bucket = samples::with_id(samples::sensors(), ReadingId::Time);
    let at = date("2024-05-01T10:05:00");
    let reading = doc! { "_id": bson::oid::ObjectId::new(), "sensorId": "A", "ts": at, "temp": 1 };
    let encoded = bucket.encode(&Doc::from(&reading)).unwrap();
    assert_eq!(encoded.id, Value::Document(Doc::from(doc! { "sensorId": "A", "ts": at })));
    assert_eq!(encoded.entry, BucketEntry::Reading(Doc::from(doc! { "m": 5, "temp": 1 })));
    let stored = bucket.build(&encoded.key, 0, &[encoded.entry]).unwrap();
    assert_eq!(
        decoded(&bucket, &stored),
        [doc! { "_id": { "sensorId": "A", "ts": at }, "sensorId": "A", "ts": at, "temp": 1 }]
    );
}

#[test]
fn slots_add_up() {
    let key = "ab".repeat(32);
    let event = |day: &str, status: &str, n: i32| doc! { "key": &key, "date": date(day), status: n };
    let events = [
        event("2022-06-05T00:00:00", "approved", 1),
        event("2022-06-05T17:00:00", "approved", 2),
        event("2022-06-05T01:00:00", "noFunds", 1),
        event("2022-04-01T00:00:00", "pending", 1),
    ];
    let bucket = samples::events(false);
    let start = date("2022-04-01T00:00:00");
    let bytes = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0xAB; 32] };
    assert_eq!(
        readable(&stored(&bucket, &events)),
        doc! {
            "_id": { "key": bytes.clone(), "quarter": start }, "key": bytes.clone(), "quarter": start,
            "items": { "0605": { "a": 3, "n": 1 }, "0401": { "p": 1 } },
        }
    );
    let array = samples::slots(Period::Quarter, Slot::Time(Grain::Day), Layout::Array, true);
    let packed = stored(&array, &events);
    assert_eq!(
        readable(&packed),
        doc! {
            "_id": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: [vec![0xAB; 32], vec![0x20, 0x22, 2]].concat() },
            "items": [{ "date": date("2022-06-05T00:00:00"), "a": 3, "n": 1 }, { "date": start, "p": 1 }],
        }
    );
    let lower = key.to_lowercase();
    let id = |day: &str| doc! { "key": &lower, "date": date(day) };
    assert_eq!(
        decoded(&array, &packed),
        [
            doc! { "_id": id("2022-06-05T00:00:00"), "key": &lower, "date": date("2022-06-05T00:00:00"), "approved": 3, "noFunds": 1 },
            doc! { "_id": id("2022-04-01T00:00:00"), "key": &lower, "date": start, "pending": 1 },
        ]
    );
}

#[test]
fn slots_of_a_field() {
    let hour = "2022-06-05T17:00:00";
    let event = |country: &str| doc! { "key": "AB", "date": date(hour), "country": country, "approved": 1 };
    for (layout, items) in [
        (Layout::FieldNames, bson!({ "DE": { "a": 2 }, "FR": { "a": 1 } })),
        (Layout::Array, bson!([{ "country": "DE", "a": 2 }, { "country": "FR", "a": 1 }])),
    ] {
        let bucket = samples::slots(Period::Day, samples::countries(), layout, false);
        let stored = stored(&bucket, &[event("DE"), event("FR"), event("DE")]);
        assert_eq!(readable(&stored).get("items"), Some(&items));
        let day = date("2022-06-05T00:00:00");
        let id = doc! { "key": "ab", "date": day, "country": "FR" };
        let mut expected = doc! { "_id": id.clone() };
        expected.extend(id);
        expected.insert("approved", 1);
        assert_eq!(decoded(&bucket, &stored)[1], expected);
    }
}

/// The cost model of the case study: a fixed part, so much per day, seven bytes per status.
#[test]
fn documents_weigh_what_the_case_study_says() {
    let key = "0F".repeat(32);
    let cases = [
        ("V6R0", Period::Month, Layout::FieldNames, 9),
        ("V6R1", Period::Quarter, Layout::FieldNames, 11),
        ("V5R3", Period::Quarter, Layout::Array, 22),
    ];
    for (version, every, layout, per_day) in cases {
        let bucket = samples::slots(every, Slot::Time(Grain::Day), layout, true);
        for days in 1..=9_usize {
            let events: Vec<_> = (1..=days)
                .flat_map(|day| {
                    let at = date(&format!("2022-06-{day:02}T00:00:00"));
                    [doc! { "key": &key, "date": at, "approved": 1 }, doc! { "key": &key, "date": at, "rejected": 1 }]
                })
                .collect();
            let size = stored(&bucket, &events).as_bytes().len();
            assert_eq!(size, 62 + days * (per_day + 2 * 7), "{version} with {days} days");
        }
    }
}

#[test]
fn what_is_no_reading_is_refused() {
    let sensors = samples::sensors();
    let events = samples::events(true);
    let countries = samples::slots(Period::Day, samples::countries(), Layout::FieldNames, false);
    let at = date("2024-05-01T10:05:00");
    let old = bson::DateTime::from_millis(-70_000_000_000_000);
    let cases = [
        (&sensors, doc! { "_id": 1 }, 2, "'ts' must be present and contain a valid BSON UTC datetime value"),
        (
            &sensors,
            doc! { "_id": 1, "ts": "2024" },
            2,
            "'ts' must be present and contain a valid BSON UTC datetime value",
        ),
        (&sensors, doc! { "_id": 1, "ts": date("2024-05-01T10:05:01") }, 2, "no whole minute"),
        (&sensors, doc! { "_id": 1, "ts": at, "m": 1 }, 2, "'m' is the name under which"),
        (&sensors, doc! { "_id": [1], "ts": at }, 53, "The '_id' value cannot be of type array"),
        (&sensors, doc! { "_id": 1, "ts": at, "sensorId": Bson::Undefined }, 2, "cannot be undefined"),
        (&events, doc! { "key": "ABC", "date": at }, 2, "an even number of hex digits"),
        (&events, doc! { "key": 5, "date": at }, 2, "an even number of hex digits"),
        (&events, doc! { "date": at }, 2, "'key' is part of the stored _id"),
        (&events, doc! { "key": null, "date": at }, 2, "'key' is part of the stored _id"),
        (
            &events,
            doc! { "key": "AB", "date": at, "other": 1 },
            2,
            "a slot has only approved, noFunds, pending, rejected",
        ),
        (&events, doc! { "key": "AB", "date": at, "approved": "1" }, 14, "Cannot increment with non-numeric argument"),
        (&events, doc! { "key": "AB", "date": at, "approved": null }, 14, "Cannot increment with non-numeric argument"),
        (&events, doc! { "key": "AB", "date": old, "approved": 1 }, 2, "the years 1 to 9999"),
        (&countries, doc! { "key": "AB", "date": at, "approved": 1 }, 2, "it must be a string"),
        (&countries, doc! { "key": "AB", "date": at, "country": "Germany" }, 121, "does not match ^[A-Z]{2}$"),
        (&countries, doc! { "key": "AB", "date": at, "country": "A.B" }, 121, "can be no field name"),
        (&countries, doc! { "key": "AB", "date": at, "country": "" }, 121, "can be no field name"),
    ];
    for (bucket, reading, code, words) in cases {
        let error = bucket.encode(&Doc::from(&reading)).expect_err(&format!("{reading} is refused"));
        assert!(error.message().contains(words), "{reading}: {error}");
        assert_eq!(error.code().number(), code, "{reading}: {error}");
    }
    let mut cut = samples::sensors();
    if let Body::Readings(readings) = &mut cut.body {
        readings.inexact = Inexact::Truncate;
    }
    let encoded = cut.encode(&Doc::from(doc! { "_id": 1, "ts": date("2024-05-01T10:05:59.999") })).unwrap();
    assert_eq!(encoded.entry, BucketEntry::Reading(Doc::from(doc! { "m": 5, "_id": 1 })));
    let twice = Doc::trusted_bytes({
        let mut writer = document::DocWriter::new();
        writer.append("ts", &Value::DateTime(0)).append("ts", &Value::DateTime(0));
        writer.finish().into_bytes()
    });
    assert!(sensors.encode(&twice).unwrap_err().message().contains("twice"));
}

#[test]
fn entries_of_a_bucket_build_it_again() {
    for bucket in samples::all() {
        let stored = stored(&bucket, &random::readings(&bucket, 5, 7));
        let (key, n) = bucket.key_of(&stored).unwrap();
        assert_eq!(bucket.build(&key, n, &bucket.entries(&stored).unwrap()).unwrap(), stored, "{bucket:?}");
        assert_eq!(bucket.build(&key, n, &[]), None);
    }
    let bucket = samples::events(true);
    let mut odd =
        readable(&stored(&bucket, &[doc! { "key": "AB", "date": date("2024-05-01T10:05:00"), "approved": 1 }]));
    odd.insert("items", doc! { "0501": { "zz": 1 } });
    assert!(bucket.entries(&Doc::from(&odd)).unwrap_err().message().contains("slot 0501 has zz: 1"));
    odd.insert("items", doc! { "0601": { "a": 1 }, "0801": { "a": 1 } });
    assert!(bucket.entries(&Doc::from(&odd)).unwrap_err().message().contains("0801 is no slot"));
}

/// The statement makes the bucket or changes it; either way it is what [`Bucket::build`] says, but for the order of fields.
#[test]
fn adding_makes_and_changes_buckets() {
    for bucket in samples::all() {
        let readings = random::readings(&bucket, 3, 9);
        let encoded: Vec<Encoded> = readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap()).collect();
        let entries: Vec<BucketEntry> = encoded.iter().map(|one| one.entry.clone()).collect();
        let key = &encoded[0].key;
        let (first, rest) = entries.split_at(4);
        let made = bucket.add(key, 2, first).unwrap();
        let now = made.update.upsert(&made.filter, &Env::fixed()).unwrap();
        assert_same(&now, &bucket.build(key, 2, first).unwrap(), &bucket);
        let more = bucket.add(key, 2, rest).unwrap();
        let applied = more.update.apply(&now, &Default::default(), &Env::fixed()).unwrap();
        let Applied::Changed(now) = applied else { panic!("unchanged: {bucket:?}") };
        assert_same(&now, &bucket.build(key, 2, &entries).unwrap(), &bucket);
        assert!(!made.multi && made.upsert);
        if let Body::Readings(readings) = &bucket.body {
            let fits = made.filter.matches(&now, &Env::fixed()).unwrap();
            assert_eq!(fits, readings.reading_id != ReadingId::Time, "a taken time does not fit: {bucket:?}");
        }
    }
}

#[test]
fn a_full_bucket_takes_no_more() {
    let bucket = Arc::new(samples::sensors());
    let hour = date("2024-05-01T10:00:00");
    let readings: Vec<_> = (0..60).map(|n| doc! { "_id": n, "ts": hour }).collect();
    let entries = bucket.entries(&stored(&bucket, &readings)).unwrap();
    let (key, _) = bucket.key_of(&stored(&bucket, &readings)).unwrap();
    for (there, more, fits) in [(59, 1, true), (60, 1, false), (50, 10, true), (51, 10, false), (0, 60, true)] {
        let statement = bucket.add(&key, 0, &entries[..more]).unwrap();
        let doc = bucket.build(&key, 0, &entries[..there.max(1)]).unwrap();
        let mut doc = readable(&doc);
        doc.insert("count", i32::try_from(there).unwrap());
        assert_eq!(statement.filter.matches(&Doc::from(&doc), &Env::fixed()).unwrap(), fits, "{there} + {more}");
    }
    let statement = bucket.add(&key, 3, &entries[..2]).unwrap();
    assert_eq!(
        readable(&statement.filter.source),
        doc! { "_id": { "hour": hour, "n": 3 }, "hour": hour, "count": { "$lt": 59 } }
    );
    let update = readable(&document([("u", statement.update.source)]));
    assert_eq!(
        update,
        doc! { "u": { "$inc": { "count": 2 }, "$push": { "readings": { "$each": [{ "m": 0, "_id": 0 }, { "m": 0, "_id": 1 }] } } } }
    );
}

#[test]
fn a_slot_is_one_increment() {
    let bucket = Arc::new(samples::events(true));
    let event = doc! { "key": "AB", "date": date("2022-06-05T17:00:00"), "approved": 1 };
    let encoded = bucket.encode(&Doc::from(&event)).unwrap();
    let statement = bucket.add(&encoded.key, 0, &[encoded.entry]).unwrap();
    assert_eq!(readable(&document([("u", statement.update.source)])), doc! { "u": { "$inc": { "items.0605.a": 1 } } });
    let id = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0xAB, 0x20, 0x22, 0x02] };
    assert_eq!(readable(&statement.filter.source), doc! { "_id": id });
}

/// Equal but for the order of fields.
fn assert_same(left: &Doc<'_>, right: &Doc<'_>, of: &Bucket) {
    assert_eq!(sorted(Bson::Document(readable(left))), sorted(Bson::Document(readable(right))), "{of:?}");
}

fn sorted(value: Bson) -> Bson {
    match value {
        Bson::Document(doc) => {
            let mut fields: Vec<(String, Bson)> = doc.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(fields.into_iter().collect())
        }
        Bson::Array(items) => Bson::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Native programs give the bytes of the pipelines that they stand for.
#[test]
fn native_updates_are_their_pipelines() {
    for bucket in samples::all() {
        for seed in 0..5 {
            let readings = random::readings(&bucket, seed, 8);
            let entries: Vec<BucketEntry> =
                readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap().entry).collect();
            let key = bucket.encode(&Doc::from(&readings[0])).unwrap().key;
            let mut now = bucket.build(&key, 0, &entries[..1]).unwrap();
            for batch in entries[1..].chunks(3) {
                let update = bucket.add(&key, 0, batch).unwrap().update;
                let Value::Array(_) = &update.source else { continue };
                let mut names = document::pipeline::expr::Names::new();
                if let Some(constants) = &update.constants {
                    for (name, value) in constants.iter() {
                        names.bind_constant(name.as_str(), value.into_owned());
                    }
                }
                let pipeline = document::update::Update::parse(&update.source, &[], &mut names).unwrap();
                let apply = |update: &document::update::Update| match update
                    .apply(&now, &Default::default(), &Env::fixed())
                    .unwrap()
                {
                    Applied::Changed(doc) => doc,
                    Applied::Unchanged => now.clone(),
                };
                let (native, interpreted) = (apply(&update), apply(&pipeline));
                assert_eq!(readable(&native), readable(&interpreted), "{bucket:?}");
                assert_eq!(native, interpreted, "{bucket:?}");
                now = native;
            }
        }
    }
}

#[test]
fn a_reading_that_names_its_series_or_time_itself_is_a_flaw() {
    let bucket = samples::sensors();
    let whole = stored(&bucket, &[doc! { "_id": 1, "sensorId": "A", "ts": date("2024-05-01T10:05:00"), "temp": 1 }]);
    for name in ["sensorId", "ts"] {
        let mut broken = readable(&whole);
        broken.get_array_mut("readings").unwrap()[0].as_document_mut().unwrap().insert(name, 5);
        let found: Vec<String> = bucket.flaws(&Doc::from(&broken)).into_iter().map(|flaw| flaw.field).collect();
        assert_eq!(found, [format!("readings.0.{name}")]);
    }
}
