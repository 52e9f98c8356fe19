//! The best value of one key's children by an index: one seek.
//!
//! An index has an array by its elements, an accumulator compares it as a whole. So arrays at the path, or on the way to it, are
//! looked up apart, by indexes that have nothing else: mostly they are empty.

use super::Extreme;
use crate::fields::fold::Shortcut;
use crate::mql::{call, call_with, document, field, object};
use crate::rule::Link;
use crate::rule::needs::{IndexNeed, Needs, is_narrowed, sought};
use document::op::Namespace;
use document::value::Path;
use document::{Doc, Value};

pub(super) fn shortcut(which: Extreme, path: &Path) -> Shortcut {
    let dotted = path.dotted();
    let direction = if which == Extreme::Min { 1 } else { -1 };
    let single = call_with("$not", [call("$isArray", field(&dotted))]);
    let plain = vec![
        call("$match", object([(&*dotted, call("$ne", Value::Null)), ("$expr", single)])),
        call("$sort", object([(&*dotted, Value::Int32(direction))])),
        call("$limit", Value::Int32(1)),
        call("$project", object([("expected", field(&dotted))])),
    ];
    let best = |of: &str| call(which.operator(), field(of));
    let mut branches = vec![plain];
    for prefix in prefixes(path) {
        let group = object([("_id", Value::Null), ("expected", best(&dotted))]);
        branches.push(vec![call("$match", Value::Document(is_array(&prefix))), call("$group", group)]);
    }
    let behind = vec![call("$group", object([("_id", field("_id")), ("expected", best("expected"))]))];
    Shortcut { branches, behind }
}

/// The children of a key by their value, and those with arrays.
pub(super) fn needs(path: &Path, host: &Namespace, link: &Link) -> Needs {
    let mut needs = Needs::of_link_and_value(host, link, path);
    if is_narrowed(link) {
        let by = sought(&link.foreign);
        let keys = || by.iter().cloned().chain([Path::new("_id")]);
        let apart =
            |prefix: String| IndexNeed { partial: Some(is_array(&prefix)), ..IndexNeed::lookup(&link.source, keys()) };
        needs.indexes.extend(prefixes(path).filter(|prefix| prefix != "_id").map(apart));
    }
    needs
}

/// `a`, `a.b`, …: where an array may be.
fn prefixes(path: &Path) -> impl Iterator<Item = String> {
    (1..=path.parts.len()).map(|length| {
        let parts: Vec<&str> = path.parts.iter().take(length).map(|part| &*part.name).collect();
        parts.join(".")
    })
}

fn is_array(path: &str) -> Doc<'static> {
    document([(path, call("$type", Value::from("array")))])
}
