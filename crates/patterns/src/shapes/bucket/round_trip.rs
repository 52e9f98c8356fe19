//! Any reading that is accepted comes back as it was: by chance, over all dates and values.

use crate::shapes::bucket::samples;
use crate::shapes::bucket::*;
use bson::{Bson, doc};
use document::Doc;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<i64>().prop_map(|ms| Bson::DateTime(bson::DateTime::from_millis(ms))),
        (-1e9..1e9).prop_map(Bson::Double),
        "[a-zé$.]{0,6}".prop_map(Bson::String),
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(bytes.into())),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            prop::collection::vec(("[a-z.]{0,3}", inner), 0..3)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

/// Dates near and far, the first and the last one included.
fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -100_000_000_000_000_i64..100_000_000_000_000, Just(i64::MIN), Just(i64::MAX), -5_i64..5]
}

/// All its logical documents.
fn decoded(bucket: &Bucket, encoded: &Encoded) -> Vec<bson::Document> {
    let stored = bucket.build(&encoded.key, 3, std::slice::from_ref(&encoded.entry)).unwrap();
    assert_eq!(bucket.key_of(&stored).unwrap(), (encoded.key.clone(), if bucket.is_numbered() { 3 } else { 0 }));
    assert_eq!(bucket.entries(&stored).unwrap(), std::slice::from_ref(&encoded.entry));
    assert_eq!(bucket.flaws(&stored), []);
    let mut all = Vec::new();
    let mut keep = |doc| {
        all.push(bson::Document::try_from(&doc).unwrap());
        Ok(())
    };
    bucket.decode(&stored, &mut keep).unwrap();
    all
}

proptest! {
    #[test]
    fn readings_come_back(
        id in value(),
        series in prop::option::of(value()),
        at in moment(),
        own in prop::collection::vec(("[a-z.$]{1,4}", value()), 0..5),
        every in prop::sample::select(Period::ALL.to_vec()),
    ) {
        prop_assume!(!matches!(id, Bson::Array(_)));
        let bucket = samples::readings(every, Unit { size: Grain::Millisecond, name: "~".into() });
        // What is stored in another place comes first, in the declared order.
        let mut reading = doc! { "_id": id.clone() };
        if let Some(series) = series {
            reading.insert("sensorId", series);
        }
        reading.insert("ts", bson::DateTime::from_millis(at));
        reading.extend(own.into_iter().filter(|(name, _)| name != "ts"));
        let encoded = bucket.encode(&Doc::from(&reading)).unwrap();
        prop_assert_eq!(decoded(&bucket, &encoded), [reading.clone()]);
        // The order in which a client writes its fields changes nothing but the order of its own ones.
        let mut fields: Vec<(String, Bson)> = reading.clone().into_iter().collect();
        fields.reverse();
        let mut turned: bson::Document = fields.into_iter().collect();
        let turned_back = bucket.encode(&Doc::from(&turned)).unwrap();
        prop_assert_eq!(&turned_back.key, &encoded.key);
        let back = decoded(&bucket, &turned_back).remove(0);
        for name in ["_id", "sensorId", "ts"] {
            prop_assert_eq!(back.get(name).cloned(), turned.remove(name));
        }
        prop_assert_eq!(back.into_iter().filter(|(name, _)| turned.contains_key(name)).collect::<bson::Document>(), turned);
    }

    #[test]
    fn slots_come_back(
        key in "([0-9A-F]{2}){0,40}",
        at in -62_135_596_800_000_i64..253_402_300_800_000,
        amount in prop_oneof![any::<i32>().prop_map(Bson::from), any::<i64>().prop_map(Bson::from), any::<f64>().prop_map(Bson::from)],
        which in 0_usize..64,
    ) {
        let all: Vec<_> = samples::all().into_iter().filter(|bucket| !bucket.is_numbered()).collect();
        let bucket = &all[which % all.len()];
        let Body::Slots(slots) = &bucket.body else { unreachable!() };
        let mut event = doc! { &*bucket.time: bson::DateTime::from_millis(at), "approved": amount.clone() };
        for series in &bucket.by {
            event.insert(&*series.field, &key);
        }
        let cut = match &slots.slot {
            Slot::Time(grain) => grain.start(at),
            Slot::Field { field, .. } => {
                event.insert(&**field, "DE");
                bucket.every.start(at)
            }
        };
        let encoded = bucket.encode(&Doc::from(&event)).unwrap();
        let back = decoded(bucket, &encoded).remove(0);
        prop_assert_eq!(back.get("approved").unwrap().to_string(), amount.to_string());
        prop_assert_eq!(back.get_datetime(&bucket.time).unwrap().timestamp_millis(), cut);
        let first = &bucket.by[0];
        let given_back = if first.hex { key.to_lowercase() } else { key };
        prop_assert_eq!(back.get(&first.field), Some(&Bson::from(given_back)));
    }
}
