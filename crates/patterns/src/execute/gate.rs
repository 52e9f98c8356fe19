//! A hook before every step of a plan, so that tests can stop, fail or interleave plans at every step.

use crate::active::ActiveRule;
use crate::execute::plan::Action;
use document::backend::Answer;
use std::sync::Arc;

/// Where a plan is.
#[derive(Debug)]
pub enum Point<'a> {
    /// A transaction of our own is about to begin; attempts are counted from 0.
    Begin { attempt: u32 },
    /// A step is about to run, for these rules (none: the client's own).
    Step { rules: &'a [Arc<ActiveRule>], action: &'a Action },
    /// The life of a rule is about to do this: seeding, the outbox's worker, repair.
    Life(&'static str),
    /// The transaction is about to be committed.
    Commit,
    /// It is committed; the client does not know yet.
    Committed,
}

pub trait Gate: Send + Sync {
    /// Called before the step; may wait, or fail in its place.
    fn pass<'a>(&'a self, point: Point<'a>) -> Answer<'a, ()>;

    /// Whether each step is to be answered before the next, also where a plan could be sent at once.
    fn wants_answers(&self) -> bool {
        false
    }
}
