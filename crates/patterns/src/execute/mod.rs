//! How a client's write is run: the only folder that sends anything for it.
//!
//! [`run`] is the loop: begin, attempt, commit or try again. [`attempt`] is one attempt in one transaction: it executes steps,
//! keeps shared fences for the end (SEMANTICS R1) and passes the [`gate`] before each step. What the steps are is decided by
//! [`client_statement`] (the client's own), [`host_fields`] (the fields of a written host) and [`effects`] (what a changed source
//! means for its hosts), in [`react`]'s order. [`evaluate`] computes values from scratch.

pub(crate) mod attempt;
pub(crate) mod changes;
pub(crate) mod client_statement;
pub(crate) mod collect;
pub(crate) mod convoy;
pub(crate) mod deferred;
pub(crate) mod effects;
pub(crate) mod evaluate;
pub(crate) mod flying;
pub mod gate;
pub(crate) mod group;
pub(crate) mod host_fields;
pub(crate) mod host_queue;
mod host_updates;
pub(crate) mod jobs;
pub(crate) mod missing_hosts;
pub(crate) mod originals;
pub(crate) mod pipelined_statements;
pub mod plan;
pub(crate) mod react;
pub(crate) mod retry;
pub(crate) mod run;
