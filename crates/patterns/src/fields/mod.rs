//! Maintained links: what a rule's link means for a changed document, compiled once per rule. Pure: nothing here reads or
//! writes; the runner executes what it is told.
//!
//! [`Program`] is a rule's link compiled: a [`CopyProgram`] (extended reference) or a [`TallyProgram`] (count, sum, avg). Each
//! knows what a changed source means for the hosts, how a host's own field is evaluated, and `expected`: the pipeline that
//! defines the field. [`owned`] says which paths of a host belong to rules.

pub mod copy;
pub mod host_update;
pub mod set_paths;
pub mod tally;
#[cfg(test)]
pub(crate) mod testing;

pub use copy::{Copies, CopyProgram, Placements, SourceChange, Spread};
pub use host_update::HostUpdate;
pub use tally::amount::Amount;
pub use tally::{Deltas, Evaluated, TallyProgram};

use crate::rule::{Fold, Rule, Upkeep};
use document::op::{Capture, Namespace};
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Array, Result};
use std::sync::Arc;

/// A rule's link, compiled.
#[derive(Clone, Debug)]
pub enum Program {
    Copy(Arc<CopyProgram>),
    Tally(Arc<TallyProgram>),
}

/// A pipeline to run on a collection.
#[derive(Clone, Debug)]
pub struct Query {
    pub ns: Namespace,
    pub pipeline: Pipeline,
}

impl Program {
    /// Nothing if the rule has no link (`expr`).
    pub fn new(rule: &Arc<Rule>) -> Result<Option<Program>> {
        let Upkeep::Link(link) = &rule.upkeep else { return Ok(None) };
        Ok(Some(match &link.fold {
            Fold::One { .. } => Program::Copy(Arc::new(CopyProgram::new(rule)?)),
            Fold::Tally(_) => Program::Tally(Arc::new(TallyProgram::new(rule)?)),
        }))
    }

    pub fn rule(&self) -> &Arc<Rule> {
        match self {
            Program::Copy(program) => program.rule(),
            Program::Tally(program) => program.rule(),
        }
    }

    /// What of a changed source document the program must see.
    pub fn watched_source(&self) -> &Capture {
        match self {
            Program::Copy(program) => program.watched_source(),
            Program::Tally(program) => program.watched_source(),
        }
    }

    /// What of a changed host document the program must see: its link values and what the rule owns.
    pub fn watched_host(&self) -> &[Path] {
        match self {
            Program::Copy(program) => program.watched_host(),
            Program::Tally(program) => program.watched_host(),
        }
    }

    /// The definition of the field: a pipeline on the host's collection that gives `{ _id, stored, expected }` of each host
    /// (for sums also `state` and `expectedState`); with `only_differences`, of those where they differ. A missing value is
    /// absent. It may stand behind a `$match` on the hosts.
    pub fn expected(&self, only_differences: bool) -> Array<'static> {
        match self {
            Program::Copy(program) => program.expected(only_differences),
            Program::Tally(program) => program.expected(only_differences),
        }
    }

    /// The same for a chunk of host keys, read from the source's side: one row `{ _id: key, … }` per key that has something;
    /// rows are read by [`TallyProgram::evaluated`] and [`Copies::add_row`].
    pub fn expected_for(&self, keys: &[document::Value<'_>]) -> Result<Query> {
        match self {
            Program::Copy(program) => program.sources(keys),
            Program::Tally(program) => program.children(keys),
        }
    }
}
