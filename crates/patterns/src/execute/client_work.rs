//! What shares a transaction: statements of a client, and what is known of them before.

use crate::rule::Stack;
use crate::shapes::evaluate::multi::Picked;
use document::op::{WriteOp, Written};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct ClientWork<'w> {
    pub(crate) op: &'w WriteOp,
    /// Where the collection's documents are, if they are stored in another form.
    pub(crate) stack: Option<&'w Arc<Stack>>,
    /// Of a statement about many logical documents, some of these; empty if there are none.
    pub(crate) picked: Option<&'w [Picked]>,
    /// What the backend has noted of the same statements, from before they were a plan.
    pub(crate) noted: Written,
}

impl<'w> ClientWork<'w> {
    pub(crate) fn of(op: &'w WriteOp) -> ClientWork<'w> {
        ClientWork { op, stack: None, picked: None, noted: Written::default() }
    }

    pub(crate) fn through(op: &'w WriteOp, stack: Option<&'w Arc<Stack>>) -> ClientWork<'w> {
        ClientWork { stack, ..ClientWork::of(op) }
    }
}
