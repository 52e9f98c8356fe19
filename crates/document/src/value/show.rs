//! Values as text in error messages, in the two forms MongoDB has: that of commands and filters (`{ a: [ 1, 2 ] }`) and
//! that of aggregation (`{a: [1, 2]}`).

use super::Value;
use crate::raw::{Array, Blob, Doc};
use std::fmt::{Display, Formatter, Result, Write};

/// `{ a: [ 1, "x" ], b: ObjectId('…') }`: as filters, sorts, updates and commands print what they were given.
pub fn element<'v>(value: &'v Value<'_>) -> impl Display + 'v {
    DisplayedValue { value: value.borrow(), style: Style::Element }
}

/// `{a: [1, "x"], b: …}`: as aggregation prints a computed value.
pub fn computed<'v>(value: &'v Value<'_>) -> impl Display + 'v {
    DisplayedValue { value: value.borrow(), style: Style::Computed }
}

/// A document in the form of [`element`].
pub fn document<'v>(doc: &'v Doc<'_>) -> impl Display + 'v {
    DisplayedValue { value: Value::Document(doc.borrow()), style: Style::Element }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Element,
    Computed,
}

struct DisplayedValue<'v> {
    value: Value<'v>,
    style: Style,
}

impl Display for DisplayedValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_value(f, &self.value, self.style)
    }
}

fn write_value(f: &mut Formatter<'_>, value: &Value<'_>, style: Style) -> Result {
    let element = style == Style::Element;
    match value {
        Value::Missing if element => f.write_str("EOO"),
        Value::Missing => f.write_str("MISSING"),
        Value::MinKey => f.write_str("MinKey"),
        Value::MaxKey => f.write_str("MaxKey"),
        Value::Undefined => f.write_str("undefined"),
        Value::Null => f.write_str("null"),
        Value::Double(number) if element => f.write_str(&double(*number)),
        Value::Double(number) => f.write_str(&general(*number, 6)),
        Value::Int32(number) => write!(f, "{number}"),
        Value::Int64(number) => write!(f, "{number}"),
        Value::Decimal(number) => write!(f, "{number}"),
        Value::String(text) => write!(f, "\"{text}\""),
        Value::Symbol(text) if element => write!(f, "\"{text}\""),
        Value::Symbol(text) => write!(f, "Symbol(\"{text}\")"),
        Value::Document(doc) => write_document(f, doc, style),
        Value::Array(array) => write_array(f, array, style),
        Value::Binary { subtype: 4, bytes } if element && bytes.as_slice().len() == 16 => write_uuid(f, bytes),
        Value::Binary { subtype, bytes } => {
            let quote = if element { "" } else { "\"" };
            write!(f, "BinData({subtype}, {quote}")?;
            bytes.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
            write!(f, "{quote})")
        }
        Value::ObjectId(id) => {
            f.write_str(if element { "ObjectId('" } else { "" })?;
            id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str(if element { "')" } else { "" })
        }
        Value::Bool(truth) => write!(f, "{truth}"),
        Value::DateTime(millis) if element => write!(f, "new Date({millis})"),
        Value::DateTime(millis) => match jiff::Timestamp::from_millisecond(*millis) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{millis}"),
        },
        Value::Timestamp(bits) => write!(f, "Timestamp({}, {})", bits >> 32, bits & 0xFFFF_FFFF),
        Value::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
        Value::DbPointer { namespace, id } => {
            write!(f, "DBRef('{namespace}',")?;
            id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_char(')')
        }
        Value::Code(code) if element => write!(f, "{code}"),
        Value::Code(code) => write!(f, "Code(\"{code}\")"),
        Value::CodeWithScope { code, scope } if element => write!(f, "CodeWScope( {code}, {})", document(scope)),
        Value::CodeWithScope { code, scope } => write!(f, "CodeWScope(\"{code}\", {})", document(scope)),
    }
}

fn write_document(f: &mut Formatter<'_>, doc: &Doc<'_>, style: Style) -> Result {
    if doc.is_empty() {
        return f.write_str("{}");
    }
    let space = if style == Style::Element { " " } else { "" };
    write!(f, "{{{space}")?;
    for (at, (name, value)) in doc.iter().enumerate() {
        f.write_str(if at > 0 { ", " } else { "" })?;
        write!(f, "{name}: ")?;
        write_value(f, &value, style)?;
    }
    write!(f, "{space}}}")
}

fn write_array(f: &mut Formatter<'_>, array: &Array<'_>, style: Style) -> Result {
    if array.is_empty() {
        return f.write_str("[]");
    }
    let space = if style == Style::Element { " " } else { "" };
    write!(f, "[{space}")?;
    for (at, value) in array.iter().enumerate() {
        f.write_str(if at > 0 { ", " } else { "" })?;
        write_value(f, &value, style)?;
    }
    write!(f, "{space}]")
}

fn write_uuid(f: &mut Formatter<'_>, bytes: &Blob<'_>) -> Result {
    f.write_str("UUID(\"")?;
    for (at, byte) in bytes.as_slice().iter().enumerate() {
        f.write_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" })?;
        write!(f, "{byte:02x}")?;
    }
    f.write_str("\")")
}

/// 16 significant digits, and always a point that tells it from an integer: `1e+20.0` and `inf.0` too.
fn double(number: f64) -> String {
    let mut text = general(number, 16);
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// C's `%.<digits>g`.
pub fn general(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return if number.is_nan() { "nan".into() } else { format!("{number}") };
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match usize::try_from(exponent + 4) {
        Ok(small) if small < digits + 4 => trim(&format!("{number:.*}", (digits + 3).saturating_sub(small))),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    #[test]
    fn both_forms_are_the_real_servers() {
        let check = |value: Bson, as_element: &str, as_computed: &str| {
            let value = Value::from(value);
            assert_eq!(element(&value).to_string(), as_element);
            assert_eq!(computed(&value).to_string(), as_computed);
        };
        check(Bson::Double(1.0), "1.0", "1");
        check(Bson::Double(123_456_789.125), "123456789.125", "1.23457e+08");
        check(Bson::Double(-1e-7), "-1e-07.0", "-1e-07");
        check(Bson::Double(0.1), "0.1", "0.1");
        check(Bson::Double(100_000.0), "100000.0", "100000");
        check(Bson::Double(f64::INFINITY), "inf.0", "inf");
        check(doc! { "a": [1, "x"], "b": {} }.into(), "{ a: [ 1, \"x\" ], b: {} }", "{a: [1, \"x\"], b: {}}");
        check(
            bson::DateTime::from_millis(1_577_934_245_678).into(),
            "new Date(1577934245678)",
            "2020-01-02T03:04:05.678Z",
        );
        let id = bson::oid::ObjectId::from_bytes([0x5a; 12]);
        check(id.into(), "ObjectId('5a5a5a5a5a5a5a5a5a5a5a5a')", "5a5a5a5a5a5a5a5a5a5a5a5a");
        let bytes = vec![1, 0xab];
        let binary = bson::Binary { subtype: bson::spec::BinarySubtype::Md5, bytes };
        check(binary.into(), "BinData(5, 01AB)", "BinData(5, \"01AB\")");
        check(bson::Timestamp { time: 3, increment: 4 }.into(), "Timestamp(3, 4)", "Timestamp(3, 4)");
    }
}
