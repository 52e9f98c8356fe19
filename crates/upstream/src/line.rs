//! A line to the primary: one connection at a time, opened when it is first needed, opened again after a failover.
//!
//! A client's line carries the client's own authentication; once that has begun, a broken connection is the end of the line,
//! because only the client can authenticate again. A line of our own logs in as the connection string's user.

use crate::answer;
use crate::command::Command;
use crate::connection::Connection;
use crate::repeated_writes::RepeatedWrites;
use crate::shared::Shared;
use crate::topology::Primary;
use document::backend::{Answer, Relay, Standing};
use document::error::label;
use document::{Code, Doc, Error, Result};
use parking_lot::Mutex as PlainMutex;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use wire::Header;

/// How long a command waits while the primary is being looked for; after that it fails.
const CHECKING: Duration = Duration::from_millis(500);

pub(crate) struct Line {
    pub(crate) shared: Arc<Shared>,
    /// A client's line; ours otherwise.
    of_client: bool,
    open: Mutex<Option<Connection>>,
    authenticated: AtomicBool,
    lost: AtomicBool,
    metadata: PlainMutex<Option<Doc<'static>>>,
    /// The session of planned transactions on this line, and their numbers.
    session: OnceLock<[u8; 16]>,
    last_number: AtomicI64,
    /// The retryable writes whose records were met behind a statement already sent: each is looked up first the next time.
    pub(crate) repeated: PlainMutex<RepeatedWrites>,
    user: PlainMutex<User>,
}

/// The user that a line acts for.
#[derive(Clone)]
enum User {
    Unknown,
    /// `None` before the client authenticates, and on lines of our own.
    Known(Option<Arc<str>>),
}

/// The line's connection in the hands of one command.
pub(crate) struct Ready<'l> {
    line: &'l Line,
    guard: MutexGuard<'l, Option<Connection>>,
}

impl Line {
    pub(crate) fn new(shared: Arc<Shared>, of_client: bool) -> Line {
        Line {
            shared,
            of_client,
            open: Mutex::new(None),
            authenticated: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            metadata: PlainMutex::new(None),
            session: OnceLock::new(),
            last_number: AtomicI64::new(0),
            repeated: PlainMutex::default(),
            user: PlainMutex::new(User::Known(None)),
        }
    }

    /// The session that planned transactions on this line use; one at a time.
    pub(crate) fn session(&self) -> [u8; 16] {
        *self.session.get_or_init(|| self.shared.leftover.session())
    }

    pub(crate) fn next_number(&self) -> i64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether commands may go on over a new connection after this one breaks.
    pub(crate) fn can_reconnect(&self) -> bool {
        !self.authenticated.load(Ordering::Relaxed)
    }

    /// The connection to the primary of now.
    pub(crate) async fn ready(&self) -> Result<Ready<'_>> {
        let mut guard = self.open.lock().await;
        let current = self.shared.topology.generation();
        match guard.as_ref() {
            Some(connection) if connection.is_usable() && connection.generation == current => {}
            _ => {
                if guard.take().is_some() && !self.can_reconnect() || self.lost.load(Ordering::Relaxed) {
                    self.lost.store(true, Ordering::Relaxed);
                    return Err(Error::new(
                        Code::InterruptedDueToReplStateChange,
                        "the primary has changed since this connection was authenticated: connect again",
                    )
                    .with_label(label::TRANSIENT)
                    .with_label(label::RETRYABLE));
                }
                *guard = Some(self.connect().await?);
            }
        }
        Ok(Ready { line: self, guard })
    }

    async fn connect(&self) -> Result<Connection> {
        let (primary, generation) = self.primary().await?;
        let metadata = self.metadata.lock().clone();
        let opened = self.shared.connector.open(&primary.host, generation, metadata.as_ref()).await;
        let (mut connection, _) = opened.map_err(|error| {
            self.shared.topology.suspect(generation);
            answer::lost(&primary.host, &error)
        })?;
        if !self.of_client {
            self.shared.connector.login(&mut connection).await?;
        }
        Ok(connection)
    }

    /// The primary; waits a moment while it is being found out.
    async fn primary(&self) -> Result<(Primary, u64)> {
        let topology = &self.shared.topology;
        let mut states = topology.subscribe();
        let settled = tokio::time::timeout(CHECKING, states.wait_for(|state| !state.checking)).await;
        drop(settled);
        // The generation changes under the state's lock: read together they belong together.
        let state = topology.state();
        let generation = topology.generation();
        match &state.primary {
            Some(primary) => Ok((primary.clone(), generation)),
            None => Err(no_primary()),
        }
    }

    /// Runs one command by itself.
    pub(crate) async fn run(&self, command: Command) -> Result<Doc<'static>> {
        let mut ready = self.ready().await?;
        ready.push(command);
        ready.flush().await?;
        answer::checked(ready.reply().await?)
    }
}

