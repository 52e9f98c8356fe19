//! Some documents of a collection, and the names and types that they show.

use crate::execute::access::{Access, by_id, find};
use crate::print::in_shell;
use document::filter::Filter;
use document::op::{Find, Namespace, SortSpec};
use document::{Doc, Result, Value};
use std::collections::BTreeSet;

/// How many documents are looked at from each end.
const SOME: u64 = 200;

/// How deep names are collected.
const DEPTH: usize = 8;

/// The first and the last documents in `_id` order.
pub(super) async fn documents(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let mut all = at.find(Find { limit: Some(SOME), sort: Some(by_id()), ..find(ns, Filter::all()) }).await?;
    if all.len() as u64 == SOME {
        let SortSpec { mut keys } = by_id();
        keys.iter_mut().for_each(|key| key.descending = true);
        let last = Find { limit: Some(SOME), sort: Some(SortSpec { keys }), ..find(ns, Filter::all()) };
        all.extend(at.find(last).await?);
    }
    Ok(all)
}

/// Every dotted path that the documents have, through arrays.
pub(super) fn paths(documents: &[Doc<'static>]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    documents.iter().for_each(|doc| collect(doc, "", DEPTH, &mut all));
    all
}

fn collect(doc: &Doc<'_>, prefix: &str, depth: usize, all: &mut BTreeSet<String>) {
    for (name, value) in doc.iter() {
        let path = match prefix {
            "" => name.as_str().to_owned(),
            prefix => format!("{prefix}.{}", name.as_str()),
        };
        if depth > 1 {
            below(&value, &path, depth, all);
        }
        all.insert(path);
    }
}

fn below(value: &Value<'_>, path: &str, depth: usize, all: &mut BTreeSet<String>) {
    match value {
        Value::Document(inner) => collect(inner, path, depth - 1, all),
        Value::Array(items) => items.iter().for_each(|item| {
            if let Value::Document(inner) = item {
                collect(&inner, path, depth - 1, all);
            }
        }),
        _ => {}
    }
}

/// A value's type in words, in the plural: `strings`, `ObjectIds`.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::String(_) => "strings",
        Value::ObjectId(_) => "ObjectIds",
        Value::Document(_) => "documents",
        Value::DateTime(_) => "dates",
        Value::Bool(_) => "booleans",
        Value::Binary { .. } => "binary values",
        value if value.is_number() => "numbers",
        value => value.type_name(),
    }
}

/// A value as people write it, cut when long.
pub(crate) fn shown(value: &Value<'_>) -> String {
    const LONGEST: usize = 40;
    let text = in_shell(value);
    match text.chars().count() > LONGEST {
        true => format!("{}…", text.chars().take(LONGEST).collect::<String>()),
        false => text,
    }
}
