//! Logical sessions: the number of the last retryable write or transaction of each, and the transaction that is open.
//!
//! A session with a number is used by one command at a time: a retry that arrives while the first attempt still runs waits
//! for it. While a command runs, the open transaction is in its hands; one that is lost on the way counts as aborted.

use crate::commands::{Command, InTransaction};
use crate::cursors::name;
use crate::request::Generic;
use document::backend::{Session, Transaction};
use document::{Code, Error, Result};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// How a command stands to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// A write that may be sent again under the same number.
    Retryable {
        number: i64,
    },
    /// A statement of a transaction, or its end.
    InTransaction {
        number: i64,
        first: bool,
    },
}

impl Role {
    /// Checks that the session's parameters fit together and that the command may carry them.
    pub(crate) fn of(generic: &Generic<'_>, command: &Command) -> Result<Role> {
        let invalid = |message: &str| Err(Error::new(Code::InvalidOptions, message));
        let Some(number) = generic.txn_number else {
            if generic.autocommit.is_some() {
                return invalid("'autocommit' field requires a transaction number to also be specified");
            }
            if generic.start_transaction.is_some() {
                return invalid("'startTransaction' field requires a transaction number to also be specified");
            }
            return Ok(Role::Plain);
        };
        if generic.session.is_none() {
            return invalid("Transaction number requires a session ID to also be specified");
        }
        if number < 0 {
            return invalid("Transaction number cannot be negative");
        }
        match (generic.autocommit, generic.start_transaction) {
            (Some(true), _) => invalid("Specifying autocommit=true is not allowed."),
            (_, Some(false)) => invalid("Specifying startTransaction=false is not allowed."),
            (None, Some(true)) => invalid("'startTransaction' field requires 'autocommit' field to also be specified"),
            (None, None) if command.retryable => Ok(Role::Retryable { number }),
            (None, None) if matches!(command.in_transaction, InTransaction::Outside) => {
                Err(Error::new(Code::Location(50889), "It is illegal to provide a txnNumber for this command"))
            }
            (None, None) => Err(Error::new(
                Code::NotARetryableWriteCommand,
                format!(
                    "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and {} is not a retryable write command.",
                    command.names.first().unwrap_or(&"it")
                ),
            )),
            (Some(false), start) => Ok(Role::InTransaction { number, first: start == Some(true) }),
        }
    }
}

#[derive(Default)]
pub(crate) struct Sessions {
    numbered: Mutex<HashMap<Key, Entry>>,
}

/// As in MongoDB, users that use the same id have a session each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    id: [u8; 16],
    user: Option<Arc<str>>,
}

impl Key {
    /// A session where nobody authenticates.
    fn of(id: &[u8; 16]) -> Key {
        Key { id: *id, user: None }
    }
}

struct Entry {
    used: Instant,
    state: Arc<tokio::sync::Mutex<State>>,
}

/// mongod's limit, so that nobody fills the memory with sessions.
const MAX_SESSIONS: usize = 1_000_000;

struct State {
    /// The newest number seen; -1 before the first.
    number: i64,
    phase: Phase,
}

enum Phase {
    Fresh,
    RetryableWrite,
    /// Nothing in it while a command works in the transaction.
    Open {
        transaction: Option<Box<dyn Transaction>>,
        ends: Instant,
    },
    Committed,
    Aborted,
}

/// A session in the hands of one command.
pub(crate) struct Visit {
    state: OwnedMutexGuard<State>,
}

impl Sessions {
    /// Waits until no other command uses the session.
    pub(crate) async fn visit(&self, session: &[u8; 16], user: Option<Arc<str>>) -> Result<Visit> {
        let key = Key { id: *session, user };
        let state = {
            let mut numbered = self.numbered.lock();
            if numbered.len() >= MAX_SESSIONS && !numbered.contains_key(&key) {
                return Err(Error::new(Code::Location(261), "cannot add session into the cache"));
            }
            let entry = numbered.entry(key).or_insert_with(|| Entry {
                used: Instant::now(),
                state: Arc::new(tokio::sync::Mutex::new(State { number: -1, phase: Phase::Fresh })),
            });
            entry.used = Instant::now();
            entry.state.clone()
        };
        Ok(Visit { state: state.lock_owned().await })
    }

