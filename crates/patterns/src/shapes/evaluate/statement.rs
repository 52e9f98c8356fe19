//! One client's statement about one logical document, in a transaction: update, delete, findAndModify (R17).

use crate::rule::Stack;
use crate::rule::shape::{LogicalFate, Stop, StoredAccess};
use crate::shapes::evaluate::rewrite::{StoredRewrites, updated};
use crate::shapes::evaluate::{Match, first, insert};
use document::filter::{Details, Filter};
use document::op::{DeleteStatement, FindAndModify, Modify, UpdateStatement, WriteOp, Written};
use document::update::Update;
use document::{Doc, Result, Value};

/// Runs the statement at that place.
pub(crate) async fn run(at: &mut dyn StoredAccess, stack: &Stack, op: &WriteOp, index: usize) -> Result<Written, Stop> {
    match op {
        WriteOp::Update(op) => match op.statements.get(index) {
            Some(statement) => update(at, stack, statement, index, op.bypass_validation).await,
            None => Ok(Written::default()),
        },
        WriteOp::Delete(op) => match op.statements.get(index) {
            Some(statement) => delete(at, stack, statement, index).await,
            None => Ok(Written::default()),
        },
        WriteOp::FindAndModify(op) => find_and_modify(at, stack, op, index).await,
        WriteOp::Insert(_) => Ok(Written::default()),
    }
}

async fn update(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    statement: &UpdateStatement,
    index: usize,
    bypass: bool,
) -> Result<Written, Stop> {
    let found = first(at, stack, &statement.filter, None).await.map_err(Stop::of(index))?;
    let Some(found) = found else {
        return match statement.upsert {
            true => Ok(upsert(at, stack, &statement.filter, &statement.update, index, bypass).await?.0),
            false => Ok(Written::default()),
        };
    };
    let after = updated(stack, &found, &statement.update, &at.context().env).map_err(Stop::of(index))?;
    let modified = u64::from(after.is_some());
    if let Some(after) = after {
        becomes(at, stack, &found, LogicalFate::Becomes(after), index, bypass).await?;
    }
    Ok(Written { n: 1, modified, ..Written::default() })
}

async fn delete(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    statement: &DeleteStatement,
    index: usize,
) -> Result<Written, Stop> {
    let found = first(at, stack, &statement.filter, None).await.map_err(Stop::of(index))?;
    let Some(found) = found else { return Ok(Written::default()) };
    becomes(at, stack, &found, LogicalFate::Gone, index, false).await?;
    Ok(Written { n: 1, ..Written::default() })
}

async fn find_and_modify(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    op: &FindAndModify,
    index: usize,
) -> Result<Written, Stop> {
    let found = first(at, stack, &op.filter, op.sort.as_ref()).await.map_err(Stop::of(index))?;
    let mut written = Written::default();
    let mut details = Details::default();
    match (&op.action, found) {
        (Modify::Remove, Some(found)) => {
            becomes(at, stack, &found, LogicalFate::Gone, index, false).await?;
            written.n = 1;
            (written.document, details) = (Some(found.doc), found.details);
        }
        (Modify::Update { update, return_new, .. }, Some(found)) => {
            let after = updated(stack, &found, update, &at.context().env).map_err(Stop::of(index))?;
            (written.n, written.modified) = (1, u64::from(after.is_some()));
            let mut shown = found.doc.clone();
            if let Some(after) = after {
                if *return_new {
                    shown = as_read(stack, &after).map_err(Stop::of(index))?;
                }
                becomes(at, stack, &found, LogicalFate::Becomes(after), index, op.bypass_validation).await?;
            }
            (written.document, details) = (Some(shown), found.details);
        }
        (Modify::Update { update, upsert: true, return_new }, None) => {
            let (made, id) = upsert(at, stack, &op.filter, update, index, op.bypass_validation).await?;
            written = made;
            if *return_new {
                // As it is now: what it was added to may have been there.
                let made = first(at, stack, &Filter::equality("_id", &id), None).await.map_err(Stop::of(index))?;
                written.document = made.map(|made| made.doc);
            }
        }
        (Modify::Remove | Modify::Update { .. }, None) => {}
    }
    if let (Some(document), Some(projection)) = (&written.document, &op.projection) {
        let shown = projection.apply(document, &details, &at.context().env).map_err(Stop::of(index))?;
        written.document = Some(shown);
    }
    Ok(written)
}

async fn becomes(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    found: &Match,
    fate: LogicalFate,
    index: usize,
    bypass: bool,
) -> Result<(), Stop> {
    let mut rewrites = StoredRewrites::default();
    rewrites.add(stack, found.place, &found.stored, vec![(found.index, fate)]).map_err(Stop::of(index))?;
    rewrites.write(at, stack, index, bypass).await
}

/// Inserts what the filter and the update say; returns the `_id` too.
pub(super) async fn upsert(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    filter: &Filter,
    update: &Update,
    index: usize,
    bypass: bool,
) -> Result<(Written, Value<'static>), Stop> {
    let mut document = update.upsert(filter, &at.context().env).map_err(Stop::of(index))?;
    if let Some(shape) = stack.shape() {
        document = shape.with_key(document);
    }
    let id = insert::add(at, stack, index, document, bypass).await?.map_err(Stop::of(index))?;
    let written = Written { n: 1, upserted: vec![(index, id.clone())], ..Written::default() };
    Ok((written, id))
}

/// The document as it will be read.
fn as_read(stack: &Stack, doc: &Doc<'static>) -> Result<Doc<'static>> {
    stack.shape().map_or_else(|| Ok(doc.clone()), |shape| shape.as_read(doc))
}
