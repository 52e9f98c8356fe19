//! Writing MQL as values: the few words that programs, plans and printed commands are built from.

use document::{Array, Doc, DocWriter, Value};

/// `{ name: value, … }`; missing values are left out.
pub fn document<'v, 'n>(fields: impl IntoIterator<Item = (&'n str, Value<'v>)>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (name, value) in fields {
        writer.append(name, &value);
    }
    writer.finish()
}

/// As [`document`], as a value.
pub fn object<'v, 'n>(fields: impl IntoIterator<Item = (&'n str, Value<'v>)>) -> Value<'static> {
    Value::Document(document(fields))
}

/// `[ value, … ]`
pub fn list<'v>(items: impl IntoIterator<Item = Value<'v>>) -> Value<'static> {
    Value::Array(items.into_iter().collect::<Array<'static>>())
}

/// `{ $operator: argument }`
pub fn call(operator: &str, argument: Value<'_>) -> Value<'static> {
    object([(operator, argument)])
}

/// `{ $operator: [ operand, … ] }`
pub fn call_with<'v>(operator: &str, operands: impl IntoIterator<Item = Value<'v>>) -> Value<'static> {
    call(operator, list(operands))
}

/// A constant that is never read as an expression.
pub fn literal(value: Value<'_>) -> Value<'static> {
    match value {
        Value::String(_) | Value::Document(_) | Value::Array(_) => call("$literal", value),
        plain => plain.into_owned(),
    }
}

/// `$a.b`: a path of the document as an expression.
pub fn field(path: &str) -> Value<'static> {
    Value::string(format!("${path}"))
}

/// `{ $cond: [ condition, then, otherwise ] }`
pub fn cond(condition: Value<'_>, then: Value<'_>, otherwise: Value<'_>) -> Value<'static> {
    call_with("$cond", [condition, then, otherwise])
}

/// `{ $let: { vars: { name: value, … }, in: result } }`
pub fn with<'v, 'n>(vars: impl IntoIterator<Item = (&'n str, Value<'v>)>, result: Value<'_>) -> Value<'static> {
    call("$let", object([("vars", object(vars)), ("in", result)]))
}

/// A whole number of any type; 0 for anything else.
pub(crate) fn long(value: Option<Value<'_>>) -> i64 {
    match value {
        Some(Value::Int32(number)) => i64::from(number),
        Some(Value::Int64(number)) => number,
        #[expect(clippy::cast_possible_truncation, reason = "figures of our own, whole and far below the limit")]
        Some(Value::Double(number)) => number as i64,
        _ => 0,
    }
}