    /// Forgets a session that the client will not use again, unless it has a transaction open: that ends by itself.
    pub(crate) fn end(&self, session: &[u8; 16]) {
        let is_open =
            |entry: &Entry| entry.state.try_lock().map_or(true, |state| matches!(state.phase, Phase::Open { .. }));
        let mut numbered = self.numbered.lock();
        if numbered.get(&Key::of(session)).is_some_and(|entry| !is_open(entry)) {
            numbered.remove(&Key::of(session));
        }
    }

    /// Kills a session: its transaction is aborted. Gives the transaction's number, if one was open.
    pub(crate) fn kill(&self, session: &[u8; 16]) -> Option<i64> {
        let entry = self.numbered.lock().remove(&Key::of(session))?;
        // If a command is in it, that command finds its transaction forgotten by the next one.
        let mut state = entry.state.try_lock().ok()?;
        state.abort_open()
    }

    pub(crate) fn all(&self) -> Vec<[u8; 16]> {
        self.numbered.lock().keys().map(|key| key.id).collect()
    }

    pub(crate) fn touch(&self, session: &[u8; 16]) {
        if let Some(entry) = self.numbered.lock().get_mut(&Key::of(session)) {
            entry.used = Instant::now();
        }
    }

    /// How many sessions are known and how many transactions are open in them.
    pub(crate) fn count(&self) -> (usize, usize) {
        let numbered = self.numbered.lock();
        // One that is locked has a command in it: as good as open.
        let open =
            |entry: &&Entry| entry.state.try_lock().map_or(true, |state| matches!(state.phase, Phase::Open { .. }));
        (numbered.len(), numbered.values().filter(open).count())
    }

    /// Aborts transactions past their end and forgets sessions not used for `timeout`. Gives the aborted ones.
    pub(crate) fn expire(&self, now: Instant, timeout: Duration) -> Vec<([u8; 16], i64)> {
        let mut aborted = Vec::new();
        let mut dropped = Vec::new();
        self.numbered.lock().retain(|session, entry| {
            // A locked one is in use and ends by its own deadline.
            let Ok(mut state) = entry.state.try_lock() else { return true };
            if matches!(&state.phase, Phase::Open { ends, .. } if now > *ends) {
                aborted.push((session.id, state.number));
                dropped.push(std::mem::replace(&mut state.phase, Phase::Aborted));
            }
            matches!(state.phase, Phase::Open { .. }) || now.saturating_duration_since(entry.used) < timeout
        });
        drop(dropped);
        aborted
    }
}

impl Visit {
    /// A retryable write begins or continues. Gives the number of a transaction that it ended by being newer.
    pub(crate) fn retryable(&mut self, session: &[u8; 16], number: i64) -> Result<Option<i64>> {
        let state = &mut *self.state;
        if number < state.number {
            let newer = state.number;
            let (kind, what) = match state.phase {
                Phase::Fresh | Phase::RetryableWrite => ("retryable write with txnNumber", format!("{newer}")),
                _ => ("transaction with txnNumberAndRetryCounter", retry_counter(newer)),
            };
            return Err(Error::new(
                Code::TransactionTooOld,
                format!(
                    "Retryable write with txnNumber {number} is prohibited on session {} because a newer {kind} {what} has already started on this session.",
                    name(session)
                ),
            ));
        }
        if number == state.number && !matches!(state.phase, Phase::Fresh | Phase::RetryableWrite) {
            return Err(Error::new(
                Code::IncompleteTransactionHistory,
                format!("txnNumber {number} was used for a transaction and cannot be used for a retryable write"),
            ));
        }
        let ended = state.abort_open();
        state.number = number;
        state.phase = Phase::RetryableWrite;
        Ok(ended)
    }

