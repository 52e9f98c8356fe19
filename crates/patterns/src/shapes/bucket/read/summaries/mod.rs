//! Reports answered from what buckets already hold: their counts, their stats, their slots. A group over series and time is
//! computed from whole buckets, and at the edges of the time asked for from single slots or readings, without making logical
//! documents of them.
//!
//! The answer is the same as over logical documents. A summary that might differ is not used: sums of doubles are added up
//! one by one, in an order that matters in the last digit only if MongoDB's own does.

mod group_stage;
mod mql;
mod native;
mod scope;
mod state;

use crate::rule::read::ReadRequest;
use crate::shapes::bucket::{Body, Bucket};
use document::pipeline::Pipeline;
use group_stage::GroupSpec;
use scope::Scope;
use std::sync::Arc;

pub(super) use mql::is_exact;

/// A report that the buckets can answer.
#[derive(Clone, Debug)]
pub(super) struct SummaryRead {
    bucket: Arc<Bucket>,
    scope: Scope,
    group: GroupSpec,
    /// What follows the group.
    rest: Pipeline,
}

impl SummaryRead {
    /// The report that was asked for. Returns `None` if the request is another one.
    pub(super) fn of(bucket: &Arc<Bucket>, request: &ReadRequest) -> Option<SummaryRead> {
        let (filter, group, rest) = group_stage::split(bucket, request.pipeline.source.as_ref()?)?;
        // What follows is compiled again, without the variables of the command.
        if !rest.is_empty() && request.has_variables {
            return None;
        }
        let scope = Scope::of(bucket, &filter)?;
        let rest = Pipeline::parse(&rest, &mut document::pipeline::expr::Names::new()).ok()?;
        Some(SummaryRead { bucket: bucket.clone(), scope, group, rest })
    }

    /// What the answer is made of.
    pub(super) fn name(&self) -> &'static str {
        match self.bucket.body {
            Body::Readings(_) => "buckets",
            Body::Slots(_) => "slots",
        }
    }
}
