//! Pipelines that join the items of an array in a transaction of a real MongoDB: no view with a `$unionWith` is read there. What comes
//! before the first join is read as always; the rest is run in this process, and reads other collections by commands of their own.

use crate::active::Rules;
use crate::execute::read::{local_pipeline, versioned};
use crate::rule::read::{ReadPlan, names_others};
use document::backend::{Answer, Cursor, Session};
use document::filter::Filter;
use document::op::{Aggregate, Context, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::{Array, Doc, Result, Value};
use std::sync::Arc;

/// Reads other collections for a pipeline that is run in this process.
pub(crate) trait OtherCollections: Send + Sync {
    /// The documents that may match, by what the session's transaction sees.
    fn read<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        collection: &str,
        filter: Filter,
    ) -> Answer<'a, Vec<Doc<'static>>>;
}

/// A pipeline taken apart at its first join.
pub(crate) struct Joined {
    pub(crate) before: ReadOp,
    rest: Pipeline,
}

/// Takes a read apart, if it joins all items of an array, or these with something else.
pub(crate) fn joined(rules: &Rules, op: &ReadOp, context: &Context) -> Result<Option<Joined>> {
    let ReadOp::Aggregate(aggregate) = op else { return Ok(None) };
    let Some(stages) = aggregate.pipeline.source.as_ref().filter(|stages| names_others(stages)) else {
        return Ok(None);
    };
    let is_virtual = |ns: &Namespace| rules.shaped(ns).is_some_and(|stack| stack.is_virtual());
    let is_about_items = is_virtual(&aggregate.ns) || rules.names_items(&aggregate.ns.db, stages);
    if !is_about_items || aggregate.collectionless || aggregate.pipeline.sink.is_some() {
        return Ok(None);
    }
    let alone = |stage: &Value<'static>| !names_others(&std::iter::once(stage.borrow()).collect());
    let first = stages.iter().take_while(|stage| alone(&stage.clone().into_owned())).count();
    let parsed = |stages: Array<'static>| Pipeline::parse(&stages, &mut versioned::variables(context)?);
    let before = parsed(stages.iter().take(first).collect())?;
    let rest = parsed(stages.iter().skip(first).collect())?;
    Ok(Some(Joined { before: ReadOp::Aggregate(Aggregate { pipeline: before, ..aggregate.clone() }), rest }))
}

impl Joined {
    /// Runs the rest over the rows of what comes before.
    pub(crate) async fn open(
        self,
        mut rows: Box<dyn Cursor>,
        session: &mut Session,
        context: &Context,
        others: Arc<dyn OtherCollections>,
    ) -> Result<Box<dyn Cursor>> {
        let first = local_pipeline::first(&mut *rows, session, context, ReadPlan::FIRST_ROWS).await?;
        local_pipeline::start(rows, first, &self.rest, context, Some(others))
    }
}
