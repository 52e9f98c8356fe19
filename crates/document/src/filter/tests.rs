//! Rows of filters and documents.

use super::*;
use bson::{Bson, bson, doc};

fn parse(filter: bson::Document) -> Result<Filter> {
    Filter::parse(&Doc::from(filter), &mut Names::new())
}

/// Checks which values of the field `a` the filter matches.
fn check(filter: bson::Document, values: &[(Bson, bool)]) {
    let compiled = parse(filter.clone()).unwrap();
    for (value, expected) in values {
        let doc = Doc::from(doc! { "a": value.clone() });
        assert_eq!(compiled.matches(&doc, &Env::fixed()).unwrap(), *expected, "{filter} on {value}");
    }
}

fn check_error(filter: bson::Document, code: i32, message: &str) {
    match parse(filter.clone()) {
        Ok(parsed) => panic!("{filter} parsed to {parsed:?}"),
        Err(error) => assert_eq!((error.code().number(), error.message()), (code, message), "{filter}"),
    }
}

#[test]
fn the_registry_is_sorted_unique_and_documented() {
    assert!(FILTERS.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(FILTERS.iter().all(|def| def.help.ends_with('.') && def.name.starts_with('$')));
}

#[test]
fn comparisons_stay_within_a_type() {
    check(
        doc! { "a": { "$gt": 5 } },
        &[(bson!(6), true), (bson!(5.5), true), (bson!("x"), false), (bson!(null), false)],
    );
    check(doc! { "a": { "$gte": null } }, &[(bson!(null), true), (bson!(1), false)]);
    check(doc! { "a": { "$gt": Bson::MinKey } }, &[(bson!(null), true), (Bson::MinKey, false)]);
    check(doc! { "a": { "$gte": f64::NAN } }, &[(bson!(f64::NAN), true), (bson!(1), false)]);
    check(doc! { "a": { "$lt": 5 } }, &[(bson!(f64::NAN), false), (bson!([7, 1]), true)]);
    check(doc! { "a": [1, 2] }, &[(bson!([1, 2]), true), (bson!([[1, 2]]), true), (bson!([1]), false)]);
    check(doc! { "a": { "b": 1 } }, &[(bson!({"b": 1.0}), true), (bson!({"b": 1, "c": 1}), false)]);
    check(doc! { "a": { "$in": [null, 3] } }, &[(bson!(3.0), true), (bson!([1, 3]), true), (bson!(4), false)]);
    check(doc! { "a": { "$nin": [3] } }, &[(bson!([1, 3]), false), (bson!([1]), true)]);
}

#[test]
fn paths_go_through_arrays_and_indexes() {
    check(doc! { "a.b": 1 }, &[(bson!([{"b": 2}, {"b": 1}]), true), (bson!([[{"b": 1}]]), false)]);
    check(
        doc! { "a.0.b": 1 },
        &[(bson!([{"b": 1}]), true), (bson!([[{"b": 1}]]), true), (bson!({"0": {"b": 1}}), true)],
    );
    check(doc! { "a.0": 1 }, &[(bson!([1]), true), (bson!([[1]]), false), (bson!([{"0": 1}]), true)]);
    check(doc! { "a.b": null }, &[(bson!(5), true), (bson!([5]), false), (bson!([{}]), true), (bson!([]), false)]);
    check(doc! { "a.0.b": null }, &[(bson!([{"b": 1}]), true), (bson!([1]), false)]);
    check(doc! { "a.b": { "$exists": false } }, &[(bson!([5]), true), (bson!([{"b": 1}]), false)]);
}

#[test]
fn types_remainders_and_bits() {
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    check(doc! { "a": { "$type": "number" } }, &[(bson!(1), true), (decimal("1"), true), (bson!(["x", 1]), true)]);
    check(doc! { "a": { "$type": ["array", -1] } }, &[(bson!([]), true), (Bson::MinKey, true), (bson!(1), false)]);
    check(doc! { "a": { "$mod": [4, 0] } }, &[(bson!(8.7), true), (bson!(i64::MIN), true), (bson!(f64::NAN), false)]);
    check(doc! { "a": { "$mod": [-1, 0] } }, &[(bson!(i64::MIN), true), (bson!(1e300), false)]);
    check(doc! { "a": { "$bitsAllSet": [1, 70] } }, &[(bson!(-1), true), (bson!(2), false), (bson!(-1.5), false)]);
    check(doc! { "a": { "$bitsAnySet": 54 } }, &[(decimal("53.5"), true), (decimal("0.5"), false)]);
}

#[test]
fn regexes_match_text_and_equal_regexes() {
    let regex = |pattern: &str, options: &str| {
        Bson::RegularExpression(bson::Regex {
            pattern: pattern.try_into().unwrap(),
            options: options.try_into().unwrap(),
        })
    };
    check(doc! { "a": regex("^b", "") }, &[(bson!("bc"), true), (bson!(["x", "b"]), true), (regex("^b", ""), true)]);
    check(doc! { "a": regex("É.$", "i") }, &[(bson!("éx"), true), (regex("É.$", ""), false), (bson!(1), false)]);
    check(doc! { "a": { "$not": { "$regex": "^\\w$" } } }, &[(bson!("é"), true), (bson!("e"), false)]);
    check(doc! { "a": { "$in": [regex("b+", ""), 5] } }, &[(bson!("abb"), true), (bson!(5.0), true)]);
}

#[test]
fn diff_a_match_without_end_is_an_error_and_a_deep_one_is_not() {
    let runaway = parse(doc! { "a": { "$regex": "^(a|a?)+$" } }).unwrap();
    let text = format!("{}b", "a".repeat(64));
    let error = runaway.matches(&Doc::from(doc! { "a": text }), &Env::fixed()).unwrap_err();
    assert_eq!(error.code().number(), 51156);
    check(doc! { "a": { "$regex": "^(a|x)+$" } }, &[(bson!("x".repeat(100_000)), true)]);
}

#[test]
fn errors_are_the_servers() {
    check_error(doc! { "a": { "$foo": 1 } }, 2, "unknown operator: $foo");
    check_error(doc! { "a": { "$gt": 1, "b": 1 } }, 2, "unknown operator: b");
    check_error(doc! { "$and": [] }, 2, "$and/$or/$nor must be a nonempty array");
    check_error(doc! { "$or": {} }, 2, "$or must be an array");
    check_error(doc! { "a": { "$not": {} } }, 2, "$not cannot be empty");
    check_error(
        doc! { "a": { "$size": -1 } },
        2,
        "Failed to parse $size. Expected a non-negative number in: $size: -1",
    );
    check_error(doc! { "a": { "$size": 1.5 } }, 2, "Failed to parse $size. Expected an integer: $size: 1.5");
    check_error(
        doc! { "a": { "$elemMatch": { "$expr": 1 } } },
        2,
        "$expr can only be applied to the top-level document",
    );
}

#[test]
fn details_name_the_outermost_implicit_index() {
    let doc = Doc::from(doc! { "b": [1, 2, 3], "c": [5, 6], "d": [{ "e": [7, 8] }, { "e": [9, 8] }] });
    for (filter, index) in [
        (doc! { "b": 2 }, Some(1)),
        (doc! { "b": 2, "c": 5 }, Some(0)),
        (doc! { "b.1": 2 }, None),
        (doc! { "b": [1, 2, 3] }, None),
        (doc! { "d.e": 9 }, Some(1)),
        (doc! { "d.0.e": 8 }, Some(1)),
        (doc! { "d": { "$elemMatch": { "e": 9 } } }, Some(1)),
        (doc! { "d.e": { "$elemMatch": { "$eq": 8 } } }, Some(0)),
        (doc! { "b": { "$elemMatch": { "$gt": 2 } } }, Some(2)),
        (doc! { "b": { "$not": { "$gt": 5 } } }, None),
        (doc! { "$or": [{ "b": 2 }, { "c": 6 }] }, None),
        (doc! { "$or": [{ "b": 2 }, { "b": 3 }] }, Some(1)),
        (doc! { "c": 6, "$or": [{ "b": { "$gt": 2 } }, { "c": 7 }] }, Some(1)),
        (doc! { "b": { "$exists": true } }, Some(0)),
        (doc! { "b": { "$all": [3, 1] } }, Some(0)),
    ] {
        let mut details = Details::default();
        let compiled = parse(filter.clone()).unwrap();
        assert!(compiled.matches_with(&doc, &Env::fixed(), &mut details).unwrap(), "{filter}");
        assert_eq!(details.array_index, index, "{filter}");
    }
}
