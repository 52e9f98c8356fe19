//! Which readings a statement is about (R17): candidate buckets by push-down, then our own filter on decoded readings.

use crate::execute::access::find;
use crate::layer::shaped::write::steps::Steps;
use crate::shapes::bucket::{Bucket, Key};
use crate::shapes::{Form, Place, Stack};
use document::filter::{Details, Filter};
use document::op::{Find, SortKey, SortSpec};
use document::pipeline::sort_spec;
use document::value::{Path, order};
use document::{Doc, Env, Result, Value};
use std::cmp::Ordering;

/// A reading that matches.
pub(super) struct Found {
    /// On which side it is stored …
    pub(super) side: usize,
    /// … in which document …
    pub(super) stored: Doc<'static>,
    /// … and at which place there.
    pub(super) index: usize,
    /// What clients see.
    pub(super) doc: Doc<'static>,
    pub(super) details: Details,
}

/// The logical documents of a stored one, in stored order.
pub(super) fn decoded(form: &Form, stored: &Doc<'static>) -> Result<Vec<Doc<'static>>> {
    match form {
        Form::Plain => Ok(vec![stored.clone()]),
        Form::Bucket(bucket) => {
            let mut readings = Vec::new();
            bucket.decode(stored, &mut |reading| {
                readings.push(reading);
                Ok(())
            })?;
            Ok(readings)
        }
    }
}

/// The read of all stored documents that may hold a match.
pub(super) fn holding(side: &Place, filter: &Filter) -> Find {
    let filter = match &side.form {
        Form::Plain => filter.clone(),
        Form::Bucket(bucket) => bucket.push(filter),
    };
    Find { allow_disk_use: true, ..find(&side.stored, filter) }
}

/// Those readings of a stored document that match.
pub(super) fn matching(side: (usize, &Place), stored: &Doc<'static>, filter: &Filter, env: &Env) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for (index, doc) in decoded(&side.1.form, stored)?.into_iter().enumerate() {
        let mut details = Details::default();
        if filter.matches_with(&doc, env, &mut details)? {
            found.push(Found { side: side.0, stored: stored.clone(), index, doc, details });
        }
    }
    Ok(found)
}

/// The first match: in the order asked, else in the order of series and time.
pub(super) async fn first(steps: &mut Steps<'_>, filter: &Filter, sort: Option<&SortSpec>) -> Result<Option<Found>> {
    let shaped = steps.shaped.clone();
    let env = steps.context.env.clone();
    let natural = in_time(&shaped);
    let by = sort.unwrap_or(&natural);
    let mut best: Option<Found> = None;
    for (at, side) in shaped.sides.iter().enumerate() {
        let mut read = holding(side, filter);
        let early = match &side.form {
            Form::Bucket(bucket) => {
                read.sort = Some(in_order(bucket));
                sort.is_none().then_some(bucket)
            }
            Form::Plain => {
                read.sort = Some(by.clone());
                read.limit = Some(1);
                None
            }
        };
        // With the first match, the rest of its series and period is looked at, and then nothing more.
        let mut of_first: Option<Key> = None;
        steps
            .each(read, &mut |stored| {
                (env.interrupt)()?;
                if let (Some(bucket), Some(key)) = (early, &of_first)
                    && !is_same_place(key, &bucket.key_of(&stored)?.0)
                {
                    return Ok(false);
                }
                let mut matches = false;
                for found in matching((at, side), &stored, filter, &env)? {
                    matches = true;
                    if is_before(by, &found, best.as_ref())? {
                        best = Some(found);
                    }
                }
                if let Some(bucket) = early.filter(|_| matches && of_first.is_none()) {
                    of_first = Some(bucket.key_of(&stored)?.0);
                }
                Ok(true)
            })
            .await?;
    }
    Ok(best)
}

fn is_before(by: &SortSpec, found: &Found, best: Option<&Found>) -> Result<bool> {
    let Some(best) = best else { return Ok(true) };
    let (new, old) = (sort_spec::key(by, &found.doc)?, sort_spec::key(by, &best.doc)?);
    Ok(sort_spec::compare(by, &new, &old) == Ordering::Less)
}

/// Series and time, as the logical documents have them.
fn in_time(shaped: &Stack) -> SortSpec {
    let Some(bucket) = shaped.bucket() else { return SortSpec::default() };
    let fields = bucket.by.iter().map(|series| &*series.field).chain([&*bucket.time]);
    ascending(fields)
}

/// Series and period, as buckets have them; the index that `apply` makes.
fn in_order(bucket: &Bucket) -> SortSpec {
    match bucket.packed {
        true => ascending(["_id"]),
        false => ascending(bucket.by.iter().map(|series| &*series.field).chain([bucket.every.name()])),
    }
}

fn ascending<'n>(fields: impl IntoIterator<Item = &'n str>) -> SortSpec {
    let key = |field: &str| SortKey { path: Path::new(field), descending: false };
    SortSpec { keys: fields.into_iter().map(key).collect() }
}

/// Whether two buckets stand at one place in the order of series and period, where null and missing are one.
fn is_same_place(one: &Key, other: &Key) -> bool {
    let value = |series: &Option<Value<'static>>| series.clone().unwrap_or(Value::Null);
    one.start == other.start
        && one.series.iter().zip(&other.series).all(|(one, other)| order::equal(&value(one), &value(other)))
}
