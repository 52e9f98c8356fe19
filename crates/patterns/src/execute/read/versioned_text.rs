//! `$text` on documents of several versions. A text index holds the words of stored documents, so the search is asked of these, as it
//! is; what is found is brought up. Conditions beside it may be about paths that no version changes.

use crate::execute::read::result::ResultForm;
use crate::execute::read::versioned::{self, LensPlan, variables};
use crate::rule::Lens;
use document::filter::{Filter, Node};
use document::op::{Aggregate, Context, ReadOp};
use document::pipeline::Pipeline;
use document::{Array, Code, Error, Result};
use std::sync::Arc;

pub(super) fn is_search(op: &ReadOp) -> bool {
    match op {
        ReadOp::Find(op) => op.filter.has_text(),
        ReadOp::Count(op) => op.filter.has_text(),
        ReadOp::Distinct(op) => op.filter.has_text(),
        ReadOp::Aggregate(op) => op.pipeline.searches_text(),
    }
}

/// What a filter asks for beside its search; `None` if the search is inside an alternative.
pub(super) fn beside(filter: &Filter) -> Option<Filter> {
    let nodes = match &filter.root {
        Node::And(nodes) => nodes.clone(),
        node => vec![node.clone()],
    };
    let rest: Vec<Node> = nodes.into_iter().filter(|node| node.text().is_none()).collect();
    (!rest.iter().any(Node::has_text)).then(|| Filter::from_node(Node::And(rest)))
}

pub(super) fn plan(lens: &Arc<Lens>, op: ReadOp, context: &Context) -> Result<LensPlan> {
    let is_kept = |filter: &Filter| !versioned::reads_changed(lens, filter);
    match op {
        ReadOp::Find(find) if find.projection.as_ref().is_some_and(|shown| shown.reads_score()) => {
            Err(refused("a find that shows the score")
                .with_hint("use an aggregation: { $set: { score: { $meta: \"textScore\" } } }"))
        }
        ReadOp::Find(find) if is_kept(&find.filter) && versioned::is_kept_order(lens, &find) => {
            Ok(versioned::find_plan(lens, find))
        }
        ReadOp::Count(op) if is_kept(&op.filter) => Ok(LensPlan::Rows(ReadOp::Count(op), ResultForm::Rows)),
        ReadOp::Distinct(op) if is_kept(&op.filter) && !lens.changes(&op.key) => {
            Ok(LensPlan::Rows(ReadOp::Distinct(op), ResultForm::Rows))
        }
        ReadOp::Aggregate(op) => of_pipeline(lens, op, context),
        _ => {
            Err(refused("a condition or an order")
                .with_hint("use an aggregation: $match with $text alone, then the rest"))
        }
    }
}

/// The first stage searches; documents are brought up behind it.
fn of_pipeline(lens: &Lens, op: Aggregate, context: &Context) -> Result<LensPlan> {
    let source = op.pipeline.source.clone().unwrap_or_else(Array::empty);
    let first = Pipeline::parse(&source.iter().take(1).collect(), &mut variables(context)?)?.split().leading.filter;
    if versioned::reads_changed(lens, &first) {
        return Err(refused("a condition").with_hint("put it into a $match of its own behind the one with $text"));
    }
    let stages: Array<'static> = source.iter().take(1).chain(lens.view().iter()).chain(source.iter().skip(1)).collect();
    let pipeline = Pipeline::parse(&stages, &mut variables(context)?)?;
    Ok(LensPlan::Rows(ReadOp::Aggregate(Aggregate { pipeline, ..op }), ResultForm::Rows))
}

fn refused(what: &str) -> Error {
    let message = format!("{what} on a field that versions of documents have changed does not go together with $text");
    Error::new(Code::NotImplemented, message)
}
