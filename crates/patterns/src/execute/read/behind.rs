//! A read of what stages choose: one pipeline of these and of what was asked.

use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::ResultForm;
use document::backend::Facts;
use document::op::{Aggregate, Context, ReadOp};
use document::pipeline::Pipeline;
use document::{Doc, Result};

/// The pipeline, and what is made of its rows.
pub(super) fn both(
    stages: Pipeline,
    op: &ReadOp,
    collation: Option<Doc<'static>>,
    context: &Context,
    facts: Facts,
) -> Result<(ReadOp, ResultForm)> {
    let (parsed, runs_our_code) = (ParsedRead::of(op, context)?, facts.runs_our_code);
    let request = &parsed.request;
    let pipeline = match runs_our_code {
        true => stages.then(request.native()),
        false => {
            let asked = stages.then(request.pipeline.clone());
            match request.projection.clone().filter(|projection| projection.source.is_some()) {
                Some(projection) => asked.then(projection),
                None => asked,
            }
        }
    };
    let form = match parsed.only_in_find {
        Some(projection) if !runs_our_code => ResultForm::Project(projection),
        _ => parsed.form,
    };
    let op = ReadOp::Aggregate(Aggregate {
        ns: op.ns().clone(),
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: parsed.request.allow_disk_use,
        collation,
    });
    Ok((op, form))
}
