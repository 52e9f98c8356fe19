//! Computed keys: the total expression against the one that was declared, over documents of all types; what is found by an index
//! against all documents.

use crate::rule::key_expression::KeyExpression;
use bson::{Bson, bson, doc};
use document::filter::Filter;
use document::pipeline::expr::{Names, Scope, parse};
use document::value::{Path, order};
use document::{Doc, Env, Value};
use proptest::prelude::*;

/// What keys are made of; `a` and `b` may hold anything, `at` is a moment more often than not.
fn expressions() -> Vec<Bson> {
    vec![
        bson!({ "$concat": ["$a", "-", "$b"] }),
        bson!({ "$concat": [{ "$toLower": "$a" }, { "$toString": "$b" }] }),
        bson!({ "$toUpper": "$a" }),
        bson!({ "$toString": "$at" }),
        bson!({ "$dateTrunc": { "date": "$at", "unit": "month" } }),
        bson!({ "$dateTrunc": { "date": "$at", "unit": "week", "binSize": 2, "timezone": "Europe/Berlin", "startOfWeek": "monday" } }),
        bson!({ "$dateToString": { "date": "$at", "format": "%Y-%m" } }),
        bson!({ "$year": "$at" }),
        bson!({ "$isoWeek": { "date": "$at", "timezone": "+05:30" } }),
        bson!({ "$floor": { "$divide": ["$a", 10] } }),
        bson!({ "$ceil": { "$mod": ["$b", 2.5] } }),
        bson!({ "$ifNull": ["$a", { "$concat": ["$b", "!"] }, "none"] }),
        bson!({ "$cond": [{ "$gt": ["$a", 5] }, { "$toLower": "$b" }, { "$year": "$at" }] }),
        bson!({ "$cond": { "if": { "$year": "$at" }, "then": "$a", "else": "$b" } }),
        bson!({ "$cond": [{ "$or": ["$a", { "$eq": ["$b", 1] }] }, "$at", "$b" ] }),
        bson!({ "region": "$a", "month": { "$dateTrunc": { "date": "$at", "unit": "month" } } }),
        bson!({ "x": { "y": "$a", "z": { "$toLower": "$b" } }, "n": { "$literal": "$5" } }),
        bson!("$a"),
        bson!("$a.b"),
    ]
}

fn moment() -> impl Strategy<Value = Bson> {
    prop_oneof![
        6 => (-4_000_000_000_000_i64..8_000_000_000_000).prop_map(|at| Bson::DateTime(bson::DateTime::from_millis(at))),
        1 => any::<u32>().prop_map(|time| Bson::Timestamp(bson::Timestamp { time, increment: 7 })),
        1 => any::<[u8; 12]>().prop_map(|id| Bson::ObjectId(bson::oid::ObjectId::from_bytes(id))),
    ]
}

fn value() -> impl Strategy<Value = Option<Bson>> {
    prop_oneof![
        3 => "[a-cA-C]{0,3}".prop_map(|text| Some(text.into())),
        3 => (-20_i32..20).prop_map(|n| Some(n.into())),
        1 => any::<i64>().prop_map(|n| Some(n.into())),
        1 => any::<f64>().prop_map(|n| Some(n.into())),
        1 => Just(Some(Bson::Decimal128("1.5".parse().unwrap()))),
        1 => Just(Some(Bson::from(f64::NAN))),
        2 => moment().prop_map(Some),
        1 => Just(Some(bson!([1, "x"]))),
        1 => Just(Some(bson!([{ "b": 1 }]))),
        1 => Just(Some(bson!({ "b": "x" }))),
        1 => Just(Some(Bson::Boolean(true))),
        1 => Just(Some(Bson::Null)),
        1 => Just(Some(Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1] }))),
        2 => Just(None),
    ]
}

fn document() -> impl Strategy<Value = bson::Document> {
    let at = prop_oneof![3 => moment().prop_map(Some), 1 => value()];
    (value(), value(), at).prop_map(|(a, b, at)| {
        let mut doc = doc! {};
        for (name, value) in [("a", a), ("b", b), ("at", at)] {
            if let Some(value) = value {
                doc.insert(name, value);
            }
        }
        doc
    })
}

