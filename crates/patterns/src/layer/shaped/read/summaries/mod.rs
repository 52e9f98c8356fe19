//! Reports answered from what buckets already hold: their counts, their stats, their slots. A group over series and time is
//! computed from whole buckets, and at the edges of the time asked for from single slots or readings, without making logical
//! documents of them.
//!
//! The answer is the same as over logical documents. A figure that might differ is not used: sums of doubles are added up
//! one by one, in an order that matters in the last digit only if MongoDB's own does.

mod group_stage;
mod mql;
mod native;
mod scope;
mod state;

use crate::shapes::bucket::{Body, Bucket};
use document::Array;
use document::op::Context;
use document::pipeline::Pipeline;
use group_stage::Group;
use scope::Scope;
use std::sync::Arc;

pub(super) use mql::settled;

/// A report that the buckets can answer.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    bucket: Arc<Bucket>,
    scope: Scope,
    group: Group,
    /// What follows the group.
    rest: Pipeline,
}

impl Figures {
    /// The report that a pipeline over logical documents is; nothing if it is none.
    pub(super) fn of(bucket: &Arc<Bucket>, stages: &Array<'_>, context: &Context) -> Option<Figures> {
        let (filter, group, rest) = group_stage::split(bucket, stages)?;
        // What follows is compiled again, without the variables of the command.
        if !rest.is_empty() && context.sent.variables.is_some() {
            return None;
        }
        let scope = Scope::of(bucket, &filter)?;
        let rest = Pipeline::parse(&rest, &mut document::pipeline::expr::Names::new()).ok()?;
        Some(Figures { bucket: bucket.clone(), scope, group, rest })
    }

    /// What the answer is made of.
    pub(super) fn name(&self) -> &'static str {
        match self.bucket.body {
            Body::Readings(_) => "buckets",
            Body::Slots(_) => "slots",
        }
    }
}
