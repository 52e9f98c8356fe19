//! Reads of collections that have a shape: a [`ReadPlan`], made and run, once for all shapes.
//!
//! [`request`] makes a [`ReadRequest`] of a reading command. The shape may know a short cut; else [`general`] pushes the filter,
//! unpacks the stored documents and lets the rest follow. On the embedded store that is one pipeline of our code, a real MongoDB
//! gets the same as MQL. [`run`] reads through the backend; [`local_pipeline`] runs what is left in this process, and [`result`]
//! makes the answer of a count or a distinct.
//!
//! [`ReadPlan`]: crate::rule::read::ReadPlan
//! [`ReadRequest`]: crate::rule::read::ReadRequest

mod behind;
pub(crate) mod client_version;
mod explain;
mod facets;
mod find_projection;
mod found_documents;
mod general;
mod local_pipeline;
mod newest_documents;
mod one_by_one;
pub(crate) mod others;
mod request;
mod result;
mod run;
mod seen_documents;
mod seen_joins;
mod snapshot;
mod union;
pub(crate) mod versioned;
pub(crate) mod versioned_explain;
mod versioned_joins;
mod versioned_limits;
mod versioned_order;
mod versioned_text;
pub(crate) mod versioned_views;

pub(crate) use explain::{explain, planned};
pub(crate) use run::{open, open_behind, put_behind, takes_no_union};

use crate::active::Rules;
use crate::shapes::Stack;
use document::op::ReadOp;
use std::sync::Arc;

/// The stack of the collection that a read asks for. Returns `None` if it has no shape, or if the read makes its documents itself.
pub(crate) fn stack_of<'r>(rules: &'r Rules, op: &ReadOp) -> Option<&'r Arc<Stack>> {
    let makes_documents = match op {
        ReadOp::Aggregate(op) => op.collectionless || op.pipeline.makes_documents(),
        ReadOp::Find(_) | ReadOp::Count(_) | ReadOp::Distinct(_) => false,
    };
    rules.shaped(op.ns()).filter(|_| !makes_documents)
}
