//! What the client says about the index to use: `hint`, and bounds by hand with `min` and `max`.

use super::candidate::Candidate;
use super::choose::Query;
use super::plan::{ByHand, IndexScan};
use super::predicate::Conditions;
use super::ranges::{KeyRange, Ranges, place_values};
use crate::catalog::{Collection, Index};
use crate::store::keys::{after_prefix, index_prefix};
use document::filter::Node;
use document::op::{Hint, SortSpec};
use document::value::{order, show};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// The index that the hint names; `None` for `$natural`.
pub(super) fn hinted(collection: &Collection, hint: &Hint, query: &Query<'_>) -> Result<Option<Arc<Index>>> {
    let usable = |index: &&Arc<Index>| index.ready && !index.hidden;
    let found = match hint {
        Hint::Natural { .. } => return Ok(None),
        Hint::Name(name) => collection.index(name).filter(usable),
        Hint::Keys(keys) => {
            collection.indexes.iter().filter(usable).find(|index| same_pattern(&index.key_pattern(), keys))
        }
    };
    match found {
        Some(index) => Ok(Some(index.clone())),
        None => {
            Err(planner(Code::BadValue, collection, query, "hint provided does not correspond to an existing index"))
        }
    }
}

fn same_pattern(left: &Doc<'_>, right: &Doc<'_>) -> bool {
    order::compare_documents(left, right).is_eq()
}

/// The errors of planning, in MongoDB's words.
pub(super) fn planner(code: Code, collection: &Collection, query: &Query<'_>, why: &str) -> Error {
    let (ns, mut tree) = (&collection.ns, String::new());
    write_tree(&query.filter.root, 0, &mut tree);
    let sort = query.sort.map_or_else(Doc::empty, SortSpec::to_document);
    Error::new(
        code,
        format!(
            "error processing query: ns={ns}Tree: {tree}Sort: {}\nProj: {{}}\n planner returned error :: caused by :: {why}",
            show::document(&sort)
        ),
    )
}

/// A filter as MongoDB prints it for debugging; what has no form of its own is printed as a query.
fn write_tree(node: &Node, depth: usize, tree: &mut String) {
    tree.push_str(&"    ".repeat(depth));
    let (name, inner) = match node {
        Node::And(nodes) => ("$and", nodes.as_slice()),
        Node::Or(nodes) => ("$or", nodes.as_slice()),
        Node::Nor(nodes) => ("$nor", nodes.as_slice()),
        Node::Field { path, test } => {
            let words = test.to_query();
            let words: Vec<String> =
                words.iter().map(|(name, value)| format!("{name} {}", show::element(&value))).collect();
            tree.push_str(&format!("{path} {}\n", words.join(" ")));
            return;
        }
        other => {
            match other.text() {
                Some(text) => tree.push_str(&format!(
                    "TEXT : query={}, language={}, caseSensitive={}, diacriticSensitive={}, tag=NULL\n",
                    text.search.search,
                    text.language(),
                    u8::from(text.search.case_sensitive),
                    u8::from(text.search.diacritic_sensitive)
                )),
                None => tree.push_str(&format!("{}\n", show::document(&other.to_query()))),
            }
            return;
        }
    };
    tree.push_str(name);
    tree.push('\n');
    inner.iter().for_each(|node| write_tree(node, depth + 1, tree));
}

/// The hinted index from `min` (inclusive) to `max` (exclusive).
pub(super) fn by_hand(
    collection: &Collection,
    query: &Query<'_>,
    conditions: &Conditions<'_>,
    hint: Option<&Hint>,
    bounds: ByHand,
) -> Result<IndexScan> {
    let hint = hint.filter(|hint| !matches!(hint, Hint::Natural { .. }));
    let Some(index) = hint.map(|hint| hinted(collection, hint, query)).transpose()?.flatten() else {
        let why = "When using min()/max() a hint of which index to use must be provided";
        return Err(planner(Code::Location(51173), collection, query, why));
    };
    let place = |given: &Doc<'_>| {
        let values: Vec<Value<'_>> = given.iter().map(|(_, value)| value).collect();
        let names_fit =
            given.iter().map(|(name, _)| name.to_string()).eq(index.keys.iter().map(|key| key.path.dotted()));
        if !names_fit {
            let why = "The index chosen is not compatible with min/max";
            return Err(planner(Code::Location(51174), collection, query, why));
        }
        Ok(place_values(index.id, &values, &index.keys.iter().map(|key| key.descending).collect::<Vec<_>>()))
    };
    let prefix = index_prefix(index.id).to_vec();
    let from = bounds.min.as_ref().map(place).transpose()?.unwrap_or_else(|| prefix.clone());
    let to = match bounds.max.as_ref().map(place).transpose()? {
        Some(to) => to,
        None => after_prefix(&prefix).unwrap_or_default(),
    };
    if from >= to {
        let why = "The value provided for min() does not come before the value provided for max() in the hinted index";
        return Err(planner(Code::Location(51175), collection, query, why));
    }
    let mut candidate = Candidate::new(&index, &Conditions { nodes: conditions.nodes.clone(), predicates: Vec::new() });
    candidate.unproven.fill(true);
    let mut scan = IndexScan::new(candidate, false, query.filter);
    scan.ranges = Ranges { ranges: vec![KeyRange { from, to }], ..Ranges::default() };
    scan.by_hand = Some(bounds);
    Ok(scan)
}
