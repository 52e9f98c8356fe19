//! Expressions against answers recorded from MongoDB: one file per family in `tests/data/expressions`.

use super::*;
use crate::Env;
use bson::Bson;
use proptest::prelude::*;
use std::path::Path as FilePath;

/// One row: an expression, the document it is evaluated on, and the value, nothing, or the error's code and message.
fn check(row: &serde_json::Value) -> std::result::Result<(), String> {
    let bson = |name: &str| row.get(name).map(|json| Bson::try_from(json.clone()).unwrap());
    let spec = Value::from(bson("expr").unwrap());
    let doc = match bson("doc") {
        Some(Bson::Document(document)) => Doc::from(document),
        _ => Doc::empty(),
    };
    let env = Env::fixed();
    let expr = parse(&spec, &mut Names::new());
    let result = expr.and_then(|expr| expr.eval(&mut Scope::new(doc, &env)).map(Value::into_owned));
    let expected = match (bson("is"), bson("code")) {
        (Some(value), _) => Ok(Value::from(value)),
        (None, Some(code)) => Err((number(&code), row["message"].as_str().unwrap_or_default().to_owned())),
        (None, None) => Ok(Value::Missing),
    };
    let actual = result.map_err(|error| (error.code().number(), error.message().to_owned()));
    match (&actual, &expected) {
        (Ok(actual), Ok(expected)) if same(actual, expected) => Ok(()),
        (Err(actual), Err(expected)) if actual == expected => Ok(()),
        _ => Err(format!("{row}\n    gave {actual:?}")),
    }
}

fn number(code: &Bson) -> i32 {
    code.as_i32().unwrap_or_default()
}

/// Same bytes; every NaN is the same.
fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Double(a), Value::Double(b)) if a.is_nan() => b.is_nan(),
        (a, b) => a.is_missing() == b.is_missing() && a == b,
    }
}

fn check_file(path: &FilePath) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(!rows.is_empty(), "{}", path.display());
    rows.iter().filter_map(|row| check(row).err()).collect()
}

