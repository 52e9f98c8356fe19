//! Expressions against answers recorded from MongoDB: one file per family in `tests/data/expressions`.

use super::*;
use crate::Env;
use bson::Bson;
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
