//! BSON values as YAML that a declaration reads as the same values.

use super::literals::{self, Style, quoted};
use document::Value;

const STYLE: Style = Style {
    null: "null",
    yes: "true",
    no: "false",
    nan: ".nan",
    infinity: ".inf",
    whole_double: |number| format!("{number:?}"),
    long: |number| format!("{{ $numberLong: \"{number}\" }}"),
    decimal: |number| format!("{{ $numberDecimal: \"{number}\" }}"),
    object_id: |id| format!("{{ $oid: \"{id}\" }}"),
    date: |millis| format!("{{ $date: {{ $numberLong: \"{millis}\" }} }}"),
    regex: |pattern, options| {
        format!("{{ $regularExpression: {{ pattern: {}, options: {} }} }}", quoted(pattern), quoted(options))
    },
    name: word,
    spaced: true,
};

/// The value on one line.
pub fn flow(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => word(text.as_str()),
        Value::Document(doc) if !doc.is_empty() => {
            let fields = doc.iter().map(|(name, value)| format!("{}: {}", key(name.as_str()), flow(&value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(array) => format!("[{}]", array.iter().map(|item| flow(&item)).collect::<Vec<_>>().join(", ")),
        other => literals::one_line(other, &STYLE),
    }
}

/// A key: `on` is one of the contract's own, and plain in YAML 1.2.
pub(crate) fn key(text: &str) -> String {
    if text == "on" { text.to_owned() } else { word(text) }
}

/// A text that YAML reads as that text; also a path.
pub fn word(text: &str) -> String {
    const OTHERS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'))
        && !OTHERS.contains(&&*text.to_ascii_lowercase());
    if is_plain { text.to_owned() } else { quoted(text) }
}
