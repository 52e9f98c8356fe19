//! The document that an upsert begins with: what the filter says by plain equality.

use super::array_filter::refuse_expressions;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::filter::{Filter, Node, Test};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value};

/// An upsert's filter may not compute: MongoDB refuses it before it looks for a document.
pub fn check_filter(filter: &Filter) -> Result<()> {
    refuse_expressions(&filter.source, "in the query predicate for an upsert")
}

/// All equalities of the filter as a document.
pub(super) fn from_filter(filter: &Filter) -> Result<Doc<'static>> {
    let mut equalities = Vec::new();
    collect(&filter.root, &mut equalities);
    let mut named: Vec<(String, &Path, &Value<'static>)> =
        equalities.into_iter().map(|(path, value)| (path.dotted(), path, value)).collect();
    // Stable: of two equal paths the first is the one that was there.
    named.sort_by(|a, b| a.0.cmp(&b.0));
    for pair in named.windows(2) {
        let [(first, first_path, _), (second, second_path, _)] = pair else { continue };
        if first == second {
            return Err(not_single(&format!("path '{first}' is matched twice")));
        }
        if first_path.is_prefix_of(second_path) {
            return Err(not_single(&format!("both paths '{second}' and '{first}' are matched")));
        }
    }
    // Between a path and one below it others may sort: `a`, `a-b`, `a.c`.
    for (dotted, path, _) in &named {
        if let Some((other, ..)) = named.iter().find(|(_, other, _)| *other != *path && path.is_prefix_of(other)) {
            return Err(not_single(&format!("both paths '{other}' and '{dotted}' are matched")));
        }
    }
    if named.iter().any(|(dotted, ..)| dotted.is_empty()) {
        return Err(Error::new(Code::IllegalOperation, "Cannot call setValue on the root object"));
    }
    let mut writer = DocWriter::new();
    write_level(&mut writer, &named, 0);
    Ok(writer.finish())
}

/// The `_id` that a replacement takes over from the filter.
pub(super) fn id_from_filter(filter: &Filter) -> Result<Option<Value<'static>>> {
    let mut equalities = Vec::new();
    collect(&filter.root, &mut equalities);
    let mut id = None;
    for (path, value) in equalities {
        if path.first() != "_id" {
            continue;
        }
        if path.parts.len() > 1 {
            return Err(Error::new(
                Code::NotExactValueField,
                format!("field at '_id' must be exactly specified, field at sub-path '{path}'found"),
            ));
        }
        if id.replace(value.clone()).is_some() {
            return Err(not_single("path '_id' is matched twice"));
        }
    }
    Ok(id)
}

fn not_single(what: &str) -> Error {
    Error::new(Code::NotSingleValueField, format!("cannot infer query fields to set, {what}"))
}

/// What must be equal: `$eq`, `$and`, and lists (`$in`, `$or`) with one entry.
fn collect<'f>(node: &'f Node, equalities: &mut Vec<(&'f Path, &'f Value<'static>)>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|node| collect(node, equalities)),
        Node::Or(nodes) => {
            if let [only] = &**nodes {
                collect(only, equalities);
            }
        }
        Node::Field { path, test } => collect_test(path, test, equalities),
        Node::Nor(_) | Node::Expr(_) | Node::Whole(_) => {}
    }
}

fn collect_test<'f>(path: &'f Path, test: &'f Test, equalities: &mut Vec<(&'f Path, &'f Value<'static>)>) {
    match test {
        Test::Eq(value) => equalities.push((path, value)),
        Test::In(set) => {
            if let ([value], true) = (&*set.values, set.regexes.is_empty()) {
                equalities.push((path, value));
            }
        }
        Test::All(tests) => tests.iter().for_each(|test| collect_test(path, test, equalities)),
        _ => {}
    }
}

/// Writes the fields below `depth` steps; `rows` are sorted and share those steps.
fn write_level(writer: &mut DocWriter, rows: &[(String, &Path, &Value<'static>)], depth: usize) {
    let mut rest = rows;
    while let Some((_, path, value)) = rest.first() {
        let Some(part) = path.parts.get(depth) else { break };
        let same =
            |row: &&(String, &Path, &Value<'static>)| row.1.parts.get(depth).is_some_and(|p| p.name == part.name);
        let count = rest.iter().take_while(same).count();
        let (group, others) = rest.split_at_checked(count.max(1)).unwrap_or((rest, &[]));
        if path.parts.len() == depth + 1 {
            writer.append(&part.name, value);
        } else {
            writer.start_document(&part.name);
            write_level(writer, group, depth + 1);
            writer.end();
        }
        rest = others;
    }
}
