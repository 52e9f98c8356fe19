//! findAndModify: one document, found in the order asked, changed or removed, and given back.

use super::stored_document::{self, Target};
use super::target::first;
use super::update::{Single, single};
use super::{Driver, Stop};
use crate::catalog::Collection;
use crate::index::access::text;
use crate::read::{MatchedDocument, Matching};
use document::filter::{Details, Filter};
use document::op::{FindAndModify, Modify, Written};
use document::text::carried::{with_score, without_score};
use document::{Code, Doc, Result, Value};
use std::sync::Arc;

pub(super) async fn run(driver: &mut Driver<'_>, op: &FindAndModify) -> Result<Written> {
    if let Some(done) = driver.retry.as_ref().and_then(|retry| retry.done(op.statement_id)).cloned() {
        let mut written = Written::default();
        done.add_to(&mut written, 0, op.statement_id);
        return Ok(written);
    }
    let upsert = matches!(op.action, Modify::Update { upsert: true, .. });
    let collection = if upsert {
        driver.enter_or_make(&op.ns).await?
    } else {
        match driver.enter(&op.ns).await? {
            Some(collection) => collection,
            None => {
                text::bind(None, &op.ns, &op.filter, None)?;
                return Ok(Written::default());
            }
        }
    };
    let bound = text::bind(Some(&collection), &op.ns, &op.filter, op.hint.as_ref())?;
    let filter = bound.as_ref().unwrap_or(&op.filter);
    let mut written = Written::default();
    let result = match &op.action {
        Modify::Remove => remove(driver, op, filter, &collection, &mut written).await,
        Modify::Update { .. } => update(driver, op, filter, &collection, &mut written).await,
    };
    let details = match result {
        Ok(details) => details,
        Err(Stop::Command(error) | Stop::Statement(error)) => return Err(error),
    };
    if let Some(retry) = &mut driver.retry {
        retry.modified(op.statement_id, &written, written.document.clone());
    }
    if let Some((document, details)) = written.document.take().zip(details) {
        let target = Target { collection: &collection, env: &driver.context.env, bypass: true };
        written.document = Some(project(op, document, &details, &target)?);
    }
    Ok(written)
}

async fn remove(
    driver: &mut Driver<'_>,
    op: &FindAndModify,
    filter: &Filter,
    collection: &Arc<Collection>,
    written: &mut Written,
) -> Result<Option<Details>, Stop> {
    let env = &driver.context.env;
    let target = Target { collection, env, bypass: true };
    loop {
        let removed = first(&mut driver.write_set, &target, query(op, filter, &target)).and_then(|candidate| {
            let Some(candidate) = candidate else { return Ok(None) };
            candidate.claim(&mut driver.write_set, &target)?;
            let found = candidate.found;
            stored_document::remove(&mut driver.write_set, &target, &found.key, &found.doc)?;
            Ok(Some(found))
        });
        match removed {
            Ok(None) => return Ok(None),
            Ok(Some(MatchedDocument { doc, details, .. })) => {
                written.n = 1;
                driver.captured(written, doc.get("_id").unwrap_or(Value::Missing), Some(&doc), None);
                written.document = Some(doc);
                return Ok(Some(details));
            }
            Err(halt) => driver.settle(halt).await?,
        }
    }
}

async fn update(
    driver: &mut Driver<'_>,
    op: &FindAndModify,
    filter: &Filter,
    collection: &Arc<Collection>,
    written: &mut Written,
) -> Result<Option<Details>, Stop> {
    let Modify::Update { update, upsert, return_new } = &op.action else { return Ok(None) };
    driver.admit(collection).await?;
    let target = Target { collection, env: &driver.context.env, bypass: op.bypass_validation };
    let mut tried = false;
    loop {
        match single(&mut driver.write_set, &target, query(op, filter, &target), update, *upsert) {
            Ok(Single::Nothing) => return Ok(None),
            Ok(Single::Updated { id, before, after, details }) => {
                written.n = 1;
                written.modified = u64::from(after.is_some());
                if let Some(after) = &after {
                    driver.captured(written, id, Some(&before), Some(after));
                }
                written.document = Some(if *return_new { after.unwrap_or(before) } else { before });
                return Ok(Some(details));
            }
            Ok(Single::Upserted { id, after }) => {
                written.n = 1;
                driver.captured(written, id.borrow(), None, Some(&after));
                written.upserted.push((0, id));
                written.document = return_new.then_some(after);
                return Ok(Some(Details::default()));
            }
            Err(crate::transaction::write_set::Halt::Failed(error))
                if error.code() == Code::DuplicateKey && *upsert && !tried =>
            {
                tried = true;
            }
            Err(halt) => driver.settle(halt).await?,
        }
    }
}

fn query<'q>(op: &'q FindAndModify, filter: &'q Filter, target: &Target<'q>) -> Matching<'q> {
    Matching { filter, sort: op.sort.as_ref(), hint: op.hint.as_ref(), env: target.env }
}

fn project(op: &FindAndModify, doc: Doc<'static>, details: &Details, target: &Target<'_>) -> Result<Doc<'static>> {
    match &op.projection {
        Some(projection) if projection.reads_score() => {
            let scored = details.text_score.map(|score| with_score(&doc, score));
            let shown = projection.apply(&scored.unwrap_or(doc), details, target.env)?;
            Ok(without_score(shown))
        }
        Some(projection) => projection.apply(&doc, details, target.env),
        None => Ok(doc),
    }
}
