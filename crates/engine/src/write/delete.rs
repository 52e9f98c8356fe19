//! Delete: the first matching document, or all.

use super::stored_document::{self, Target};
use super::target::{again, first, statement_id};
use super::{Driver, Stop};
use crate::catalog::Collection;
use crate::index::access::text;
use crate::read::{Matching, matching};
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, WriteError, Written};
use document::{Result, Value};
use std::sync::Arc;

pub(super) async fn run(driver: &mut Driver<'_>, op: &Delete) -> Result<Written> {
    let mut written = Written::default();
    for (index, statement) in op.statements.iter().enumerate() {
        let number = statement_id(&op.statement_ids, index);
        if let Some(done) = driver.retry.as_ref().and_then(|retry| retry.done(number)).cloned() {
            done.add_to(&mut written, index, number);
            continue;
        }
        let collection = driver.enter(&op.ns).await?;
        let bound = text::bind(collection.as_deref(), &op.ns, &statement.filter, statement.hint.as_ref());
        let result = match (collection, bound) {
            (_, Err(error)) => Err(Stop::Statement(error)),
            (None, _) => Ok(0),
            (Some(collection), Ok(bound)) => {
                let filter = bound.as_ref().unwrap_or(&statement.filter);
                match statement.multi {
                    true => many(driver, statement, filter, &collection, &mut written).await,
                    false => one(driver, statement, filter, &collection, &mut written).await,
                }
            }
        };
        match result {
            Ok(deleted) => {
                written.n += deleted;
                if let Some(retry) = &mut driver.retry {
                    retry.deleted(number, deleted);
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

async fn one(
    driver: &mut Driver<'_>,
    statement: &DeleteStatement,
    filter: &Filter,
    collection: &Arc<Collection>,
    written: &mut Written,
) -> Result<u64, Stop> {
    let env = &driver.context.env;
    let target = Target { collection, env, bypass: true };
    let query = Matching { filter, sort: None, hint: statement.hint.as_ref(), env };
    loop {
        let removed = first(&mut driver.write_set, &target, query).and_then(|candidate| {
            let Some(candidate) = candidate else { return Ok(None) };
            candidate.claim(&mut driver.write_set, &target)?;
            let found = candidate.found;
            stored_document::remove(&mut driver.write_set, &target, &found.key, &found.doc)?;
            Ok(Some(found.doc))
        });
        match removed {
            Ok(None) => return Ok(0),
            Ok(Some(doc)) => {
                driver.captured(written, doc.get("_id").unwrap_or(Value::Missing), Some(&doc), None);
                return Ok(1);
            }
            Err(halt) => driver.settle(halt).await?,
        }
    }
}

async fn many(
    driver: &mut Driver<'_>,
    statement: &DeleteStatement,
    filter: &Filter,
    collection: &Arc<Collection>,
    written: &mut Written,
) -> Result<u64, Stop> {
    let env = &driver.context.env;
    let target = Target { collection, env, bypass: true };
    let query = Matching { filter, sort: None, hint: statement.hint.as_ref(), env };
    let mut stream = matching(&driver.write_set.moment().snapshot, collection, query)?;
    let mut deleted = 0;
    while let Some(found) = stream.next().transpose()? {
        loop {
            let removed = again(&mut driver.write_set, &target, query, found.clone()).and_then(|candidate| {
                let Some(candidate) = candidate else { return Ok(None) };
                candidate.claim(&mut driver.write_set, &target)?;
                let found = candidate.found;
                stored_document::remove(&mut driver.write_set, &target, &found.key, &found.doc)?;
                Ok(Some(found.doc))
            });
            match removed {
                Ok(None) => {}
                Ok(Some(doc)) => {
                    deleted += 1;
                    driver.captured(written, doc.get("_id").unwrap_or(Value::Missing), Some(&doc), None);
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
    Ok(deleted)
}