    /// A transaction begins: the caller makes it in the backend. Gives the number of one that it ended by being newer.
    pub(crate) fn start(&mut self, session: &[u8; 16], number: i64, ends: Instant) -> Result<Option<i64>> {
        let state = &mut *self.state;
        if number < state.number {
            return Err(too_old(session, number, state.number));
        }
        if number == state.number {
            return Err(Error::new(
                Code::ConflictingOperationInProgress,
                "Only servers in a sharded cluster can start a new transaction at the active transaction number",
            ));
        }
        let ended = state.abort_open();
        state.number = number;
        state.phase = Phase::Open { transaction: None, ends };
        Ok(ended)
    }

    /// A transaction continues: hands it to the command, with the time it ends.
    pub(crate) fn resume(&mut self, session: &[u8; 16], number: i64, into: &mut Session) -> Result<Instant> {
        let state = &mut *self.state;
        if number < state.number {
            return Err(too_old(session, number, state.number));
        }
        if number > state.number || matches!(state.phase, Phase::Fresh | Phase::RetryableWrite) {
            return Err(Error::new(
                Code::NoSuchTransaction,
                format!(
                    "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {}",
                    state.number
                ),
            ));
        }
        match &mut state.phase {
            Phase::Committed => Err(Error::new(
                Code::TransactionCommitted,
                format!("Transaction with {{ txnNumber: {number} }} has been committed."),
            )),
            Phase::Open { transaction, ends } if transaction.is_some() && Instant::now() <= *ends => {
                into.transaction = transaction.take();
                Ok(*ends)
            }
            phase => {
                *phase = Phase::Aborted;
                Err(Error::new(
                    Code::NoSuchTransaction,
                    format!("Transaction with {{ txnNumber: {number} }} has been aborted."),
                ))
            }
        }
    }

    /// Whether nothing is known of the session's numbers.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.state.phase, Phase::Fresh)
    }

    /// The backend remembers that the session's last transaction was committed.
    pub(crate) fn recall_commit(&mut self, number: i64) {
        *self.state = State { number, phase: Phase::Committed };
    }

    /// Whether this very transaction is committed: committing it again is a success.
    pub(crate) fn is_committed(&self, number: i64) -> bool {
        self.state.number == number && matches!(self.state.phase, Phase::Committed)
    }

    /// The statement succeeded: the transaction waits for the next one.
    pub(crate) fn keep(&mut self, from: &mut Session) {
        if let Phase::Open { transaction, .. } = &mut self.state.phase {
            *transaction = from.transaction.take();
        }
    }

    pub(crate) fn commit(&mut self) {
        self.state.phase = Phase::Committed;
    }

    pub(crate) fn abort(&mut self) {
        self.state.phase = Phase::Aborted;
    }
}

impl State {
    /// Aborts the open transaction, if there is one, and gives its number.
    fn abort_open(&mut self) -> Option<i64> {
        match std::mem::replace(&mut self.phase, Phase::Aborted) {
            Phase::Open { transaction, .. } => {
                if let Some(transaction) = transaction {
                    transaction.abort();
                }
                Some(self.number)
            }
            other => {
                self.phase = other;
                None
            }
        }
    }
}

fn too_old(session: &[u8; 16], number: i64, newer: i64) -> Error {
    Error::new(
        Code::TransactionTooOld,
        format!(
            "Cannot start transaction with {{ txnNumber: {number} }} on session {} because a newer transaction with txnNumberAndRetryCounter {} has already started on this session.",
            name(session),
            retry_counter(newer)
        ),
    )
}

fn retry_counter(number: i64) -> String {
    format!("{{ txnNumber: {number}, txnRetryCounter: 0 }}")
}
