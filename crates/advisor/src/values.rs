//! Short words for reading values of documents, and for making the figures of findings.

use document::value::number::Number;
use document::value::{Path, key};
use document::{Array, Doc, DocWriter, Value};

/// A number as a count; 0 if it is none.
pub fn figure(doc: &Doc<'_>, name: &str) -> u64 {
    doc.get(name)
        .and_then(|value| value.as_number())
        .map_or(0, |number| u64::try_from(number.to_i64_saturated()).unwrap_or(0))
}

pub fn flag(doc: &Doc<'_>, name: &str) -> bool {
    doc.get(name).is_some_and(|value| value.is_truthy())
}

pub fn text(doc: &Doc<'_>, name: &str) -> String {
    doc.get(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The value at a path through documents; array elements are not looked into.
pub fn at<'d>(doc: &Doc<'d>, path: &str) -> Option<Value<'d>> {
    let mut parts = path.split('.');
    let mut value = doc.get(parts.next()?)?;
    for part in parts {
        let Value::Document(inner) = &value else { return None };
        value = inner.get(part)?;
    }
    Some(value)
}

/// All values at a path, through arrays too, as a filter sees them.
pub fn each_at(doc: &Doc<'_>, path: &Path, visit: &mut dyn FnMut(&Value<'_>)) {
    let root = Value::Document(doc.borrow());
    let _ = document::value::distinct::each_value(&root, &path.parts, &mut |value| {
        visit(value);
        Ok(())
    });
}

/// A value as bytes that are equal if the values are: numbers of all types are one type.
pub fn key_bytes(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(value, &mut bytes);
    bytes
}

/// A short hash of [`key_bytes`].
pub fn hash(value: &Value<'_>) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&key_bytes(value))
}

pub fn number(value: &Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::to_f64).filter(|number| number.is_finite())
}

/// A count as a figure.
pub fn count(number: u64) -> Value<'static> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}

/// A share or mean as a figure, with four digits that mean something.
pub fn measure(number: f64) -> Value<'static> {
    if number == 0.0 || !number.is_finite() {
        return Value::Double(0.0);
    }
    let scale = 10f64.powf(3.0 - number.abs().log10().floor());
    Value::Double((number * scale).round() / scale)
}

/// A share of a whole.
#[expect(clippy::cast_precision_loss, reason = "shares are for people and thresholds")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub fn figures<'v>(fields: impl IntoIterator<Item = (&'static str, Value<'v>)>) -> Doc<'static> {
    let mut doc = DocWriter::new();
    for (name, value) in fields {
        doc.append(name, &value);
    }
    doc.finish()
}

pub fn list<'v>(values: impl IntoIterator<Item = Value<'v>>) -> Value<'static> {
    Value::Array(values.into_iter().collect::<Array<'static>>())
}

/// The `_id`s of some documents, as examples.
pub fn ids<'d>(documents: impl IntoIterator<Item = &'d Doc<'static>>) -> Value<'static> {
    const EXAMPLES: usize = 5;
    list(documents.into_iter().take(EXAMPLES).map(|doc| doc.get("_id").unwrap_or(Value::Null)))
}
