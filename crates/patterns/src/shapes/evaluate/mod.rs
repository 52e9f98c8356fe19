//! Statements about logical documents that no shape can say as a statement on stored ones (R17): candidates by push-down, our own
//! language on decoded documents, and what is stored instead. Shared by all shapes.

pub(crate) mod insert;
pub(crate) mod multi;
pub(crate) mod rewrite;
pub(crate) mod statement;

use crate::rule::Stack;
use crate::rule::shape::{Place, Shape, StoredAccess};
use document::filter::{Details, Filter};
use document::op::{Find, SortSpec};
use document::pipeline::sort_spec;
use document::{Doc, Env, Result};
use std::cmp::Ordering;

/// A logical document that matches.
pub(crate) struct Match {
    /// In which place it is stored …
    pub(crate) place: usize,
    /// … in which document …
    pub(crate) stored: Doc<'static>,
    /// … and where in that.
    pub(crate) index: usize,
    /// What clients see.
    pub(crate) doc: Doc<'static>,
    pub(crate) details: Details,
}

/// The logical documents of a stored one, in stored order.
pub(crate) fn decoded(shape: &dyn Shape, stored: &Doc<'static>) -> Result<Vec<Doc<'static>>> {
    let mut documents = Vec::new();
    shape.decode(stored, &mut |document| {
        documents.push(document);
        Ok(())
    })?;
    Ok(documents)
}

/// The read of all stored documents that may hold a match.
pub(crate) fn holding(place: &Place, filter: &Filter) -> Find {
    Find { allow_disk_use: true, ..Find::matching(place.stored.clone(), place.shape.push(filter)) }
}

/// Those logical documents of a stored one that match.
fn matching(place: (usize, &Place), stored: &Doc<'static>, filter: &Filter, env: &Env) -> Result<Vec<Match>> {
    let mut found = Vec::new();
    for (index, doc) in decoded(&*place.1.shape, stored)?.into_iter().enumerate() {
        let mut details = Details::default();
        if filter.matches_with(&doc, env, &mut details)? {
            found.push(Match { place: place.0, stored: stored.clone(), index, doc, details });
        }
    }
    Ok(found)
}

/// The first match: in the order asked, else in that of the shape.
async fn first(
    at: &mut dyn StoredAccess,
    stack: &Stack,
    filter: &Filter,
    sort: Option<&SortSpec>,
) -> Result<Option<Match>> {
    let env = at.context().env.clone();
    let natural = stack.shape().map(|shape| shape.order()).unwrap_or_default();
    let by = sort.unwrap_or(&natural);
    let mut best: Option<Match> = None;
    for (number, place) in stack.places.iter().enumerate() {
        let mut read = holding(place, filter);
        let mut early = false;
        match place.shape.stored_order() {
            Some(order) => {
                read.sort = Some(order);
                early = sort.is_none();
            }
            None => {
                read.sort = Some(by.clone());
                read.limit = Some(1);
            }
        }
        // With the first match, the rest of its place in the order is looked at, and then nothing more.
        let mut of_first: Option<Vec<u8>> = None;
        at.each(read, &mut |stored| {
            (env.interrupt)()?;
            if early
                && let Some(first) = &of_first
                && *first != place.shape.place_in_order(&stored)?
            {
                return Ok(false);
            }
            let mut matches = false;
            for found in matching((number, place), &stored, filter, &env)? {
                matches = true;
                if is_before(by, &found, best.as_ref())? {
                    best = Some(found);
                }
            }
            if early && matches && of_first.is_none() {
                of_first = Some(place.shape.place_in_order(&stored)?);
            }
            Ok(true)
        })
        .await?;
    }
    Ok(best)
}

fn is_before(by: &SortSpec, found: &Match, best: Option<&Match>) -> Result<bool> {
    let Some(best) = best else { return Ok(true) };
    let (new, old) = (sort_spec::key(by, &found.doc)?, sort_spec::key(by, &best.doc)?);
    Ok(sort_spec::compare(by, &new, &old) == Ordering::Less)
}
