//! Accumulators over groups of values; the expected answers are MongoDB's.

use super::*;
use bson::{Bson, Document, bson, doc};

fn run(spec: Bson, documents: &[Document], key: &Value<'_>) -> Result<Value<'static>> {
    let env = Env::fixed();
    let accumulator = AccumulatorExpr::parse("r", &Value::from(spec), &mut Names::new())?;
    let mut state = accumulator.start(key, &env)?;
    for document in documents {
        let doc = Doc::from(document);
        accumulator.add(&mut *state, &mut Scope::new(doc.borrow(), &env))?;
    }
    state.finish()
}

/// Over documents that have each value as `a` (null stands for itself) and one that lacks it.
fn check(spec: Bson, values: Bson, expected: Bson) {
    let Bson::Array(values) = values else { panic!("values are an array") };
    let mut documents: Vec<Document> =
        values.into_iter().enumerate().map(|(id, a)| doc! { "_id": i32::try_from(id).unwrap(), "a": a }).collect();
    documents.push(doc! { "_id": 99 });
    let result = run(spec.clone(), &documents, &Value::Null).unwrap();
    let expected = Value::from(expected);
    assert!(result == expected, "{spec}: {result:?}, not {expected:?}");
}

fn check_error(spec: Bson, code: i32) {
    let error = run(spec.clone(), &[doc! { "a": 1 }], &Value::Null).map(|value| format!("{value:?}"));
    assert_eq!(error.map_err(|error| error.code().number()), Err(code), "{spec}");
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[test]
fn accumulators_are_sorted_unique_and_documented() {
    for pair in ACCUMULATORS.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
    }
    assert!(ACCUMULATORS.iter().all(|def| def.name.starts_with('$') && def.help.ends_with('.')));
}

#[test]
fn numbers() {
    let mixed = || bson!([3, 1, 2i64, 1.5, null, "x", decimal("1.10"), [7, 8]]);
    check(bson!({ "$sum": "$a" }), mixed(), decimal("8.60"));
    check(bson!({ "$avg": "$a" }), mixed(), decimal("1.72"));
    check(bson!({ "$stdDevPop": "$a" }), mixed(), bson!(0.730479294709987));
    check(bson!({ "$stdDevSamp": "$a" }), mixed(), bson!(0.8167006795638166));
    check(bson!({ "$count": {} }), mixed(), bson!(9));
    check(bson!({ "$sum": 1 }), mixed(), bson!(9));
    check(bson!({ "$sum": "$a" }), bson!([i32::MAX, 1]), bson!(2147483648i64));
    check(bson!({ "$sum": "$a" }), bson!([1, 2i64]), bson!(3i64));
    check(bson!({ "$sum": "$a" }), bson!([i64::MAX, 1i64]), bson!(9.223372036854776e18));
    check(bson!({ "$sum": "$a" }), bson!([0.1, 0.2, 0.3]), bson!(0.6));
    check(bson!({ "$sum": "$a" }), bson!(["x"]), bson!(0));
    check(bson!({ "$avg": "$a" }), bson!(["x"]), bson!(null));
    check(bson!({ "$avg": "$a" }), bson!([1, 2]), bson!(1.5));
    check(bson!({ "$stdDevSamp": "$a" }), bson!([1]), bson!(null));
}

#[test]
fn values_kept() {
    let mixed = || bson!([3, 1, 2i64, 1.5, null, "x", decimal("1.10"), [7, 8]]);
    check(bson!({ "$min": "$a" }), mixed(), bson!(1));
    check(bson!({ "$max": "$a" }), mixed(), bson!([7, 8]));
    check(bson!({ "$max": "$a" }), bson!([null]), bson!(null));
    check(bson!({ "$first": "$a" }), mixed(), bson!(3));
    check(bson!({ "$push": "$a" }), mixed(), mixed());
    check(bson!({ "$addToSet": "$a" }), bson!([1, 1.0, "1", 1i64, null, null]), bson!([1, "1", null]));
    check(
        bson!({ "$mergeObjects": "$a" }),
        bson!([{ "x": 1, "y": { "z": 1 } }, { "y": { "w": 2 }, "v": 3 }, null, { "x": 9 }]),
        bson!({ "x": 9, "y": { "w": 2 }, "v": 3 }),
    );
    let last = run(bson!({ "$last": "$a" }), &[doc! { "a": 1 }, doc! {}], &Value::Null).unwrap();
    assert!(last.is_missing());
}

#[test]
fn the_n_best() {
    let mixed = || bson!([1, 1.0, 1i64, decimal("1"), 0, 2, null]);
    check(bson!({ "$minN": { "input": "$a", "n": 3 } }), mixed(), bson!([0, 1, 1.0]));
    check(bson!({ "$maxN": { "input": "$a", "n": 3 } }), mixed(), bson!([2, 1i64, 1.0]));
    check(bson!({ "$firstN": { "input": "$a", "n": 2 } }), mixed(), bson!([1, 1.0]));
    check(bson!({ "$lastN": { "input": "$a", "n": 3 } }), mixed(), bson!([2, null, null]));
    let documents: Vec<Document> = [1, 1, 1, 1, 2, 0, 1]
        .into_iter()
        .enumerate()
        .map(|(id, k)| doc! { "_id": i32::try_from(id).unwrap(), "k": k })
        .collect();
    let check = |spec: Bson, expected: Bson| {
        let result = run(spec.clone(), &documents, &Value::Null).unwrap();
        assert!(result == Value::from(expected), "{spec}: {result:?}");
    };
    check(bson!({ "$topN": { "sortBy": { "k": 1 }, "output": "$_id", "n": 3 } }), bson!([5, 0, 1]));
    check(bson!({ "$topN": { "sortBy": { "k": -1 }, "output": "$_id", "n": 3 } }), bson!([4, 0, 1]));
    check(bson!({ "$bottomN": { "sortBy": { "k": 1 }, "output": "$_id", "n": 3 } }), bson!([1, 2, 4]));
    check(bson!({ "$bottomN": { "sortBy": { "k": 1 }, "output": "$z", "n": 2 } }), bson!([null, null]));
    check(bson!({ "$top": { "sortBy": { "k": 1 }, "output": ["$_id", "$k"] } }), bson!([5, 0]));
    check(bson!({ "$bottom": { "sortBy": { "k": 1 }, "output": "$_id" } }), bson!(4));
    check(bson!({ "$bottom": { "sortBy": { "z": 1 }, "output": "$_id" } }), bson!(0));
    check(bson!({ "$top": { "sortBy": {}, "output": 1 } }), bson!(1));
}

#[test]
fn n_may_depend_on_the_group() {
    let key = Value::from(bson!({ "k": 2 }));
    let documents = [doc! { "a": 1 }, doc! { "a": 2 }, doc! { "a": 3 }];
    let result = run(bson!({ "$firstN": { "input": "$a", "n": "$k" } }), &documents, &key).unwrap();
    assert!(result == Value::from(bson!([1, 2])));
}

#[test]
fn errors() {
    check_error(bson!(1), 40234);
    check_error(bson!({}), 40234);
    check_error(bson!({ "a": 1 }), 40234);
    check_error(bson!({ "$sum": 1, "$avg": 1 }), 40238);
    check_error(bson!({ "$sum": [1, 2] }), 40237);
    check_error(bson!({ "$add": [1] }), 40237);
    check_error(bson!({ "$foo": 1 }), 15952);
    check_error(bson!({ "$count": 1 }), 14);
    check_error(bson!({ "$mergeObjects": "$a" }), 40400);
    check_error(bson!({ "$accumulator": {} }), 238);
    check_error(bson!({ "$minN": 1 }), 5_787_900);
    check_error(bson!({ "$firstN": 1 }), 5_787_801);
    check_error(bson!({ "$firstN": { "n": 1 } }), 5_787_907);
    check_error(bson!({ "$firstN": { "input": 1 } }), 5_787_906);
    check_error(bson!({ "$firstN": { "input": 1, "n": 1, "x": 1 } }), 5_787_901);
    check_error(bson!({ "$firstN": { "input": 1, "n": 0 } }), 5_787_908);
    check_error(bson!({ "$firstN": { "input": 1, "n": "x" } }), 5_787_902);
    check_error(bson!({ "$firstN": { "input": 1, "n": 1.5 } }), 5_787_903);
    check_error(bson!({ "$firstN": { "input": 1, "n": 1e30 } }), 31109);
    check_error(bson!({ "$top": 1 }), 5_788_001);
    check_error(bson!({ "$top": { "sortBy": { "a": 1 }, "output": 1, "n": 1 } }), 5_788_002);
    check_error(bson!({ "$topN": { "sortBy": { "a": 1 }, "output": 1 } }), 5_788_003);
    check_error(bson!({ "$top": { "sortBy": { "a": 1 } } }), 5_788_004);
    check_error(bson!({ "$top": { "output": 1 } }), 5_788_005);
    check_error(bson!({ "$top": { "sortBy": 1, "output": 1 } }), 10065);
}

#[test]
fn answers_are_mongodbs() {
    let file = std::env::var("ACCUMULATOR_CASES")
        .unwrap_or_else(|_| format!("{}/tests/data/accumulators.json", env!("CARGO_MANIFEST_DIR")));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut failures = Vec::new();
    for row in &rows {
        let get = |name: &str| row.get(name).map(|json| Bson::try_from(json.clone()).unwrap());
        let documents: Vec<Document> = get("documents")
            .and_then(|documents| documents.as_array().cloned())
            .unwrap()
            .iter()
            .map(|document| document.as_document().unwrap().clone())
            .collect();
        let result = run(get("accumulator").unwrap(), &documents, &Value::Null);
        let same = match (&result, get("is"), get("code")) {
            // $group gives null for what is missing.
            (Ok(Value::Missing), Some(expected), _) => expected == Bson::Null,
            (Ok(Value::Double(number)), Some(Bson::Double(expected)), _) if expected.is_nan() => number.is_nan(),
            (Ok(value), Some(expected), _) => *value == Value::from(expected),
            (Err(error), None, Some(code)) => Some(error.code().number()) == code.as_i32(),
            _ => false,
        };
        if !same {
            failures.push(format!("{row}\n    gave {result:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}
