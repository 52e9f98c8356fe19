//! New logical documents. While a collection has two places, one with a derived `_id` may be stored in either already.

use crate::rule::Stack;
use crate::rule::shape::{Existing, LogicalFate, NewDocuments, Stop, StoredAccess};
use crate::shapes::evaluate::first;
use crate::shapes::evaluate::rewrite::StoredRewrites;
use crate::shapes::refused::duplicate;
use crate::shapes::with_id;
use document::filter::Filter;
use document::op::{Insert, WriteError};
use document::{Doc, Env, Error, Result, Value};

/// The documents of a command's statements, each with an `_id` unless it is derived.
pub(crate) fn numbered(stack: &Stack, op: &Insert, env: &Env) -> Vec<(usize, Doc<'static>)> {
    let derives_id = stack.shape().is_some_and(|shape| shape.derives_id());
    let complete = |doc: &Doc<'static>| if derives_id { doc.clone() } else { with_id(doc, env) };
    op.documents.iter().map(complete).enumerate().collect()
}

/// Adds documents; returns those that are refused, with nothing written for them. Ordered, those behind the first are left out.
pub(crate) async fn insert(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    documents: &[(usize, Doc<'static>)],
    ordered: bool,
    bypass_validation: bool,
) -> Result<Vec<WriteError>, Stop> {
    let Some(place) = stack.places.first() else { return Ok(Vec::new()) };
    if !may_be_elsewhere(stack) {
        let new = NewDocuments { documents, existing: Existing::AddedTo, ordered, bypass_validation, are_moved: false };
        return Ok(place.shape.insert(at, stack, place, new).await?.refused);
    }
    let mut refused = Vec::new();
    for (index, document) in documents {
        if let Err(error) = add(at, stack, *index, document.clone(), bypass_validation).await? {
            refused.push(WriteError { index: *index, error });
            if ordered {
                break;
            }
        }
    }
    Ok(refused)
}

fn may_be_elsewhere(stack: &Stack) -> bool {
    stack.places.len() > 1 && stack.shape().is_some_and(|shape| shape.derives_id())
}

/// The `_id` of a document that was added, or why it is refused, with nothing written for it.
pub(super) type Added = Result<Value<'static>, Error>;

/// Adds one document.
pub(super) async fn add(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    index: usize,
    document: Doc<'static>,
    bypass_validation: bool,
) -> Result<Added, Stop> {
    let Some(shape) = stack.shape() else { return Ok(Ok(Value::Missing)) };
    let id = match shape.check(&document) {
        Ok(id) => id,
        Err(error) => return Ok(Err(error)),
    };
    if !may_be_elsewhere(stack) {
        return put(at, stack, index, document, bypass_validation).await.map(|refused| refused.map_or(Ok(id), Err));
    }
    let found = first(at, stack, &Filter::equality("_id", &id), None).await.map_err(Stop::of(index))?;
    let Some(found) = found else {
        let document = shape.as_read(&document).map_err(Stop::of(index))?;
        return put(at, stack, index, document, bypass_validation).await.map(|refused| refused.map_or(Ok(id), Err));
    };
    let Some(sum) = shape.sum(&found.doc, &document).map_err(Stop::of(index))? else {
        return Ok(Err(duplicate(&stack.logical, &id)));
    };
    let mut rewrites = StoredRewrites::default();
    let fates = vec![(found.index, LogicalFate::Becomes(sum))];
    rewrites.add(stack, found.place, &found.stored, fates).map_err(Stop::of(index))?;
    rewrites.write(at, stack, index, bypass_validation).await?;
    Ok(Ok(id))
}

/// Adds a document to where new ones go; returns why it is refused.
async fn put(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    index: usize,
    document: Doc<'static>,
    bypass_validation: bool,
) -> Result<Option<Error>, Stop> {
    let Some(place) = stack.places.first() else { return Ok(None) };
    let documents = &[(index, document)];
    let new =
        NewDocuments { documents, existing: Existing::AddedTo, ordered: true, bypass_validation, are_moved: false };
    let refused = place.shape.insert(at, stack, place, new).await?.refused;
    Ok(refused.into_iter().next().map(|failed| failed.error))
}
