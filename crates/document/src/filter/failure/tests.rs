//! Rows of validators, documents and what the server says of them.

use super::*;
use bson::{bson, doc};

fn check(validator: bson::Document, doc: bson::Document, expected: bson::Document) {
    let filter = Filter::parse(&Doc::from(validator.clone()), &mut Names::new()).unwrap();
    let doc = Doc::from(doc);
    assert!(!filter.matches(&doc, &Env::fixed()).unwrap(), "{validator}");
    let details = failure_details(&filter, &doc, &Env::fixed());
    assert_eq!(bson::Document::try_from(&details).unwrap(), expected, "{validator}");
}

#[test]
fn operators_say_what_they_considered() {
    for (operators, value, expected) in [
        (bson!(99), bson!(5), doc! { "operatorName": "$eq", "reason": "comparison failed", "consideredValue": 5 }),
        (bson!({ "$gt": 9 }), bson!([1, 2]), {
            doc! { "operatorName": "$gt", "reason": "comparison failed", "consideredValues": [1, 2] }
        }),
        (bson!({ "$gt": 9 }), bson!([]), {
            doc! { "operatorName": "$gt", "reason": "comparison failed", "consideredValues": [] }
        }),
        (bson!({ "$gt": 9 }), bson!([[1]]), {
            doc! { "operatorName": "$gt", "reason": "comparison failed", "consideredValue": [1] }
        }),
        (bson!({ "$nin": [1] }), bson!(1), {
            doc! { "operatorName": "$nin", "reason": "matching value found in array", "consideredValue": 1 }
        }),
        (bson!({ "$exists": false }), bson!(1), doc! { "operatorName": "$exists", "reason": "path does exist" }),
        (bson!({ "$type": "date" }), bson!([1, "x"]), {
            doc! {
                "operatorName": "$type", "reason": "type did not match",
                "consideredValues": [1, "x"], "consideredTypes": ["int", "string"],
            }
        }),
        (bson!({ "$size": 3 }), bson!(5), {
            doc! {
                "operatorName": "$size", "reason": "type did not match", "consideredType": "int",
                "expectedType": "array", "consideredValue": 5,
            }
        }),
    ] {
        let validator = doc! { "a": operators };
        let mut whole = doc! {};
        for (name, part) in expected {
            if name == "reason" {
                whole.insert("specifiedAs", validator.clone());
            }
            whole.insert(name, part);
        }
        check(validator, doc! { "a": value }, whole);
    }
    check(doc! { "a.b": 1 }, doc! { "a": [1] }, {
        doc! { "operatorName": "$eq", "specifiedAs": { "a.b": 1 }, "reason": "field was missing" }
    });
}

#[test]
fn logic_lists_the_clauses_that_matter() {
    let eq = |value: i32, reason: &str| {
        doc! { "operatorName": "$eq", "specifiedAs": { "a": value }, "reason": reason, "consideredValue": 5 }
    };
    check(doc! { "$or": [{ "a": 1 }, { "a": 2 }] }, doc! { "a": 5 }, {
        doc! { "operatorName": "$or", "clausesNotSatisfied": [
            { "index": 0, "details": eq(1, "comparison failed") }, { "index": 1, "details": eq(2, "comparison failed") },
        ] }
    });
    check(doc! { "$nor": [{ "a": 1 }, { "a": 5 }] }, doc! { "a": 5 }, {
        doc! { "operatorName": "$nor", "clausesSatisfied": [
            { "index": 1, "details": eq(5, "comparison succeeded") },
        ] }
    });
    check(doc! { "b": null, "a": { "$gt": 1, "$lt": 3 } }, doc! { "a": 5 }, {
        doc! { "operatorName": "$and", "clausesNotSatisfied": [{ "index": 2, "details": {
            "operatorName": "$lt", "specifiedAs": { "a": { "$lt": 3 } }, "reason": "comparison failed",
            "consideredValue": 5,
        } }] }
    });
    check(doc! { "a": { "$not": { "$gt": 1 } } }, doc! { "a": 5 }, {
        doc! { "operatorName": "$not", "details": {
            "operatorName": "$gt", "specifiedAs": { "a": { "$gt": 1 } }, "reason": "comparison succeeded",
            "consideredValue": 5,
        } }
    });
}

#[test]
fn titles_of_schemas_are_repeated_beside_their_places() {
    let schema = doc! { "$jsonSchema": { "title": "t", "description": "d", "required": ["a"] } };
    let inner = doc! {
        "operatorName": "$jsonSchema", "title": "t", "description": "d",
        "schemaRulesNotSatisfied": [
            { "operatorName": "required", "specifiedAs": { "required": ["a"] }, "missingProperties": ["a"] },
        ],
    };
    let titled = |index: i32| doc! { "index": index, "title": "t", "description": "d", "details": inner.clone() };
    let nested = |name: &str, clauses: &str, inner: bson::Document| {
        doc! { "operatorName": name, clauses: [inner] }
    };
    let and = |entry: bson::Document| nested("$and", "clausesNotSatisfied", entry);
    check(doc! { "$and": [{ "$and": [schema.clone()] }] }, doc! {}, {
        and(doc! { "index": 0, "details": and(titled(0)) })
    });
    let mut beside = doc! { "x": { "$ne": 1 } };
    beside.extend(schema.clone());
    check(beside.clone(), doc! {}, and(titled(1)));
    check(doc! { "$and": [beside] }, doc! {}, and(doc! { "index": 0, "details": and(titled(1)) }));
    let matched = doc! {
        "index": 0, "title": "t", "description": "d",
        "details": { "operatorName": "$jsonSchema", "reason": "schema matched" },
    };
    check(doc! { "$nor": [schema] }, doc! { "a": 1 }, nested("$nor", "clausesSatisfied", matched));
}

#[test]
fn schemas_name_their_rules() {
    let schema = doc! {
        "title": "T",
        "required": ["c", "b"],
        "properties": { "a": { "bsonType": "string", "minimum": 9 }, "t": { "items": { "minimum": 5 } } },
    };
    check(doc! { "$jsonSchema": schema }, doc! { "a": 5, "b": 1, "t": [6, 1] }, {
        doc! { "operatorName": "$jsonSchema", "title": "T", "schemaRulesNotSatisfied": [
            { "operatorName": "properties", "propertiesNotSatisfied": [
                { "propertyName": "a", "details": [{
                    "operatorName": "bsonType", "specifiedAs": { "bsonType": "string" }, "reason": "type did not match",
                    "consideredValue": 5, "consideredType": "int",
                }] },
                { "propertyName": "t", "details": [{
                    "operatorName": "items", "reason": "At least one item did not match the sub-schema", "itemIndex": 1,
                    "details": [{
                        "operatorName": "minimum", "specifiedAs": { "minimum": 5 }, "reason": "comparison failed",
                        "consideredValue": 1,
                    }],
                }] },
            ] },
            { "operatorName": "required", "specifiedAs": { "required": ["c", "b"] }, "missingProperties": ["c"] },
        ] }
    });
}
