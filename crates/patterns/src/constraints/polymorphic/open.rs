//! Closed schemas (`additionalProperties`) that leave room for what is not the schema's business: `_id`, the discriminator, fields that
//! the same rule requires elsewhere, and what other rules keep in the same documents.

use crate::mql::{list, object};
use document::value::Path;
use document::value::path::Part;
use document::{Doc, DocWriter, Value};
use std::collections::BTreeSet;

/// The keywords that hold schemas of the same document.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The schema, with these paths allowed wherever it lists what is allowed.
pub(crate) fn opened(schema: &Doc<'_>, paths: &[Path]) -> Doc<'static> {
    let parts: Vec<&[Part]> = paths.iter().map(|path| &*path.parts).collect();
    open(schema, &parts)
}

fn open(schema: &Doc<'_>, paths: &[&[Part]]) -> Doc<'static> {
    let firsts: BTreeSet<&str> = paths.iter().filter_map(|path| path.first()).map(|part| &*part.name).collect();
    let is_closed = schema.get("additionalProperties").is_some_and(|more| more != Value::Bool(true));
    let mut writer = DocWriter::new();
    for (name, value) in schema.iter() {
        let value = match (name.as_str(), value) {
            ("properties", Value::Document(properties)) => properties_of(&properties, paths, &firsts, is_closed),
            (name, Value::Array(schemas)) if ALTERNATIVES.contains(&name) => {
                let inner = |schema: Value<'_>| match schema {
                    Value::Document(schema) => Value::Document(open(&schema, paths)),
                    other => other.into_owned(),
                };
                list(schemas.iter().map(inner))
            }
            (_, value) => value.into_owned(),
        };
        writer.append(name.as_str(), &value);
    }
    if is_closed && !schema.contains("properties") && !firsts.is_empty() {
        writer.append("properties", &properties_of(&Doc::empty(), paths, &firsts, true));
    }
    writer.finish()
}

fn properties_of(properties: &Doc<'_>, paths: &[&[Part]], firsts: &BTreeSet<&str>, is_closed: bool) -> Value<'static> {
    let mut writer = DocWriter::new();
    for (name, value) in properties.iter() {
        let below: Vec<&[Part]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, rest)| *first.name == *name.as_str() && !rest.is_empty())
            .map(|(_, rest)| rest)
            .collect();
        let value = match value {
            Value::Document(inner) if !below.is_empty() => Value::Document(open(&inner, &below)),
            other => other.into_owned(),
        };
        writer.append(name.as_str(), &value);
    }
    for first in firsts.iter().filter(|first| is_closed && !properties.contains(first)) {
        writer.append(first, &object([]));
    }
    Value::Document(writer.finish())
}

/// The fields that a schema names by itself: at the top, and in schemas of the same document.
pub(crate) fn declared_names(schema: &Doc<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (name, value) in schema.iter() {
        match (name.as_str(), value) {
            ("properties", Value::Document(properties)) => {
                names.extend(properties.iter().map(|(name, _)| name.as_str().to_owned()));
            }
            ("required", Value::Array(required)) => {
                names.extend(required.iter().filter_map(|name| name.as_str().map(str::to_owned)));
            }
            (name, Value::Array(schemas)) if ALTERNATIVES.contains(&name) => {
                for schema in schemas.iter() {
                    if let Value::Document(schema) = schema {
                        names.extend(declared_names(&schema));
                    }
                }
            }
            _ => {}
        }
    }
    names
}
