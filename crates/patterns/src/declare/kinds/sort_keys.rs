//! `sort`: the order of children, as `{ path: 1 }` or `{ path: -1 }`, several of them in their order.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{KeyDef, ValueType};
use crate::declare::names;
use crate::declare::tree::NodeContent;
use crate::mql;
use crate::rule::needs::Direction;
use document::value::Path;
use document::{Doc, Value};

pub(super) const SORT_KEY: KeyDef = KeyDef {
    name: "sort",
    help: "The order of the children: from field to 1 (ascending) or -1 (descending); equal ones are ordered by `_id`.",
    shape: ValueType::Order,
};

/// An index has at most 32 keys, of which `by` and `_id` are two.
const MOST: usize = 30;

const EXAMPLE: &str = "{ date: -1 }";

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Vec<(Path, Direction)>> {
    keys(item, EXAMPLE, "sorted by", findings)
}

/// The key of an index, `{ isbn: 1 }`, is written as an order is.
pub(super) fn read_key(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Vec<(Path, Direction)>> {
    keys(item, "{ isbn: 1 }", "indexed", findings)
}

fn keys(item: &BlockItem<'_>, example: &str, done: &str, findings: &mut Findings) -> Option<Vec<(Path, Direction)>> {
    let NodeContent::Map(entries) = &item.node.content else {
        item.expected("a map", example, findings);
        return None;
    };
    let block = Block { entries, at: item.at.clone() };
    let before = findings.errors();
    let mut keys: Vec<(Path, Direction)> = Vec::new();
    for key in block.items() {
        let at = block.key_at(key.key);
        let name = key.key.escape_debug();
        if keys.last().is_some_and(|(path, _)| path.dotted() == "_id") {
            findings.error(&at, format!("`{name}` stands behind `_id`, which leaves nothing to order"), "leave it out");
        }
        let path = match names::path(key.key) {
            Ok(path) => path,
            Err(reason) => {
                let message = format!("`{name}` cannot be {done}: {reason}");
                findings.error(&at, message, format!("write `{}: {example}`", item.key));
                continue;
            }
        };
        let number = match &key.node.content {
            NodeContent::Scalar(value) if value.is_number() => value.as_i64_exact(),
            _ => None,
        };
        match number {
            Some(1) => keys.push((path, Direction::Ascending)),
            Some(-1) => keys.push((path, Direction::Descending)),
            _ => {
                let hint = format!("write `{name}: 1` for the smallest first, `{name}: -1` for the largest first");
                findings.error(&key.at, format!("the direction of `{name}` must be 1 or -1"), hint);
            }
        }
    }
    if findings.errors() == before && keys.is_empty() {
        findings.error(&item.at, format!("`{}` is empty", item.key), format!("write `{}: {example}`", item.key));
    }
    if keys.len() > MOST {
        let message = format!("`{}` has {} keys, and an index serves {MOST}", item.key, keys.len());
        findings.error(&item.at, message, "order by fewer fields");
    }
    (findings.errors() == before).then_some(keys)
}

/// As it is declared.
pub(super) fn document(keys: &[(Path, Direction)]) -> Doc<'static> {
    let keys: Vec<(String, i32)> = keys.iter().map(|(path, direction)| (path.dotted(), direction.number())).collect();
    mql::document(keys.iter().map(|(path, number)| (&**path, Value::Int32(*number))))
}