pub(crate) fn no_primary() -> Error {
    Error::new(Code::NotWritablePrimary, "no primary of the upstream MongoDB is known at the moment")
        .with_label(label::TRANSIENT)
        .with_label(label::RETRYABLE)
}

impl Ready<'_> {
    fn connection(&mut self) -> Result<&mut Connection> {
        self.guard.as_mut().ok_or_else(no_primary)
    }

    pub(crate) fn push(&mut self, command: Command) {
        if let Some(connection) = self.guard.as_mut() {
            connection.push(command);
        }
    }

    pub(crate) async fn flush(&mut self) -> Result<()> {
        let result = self.connection()?.flush().await;
        self.noted(result)
    }

    /// The next reply, error or not.
    pub(crate) async fn reply(&mut self) -> Result<Doc<'static>> {
        let result = self.connection()?.reply().await;
        let reply = self.noted(result)?;
        let shared = &self.line.shared;
        shared.time.note(&reply);
        if let Some(code) = answer::number(&reply, "code")
            && answer::is_state_change(i32::try_from(code).unwrap_or_default())
            && let Some(connection) = self.guard.as_ref()
        {
            shared.topology.suspect(connection.generation);
        }
        Ok(reply)
    }

    /// A broken connection is closed, and the task that watches the primary is woken.
    fn noted<T>(&mut self, result: std::io::Result<T>) -> Result<T> {
        result.map_err(|error| {
            let Some(connection) = self.guard.take() else { return no_primary() };
            if !self.line.can_reconnect() {
                self.line.lost.store(true, Ordering::Relaxed);
            }
            self.line.shared.topology.suspect(connection.generation);
            answer::lost(&connection.host, &error)
        })
    }
}

impl Relay for Line {
    fn forward<'a>(&'a self, message: &'a [u8], expects_reply: bool, reply: &'a mut Vec<u8>) -> Answer<'a, ()> {
        Box::pin(async move {
            let start = reply.len();
            let mut ready = self.ready().await?;
            let topology = &self.shared.topology;
            let is_current = |generation| generation == topology.generation();
            let result = ready.connection()?.exchange(message, expects_reply, reply, is_current).await;
            if let Err(error) = ready.noted(result) {
                reply.truncate(start);
                return Err(error);
            }
            if let Some(code) = failure(reply.get(start..).unwrap_or_default())
                && answer::is_state_change(code)
                && let Some(connection) = ready.guard.as_ref()
            {
                topology.suspect(connection.generation);
            }
            Ok(())
        })
    }

    fn command<'a>(&'a self, db: &'a str, command: Doc<'static>) -> Answer<'a, Doc<'static>> {
        Box::pin(async move { self.run(Command::of(db, &command)).await })
    }

    fn introduce(&self, metadata: &Doc<'_>) {
        self.metadata.lock().get_or_insert_with(|| metadata.clone().into_owned());
    }

    fn authenticating(&self) {
        self.authenticated.store(true, Ordering::Relaxed);
        *self.user.lock() = User::Unknown;
    }

    fn identify(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            if !self.is_identified() {
                let users = crate::privileges::of_line(self).await?.users;
                *self.user.lock() = User::Known((!users.is_empty()).then(|| users.join(" ").into()));
            }
            Ok(())
        })
    }

    fn user(&self) -> Option<Arc<str>> {
        match &*self.user.lock() {
            User::Known(user) => user.clone(),
            User::Unknown => None,
        }
    }

    fn is_identified(&self) -> bool {
        matches!(*self.user.lock(), User::Known(_))
    }

    fn standing(&self) -> Result<Standing> {
        match &self.shared.topology.state().primary {
            Some(primary) => {
                Ok(Standing { max_wire_version: primary.max_wire_version, session_minutes: primary.session_minutes })
            }
            None => Err(no_primary()),
        }
    }

    fn is_authenticated(&self) -> bool {
        !self.can_reconnect()
    }

    fn shares_with(&self, other: &dyn Relay) -> bool {
        self.is_identified() && other.is_identified() && self.user() == other.user()
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The error code of a forwarded reply, if it is an error. The reply is walked on its first level only.
fn failure(reply: &[u8]) -> Option<i32> {
    const BODY: usize = Header::SIZE + 5;
    let body = Doc::trusted(reply.get(BODY..)?);
    if body.get("ok")?.is_truthy() {
        return None;
    }
    answer::number(&body, "code").and_then(|code| i32::try_from(code).ok())
}
