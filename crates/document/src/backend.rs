//! The narrow waist: what the server and the patterns ask, and what the embedded engine and a real MongoDB both can do.
//!
//! Contract: a missing collection reads as empty; `write` creates what it needs; parameters are not modified; atomicity
//! belongs to the transaction, not to `write` (an ordered insert keeps the documents before the failure). Statement errors
//! are in [`Written::errors`]; `Err` means the whole operation failed.

mod flight;
mod privileges;

pub use flight::{Claim, Flight, Flights, Landed, Leg};
pub use privileges::Privileges;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
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
    /// The client's own line to a real MongoDB; nothing for background work and on the embedded store.
    pub relay: Option<Arc<dyn Relay>>,
    /// The client's own transaction on a backend that forwards: [`Backend::begin`] joins it instead of making one.
    pub joined: Option<Joined>,
    /// A write concern that was not satisfied although the write was done: reported beside the result.
    pub concern_error: Option<Error>,
    /// What the backend knows a client by that restores a dump (see [`Backend::restoring`]); `None` for all others.
    pub restorer: Option<Restorer>,
}

/// A connection of a client that restores a dump, as the backend knows it.
pub type Restorer = Arc<dyn Any + Send + Sync>;

impl Session {
    /// Whether the client is a tool that restores a dump.
    pub fn restores(&self) -> bool {
        self.restorer.is_some()
    }
}

/// A command that may be passed on, from its arrival to its answer.
pub trait UnderWay: Send + Sync {
    /// The server behind refused the command, or the command is not passed on.
    fn refused(&self);
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

/// What the backend can do, where that differs.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Bytes can be passed through to a real server.
    pub forwards: bool,
}

/// What a client that restores a dump does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restoring {
    Connects,
    Asks,
}

/// A command as far as it must be read to know who answers it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub name: &'a str,
    pub db: &'a str,
    /// The value of the command's first field, if that is text: most often the collection.
    pub target: Option<&'a str>,
    /// The user that it is sent for, as [`Relay::user`] gives it.
    pub user: Option<&'a Arc<str>>,
    /// The whole command; its bytes are not validated yet.
    pub body: &'a Doc<'a>,
}

/// What the server behind a forwarding backend is, as last seen: a client's `hello` is answered from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub max_wire_version: i32,
    pub session_minutes: i32,
}

