//! What a client's write becomes: steps as data. The runner executes them one after the other; `plan` and `explain` print them as
//! MQL, with what they cost.

use crate::rule::Rule;
use document::backend::{FenceKey, Mode};
use document::op::{Namespace, ReadOp, WriteOp};
use document::{Doc, Value};
use std::sync::Arc;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The rules it is for: none for the client's own statement, several where steps on one document were merged.
    pub rules: Vec<Arc<Rule>>,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    Fence {
        key: FenceKey,
        /// The link value that is fenced, for people.
        value: Value<'static>,
        mode: Mode,
    },
    Read(ReadOp),
    /// The client's own statement.
    Write(WriteOp),
    /// A derived statement: it counts in no reply.
    Derive(WriteOp),
    /// Deferred work (R13): make everything that depends on this key true again.
    Job {
        key: Value<'static>,
    },
}

/// The steps of one transaction, in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
}

/// What a plan costs, counted in statements and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub read: u64,
    pub written: u64,
    pub bytes: u64,
}

impl Step {
    /// `fence`, `read`, `write`, `derived`, `job`.
    pub fn kind(&self) -> &'static str {
        match &self.action {
            Action::Fence { .. } => "fence",
            Action::Read(_) => "read",
            Action::Write(_) => "write",
            Action::Derive(_) => "derived",
            Action::Job { .. } => "job",
        }
    }

    pub fn namespace(&self) -> Option<Namespace> {
        None
    }

    /// `{ rule, kind, namespace, command }`, the command as plain MQL.
    pub fn to_mql(&self) -> Doc<'static> {
        Doc::empty()
    }
}

impl Plan {
    pub fn cost(&self) -> Cost {
        Cost::default()
    }

    /// `{ rules, steps, fences, deferred, cost }`: what `explain` adds and `plan` prints (R25, F).
    pub fn to_mql(&self) -> Doc<'static> {
        Doc::empty()
    }
}
