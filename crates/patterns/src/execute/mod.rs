//! How a client's write is run: the only folder that sends anything for it.
//!
//! [`run`] is the loop: begin, attempt, commit or try again. [`attempt`] is one attempt in one transaction: it executes steps,
//! keeps shared fences for the end (SEMANTICS R1) and passes the [`gate`] before each step. What the steps are is decided by
//! [`client_statement`] (the client's own), [`host_fields`] (the fields of a written host) and [`effects`] (what a changed source
//! means for its hosts), in [`react`]'s order. [`evaluation`] makes values right, for writes and for the life of rules. [`mod@read`]
//! makes and runs the plans of reads of collections that have a shape; [`digits`] brings hex digits in clients' commands to the case
//! that documents have.

pub(crate) mod access;
pub(crate) mod attempt;
pub(crate) mod changes;
pub(crate) mod client_statement;
pub(crate) mod client_version;
pub(crate) mod client_work;
pub(crate) mod collect;
pub(crate) mod convoy;
pub(crate) mod deferred;
mod deltas;
pub(crate) mod digits;
pub(crate) mod direct;
pub(crate) mod effects;
pub(crate) mod evaluate;
pub(crate) mod evaluation;
pub(crate) mod executor;
pub(crate) mod flying;
pub mod gate;
pub(crate) mod group;
pub(crate) mod host_fields;
pub(crate) mod host_memory;
pub(crate) mod host_queue;
mod host_updates;
mod inquire;
pub(crate) mod jobs;
mod key_inquiries;
pub(crate) mod lifted_array;
pub(crate) mod logical_changes;
mod look;
pub(crate) mod newest;
pub(crate) mod outlier;
pub(crate) mod pipelined_statements;
pub mod plan;
pub(crate) mod react;
pub(crate) mod read;
pub(crate) mod recent_copies;
pub mod replaced;
pub(crate) mod resend_after_move;
pub(crate) mod retry;
pub(crate) mod rights;
pub(crate) mod roll_up;
pub(crate) mod run;
pub(crate) mod shaped_statement;
pub(crate) mod statements;
pub(crate) mod versioned_write;
