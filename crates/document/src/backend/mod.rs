//! The narrow waist: what the server and the patterns ask, and what the embedded engine and a real MongoDB both can do.
//!
//! [`Backend`] is what every backend does. What only one across a network can do is [`Remote`] and [`Pipelining`]; what only the
//! outermost one must do, which answers clients, is [`Front`].
//!
//! Contract: a missing collection reads as empty; `write` creates what it needs; parameters are not modified; atomicity
//! belongs to the transaction, not to `write` (an ordered insert keeps the documents before the failure). Statement errors
//! are in [`Written::errors`]; `Err` means the whole operation failed.

mod class;
mod front;
mod pipelining;
mod privileges;
mod remote;

pub use class::{Class, Route};
pub use front::{Front, Head, InFlight, Restorer, Restoring, Unruled};
pub use pipelining::{Claim, Flight, Landed, Leg, Pipelining};
pub use privileges::Privileges;
pub use remote::{Relay, Remote, Standing};

use crate::error::{Error, Result};
use crate::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use crate::raw::Doc;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Who asks: the state that outlives one operation.
#[derive(Default)]
pub struct Session {
    /// The logical session's UUID, if the client sent one.
    pub id: Option<[u8; 16]>,
    /// A retryable write: the client's transaction number outside a transaction.
    pub retry: Option<i64>,
    /// The number of the transaction that is to begin.
    pub number: Option<i64>,
    /// The open transaction of this session, made by [`Backend::begin`].
    pub transaction: Option<Box<dyn Transaction>>,
    /// The client's own line to a real MongoDB; `None` for background work and on the embedded store.
    pub relay: Option<Arc<dyn Relay>>,
    /// The client's own transaction in the server behind: [`Backend::begin`] joins it instead of making one.
    pub joined: Option<Joined>,
    /// A write concern that was not satisfied although the write was done: reported beside the result.
    pub concern_error: Option<Error>,
    /// What the backend knows a client by that restores a dump (see [`Front::restoring`]); `None` for all others.
    pub restorer: Option<Restorer>,
}

impl Session {
    /// A session of our own on a client's line.
    pub fn on_line(relay: Option<Arc<dyn Relay>>) -> Session {
        Session { relay, ..Session::default() }
    }

    /// Another session on the same line, without the client's id and retry number: for what is looked up beside.
    pub fn sibling(&self) -> Session {
        Session::on_line(self.relay.clone())
    }

    /// A session for one attempt at the client's write, in a transaction of its own: with its id, retry number and line.
    pub fn attempt(&self) -> Session {
        Session { id: self.id, retry: self.retry, ..self.sibling() }
    }

    /// Whether the client is a tool that restores a dump.
    pub fn restores(&self) -> bool {
        self.restorer.is_some()
    }
}

/// A statement of a client's transaction, which lives in the server behind the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    pub number: i64,
    /// The client's first statement: the first command really sent starts the transaction there.
    pub first: bool,
}

/// The end of a commit in two steps: done when the writes are as durable as was asked.
pub type Durable = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// An open transaction of some backend. Dropping it aborts it.
///
/// A write with [`Session::retry`] in a transaction looks up and saves its retry record in that transaction (SEMANTICS
/// R4): the layer that began the transaction for a client's retryable write sets both. Such writes of several sessions
/// may share one transaction.
pub trait Transaction: Send + 'static {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()>;
    /// As [`Transaction::commit`] in two steps: this one ends when others see the writes and their locks are free.
    fn publish<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, Durable> {
        Box::pin(async move {
            self.commit(context).await?;
            let durable: Durable = Box::pin(std::future::ready(Ok(())));
            Ok(durable)
        })
    }
    fn abort(self: Box<Self>);
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A key that orders an evaluation against a change of what it evaluates (SEMANTICS R1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FenceKey {
    /// The rule's database: where the fence lives when it is written down.
    pub db: Arc<str>,
    /// The link and the key value.
    pub key: Vec<u8>,
}

impl FenceKey {
    pub fn new(db: &str, key: impl Into<Vec<u8>>) -> FenceKey {
        FenceKey { db: db.into(), key: key.into() }
    }
}

/// Which exclusive pass of a fence was the last; no two passes have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceVersion(pub [u8; 12]);

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

/// What a backend is, where the code of others depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The store is in this process: documents cost no transfer, and a stage of a pipeline may be code of ours instead of MQL.
    pub runs_our_code: bool,
    /// Other processes read and write the same data, and perhaps keep the same rules.
    pub others_write: bool,
    /// Clients' commands may be forwarded to it unread: it has retry records that we do not know.
    pub answers_clients: bool,
    /// Users have rights of their own, also that to bypass validation.
    pub has_users: bool,
    /// It has time-series collections of its own; elsewhere the layer makes them.
    pub own_time_series: bool,
    /// It deletes what expires by itself, so that no rule would learn of it.
    pub own_expiry: bool,
    /// It compares text as a collation says.
    pub collates: bool,
    /// A transaction sees the data of its first operation, not of its beginning.
    pub begins_lazily: bool,
    /// It may be a server that has no transactions; only reads are sent to such a one.
    pub may_lack_transactions: bool,
    /// A collection that is made in a transaction makes others wait for it.
    pub creation_blocks: bool,
    /// `$sample` reads little more than it gives.
    pub samples_quickly: bool,
}

impl Facts {
    /// A store of ours, inside this process.
    pub const EMBEDDED: Facts = Facts {
        runs_our_code: true,
        others_write: false,
        answers_clients: false,
        has_users: false,
        own_time_series: false,
        own_expiry: false,
        collates: false,
        begins_lazily: false,
        may_lack_transactions: false,
        creation_blocks: false,
        samples_quickly: false,
    };

    /// A real MongoDB.
    pub const MONGODB: Facts = Facts {
        runs_our_code: false,
        others_write: true,
        answers_clients: true,
        has_users: true,
        own_time_series: true,
        own_expiry: true,
        collates: true,
        begins_lazily: true,
        may_lack_transactions: true,
        creation_blocks: true,
        samples_quickly: true,
    };
}

/// What every backend does. No method has a default: whoever wraps a backend decides about each.
pub trait Backend: Send + Sync + 'static {
    fn facts(&self) -> Facts;

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()>;

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>>;

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written>;

    /// Passes fences in the session's transaction.
    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()>;

    /// Which of the statements of a retryable write ([`Session::retry`]) were answered before, and what with; looked up in the
    /// session's transaction. For a caller that plans other statements than the client sent: it looks up and saves records by itself.
    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written>;

    /// Saves, in the session's transaction, what these statements of a retryable write answer together.
    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()>;

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

    /// Whether this transaction of a session is known to have been committed, perhaps before a restart.
    fn committed(&self, session: &[u8; 16], number: i64) -> bool;

    /// The newest commit, for `operationTime` and `$clusterTime`.
    fn cluster_time(&self) -> u64;

    /// Returns `None` where an answer costs nothing, so that there is nothing to gain by sending several statements at once.
    fn pipelining(&self) -> Option<&dyn Pipelining>;

    /// Returns `None` if the store is in this process.
    fn remote(&self) -> Option<&dyn Remote>;
}