/// What the declared expression gives, none where it fails or gives what no key can be.
fn declared(source: &Value<'static>, doc: &Doc<'static>) -> Value<'static> {
    let (program, env) = (parse(source, &mut Names::new()).unwrap(), Env::fixed());
    let value = program.eval(&mut Scope::new(doc.borrow(), &env));
    let has_array = |value: &Value<'_>| matches!(value, Value::Array(_));
    fn parts_have(value: &Value<'_>, source: &Value<'_>, has: &dyn Fn(&Value<'_>) -> bool) -> bool {
        match (value, source) {
            (Value::Document(value), Value::Document(source))
                if !source.iter().any(|(name, _)| name.as_str().starts_with('$')) =>
            {
                value
                    .iter()
                    .any(|(name, part)| parts_have(&part, &source.get(name.as_str()).unwrap_or(Value::Null), has))
            }
            _ => has(value),
        }
    }
    match value {
        Ok(value) if !value.is_nullish() && !parts_have(&value, source, &has_array) => value.into_owned(),
        _ => Value::Null,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn the_total_expression_gives_what_the_declared_one_gives_and_never_fails(doc in document()) {
        let doc = Doc::from(doc);
        for source in expressions() {
            let source = Value::from(source);
            let key = KeyExpression::new(source.clone()).unwrap();
            let (expected, env) = (declared(&source, &doc), Env::fixed());
            let total = parse(&key.total, &mut Names::new()).unwrap().eval(&mut Scope::new(doc.borrow(), &env)).map(Value::into_owned);
            prop_assert!(total.is_ok(), "{source:?} {doc:?} {total:?}");
            let total = total.unwrap();
            let total = if total.is_nullish() { Value::Null } else { total };
            prop_assert_eq!(&total, &expected, "{:?} {:?}", source, doc);
        }
    }

    #[test]
    fn every_document_of_a_key_is_found_by_its_index(docs in prop::collection::vec(document(), 1..30)) {
        let env = Env::fixed();
        for source in expressions() {
            let key = KeyExpression::new(Value::from(source)).unwrap();
            let Some(seek) = &key.seek else { continue };
            for doc in docs.iter().map(Doc::from) {
                let own = key.value(&doc, &env).into_owned();
                if own.is_nullish() {
                    continue;
                }
                let Value::Document(filter) = seek.filter(&own) else { panic!("{seek:?}") };
                let filter = Filter::parse(&filter, &mut Names::new()).unwrap();
                prop_assert!(filter.matches(&doc, &env).unwrap(), "{:?} {:?} {:?}", seek, own, doc);
            }
        }
    }
}

#[test]
fn keys_that_an_index_can_serve_say_which() {
    let paths = |source: Bson| {
        let key = KeyExpression::new(Value::from(source)).unwrap();
        key.seek.map(|seek| seek.paths().iter().map(|path| path.dotted()).collect::<Vec<_>>())
    };
    let month = || bson!({ "$dateTrunc": { "date": "$at", "unit": "month" } });
    assert_eq!(paths(bson!("$a.b")), Some(vec!["a.b".to_owned()]));
    assert_eq!(paths(month()), Some(vec!["at".to_owned()]));
    // What must be equal stands before what lies in a period.
    assert_eq!(paths(bson!({ "month": (month()), "region": "$a" })), Some(vec!["a".to_owned(), "at".to_owned()]));
    assert_eq!(paths(bson!({ "month": (month()), "name": { "$toLower": "$a" } })), None);
    assert_eq!(paths(bson!({ "$concat": ["$a", "$b"] })), None);
    let key = KeyExpression::new(Value::from(bson!({ "month": (month()), "region": "$a" }))).unwrap();
    assert_eq!(key.reads, [Path::new("a"), Path::new("at")]);
}

#[test]
fn a_period_is_sought_from_its_beginning_to_the_next() {
    let key = KeyExpression::new(Value::from(bson!({ "$dateTrunc": { "date": "$at", "unit": "month" } }))).unwrap();
    let date = |text: &str| bson::DateTime::parse_rfc3339_str(text).unwrap();
    let month = Value::from(Bson::DateTime(date("2024-02-01T00:00:00Z")));
    let Value::Document(filter) = key.seek.as_ref().unwrap().filter(&month) else { panic!() };
    let filter = Filter::parse(&filter, &mut Names::new()).unwrap();
    for (at, is_in) in [
        ("2024-01-31T23:59:59.999Z", false),
        ("2024-02-01T00:00:00Z", true),
        ("2024-02-29T23:59:59.999Z", true),
        ("2024-03-01T00:00:00Z", false),
    ] {
        assert_eq!(filter.matches(&Doc::from(doc! { "at": date(at) }), &Env::fixed()).unwrap(), is_in, "{at}");
    }
}

#[test]
fn what_may_fail_unseen_or_changes_by_itself_is_refused() {
    for source in [
        bson!({ "$rand": {} }),
        bson!("$$NOW"),
        bson!("$$ROOT"),
        bson!({ "$arrayElemAt": ["$a", 0] }),
        bson!({ "$toInt": "$a" }),
        bson!({ "$divide": ["$a", "$b"] }),
        bson!({ "$divide": ["$a", 0] }),
        bson!({ "$and": ["$a", { "$year": "$at" }] }),
        bson!({ "$dateTrunc": { "date": "$at", "unit": "$b" } }),
        bson!({ "$dateTrunc": { "date": "$at", "unit": "fortnight" } }),
        bson!(["$a"]),
        bson!({ "a": ["$a"] }),
        bson!({ "a": "constant" }),
        bson!("constant"),
    ] {
        assert!(KeyExpression::new(Value::from(source.clone())).is_err(), "{source}");
    }
}

#[test]
fn equal_keys_are_equal_whatever_their_types() {
    let key = KeyExpression::new(Value::from(bson!({ "$floor": { "$divide": ["$a", 10] } }))).unwrap();
    let (int, double) = (Doc::from(doc! { "a": 25 }), Doc::from(doc! { "a": 29.5 }));
    let env = Env::fixed();
    assert!(order::equal(&key.value(&int, &env), &key.value(&double, &env)));
}
