//! Update: one or many documents, with upsert. Each document is changed at most once by a statement.

use super::stored_document::{self, Target};
use super::target::{Candidate, again, first, statement_id};
use super::{Driver, Stop, insert};
use crate::catalog::Collection;
use crate::index::access::text;
use crate::read::{Matching, matching};
use crate::transaction::write_set::{Halt, WriteSet};
use document::filter::{Details, Filter};
use document::op::{UpdateOp, UpdateStatement, WriteError, Written};
use document::update::{Applied, Update};
use document::value::{order, show};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

pub(super) async fn run(driver: &mut Driver<'_>, op: &UpdateOp) -> Result<Written> {
    let mut written = Written::default();
    for (index, statement) in op.statements.iter().enumerate() {
        let number = statement_id(&op.statement_ids, index);
        if let Some(done) = driver.retry.as_ref().and_then(|retry| retry.done(number)).cloned() {
            done.add_to(&mut written, index, number);
            continue;
        }
        match one(driver, op, statement, &mut written).await {
            Ok(outcome) => {
                written.n += outcome.matched;
                written.modified += outcome.modified;
                if let Some(id) = &outcome.upserted {
                    written.upserted.push((index, id.clone()));
                }
                if let Some(retry) = &mut driver.retry {
                    retry.updated(number, outcome.matched, outcome.modified, outcome.upserted);
                }
                driver.breathe().await?;
            }
            Err(Stop::Command(error)) => return Err(error),
            Err(Stop::Statement(error)) => {
                written.errors.push(WriteError { index, error });
                if op.ordered || driver.write_set.is_transaction() {
                    break;
                }
            }
        }
    }
    Ok(written)
}

#[derive(Default)]
struct Outcome {
    matched: u64,
    modified: u64,
    upserted: Option<Value<'static>>,
}

async fn one(
    driver: &mut Driver<'_>,
    op: &UpdateOp,
    statement: &UpdateStatement,
    written: &mut Written,
) -> Result<Outcome, Stop> {
    let collection = if statement.upsert {
        driver.enter_or_make(&op.ns).await?
    } else {
        match driver.enter(&op.ns).await? {
            Some(collection) => collection,
            None => {
                text::bind(None, &op.ns, &statement.filter, None).map_err(Stop::Statement)?;
                return Ok(Outcome::default());
            }
        }
    };
    driver.admit(&collection).await?;
    let bound =
        text::bind(Some(&collection), &op.ns, &statement.filter, statement.hint.as_ref()).map_err(Stop::Statement)?;
    let filter = bound.as_ref().unwrap_or(&statement.filter);
    let mut outcome = Outcome::default();
    if statement.multi {
        many(driver, op, statement, filter, &collection, &mut outcome, written).await?;
        if outcome.matched > 0 || !statement.upsert {
            return Ok(outcome);
        }
    }
    let mut tried = false;
    loop {
        let target = Target { collection: &collection, env: &driver.context.env, bypass: op.bypass_validation };
        let query = Matching { filter, sort: None, hint: statement.hint.as_ref(), env: target.env };
        match single(&mut driver.write_set, &target, query, &statement.update, statement.upsert) {
            Ok(Single::Nothing) => return Ok(outcome),
            Ok(Single::Updated { id, before, after, .. }) => {
                outcome.matched = 1;
                outcome.modified = u64::from(after.is_some());
                if let Some(after) = &after {
                    driver.captured(written, id, Some(&before), Some(after));
                }
                return Ok(outcome);
            }
            Ok(Single::Upserted { id, after }) => {
                outcome.matched = 1;
                driver.captured(written, id.borrow(), None, Some(&after));
                outcome.upserted = Some(id);
                return Ok(outcome);
            }
            // Another upsert was faster: its document may be the one to update.
            Err(Halt::Failed(error)) if error.code() == Code::DuplicateKey && statement.upsert && !tried => {
                tried = true;
            }
            Err(halt) => driver.settle(halt).await?,
        }
    }
}

/// What a statement about one document did.
pub(super) enum Single {
    Nothing,
    Updated { id: Value<'static>, before: Doc<'static>, after: Option<Doc<'static>>, details: Details },
    Upserted { id: Value<'static>, after: Doc<'static> },
}

pub(super) fn single(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    query: Matching<'_>,
    update: &Update,
    upsert: bool,
) -> Result<Single, Halt> {
    match first(write_set, target, query)? {
        Some(candidate) => {
            let after = apply(write_set, target, &candidate, update)?;
            let found = candidate.found;
            let id = found.doc.get("_id").unwrap_or(Value::Missing);
            Ok(Single::Updated { id, before: found.doc, after, details: found.details })
        }
        None if upsert => {
            let doc = update.upsert(query.filter, target.env)?;
            let doc = insert::complete(&doc, target.env, || 0)?.into_owned();
            stored_document::insert(write_set, target, &doc)?;
            let id = doc.get("_id").unwrap_or(Value::Missing);
            Ok(Single::Upserted { id, after: doc })
        }
        None => Ok(Single::Nothing),
    }
}

/// Applies the update; `None` if that changes nothing.
fn apply(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    candidate: &Candidate,
    update: &Update,
) -> Result<Option<Doc<'static>>, Halt> {
    let found = &candidate.found;
    let after = match update.apply(&found.doc, &found.details, target.env)? {
        Applied::Unchanged => return Ok(None),
        Applied::Changed(after) => after,
    };
    let (old, new) = (found.doc.borrow().get("_id"), after.borrow().get("_id").unwrap_or(Value::Missing));
    if old.as_ref().is_some_and(|old| !order::equal(old, &new)) {
        let message = format!(
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
            show::element(&new)
        );
        return Err(Error::new(Code::ImmutableField, message).into());
    }
    candidate.claim(write_set, target)?;
    // MongoDB counts some updates that leave the bytes alone (`$push` with `$sort`); there is nothing to write for them.
    if after != found.doc {
        stored_document::replace(write_set, target, &found.key, &found.doc, &after)?;
    }
    Ok(Some(after))
}

/// All matching documents, found in one moment and changed one after the other.
async fn many(
    driver: &mut Driver<'_>,
    op: &UpdateOp,
    statement: &UpdateStatement,
    filter: &Filter,
    collection: &Arc<Collection>,
    outcome: &mut Outcome,
    written: &mut Written,
) -> Result<(), Stop> {
    let env = &driver.context.env;
    let target = Target { collection, env, bypass: op.bypass_validation };
    let query = Matching { filter, sort: None, hint: statement.hint.as_ref(), env };
    let mut stream = matching(&driver.write_set.moment().snapshot, collection, query)?;
    while let Some(found) = stream.next().transpose()? {
        loop {
            let changed = again(&mut driver.write_set, &target, query, found.clone()).and_then(|candidate| {
                let Some(candidate) = candidate else { return Ok(None) };
                let after = apply(&mut driver.write_set, &target, &candidate, &statement.update)?;
                Ok(Some((candidate.found.doc, after)))
            });
            match changed {
                Ok(None) => {}
                Ok(Some((before, after))) => {
                    outcome.matched += 1;
                    if let Some(after) = after {
                        outcome.modified += 1;
                        let id = before.get("_id").unwrap_or(Value::Missing);
                        driver.captured(written, id, Some(&before), Some(&after));
                    }
                }
                Err(halt) => {
                    driver.settle(halt).await?;
                    continue;
                }
            }
            break;
        }
        driver.breathe().await?;
    }
    Ok(())
}
