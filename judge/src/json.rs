//! Extended JSON as people read it: types exact, short values on one line.
//!
//! Int32 is a plain integer, Double a plain number with a point, all else is written as canonical Extended JSON.
//! Reading takes relaxed and canonical Extended JSON, so that what is written comes back byte for byte.

use anyhow::{Context, Result, anyhow, bail};
use bson::{Bson, Document};
use std::fmt::Write;

const WIDTH: usize = 118;
const YEAR_10000: i64 = 253_402_300_800_000;

/// Parses one Extended JSON document, keeping the order of its fields.
pub fn parse(text: &str) -> Result<Document> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    match Bson::try_from(value).map_err(|error| anyhow!("{error}"))? {
        Bson::Document(document) => Ok(document),
        other => bail!("expected a document, found {:?}", other.element_type()),
    }
}

/// Parses a value of any type.
pub fn parse_value(text: &str) -> Result<Bson> {
    let value: serde_json::Value = serde_json::from_str(text).context("not JSON")?;
    Bson::try_from(value).map_err(|error| anyhow!("{error}"))
}

/// One line, however long.
pub fn line(value: &Bson) -> String {
    let mut out = String::new();
    flat(value, &mut out);
    out
}

/// One line, however long.
pub fn line_of(document: &Document) -> String {
    let mut out = String::new();
    flat_document(document, &mut out);
    out
}

/// Indented, but whatever fits on a line stays on it.
pub fn pretty(document: &Document) -> String {
    let mut out = String::new();
    nested_document(document, 0, 0, &mut out);
    out
}

fn nested(value: &Bson, indent: usize, used: usize, out: &mut String) {
    match value {
        Bson::Document(document) => nested_document(document, indent, used, out),
        Bson::Array(items) if !items.is_empty() => {
            let short = line(value);
            if indent + used + short.chars().count() <= WIDTH {
                out.push_str(&short);
                return;
            }
            out.push_str("[\n");
            for (at, item) in items.iter().enumerate() {
                pad(indent + 2, out);
                nested(item, indent + 2, 1, out);
                out.push_str(if at + 1 < items.len() { ",\n" } else { "\n" });
            }
            pad(indent, out);
            out.push(']');
        }
        _ => flat(value, out),
    }
}

fn nested_document(document: &Document, indent: usize, used: usize, out: &mut String) {
    let short = line_of(document);
    if document.is_empty() || indent + used + short.chars().count() <= WIDTH {
        out.push_str(&short);
        return;
    }
    out.push_str("{\n");
    for (at, (key, value)) in document.iter().enumerate() {
        pad(indent + 2, out);
        let start = out.len();
        string(key, out);
        out.push_str(": ");
        let used = out.len() - start + 1;
        nested(value, indent + 2, used, out);
        out.push_str(if at + 1 < document.len() { ",\n" } else { "\n" });
    }
    pad(indent, out);
    out.push('}');
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn flat(value: &Bson, out: &mut String) {
    match value {
        Bson::Document(document) => flat_document(document, out),
        Bson::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                flat(item, out);
            }
            out.push(']');
        }
        Bson::String(text) => string(text, out),
        Bson::Boolean(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Bson::Null => out.push_str("null"),
        Bson::Int32(number) => put(out, number),
        Bson::Double(number) => double(*number, out),
        Bson::JavaScriptCodeWithScope(code) => {
            out.push_str("{ \"$code\": ");
            string(&code.code, out);
            out.push_str(", \"$scope\": ");
            flat_document(&code.scope, out);
            out.push_str(" }");
        }
        Bson::DateTime(date) if (0..YEAR_10000).contains(&date.timestamp_millis()) => {
            put(out, value.clone().into_relaxed_extjson());
        }
        other => put(out, other.clone().into_canonical_extjson()),
    }
}

fn flat_document(document: &Document, out: &mut String) {
    if document.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{ ");
    for (at, (key, value)) in document.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        string(key, out);
        out.push_str(": ");
        flat(value, out);
    }
    out.push_str(" }");
}

/// Short doubles as they are; others as text, since JSON readers need not round numbers correctly.
fn double(number: f64, out: &mut String) {
    let text = if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        format!("{number:?}")
    };
    if text.len() <= 14 && number.is_finite() && !text.contains('e') && number != 0.0 || text == "0.0" {
        out.push_str(&text);
    } else {
        put(out, format_args!("{{ \"$numberDouble\": \"{text}\" }}"));
    }
}

fn string(text: &str, out: &mut String) {
    put(out, serde_json::Value::from(text));
}

fn put(out: &mut String, value: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn comes_back_byte_for_byte() {
        let document = doc! {
            "z": 1, "a": 1i64, "double": [1.0, -0.0, f64::NAN, f64::INFINITY, 5e-324, 1.7976931348623157e308, 0.1, -2.5],
            "big": i64::MIN, "null": Bson::Null, "undefined": Bson::Undefined, "nul": "a\0b",
            "date": bson::DateTime::from_millis(-1), "min": Bson::MinKey, "symbol": Bson::Symbol("s".into()),
            "decimal": "1.50E+3".parse::<bson::Decimal128>().unwrap(),
            "regex": bson::Regex { pattern: "a".try_into().unwrap(), options: "i".try_into().unwrap() },
            "long": vec!["x".repeat(40); 5],
        };
        for text in [pretty(&document), line_of(&document)] {
            assert_eq!(parse(&text).unwrap().to_vec().unwrap(), document.to_vec().unwrap(), "{text}");
        }
    }
}
