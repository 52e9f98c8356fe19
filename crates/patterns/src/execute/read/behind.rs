//! A read of what stages choose: one pipeline of these and of what was asked.

use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::ResultForm;
use document::backend::Facts;
use document::op::{Aggregate, Context, ReadOp};
use document::pipeline::Pipeline;
use document::{Array, Doc, Result};

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
            let projection = request.projection.as_ref().and_then(|projection| projection.source.clone());
            let parts = [stages.source, Some(request.source()), projection];
            let source: Array<'static> = parts.iter().flatten().flat_map(|stages| stages.iter()).collect();
            Pipeline { source: Some(source), ..Pipeline::default() }
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
