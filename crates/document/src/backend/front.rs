//! [`Front`]: what the outermost backend does for the server that answers clients.

use super::{Answer, Backend, Class, Cursor, Facts, FenceKey, Mode, Pipelining, Relay, Remote, Route, Session};
use crate::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use crate::raw::Doc;
use std::any::Any;
use std::sync::Arc;

/// A command as far as it must be read to know who answers it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub name: &'a str,
    pub class: Class,
    pub db: &'a str,
    /// The value of the command's first field, if that is text: most often the collection.
    pub target: Option<&'a str>,
    /// The user that it is sent for, as [`Relay::user`] gives it.
    pub user: Option<&'a Arc<str>>,
    /// The whole command; its bytes are not validated yet.
    pub body: &'a Doc<'a>,
}

/// A command that may be forwarded, from its arrival to its answer.
pub trait InFlight: Send + Sync {
    /// The server behind refused the command, or the command is not forwarded.
    fn refused(&self);
}

/// A connection of a client that restores a dump, as the backend knows it.
pub type Restorer = Arc<dyn Any + Send + Sync>;

/// What a client that restores a dump does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restoring {
    Connects,
    Asks,
}

/// A backend that clients are answered from: it decides about whole commands before they are parsed.
pub trait Front: Backend {
    /// A line of its own for a client that has connected; `None` on the embedded store.
    fn connect(&self) -> Option<Arc<dyn Relay>>;

    /// Who answers the command.
    fn route(&self, command: &Head<'_>) -> Route;

    /// What is forwarded in place of a command that is; `None` if it is forwarded as it is.
    fn rewritten(&self, command: &Head<'_>) -> Option<Doc<'static>>;

    /// Fails if a command of the line's client is refused, whatever else is wrong with it.
    fn refuse<'a>(&'a self, command: &'a Head<'a>, line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, ()>;

    /// The database that clients mean by a name that is none of a database; `None` if the name means itself.
    fn database(&self, name: &str) -> Option<String>;

    /// The server keeps it while a command that may be forwarded is under way: a change of what is forwarded waits until it is
    /// dropped.
    fn in_flight(&self, command: &Head<'_>) -> Option<Box<dyn InFlight>>;

    /// The server keeps it while a client has a cursor open on that namespace, between two batches: whoever takes the collection
    /// away waits a little until it is dropped.
    fn cursor_open(&self, namespace: &str) -> Option<Box<dyn Any + Send + Sync>>;

    /// Whether what clients see as a view takes writes: its documents are stored in another form, and the layer knows how.
    fn takes_writes(&self, view: &Namespace) -> bool;

    /// A client that restores a dump has connected, or has sent a command; the server keeps what is returned until the client
    /// disconnects, or the command is answered.
    fn restoring(&self, step: Restoring) -> Option<Restorer>;

    /// A client that restores a dump ends these sessions. If it is done with that, answers when the data is as it should be.
    fn restored<'a>(&'a self, sessions: &'a [[u8; 16]]) -> Answer<'a, ()>;
}

/// A backend without rules: every command that can be forwarded is.
pub struct Unruled(pub Arc<dyn Backend>);

impl Front for Unruled {
    fn connect(&self) -> Option<Arc<dyn Relay>> {
        self.0.remote().map(Remote::connect)
    }

    fn route(&self, _: &Head<'_>) -> Route {
        if self.0.remote().is_some() { Route::Forward } else { Route::Plain }
    }

    fn rewritten(&self, _: &Head<'_>) -> Option<Doc<'static>> {
        None
    }

    fn refuse<'a>(&'a self, _: &'a Head<'a>, _: Option<&'a Arc<dyn Relay>>) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn database(&self, _: &str) -> Option<String> {
        None
    }

    fn in_flight(&self, _: &Head<'_>) -> Option<Box<dyn InFlight>> {
        None
    }

    fn cursor_open(&self, _: &str) -> Option<Box<dyn Any + Send + Sync>> {
        None
    }

    fn takes_writes(&self, _: &Namespace) -> bool {
        false
    }

    fn restoring(&self, _: Restoring) -> Option<Restorer> {
        None
    }

    fn restored<'a>(&'a self, _: &'a [[u8; 16]]) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Backend for Unruled {
    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        self.0.begin(session, context)
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        self.0.read(session, context, op)
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        self.0.write(session, context, op, capture)
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        self.0.fences(session, keys)
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        self.0.recall(session, context, db, statements)
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        self.0.remember(session, context, db, statements, written)
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        self.0.explain(session, context, op, verbosity)
    }

    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        self.0.admin(session, context, op)
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.0.committed(session, number)
    }

    fn cluster_time(&self) -> u64 {
        self.0.cluster_time()
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        self.0.pipelining()
    }

    fn remote(&self) -> Option<&dyn Remote> {
        self.0.remote()
    }
}
