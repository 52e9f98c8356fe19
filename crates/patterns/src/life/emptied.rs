//! Collections that `dropDatabase` empties instead of dropping them: those that the rules would have made anew at once, index
//! by index. A real MongoDB keeps the files of what was dropped open until its next checkpoint, and test suites drop their
//! database many times between two of them.

use crate::execute::access::Access;
use crate::rule::{IndexNeed, Rule};
use document::filter::Filter;
use document::op::{AdminOp, Count, Namespace, ReadOp};
use document::{Code, Doc, Result, Value};
use std::collections::BTreeMap;

/// With more documents dropping is quicker.
const MOST_DOCUMENTS: u64 = 1_000;

/// What an index may have beside its key and still be as a rule makes it.
const INDEX_FIELDS: &[&str] = &["v", "key", "name", "ns", "unique"];

/// The collections that are, but for their documents, what the rules would make of nothing.
pub(super) async fn collections(at: &mut Access<'_>, rules: &[&Rule]) -> Result<Vec<Namespace>> {
    let mut needed: BTreeMap<Namespace, Vec<IndexNeed>> = BTreeMap::new();
    for index in rules.iter().flat_map(|rule| rule.needed_indexes(rules.iter().copied())) {
        needed.entry(index.ns.clone()).or_default().push(index);
    }
    let mut found = Vec::new();
    for (ns, indexes) in needed {
        if is_plain(at, &ns).await? && has_only(at, &ns, &indexes).await? && is_small(at, &ns).await? {
            found.push(ns);
        }
    }
    Ok(found)
}

/// A collection without options of its own.
async fn is_plain(at: &mut Access<'_>, ns: &Namespace) -> Result<bool> {
    let filter = Filter::equality("name", &Value::from(&*ns.collection));
    let list = AdminOp::ListCollections { db: ns.db.to_string(), filter, name_only: false };
    let rows = at.backend.admin(at.session, at.context, list).await?;
    let is_plain = |row: &Doc<'_>| {
        row.get("type").is_some_and(|kind| kind.as_str() == Some("collection"))
            && matches!(row.get("options"), Some(Value::Document(options)) if options.is_empty())
    };
    Ok(rows.iter().any(is_plain))
}

/// All its indexes are those of the rules, and none is missing.
async fn has_only(at: &mut Access<'_>, ns: &Namespace, needed: &[IndexNeed]) -> Result<bool> {
    let indexes = match at.backend.admin(at.session, at.context, AdminOp::ListIndexes { ns: ns.clone() }).await {
        Ok(indexes) => indexes,
        Err(error) if error.code() == Code::NamespaceNotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_made_by = |index: &Doc<'_>, needed: &IndexNeed| {
        let unique = |index: &Doc<'_>| index.get("unique").is_some_and(|unique| unique.is_truthy());
        index.iter().all(|(name, _)| INDEX_FIELDS.contains(&name.as_str()))
            && index.get("key") == Some(Value::Document(needed.key()))
            && unique(index) == needed.unique
    };
    let is_own = |index: &Doc<'_>| index.get("name").is_some_and(|name| name.as_str() == Some("_id_"));
    let known = |index: &Doc<'_>| is_own(index) || needed.iter().any(|needed| is_made_by(index, needed));
    let present = |needed: &IndexNeed| indexes.iter().any(|index| is_made_by(index, needed));
    Ok(indexes.iter().all(known) && needed.iter().all(present))
}

async fn is_small(at: &mut Access<'_>, ns: &Namespace) -> Result<bool> {
    let limit = Some(MOST_DOCUMENTS + 1);
    let count = Count { ns: ns.clone(), filter: Filter::all(), skip: 0, limit, hint: None };
    let rows = at.all(ReadOp::Count(count)).await?;
    let number = rows.first().and_then(|row| row.get("n").and_then(|number| number.as_i64_exact()));
    Ok(number.and_then(|number| u64::try_from(number).ok()).is_some_and(|number| number <= MOST_DOCUMENTS))
}
