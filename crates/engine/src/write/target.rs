//! Which document a statement is about: by `_id` straight to its key, else by the query's plan; then locked and read again.

use super::stored_document::{Target, claim, document_key, lock_and_read};
use crate::read::{MatchedDocument, Matching, Summary, matching};
use crate::store::keys::document;
use crate::transaction::locks::{LockAnswer, LockKey};
use crate::transaction::write_set::{Halt, WriteSet};
use bytes::Bytes;
use document::filter::{Details, Filter, Node, Test};
use document::{Result, Value};
use std::sync::Arc;

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

/// A document that a statement may change.
pub(super) struct Candidate {
    pub(super) found: MatchedDocument,
    hold: Hold,
}

enum Hold {
    /// Locked, in its newest version.
    Locked,
    /// In a transaction: as its moment has it, not locked yet. A statement that changes nothing conflicts with nobody.
    Unclaimed,
    /// Somebody else has it; this is what everybody sees meanwhile.
    Blocked(LockKey),
}

impl Candidate {
    /// Called before the document is changed.
    pub(super) fn claim(&self, write_set: &mut WriteSet, target: &Target<'_>) -> Result<(), Halt> {
        match self.hold {
            Hold::Locked => Ok(()),
            Hold::Unclaimed => claim(write_set, target.space()?, &self.found.key),
            Hold::Blocked(key) => Err(Halt::Blocked(key)),
        }
    }
}

/// The first matching document.
pub(super) fn first(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    query: Matching<'_>,
) -> Result<Option<Candidate>, Halt> {
    if query.hint.is_none()
        && !query.filter.has_text()
        && let Some(id) = by_id(query.filter)
    {
        let Ok(key) = document_key(id) else { return Ok(None) };
        return one(write_set, target, query, key);
    }
    loop {
        let found = matching(&write_set.moment().snapshot, target.collection, query)?.next().transpose()?;
        let Some(found) = found else { return Ok(None) };
        if let Some(candidate) = again(write_set, target, query, found)? {
            return Ok(Some(candidate));
        }
        // It changed before it was locked and is no longer the one: look again.
        (query.env.interrupt)()?;
    }
}

/// The document under `key`, if it matches. A statement that matches no document takes no lock and waits for none.
fn one(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    query: Matching<'_>,
    key: Bytes,
) -> Result<Option<Candidate>, Halt> {
    let space = target.space()?;
    target.collection.looked_up();
    let examined = query.env.examined.as_deref();
    if let Some(examined) = examined {
        examined.planned(&Arc::new(Summary::by_id()));
    }
    let candidate = |key: Bytes, value: Option<Bytes>, hold: Hold| -> Result<Option<Candidate>> {
        let Some(doc) = value.map(document).transpose()? else { return Ok(None) };
        if let Some(examined) = examined {
            examined.add(1, 1);
        }
        let mut details = Details::default();
        let matches = query.filter.matches_with(&doc, query.env, &mut details)?;
        Ok(matches.then_some(Candidate { found: MatchedDocument { key, doc, details }, hold }))
    };
    if write_set.is_transaction() {
        let value = write_set.seen(space, &key)?;
        return Ok(candidate(key, value, Hold::Unclaimed)?);
    }
    let lock = LockKey::entry(space.id(), &key);
    let Ok(asked) = write_set.lock(lock) else {
        let value = write_set.seen(space, &key)?;
        return Ok(candidate(key, value, Hold::Blocked(lock))?);
    };
    let value = write_set.current(space, &key)?;
    let found = candidate(key, value, Hold::Locked)?;
    if found.is_none() && asked == LockAnswer::Granted {
        write_set.unlock(lock);
    }
    Ok(found)
}

/// Locks a document that a query found and looks whether it still matches.
pub(super) fn again(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    query: Matching<'_>,
    found: MatchedDocument,
) -> Result<Option<Candidate>, Halt> {
    if write_set.is_transaction() {
        return Ok(Some(Candidate { found, hold: Hold::Unclaimed }));
    }
    let doc = match lock_and_read(write_set, target.space()?, &found.key) {
        Ok(doc) => doc,
        Err(Halt::Blocked(key)) => return Ok(Some(Candidate { found, hold: Hold::Blocked(key) })),
        Err(halt) => return Err(halt),
    };
    let Some(doc) = doc else { return Ok(None) };
    if doc == found.doc {
        return Ok(Some(Candidate { found, hold: Hold::Locked }));
    }
    let mut details = Details::default();
    let matches = query.filter.matches_with(&doc, query.env, &mut details)?;
    Ok(matches.then_some(Candidate { found: MatchedDocument { key: found.key, doc, details }, hold: Hold::Locked }))
}