#[test]
fn answers_are_mongodbs() {
    let folder = std::env::var("EXPRESSION_CASES")
        .unwrap_or_else(|_| format!("{}/tests/data/expressions", env!("CARGO_MANIFEST_DIR")));
    let mut failures = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        failures.extend(check_file(&entry.unwrap().path()));
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn what_grows_without_end_is_stopped() {
    let check = |a: &str, body: Bson, turns: i32, code: i32| {
        let spec =
            bson::bson!({ "$reduce": { "input": { "$range": [0, turns] }, "initialValue": ["$a"], "in": body } });
        let env = Env::fixed();
        let expr = parse(&Value::from(spec), &mut Names::new()).unwrap();
        let doc = Doc::from(bson::doc! { "a": a });
        let result = expr.eval(&mut Scope::new(doc, &env)).map(|_| ());
        assert_eq!(result.map_err(|error| error.code().number()), Err(code));
    };
    check("x", bson::bson!(["$$value"]), 1000, 15);
    check("x", bson::bson!({ "a": { "b": ["$$value"] } }), 1000, 15);
    let long = "x".repeat(4 << 20);
    check(&long, bson::bson!({ "$concatArrays": ["$$value", "$$value"] }), 40, 146);
    check(&long, bson::bson!({ "x": "$$value", "y": "$$value" }), 40, 146);
    let set = bson::bson!({ "$setField": { "field": "x", "input": { "v": "$$value" }, "value": "$$value" } });
    check(&long, set, 40, 146);
}

/// As deep as BSON may be, on a thread with a small stack.
#[test]
fn the_deepest_expressions_fit_the_stack() {
    let wraps: [fn(Bson) -> Bson; 6] = [
        |inner| bson::bson!({ "$abs": inner }),
        |inner| bson::bson!({ "$add": [inner, "$a"] }),
        |inner| bson::bson!({ "$cond": { "if": "$a", "then": inner, "else": 1 } }),
        |inner| bson::bson!({ "$switch": { "branches": [{ "case": "$a", "then": inner }] } }),
        |inner| bson::bson!({ "$let": { "vars": { "x": inner }, "in": "$$x" } }),
        |inner| bson::bson!({ "$first": { "$map": { "input": ["$a"], "in": inner } } }),
    ];
    let run = move || {
        for wrap in wraps {
            let mut spec = bson::bson!("$a");
            let mut depth = 0;
            loop {
                let next = wrap(spec.clone());
                let whole = Doc::from(bson::doc! { "": next.clone() });
                if crate::raw::validate(whole.as_bytes()).is_err() {
                    break;
                }
                (spec, depth) = (next, depth + 1);
            }
            assert!(depth > 40, "{depth}");
            let env = Env::fixed();
            let expr = parse(&Value::from(spec), &mut Names::new()).unwrap();
            let doc = Doc::from(bson::doc! { "a": 1 });
            expr.eval(&mut Scope::new(doc, &env)).unwrap();
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_long_evaluation_can_be_interrupted() {
    let spec = bson::bson!({ "$map": { "input": { "$range": [0, 100_000] }, "in": { "$add": ["$$this", 1] } } });
    let mut env = Env::fixed();
    env.interrupt = Arc::new(|| Err(crate::Error::new(crate::Code::Interrupted, "operation was interrupted")));
    let expr = parse(&Value::from(spec), &mut Names::new()).unwrap();
    let result = expr.eval(&mut Scope::new(Doc::empty(), &env)).map(|_| ());
    assert_eq!(result.map_err(|error| error.code().number()), Err(11601));
}

/// Any value that a client could write where an expression is expected, biased to operators and their arguments.
fn any_expression() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Boolean),
        prop_oneof![Just(0), Just(1), Just(-1), Just(i32::MAX), Just(i32::MIN), any::<i32>()].prop_map(Bson::Int32),
        prop_oneof![Just(i64::MAX), Just(i64::MIN), any::<i64>()].prop_map(Bson::Int64),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(1e300), any::<f64>()].prop_map(Bson::Double),
        prop_oneof![Just("NaN"), Just("Infinity"), Just("-0"), Just("1E+6144"), Just("9.99E-6143"), Just("1.5")]
            .prop_map(|text| Bson::Decimal128(text.parse().unwrap())),
        any::<i64>().prop_map(|millis| Bson::DateTime(bson::DateTime::from_millis(millis))),
        prop_oneof![
            Just("$a"),
            Just("$a.b.0"),
            Just("$$this"),
            Just("$$value.x"),
            Just("$$ROOT"),
            Just("$$REMOVE"),
            Just("$"),
            Just("$$"),
            Just(""),
            Just("é\0"),
        ]
        .prop_map(|text| Bson::String(text.to_owned())),
    ];
    leaf.prop_recursive(4, 48, 4, |inner| {
        let arguments = prop::sample::select(vec![
            "input",
            "as",
            "in",
            "cond",
            "limit",
            "n",
            "initialValue",
            "vars",
            "branches",
            "case",
            "then",
            "default",
            "inputs",
            "defaults",
            "useLongestLength",
            "sortBy",
            "field",
            "value",
            "if",
            "else",
            "k",
            "v",
            "x.y",
        ]);
        let operators: Vec<&str> = EXPRESSIONS.iter().map(|def| def.name).collect();
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            (prop::sample::select(operators), inner.clone())
                .prop_map(|(name, argument)| Bson::Document(bson::doc! { name: argument })),
            prop::collection::vec((arguments, inner), 0..4).prop_map(|fields| {
                Bson::Document(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_a_client_writes_panics(spec in any_expression(), a in any_expression()) {
        let mut names = Names::new();
        names.bind("this");
        names.bind("value");
        if let Ok(expr) = parse(&Value::from(spec), &mut names) {
            let env = Env::fixed();
            let doc = Doc::from(bson::doc! { "a": a });
            if let Ok(value) = expr.eval(&mut Scope::new(doc.borrow(), &env)) {
                let mut writer = DocWriter::new();
                writer.append("result", &value);
                prop_assert!(crate::raw::validate(writer.finish().as_bytes()).is_ok());
            }
        }
    }
}
