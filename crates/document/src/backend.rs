//! The narrow waist: what the server and the patterns ask, and what the embedded engine and a real MongoDB both can do.
//!
//! Contract: a missing collection reads as empty; `write` creates what it needs; parameters are not modified; atomicity
//! belongs to the transaction, not to `write` (an ordered insert keeps the documents before the failure). Statement errors
//! are in [`Written::errors`]; `Err` means the whole operation failed.

use crate::error::Result;
use crate::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use crate::raw::Doc;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Who asks: the state that outlives one operation.
#[derive(Default)]
pub struct Session {
    /// The logical session's UUID, if the client sent one.
    pub id: Option<[u8; 16]>,
    /// A retryable write: the client's transaction number outside a transaction.
    pub retry: Option<i64>,
    /// The open transaction of this session, made by [`Backend::begin`].
    pub transaction: Option<Box<dyn Transaction>>,
}

/// An open transaction of some backend. Dropping it aborts it.
pub trait Transaction: Send {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()>;
    fn abort(self: Box<Self>);
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A key that orders an evaluation against a change of what it evaluates (SEMANTICS R1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FenceKey(pub Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Shared,
    Exclusive,
}

/// How much of a cursor to return at once.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimit {
    pub documents: usize,
    pub bytes: usize,
}

/// Some rows of a cursor.
#[derive(Debug, Default)]
pub struct Batch {
    pub documents: Vec<Doc<'static>>,
    pub exhausted: bool,
}

/// An open read. It holds no store snapshot between batches unless it reads in a snapshot.
pub trait Cursor: Send {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch>;
}

/// What the backend can do, where that differs.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Bytes can be passed through to a real server.
    pub forwards: bool,
}

pub trait Backend: Send + Sync + 'static {
    fn abilities(&self) -> Abilities;

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()>;

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>>;

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written>;

    fn fence<'a>(&'a self, session: &'a mut Session, key: &'a FenceKey, mode: Mode) -> Answer<'a, ()>;

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>>;

    /// List operations give one document per entry; all others exactly one, whose fields belong in the reply.
    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>>;

    /// The newest commit, for `operationTime` and `$clusterTime`.
    fn cluster_time(&self) -> u64;
}
