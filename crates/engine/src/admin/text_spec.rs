//! Specifications of text indexes: checked as MongoDB checks them, and completed with what they mean.
//!
//! `{ p: 1, a: "text", b: "text" }` is stored as `{ p: 1, _fts: "text", _ftsx: 1 }` with the weights of `a` and `b`.

use document::text::{Language, MAX_WEIGHT};
use document::value::{order, show};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::collections::BTreeMap;

/// The one version there is.
const VERSION: i32 = 3;

/// Whether the key pattern is that of a text index.
pub(super) fn is_text(pattern: &Doc<'_>) -> bool {
    pattern.iter().any(|(_, kind)| kind.as_str() == Some("text"))
}

/// Weights are for text indexes, and an object (or the wildcard).
pub(super) fn check_weights(given: &Doc<'_>, weights: &Value<'_>) -> Result<()> {
    match given.get("key") {
        Some(Value::Document(key)) if is_text(&key) => {}
        _ => {
            let message = format!(
                "Invalid index specification {}; the field 'weights' can only be specified with text indexes",
                show::document(given)
            );
            return Err(refuse(message));
        }
    }
    match weights {
        Value::Document(_) | Value::String(_) => Ok(()),
        other => {
            Err(Error::type_mismatch(format!("The field 'weights' must be an object, but got {}", other.type_name())))
        }
    }
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(Code::CannotCreateIndex, message)
}

/// The specification with the key pattern, weights, languages and version that it has in the catalog.
pub(super) fn completed(given: &Doc<'_>, key: &Doc<'_>) -> Result<Doc<'static>> {
    let mut weights = BTreeMap::new();
    let key = completed_key(key, &mut weights)?;
    add_weights(given, &mut weights)?;
    let text = |name: &str| given.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let language = text("default_language").unwrap_or_else(|| "english".to_owned());
    if Language::find(&language).is_none() {
        return Err(refuse("default_language is not valid"));
    }
    let field = text("language_override").unwrap_or_else(|| "language".to_owned());
    if field.is_empty() || field.starts_with('$') || field.contains('.') {
        return Err(refuse("language_override is not valid"));
    }
    check_version(given.get("textIndexVersion"))?;
    let mut writer = DocWriter::new();
    const OWN: &[&str] = &["key", "weights", "default_language", "language_override", "textIndexVersion"];
    for (name, value) in given.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
        writer.append(name.as_str(), &value);
    }
    writer.append("key", &Value::Document(key));
    writer.start_document("weights");
    for (path, weight) in &weights {
        writer.append(path, &Value::Int32(*weight));
    }
    writer.end();
    writer.append("default_language", &Value::from(&*language));
    writer.append("language_override", &Value::from(&*field));
    writer.append("textIndexVersion", &Value::Int32(VERSION));
    Ok(writer.finish())
}

/// The fields with a text become two keys in their place; their weight is 1 unless said otherwise.
fn completed_key(key: &Doc<'_>, weights: &mut BTreeMap<String, i32>) -> Result<Doc<'static>> {
    #[derive(PartialEq)]
    enum At {
        Before,
        Text,
        /// Behind `_fts`, where `_ftsx` must follow.
        Stored,
        After,
    }
    let (mut writer, mut at) = (DocWriter::new(), At::Before);
    for (name, value) in key.iter() {
        let name = name.as_str();
        if at == At::Stored {
            if name != "_ftsx" {
                return Err(refuse("expected _ftsx after _fts"));
            }
            at = At::After;
            continue;
        }
        if value.as_str().is_some() {
            match at {
                At::Before => {
                    writer.append("_fts", &Value::from("text")).append("_ftsx", &Value::Int32(1));
                }
                At::Text => {}
                At::Stored | At::After => return Err(refuse("'text' fields in index must all be adjacent")),
            }
            at = if name == "_fts" { At::Stored } else { At::Text };
            if name != "_fts" {
                weights.insert(name.to_owned(), 1);
            }
            continue;
        }
        if matches!(name, "_fts" | "_ftsx") {
            return Err(refuse(format!("Index key contains an illegal field name: '{name}'")));
        }
        let is = |number: i32| order::equal(&value, &Value::Int32(number));
        if !is(1) && !is(-1) {
            return Err(refuse("expected value 1 or -1 for non-text key in compound index"));
        }
        if at == At::Text {
            at = At::After;
        }
        writer.append(name, &value);
    }
    match at {
        At::Stored => Err(refuse("expected _ftsx after _fts")),
        _ => Ok(writer.finish()),
    }
}

fn add_weights(given: &Doc<'_>, weights: &mut BTreeMap<String, i32>) -> Result<()> {
    match given.get("weights") {
        Some(Value::Document(own)) => {
            for (path, weight) in own.iter() {
                if !weight.is_number() {
                    return Err(refuse("weight for text index needs numeric type"));
                }
                weights.insert(path.as_str().to_owned(), whole(&weight));
            }
        }
        Some(Value::String(wildcard)) if wildcard.as_str() == "$**" => {
            weights.insert("$**".to_owned(), 1);
        }
        Some(_) => return Err(refuse("text index option 'weights' must be an object")),
        None => {}
    }
    if weights.is_empty() {
        return Err(refuse("text index option 'weights' must specify fields or the wildcard"));
    }
    for (path, weight) in weights {
        if !(1..MAX_WEIGHT).contains(weight) {
            let message =
                format!("text index weight must be in the exclusive interval (0,{MAX_WEIGHT}) but found: {weight}");
            return Err(refuse(message));
        }
        if path == "$**" {
            continue;
        }
        if path.is_empty() {
            return Err(refuse("weight cannot be on an empty field"));
        }
        for (at, part) in path.split('.').enumerate() {
            if part.is_empty() {
                return Err(refuse("weight cannot have empty path component"));
            }
            let of_reference = at > 0 && matches!(part, "$db" | "$id" | "$ref");
            if part.starts_with('$') && !of_reference {
                return Err(refuse("weight cannot have path component with $ prefix"));
            }
        }
    }
    Ok(())
}

/// A number cut to 32 bits.
fn whole(number: &Value<'_>) -> i32 {
    match number {
        Value::Double(double) => *double as i32,
        number => number.as_i64_exact().and_then(|whole| i32::try_from(whole).ok()).unwrap_or(i32::MAX),
    }
}

fn check_version(version: Option<Value<'_>>) -> Result<()> {
    match version.as_ref().map(whole) {
        None | Some(VERSION) => Ok(()),
        Some(old @ (1 | 2)) => Err(Error::not_implemented(format!("textIndexVersion {old}"))),
        Some(other) => Err(refuse(format!("bad textIndexVersion: {other}"))),
    }
}
