//! Which document a statement is about: by `_id` straight to its key, else by the query's plan; then locked and read again.

use crate::collection::{Target, document_key, lock_and_read};
use crate::read::{Found, Matching, matching};
use crate::work::{Halt, Work};
use document::filter::{Details, Filter, Node, Test};
use document::{Result, Value};

/// The `_id` that the filter asks for, if it can match no other document.
pub(super) fn by_id(filter: &Filter) -> Option<&Value<'static>> {
    fn equality(node: &Node) -> Option<&Value<'static>> {
        match node {
            Node::Field { path, test: Test::Eq(value) } if path.parts.len() == 1 && path.first() == "_id" => {
                match value {
                    // An array asks for its elements too; a regex is equal to itself only by name.
                    Value::Array(_) | Value::Regex { .. } | Value::Undefined | Value::Missing => None,
                    value => Some(value),
                }
            }
            Node::And(nodes) => nodes.iter().find_map(equality),
            _ => None,
        }
    }
    equality(&filter.root)
}

/// The number of a statement for retries.
pub(super) fn statement_id(given: &[i32], index: usize) -> i32 {
    given.get(index).copied().unwrap_or_else(|| i32::try_from(index).unwrap_or(i32::MAX))
}

/// The first matching document, locked, in the version that the work may change.
pub(super) fn first(work: &mut Work, target: &Target<'_>, query: Matching<'_>) -> Result<Option<Found>, Halt> {
    if query.hint.is_none()
        && let Some(id) = by_id(query.filter)
    {
        let Ok(key) = document_key(id) else { return Ok(None) };
        let Some(doc) = lock_and_read(work, target.space()?, &key)? else { return Ok(None) };
        let mut details = Details::default();
        let matches = query.filter.matches_with(&doc, query.env, &mut details)?;
        return Ok(matches.then_some(Found { key, doc, details }));
    }
    loop {
        let found = matching(&work.moment().view, target.collection, query)?.next().transpose()?;
        let Some(found) = found else { return Ok(None) };
        if let Some(found) = again(work, target, query, found)? {
            return Ok(Some(found));
        }
        // It changed before it was locked and is no longer the one: look again.
        (query.env.interrupt)()?;
    }
}

/// Locks a document that a query found and looks whether it still matches.
pub(super) fn again(
    work: &mut Work,
    target: &Target<'_>,
    query: Matching<'_>,
    found: Found,
) -> Result<Option<Found>, Halt> {
    let Some(doc) = lock_and_read(work, target.space()?, &found.key)? else { return Ok(None) };
    if doc == found.doc {
        return Ok(Some(found));
    }
    let mut details = Details::default();
    let matches = query.filter.matches_with(&doc, query.env, &mut details)?;
    Ok(matches.then_some(Found { key: found.key, doc, details }))
}
