//! What the client says about the index to use: `hint`, and bounds by hand with `min` and `max`.

use super::candidate::Candidate;
use super::plan::{ByHand, IndexScan};
use super::predicate::Conditions;
use super::ranges::{KeyRange, Ranges, place_values};
use crate::catalog::{Collection, Index};
use crate::keys::after_prefix;
use crate::view::index_prefix;
use document::filter::Filter;
use document::op::Hint;
use document::value::order;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// The index that the hint names; nothing for `$natural`.
pub(super) fn hinted(collection: &Collection, hint: &Hint) -> Result<Option<Arc<Index>>> {
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
        None => Err(planner(Code::BadValue, collection, "hint provided does not correspond to an existing index")),
    }
}

fn same_pattern(left: &Doc<'_>, right: &Doc<'_>) -> bool {
    order::compare_documents(left, right).is_eq()
}

/// The errors of planning, in MongoDB's words.
pub(super) fn planner(code: Code, collection: &Collection, why: &str) -> Error {
    let ns = &collection.ns;
    Error::new(code, format!("error processing query: ns={ns} planner returned error :: caused by :: {why}"))
}

/// The hinted index from `min` (inclusive) to `max` (exclusive).
pub(super) fn by_hand(
    collection: &Collection,
    filter: &Filter,
    conditions: &Conditions<'_>,
    hint: Option<&Hint>,
    bounds: ByHand,
) -> Result<IndexScan> {
    let hint = hint.filter(|hint| !matches!(hint, Hint::Natural { .. }));
    let Some(index) = hint.map(|hint| hinted(collection, hint)).transpose()?.flatten() else {
        let why = "When using min()/max() a hint of which index to use must be provided";
        return Err(planner(Code::Location(51173), collection, why));
    };
    let place = |given: &Doc<'_>| {
        let values: Vec<Value<'_>> = given.iter().map(|(_, value)| value).collect();
        let names_fit =
            given.iter().map(|(name, _)| name.to_string()).eq(index.keys.iter().map(|key| key.path.dotted()));
        if !names_fit {
            let why = "The index chosen is not compatible with min/max";
            return Err(planner(Code::Location(51174), collection, why));
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
        return Err(planner(Code::Location(51175), collection, why));
    }
    let mut candidate = Candidate::new(&index, &Conditions { nodes: conditions.nodes.clone(), predicates: Vec::new() });
    candidate.unproven.fill(true);
    let mut scan = IndexScan::new(candidate, false, filter);
    scan.ranges = Ranges { ranges: vec![KeyRange { from, to }], ..Ranges::default() };
    scan.by_hand = Some(bounds);
    Ok(scan)
}
