//! Collections that are stored in another form than clients see: their reads and writes, translated.

pub(crate) mod digits;
pub(crate) mod read;

use crate::active::Rules;
use crate::shapes::Stack;
use document::op::ReadOp;
use std::sync::Arc;

/// The collection that a read asks for, if it is stored in another form.
pub(crate) fn of_read<'r>(rules: &'r Rules, op: &ReadOp) -> Option<&'r Arc<Stack>> {
    let makes_documents = match op {
        ReadOp::Aggregate(op) => op.collectionless || op.pipeline.makes_documents(),
        ReadOp::Find(_) | ReadOp::Count(_) | ReadOp::Distinct(_) => false,
    };
    rules.shaped(op.ns()).filter(|_| !makes_documents)
}
