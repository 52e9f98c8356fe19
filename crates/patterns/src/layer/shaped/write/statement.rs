//! One client's statement about one document, in a transaction: update, delete, findAndModify (R17).

use crate::layer::shaped::write::candidates::{Found, first};
use crate::layer::shaped::write::insert;
use crate::layer::shaped::write::insert::logical;
use crate::layer::shaped::write::rewrite::{Changes, Fate, updated};
use crate::layer::shaped::write::steps::{Steps, Stop};
use document::filter::{Details, Filter};
use document::op::{DeleteStatement, FindAndModify, Modify, UpdateStatement, WriteOp, Written};
use document::update::Update;
use document::{Doc, DocWriter, Result, Value};

/// Runs the statement at that place.
pub(super) async fn run(steps: &mut Steps<'_>, op: &WriteOp, at: usize) -> Result<Written, Stop> {
    match op {
        WriteOp::Update(op) => match op.statements.get(at) {
            Some(statement) => update(steps, statement, at, op.bypass_validation).await,
            None => Ok(Written::default()),
        },
        WriteOp::Delete(op) => match op.statements.get(at) {
            Some(statement) => delete(steps, statement, at).await,
            None => Ok(Written::default()),
        },
        WriteOp::FindAndModify(op) => find_and_modify(steps, op, at).await,
        WriteOp::Insert(_) => Ok(Written::default()),
    }
}

async fn update(steps: &mut Steps<'_>, statement: &UpdateStatement, at: usize, bypass: bool) -> Result<Written, Stop> {
    let found = first(steps, &statement.filter, None).await.map_err(Stop::of(at))?;
    let Some(found) = found else {
        return match statement.upsert {
            true => Ok(upsert(steps, &statement.filter, &statement.update, at, bypass).await?.0),
            false => Ok(Written::default()),
        };
    };
    let after = updated(steps.shaped, &found, &statement.update, &steps.context.env).map_err(Stop::of(at))?;
    let modified = u64::from(after.is_some());
    if let Some(after) = after {
        becomes(steps, &found, Fate::Becomes(after), at, bypass).await?;
    }
    Ok(Written { n: 1, modified, ..Written::default() })
}

async fn delete(steps: &mut Steps<'_>, statement: &DeleteStatement, at: usize) -> Result<Written, Stop> {
    let found = first(steps, &statement.filter, None).await.map_err(Stop::of(at))?;
    let Some(found) = found else { return Ok(Written::default()) };
    becomes(steps, &found, Fate::Gone, at, false).await?;
    Ok(Written { n: 1, ..Written::default() })
}

async fn find_and_modify(steps: &mut Steps<'_>, op: &FindAndModify, at: usize) -> Result<Written, Stop> {
    let found = first(steps, &op.filter, op.sort.as_ref()).await.map_err(Stop::of(at))?;
    let mut written = Written::default();
    let mut details = Details::default();
    match (&op.action, found) {
        (Modify::Remove, Some(found)) => {
            becomes(steps, &found, Fate::Gone, at, false).await?;
            written.n = 1;
            (written.document, details) = (Some(found.doc), found.details);
        }
        (Modify::Update { update, return_new, .. }, Some(found)) => {
            let after = updated(steps.shaped, &found, update, &steps.context.env).map_err(Stop::of(at))?;
            (written.n, written.modified) = (1, u64::from(after.is_some()));
            let mut shown = found.doc.clone();
            if let Some(after) = after {
                if *return_new {
                    shown = as_read(steps, &after).map_err(Stop::of(at))?;
                }
                becomes(steps, &found, Fate::Becomes(after), at, op.bypass_validation).await?;
            }
            (written.document, details) = (Some(shown), found.details);
        }
        (Modify::Update { update, upsert: true, return_new }, None) => {
            let (made, id) = upsert(steps, &op.filter, update, at, op.bypass_validation).await?;
            written = made;
            if *return_new {
                // As it is now: what it was added to may have been there.
                let made = first(steps, &Filter::equality("_id", &id), None).await.map_err(Stop::of(at))?;
                written.document = made.map(|made| made.doc);
            }
        }
        (Modify::Remove | Modify::Update { .. }, None) => {}
    }
    if let (Some(document), Some(projection)) = (&written.document, &op.projection) {
        let shown = projection.apply(document, &details, &steps.context.env).map_err(Stop::of(at))?;
        written.document = Some(shown);
    }
    Ok(written)
}

async fn becomes(steps: &mut Steps<'_>, found: &Found, fate: Fate, at: usize, bypass: bool) -> Result<(), Stop> {
    let mut changes = Changes::default();
    changes.add(&steps.shaped.clone(), found.side, &found.stored, vec![(found.index, fate)]).map_err(Stop::of(at))?;
    changes.write(steps, at, bypass).await
}

/// Inserts what the filter and the update say; gives the `_id` too.
pub(super) async fn upsert(
    steps: &mut Steps<'_>,
    filter: &Filter,
    update: &Update,
    at: usize,
    bypass: bool,
) -> Result<(Written, Value<'static>), Stop> {
    let doc = update.upsert(filter, &steps.context.env).map_err(Stop::of(at))?;
    let doc = with_key(steps, doc);
    let id = insert::put(steps, vec![(at, doc)], bypass).await?.into_iter().next().unwrap_or(Value::Missing);
    let written = Written { n: 1, upserted: vec![(at, id.clone())], ..Written::default() };
    Ok((written, id))
}

/// What the `_id` says of series and time, where it is made of them and the document lacks it.
fn with_key(steps: &Steps<'_>, doc: Doc<'static>) -> Doc<'static> {
    let derived = steps.shaped.bucket().is_some_and(|bucket| bucket.derives_id());
    let (true, Some(Value::Document(id))) = (derived, doc.get("_id")) else { return doc };
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + id.as_bytes().len());
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    for (name, value) in id.iter().filter(|(name, _)| !doc.contains(name.as_str())) {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}

/// The document as it will be read.
fn as_read(steps: &Steps<'_>, doc: &Doc<'static>) -> Result<Doc<'static>> {
    match steps.shaped.bucket() {
        Some(bucket) => Ok(logical(bucket, &bucket.encode(doc)?)?.unwrap_or_else(|| doc.clone())),
        None => Ok(doc.clone()),
    }
}