/// One client's own line to a real MongoDB: its authentication and its place in the order of commands live there. It opens
/// nothing before the first command.
pub trait Relay: Send + Sync {
    /// Passes a whole message on. The answer, if one is expected, is written behind what `reply` holds.
    fn forward<'a>(&'a self, message: &'a [u8], expects_reply: bool, reply: &'a mut Vec<u8>) -> Answer<'a, ()>;

    /// One command of ours on the client's behalf (its authentication inside `hello`), and what came back.
    fn command<'a>(&'a self, db: &'a str, command: Doc<'static>) -> Answer<'a, Doc<'static>>;

    /// What the client says about itself, for the server behind.
    fn introduce(&self, metadata: &Doc<'_>);

    /// The client begins to authenticate, or logs out: from now on the line cannot be opened again for it, and its user is unknown.
    fn authenticating(&self);

    /// Learns which user the line acts for, unless that is known.
    fn identify(&self) -> Answer<'_, ()>;

    /// The user that the line acts for, as `name@database`, as far as that is known; `None` for a client that has not authenticated.
    fn user(&self) -> Option<Arc<str>>;

    /// The state of the server behind; an error while it has no primary.
    fn standing(&self) -> Result<Standing>;

    /// Whether the line is lost for good: it was authenticated by the client, and only the client can do that again.
    fn is_lost(&self) -> bool;

    /// Whether both lines are known to act for the same user, so that statements of both may share a transaction (SEMANTICS R12,
    /// R37).
    fn shares_with(&self, _other: &dyn Relay) -> bool {
        false
    }

    /// Whether [`Relay::user`] is known.
    fn is_identified(&self) -> bool;

    /// Whether the client has begun to authenticate on it.
    fn is_authenticated(&self) -> bool;

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

pub trait Backend: Send + Sync + 'static {
    fn abilities(&self) -> Abilities;

    /// Nothing where an answer costs nothing.
    fn flights(&self) -> Option<&dyn Flights> {
        None
    }

    /// A line of its own for a client that has connected; nothing on the embedded store.
    fn connect(&self) -> Option<Arc<dyn Relay>> {
        None
    }

    /// Whether no rule concerns the command, so that its bytes may be passed through the client's [`Relay`] untouched.
    fn passes(&self, _command: &Head<'_>) -> bool {
        false
    }

    /// Fails if a command of the line's client is refused, whatever else is wrong with it.
    fn refuse<'a>(&'a self, _command: &'a Head<'a>, _line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether what clients see as a view takes writes: its documents are stored in another form, and the layer knows how.
    fn takes_writes(&self, _view: &Namespace) -> bool {
        false
    }

    /// Held while a command that may pass is under way: a change of what passes waits until it is dropped.
    fn under_way(&self, _command: &Head<'_>) -> Option<Box<dyn UnderWay>> {
        None
    }

    /// Held while a client has a cursor open on that namespace, between two batches: who takes the collection away waits a little
    /// until it is dropped.
    fn cursor_open(&self, _namespace: &str) -> Option<Box<dyn Any + Send + Sync>> {
        None
    }

    /// The cursors that are open on these namespaces in the server behind, as far as that can be told.
    fn open_cursors<'a>(&'a self, _namespaces: &'a [Namespace]) -> Answer<'a, Vec<i64>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// What the server behind lets the user of this line do, or of our own if there is none; `None` if nobody is restricted,
    /// as on the embedded store.
    fn privileges<'a>(&'a self, _line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, Option<Privileges>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Makes ready what fences and retry records need in that database; call it before the first rule there is maintained.
    fn prepare<'a>(&'a self, _session: &'a mut Session, _db: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How to find what this process would leave open if it were killed now; nothing on the embedded store.
    fn trace(&self) -> Option<Doc<'static>> {
        None
    }

    /// Ends the transactions of another process, by its trace, if that process is gone or its time has expired; says whether
    /// it was so.
    fn clear<'a>(&'a self, _trace: &'a Doc<'a>, _expired: bool) -> Answer<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// The transactions that are open in the server behind, of whomever; nothing if that cannot be told.
    fn open_transactions(&self) -> Answer<'_, Option<Vec<Vec<u8>>>> {
        Box::pin(std::future::ready(Ok(Some(Vec::new()))))
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()>;

    /// Whether this transaction of a session is known to have been committed, perhaps before a restart.
    fn committed(&self, _session: &[u8; 16], _number: i64) -> bool {
        false
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>>;

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written>;

    /// Several writes in order, in the session's transaction; none of them needs the outcome of another. A backend across a
    /// network sends them back to back. The outcomes end with the first failure: a statement's error counts as one. With
    /// [`Session::retry`] the first is the client's own write and has the retry record; the others follow from it. If the first
    /// is answered from its record, the others are not run.
    fn write_all<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        ops: &'a [(WriteOp, Capture)],
    ) -> Answer<'a, Vec<Result<Written>>> {
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(ops.len());
            let retry = session.retry;
            for (op, capture) in ops {
                let outcome = self.write(session, context, op, capture).await;
                session.retry = None;
                let over = |written: &Written| !written.errors.is_empty() || !written.retried.is_empty();
                let last = outcome.as_ref().map_or(true, over);
                outcomes.push(outcome);
                if last {
                    break;
                }
            }
            session.retry = retry;
            Ok(outcomes)
        })
    }

    /// Which of the statements of a retryable write ([`Session::retry`]) were answered before, and what with; looked up in the
    /// session's transaction. For who plans other statements than the client sent: its records are looked up and saved apart.
    fn recall<'a>(
        &'a self,
        _session: &'a mut Session,
        _context: &'a Context,
        _db: &'a str,
        _statements: &'a [i32],
    ) -> Answer<'a, Written> {
        Box::pin(std::future::ready(Ok(Written::default())))
    }

    /// Saves, in the session's transaction, what these statements of a retryable write answer together.
    fn remember<'a>(
        &'a self,
        _session: &'a mut Session,
        _context: &'a Context,
        _db: &'a str,
        _statements: &'a [i32],
        _written: &'a Written,
    ) -> Answer<'a, ()> {
        let refusal = Error::new(Code::InternalError, "this backend keeps no records of retryable writes");
        Box::pin(std::future::ready(Err(refusal)))
    }

    /// A client that restores a dump has connected, or has sent a command; what is returned is held until it disconnects, or the
    /// command is answered.
    fn restoring(&self, _step: Restoring) -> Option<Restorer> {
        None
    }

    /// A client that restores a dump ends these sessions. If it is done with that, answers when the data is as it should be.
    fn restored<'a>(&'a self, _sessions: &'a [[u8; 16]]) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What is passed on in place of a command that passes; `None` if it is passed on as it is.
    fn rewritten(&self, _command: &Head<'_>) -> Option<Doc<'static>> {
        None
    }

    fn fence<'a>(&'a self, session: &'a mut Session, key: &'a FenceKey, mode: Mode) -> Answer<'a, ()>;

    /// Passes many fences of one database.
    fn fence_all<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        Box::pin(async move {
            for (key, mode) in keys {
                self.fence(session, key, *mode).await?;
            }
            Ok(())
        })
    }

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

    /// The `$clusterTime` of the server behind, signed by it, to be passed on; nothing if we are that server.
    fn gossip(&self) -> Option<Doc<'static>> {
        None
    }
}
