//! Rows of schemas and values of the property `a`.

use super::*;
use bson::{Bson, bson, doc};

fn check(of_a: bson::Document, values: &[(Bson, bool)]) {
    let schema = parse(&Doc::from(doc! { "properties": { "a": of_a.clone() } })).unwrap();
    for (value, expected) in values {
        let doc = Doc::from(doc! { "a": value.clone() });
        assert_eq!(schema.accepts(&Value::Document(doc)).unwrap(), *expected, "{of_a} on {value}");
    }
}

#[test]
fn keywords_speak_of_their_own_kind_of_value() {
    check(
        doc! { "minimum": 0, "exclusiveMinimum": true },
        &[(bson!(1), true), (bson!(0), false), (bson!("x"), true), (bson!(f64::NAN), false), (bson!([-1]), true)],
    );
    check(doc! { "multipleOf": 0.1 }, &[(bson!(0.3), true), (bson!(0.35), false), (bson!(-0.3), true)]);
    check(doc! { "minLength": 2, "pattern": "^a" }, &[(bson!("aé"), true), (bson!("a"), false), (bson!("bb"), false)]);
    check(
        doc! { "uniqueItems": true },
        &[
            (bson!([1, 1.0]), false),
            (bson!([{ "x": 1, "y": 2 }, { "y": 2, "x": 1 }]), false),
            (bson!([1, "1", [1], [1, 1]]), true),
        ],
    );
    check(
        doc! { "items": [{ "bsonType": "int" }], "additionalItems": { "type": "string" } },
        &[(bson!([1, "x"]), true), (bson!([1, 2]), false), (bson!([]), true)],
    );
    check(
        doc! { "properties": { "x": {} }, "patternProperties": { "^n": {} }, "additionalProperties": false },
        &[(bson!({ "x": 1, "n1": 2 }), true), (bson!({ "y": 1 }), false), (bson!(5), true)],
    );
    check(
        doc! { "dependencies": { "x": ["y"], "z": { "minProperties": 3 } } },
        &[(bson!({ "x": 1 }), false), (bson!({ "x": 1, "y": 1 }), true), (bson!({ "z": 1, "y": 1 }), false)],
    );
    check(doc! { "enum": [{ "x": 1, "y": 2 }, 5] }, &[(bson!({ "y": 2, "x": 1 }), true), (bson!(5.0), true)]);
    check(doc! { "oneOf": [{ "minimum": 5 }, { "maximum": 7 }] }, &[(bson!(6), false), (bson!(8), true)]);
    check(doc! { "not": { "bsonType": ["int", "null"] } }, &[(bson!(6), false), (bson!("x"), true)]);
}

#[test]
fn whole_documents_are_objects() {
    let accepts = |schema: bson::Document| {
        parse(&Doc::from(schema)).unwrap().accepts(&Value::Document(Doc::from(doc! { "a": 1 }))).unwrap()
    };
    assert!(accepts(doc! { "minimum": 5, "pattern": "(" }));
    assert!(!accepts(doc! { "bsonType": "string" }));
    assert!(accepts(doc! { "bsonType": ["string", "object"], "required": ["a"] }));
    assert!(!accepts(doc! { "enum": [1] }));
}

#[test]
fn errors_are_the_servers() {
    for (schema, code, message) in [
        (doc! { "foo": 1 }, 9, "Unknown $jsonSchema keyword: foo"),
        (doc! { "$ref": 1 }, 9, "$jsonSchema keyword '$ref' is not currently supported"),
        (doc! { "type": "integer" }, 9, "$jsonSchema type 'integer' is not currently supported."),
        (doc! { "bsonType": ["int", "int"] }, 9, "$jsonSchema keyword 'bsonType' has duplicate value: int"),
        (doc! { "required": ["a", "a"] }, 9, "$jsonSchema keyword 'required' array cannot contain duplicate values"),
        (doc! { "minLength": 1.5 }, 9, "Expected an integer: minLength: 1.5"),
        (doc! { "patternProperties": { "(": {} } }, 2, "Invalid regular expression: missing )"),
        (doc! { "anyOf": [] }, 2, "$jsonSchema keyword 'anyOf' must be a non-empty array"),
        (doc! { "properties": { "a": 1 } }, 14, "Nested schema for $jsonSchema property 'a' must be an object"),
    ] {
        let error = parse(&Doc::from(schema.clone())).unwrap_err();
        assert_eq!((error.code().number(), error.message()), (code, message), "{schema}");
    }
}
