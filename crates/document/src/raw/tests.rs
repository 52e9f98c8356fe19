//! Reading, writing and validating agree with the reference codec.

use super::*;
use crate::value::Value;
use bson::doc;

fn sample() -> bson::Document {
    doc! {
        "d": 1.5, "s": "héllo", "o": { "x": 1, "y": [] }, "a": [1, "two", null], "b": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
        "id": bson::oid::ObjectId::from_bytes([7; 12]), "t": true, "when": bson::DateTime::from_millis(-5), "n": null,
        "r": bson::Regex { pattern: "^a".try_into().unwrap(), options: "i".try_into().unwrap() }, "c": bson::Bson::JavaScriptCode("x".into()),
        "cs": bson::JavaScriptCodeWithScope { code: "y".into(), scope: doc! { "k": 1 } }, "i": 5, "l": 5i64, "ts": bson::Timestamp { time: 3, increment: 4 },
        "dec": "1.5".parse::<bson::Decimal128>().unwrap(), "min": bson::Bson::MinKey, "max": bson::Bson::MaxKey,
    }
}

#[test]
fn what_is_read_writes_back_the_same_bytes() {
    let doc = Doc::from(sample());
    validate(doc.as_bytes()).unwrap();
    let mut writer = DocWriter::new();
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    assert_eq!(writer.finish(), doc);
}

#[test]
fn fields_are_found_by_name_and_index() {
    let doc = Doc::from(sample());
    assert!(matches!(doc.get("l"), Some(Value::Int64(5))));
    assert!(doc.get("nothing").is_none());
    let Some(Value::Array(array)) = doc.get("a") else { panic!() };
    assert_eq!(array.count(), 3);
    assert!(matches!(array.get(1), Some(Value::String(text)) if text.as_str() == "two"));
    assert!(array.get(3).is_none());
}

#[test]
fn every_cut_and_every_flipped_length_is_refused_or_read_without_harm() {
    let bytes = Doc::from(sample()).as_bytes().to_vec();
    for end in 0..bytes.len() {
        assert!(validate(&bytes[..end]).is_err());
    }
    for at in 0..bytes.len() {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut torn = bytes.clone();
            torn[at] = value;
            let _ = validate(&torn);
            let _ = format!("{:?}", Doc::trusted(&torn));
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let mut inner = doc! {};
    for _ in 0..MAX_DEPTH + 5 {
        inner = doc! { "a": inner };
    }
    assert!(validate(Doc::from(inner).as_bytes()).is_err());
}

#[test]
fn index_names_are_decimal() {
    for n in [0, 9, 10, 12345, usize::MAX] {
        assert_eq!(with_index(n, str::to_owned), n.to_string());
    }
}
