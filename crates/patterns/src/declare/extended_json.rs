//! Types that YAML lacks, written as MongoDB's Extended JSON: `{ $date: "2026-01-31T00:00:00Z" }`, `{ $oid: "…" }` and the like.
//! The language's own conversions read the text.

use crate::declare::finding::{At, Findings};
use crate::declare::tree::{Entries, Node, NodeContent};
use document::pipeline::expr::{self, Names, Scope};
use document::{Doc, DocWriter, Env, Text, Value};

/// How each type is written, and the expression that reads it.
const CONVERSIONS: &[(&str, &str, &str)] = &[
    ("$date", "$toDate", "{ $date: \"2026-01-31T00:00:00Z\" }"),
    ("$numberDecimal", "$toDecimal", "{ $numberDecimal: \"12.50\" }"),
    ("$numberDouble", "$toDouble", "{ $numberDouble: \"1.5\" }"),
    ("$numberInt", "$toInt", "{ $numberInt: \"7\" }"),
    ("$numberLong", "$toLong", "{ $numberLong: \"7\" }"),
    ("$oid", "$toObjectId", "{ $oid: \"65a1b2c3d4e5f60718293a4b\" }"),
];

/// The entries as a map, or as the one typed value that they spell. Findings inside of it are those from number `before` on.
pub(crate) fn typed(entries: Entries, at: &At, findings: &mut Findings, before: usize) -> NodeContent {
    let [only] = &*entries else { return NodeContent::Map(entries) };
    let at = At { spot: only.spot.or(at.spot), ..at.clone() };
    if let Some((_, conversion, example)) = CONVERSIONS.iter().find(|(key, ..)| *key == only.key) {
        let value = match &only.value.content {
            NodeContent::Scalar(Value::String(text)) => convert(conversion, text.as_str()),
            NodeContent::Scalar(Value::Int64(millis)) if only.key == "$date" => Some(Value::DateTime(*millis)),
            _ => None,
        };
        // Inside its type, text that looks like something else is what it should be.
        let place = at.inside(&only.key, None).field;
        findings.forgive(&place, before);
        return NodeContent::Scalar(value.unwrap_or_else(|| {
            findings.error(&at, format!("not a value for `{}`", only.key), format!("write {example}"));
            Value::Null
        }));
    }
    match (only.key.as_str(), &only.value.content) {
        ("$regularExpression", NodeContent::Map(parts)) => {
            let part = |name: &str| parts.find(name).and_then(|entry| text(&entry.value));
            let (Some(pattern), Some(options)) = (part("pattern"), part("options")) else {
                return NodeContent::Map(entries);
            };
            if pattern.contains('\0') || options.contains('\0') {
                findings.error(&at, "a regular expression with a NUL character", "leave it out");
                return NodeContent::Scalar(Value::Null);
            }
            NodeContent::Scalar(Value::Regex { pattern: Text::from(pattern), options: Text::from(options) })
        }
        ("$minKey", NodeContent::Scalar(Value::Int32(1))) => NodeContent::Scalar(Value::MinKey),
        ("$maxKey", NodeContent::Scalar(Value::Int32(1))) => NodeContent::Scalar(Value::MaxKey),
        _ => NodeContent::Map(entries),
    }
}

fn text(node: &Node) -> Option<String> {
    match &node.content {
        NodeContent::Scalar(Value::String(text)) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

fn convert(conversion: &str, text: &str) -> Option<Value<'static>> {
    let mut literal = DocWriter::new();
    literal.append("$literal", &Value::string(text));
    let mut call = DocWriter::new();
    call.append(conversion, &Value::Document(literal.finish()));
    let parsed = expr::parse(&Value::Document(call.finish()), &mut Names::new()).ok()?;
    let env = Env::fixed();
    let value = parsed.eval(&mut Scope::new(Doc::empty(), &env)).ok()?;
    (!value.is_nullish()).then(|| value.into_owned())
}
