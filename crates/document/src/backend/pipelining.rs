//! Pipelining: statements that need no answer of one another are sent back to back to a backend across a network.

use super::{Answer, FenceKey, FenceVersion, Session};
use crate::error::{Error, Result};
use crate::op::{Capture, Context, WriteOp, Written};
use std::sync::Arc;

/// A plan whose steps need no answer of one another: its statements and its commit in one go.
#[derive(Default)]
pub struct Flight {
    pub legs: Vec<Leg>,
    /// The retryable writes that it does.
    pub claims: Vec<Claim>,
    /// Whether every client's write in it has a claim: then it may be sent again when nothing is known of it.
    pub guarded: bool,
}

/// A write of a flight.
pub struct Leg {
    pub op: WriteOp,
    /// Whether each of its statements must find a document; if one does not, nothing of the flight is done.
    pub must_match: bool,
}

/// A client's retryable write: recorded with what it does, and refused if it was done before (SEMANTICS R4).
pub struct Claim {
    pub session: [u8; 16],
    pub number: i64,
    /// The numbers of its statements.
    pub statements: Vec<i32>,
    /// What its answer is.
    pub n: u64,
    pub db: Arc<str>,
}

/// What came of a flight.
#[derive(Debug)]
pub enum Landed {
    /// All is committed, as durable as was asked; what each leg did.
    Done(Vec<Written>),
    /// Nothing was written: a statement of this leg failed.
    Failed { leg: usize, index: usize, error: Error },
    /// Nothing was written: a statement that must find a document found none, or failed otherwise.
    Unmatched { leg: usize, index: usize, error: Error },
    /// Nothing was written: this claim was made before, or its record could not be saved.
    Claimed { claim: usize },
    /// Nothing was written: a fence that was passed at a version has another.
    Outdated,
}

/// Sends several statements at once instead of waiting for each answer.
pub trait Pipelining: Send + Sync {
    /// Several writes in order, in the session's transaction; none of them needs the outcome of another. The outcomes end with the
    /// first failure: a statement's error counts as one. With [`Session::retry`] the first is the client's own write and has the
    /// retry record; the others follow from it. If the first is answered from its record, the others are not run.
    fn write_all<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        ops: &'a [(WriteOp, Capture)],
    ) -> Answer<'a, Vec<Result<Written>>>;

    /// Sends the legs, the shared fences that were passed, the claims and the commit of the session's transaction back to back.
    /// `visible`, if somebody waits for that, is called as soon as others see the writes, before they are as durable as was asked.
    fn fly<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        flight: Flight,
        visible: Option<&'a mut (dyn FnMut() + Send)>,
    ) -> Answer<'a, Landed>;

    /// The versions of some fences of one database as the session's transaction sees them: a plan that read something in the same
    /// transaction may later rely on it by [`Pipelining::fence_at`]. Returns `None` for a fence that nobody had to himself yet.
    fn versions<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        keys: &'a [FenceKey],
    ) -> Answer<'a, Vec<Option<FenceVersion>>>;

    /// Passes a shared fence that nobody may have had to himself since this version: the flight fails if somebody had.
    fn fence_at<'a>(&'a self, session: &'a mut Session, key: &'a FenceKey, version: FenceVersion) -> Answer<'a, ()>;
}
