//! What a command asks of logical documents: stages, and what is made of their rows.

use crate::layer::shaped::read::find_projection::Projecting;
use crate::layer::shaped::read::result::Finish;
use crate::mql::{call, field, list, object};
use document::op::{Hint, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};
use std::sync::Arc;

/// A read, whatever command it came from.
pub(super) struct ReadRequest {
    /// Over logical documents; its source says the same in MQL.
    pub(super) pipeline: Pipeline,
    /// What `find` shows of each document.
    pub(super) projecting: Option<Arc<Projecting>>,
    pub(super) finish: Finish,
    pub(super) hint: Option<Hint>,
    pub(super) allow_disk_use: bool,
}

impl ReadRequest {
    pub(super) fn of(op: &ReadOp) -> Result<ReadRequest> {
        Ok(match op {
            ReadOp::Find(op) => {
                op.check_for_view()?;
                let projecting = op.projection.as_ref().map(|it| Arc::new(Projecting::new(it.clone(), &op.filter)));
                ReadRequest {
                    pipeline: Pipeline::of_query(&op.filter, op.sort.as_ref(), op.skip, op.limit),
                    projecting,
                    finish: Finish::Rows,
                    hint: op.hint.clone(),
                    allow_disk_use: op.allow_disk_use,
                }
            }
            ReadOp::Aggregate(op) => ReadRequest {
                pipeline: op.pipeline.clone(),
                projecting: None,
                finish: Finish::Rows,
                hint: op.hint.clone(),
                allow_disk_use: op.allow_disk_use,
            },
            ReadOp::Count(op) => {
                let counted = parsed([call("$count", Value::from("n"))])?;
                ReadRequest {
                    pipeline: Pipeline::of_query(&op.filter, None, op.skip, op.limit).then(counted),
                    projecting: None,
                    finish: Finish::Count,
                    hint: op.hint.clone(),
                    allow_disk_use: true,
                }
            }
            ReadOp::Distinct(op) => {
                // The whole first field: only the values tell how arrays on the way are to be taken apart. Beside another field
                // a missing one is not null.
                let key = object([("_id", object([("v", field(op.key.first())), ("of", Value::from("value"))]))]);
                let grouped = parsed([call("$group", key)])?;
                ReadRequest {
                    pipeline: Pipeline::of_query(&op.filter, None, 0, None).then(grouped),
                    projecting: None,
                    finish: Finish::Distinct(op.key.clone()),
                    hint: op.hint.clone(),
                    allow_disk_use: true,
                }
            }
        })
    }

    /// The stages as MQL; none if they were put together by a program that cannot say them.
    pub(super) fn source(&self) -> Array<'static> {
        self.pipeline.source.clone().unwrap_or_else(Array::empty)
    }

    /// Whether it reads collections besides the one it is asked of.
    pub(super) fn reads_others(&self) -> bool {
        names_others(&self.source())
    }
}

/// Whether a pipeline names other collections, inside `$facet` too.
pub(super) fn names_others(stages: &Array<'_>) -> bool {
    stages.iter().any(|stage| {
        let Value::Document(stage) = stage else { return false };
        stage.iter().any(|(name, spec)| match (name.as_str(), spec) {
            ("$lookup" | "$graphLookup" | "$unionWith", _) => true,
            ("$facet", Value::Document(facets)) => {
                facets.iter().any(|(_, inner)| matches!(inner, Value::Array(inner) if names_others(&inner)))
            }
            _ => false,
        })
    })
}

pub(super) fn parsed(stages: impl IntoIterator<Item = Value<'static>>) -> Result<Pipeline> {
    let Value::Array(stages) = list(stages) else { return Ok(Pipeline::default()) };
    Pipeline::parse(&stages, &mut Names::new())
}
