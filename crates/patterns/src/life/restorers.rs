//! The clients that restore dumps, and which databases each of them restores. What such a client calls itself proves nothing: it counts from
//! the first rule on that it lets rest or brings, with its own rights. Its restore of a database is over when it ends the sessions in
//! which it did so, or when its connections are gone.

use crate::life::Life;
use crate::rule::State;
use document::Result;
use document::backend::Session;
use document::op::Namespace;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long other clients wait for the rules when a restore is done: for small databases they are on by then.
const WRITES_WAIT: Duration = Duration::from_secs(5);

/// The same for questions about rules.
const VERBS_WAIT: Duration = Duration::from_secs(60);

/// A tool that is connected and asks nothing for so long is not at its end: it reads its files.
const PAUSE: Duration = Duration::from_millis(300);

/// One that asks nothing for so long has stopped without saying so.
const SILENCE: Duration = Duration::from_secs(60);

/// How often waiting clients look.
const LOOK: Duration = Duration::from_millis(10);

/// The restores that are under way.
#[derive(Debug, Default)]
pub(crate) struct Restores {
    state: Mutex<RestoreState>,
    /// Whether any database is pending, for a short look.
    is_any: AtomicBool,
}

#[derive(Debug, Default)]
struct RestoreState {
    /// Counts the connections that have called themselves a tool that restores.
    numbered: u64,
    /// How many of their commands are under way, and when the last one was answered.
    commands: usize,
    answered: Option<Instant>,
    /// The client that restores each database; one that is not listed is not being restored.
    databases: BTreeMap<Arc<str>, Restoring>,
    /// Databases whose rules rest, or are not on yet since then.
    pending: BTreeSet<Arc<str>>,
}

/// Who restores a database.
#[derive(Debug, Default)]
struct Restoring {
    connections: BTreeSet<u64>,
    sessions: BTreeSet<[u8; 16]>,
    /// The catalog was dropped: rows of the dump take the place of those that are there.
    replaces_catalog: bool,
}

impl RestoreState {
    fn is_restoring(&self, db: &str) -> bool {
        let is_silent = self.commands == 0 && self.answered.is_some_and(|answered| answered.elapsed() > SILENCE);
        self.databases.contains_key(db) && !is_silent
    }
}

/// Held while a client that restores is connected.
pub(crate) struct Restorer {
    life: Weak<Life>,
    number: u64,
}

/// The connection and the session of a command that restores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestoredBy {
    connection: Option<u64>,
    session: Option<[u8; 16]>,
}

impl RestoredBy {
    pub(crate) fn of(session: &Session) -> RestoredBy {
        let restorer = session.restorer.as_ref().and_then(|known| known.downcast_ref::<Restorer>());
        RestoredBy { connection: restorer.map(|restorer| restorer.number), session: session.id }
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        let Some(life) = self.life.upgrade() else { return };
        let mut state = life.restores.state.lock();
        state.answered = Some(Instant::now());
        state.databases.retain(|_, restoring| {
            restoring.connections.remove(&self.number);
            !restoring.connections.is_empty()
        });
        drop(state);
        life.wake_reconciler.notify_one();
    }
}

/// Held while such a client waits for an answer.
pub(crate) struct Asks(Weak<Life>);

impl Drop for Asks {
    fn drop(&mut self) {
        let Some(life) = self.0.upgrade() else { return };
        let mut state = life.restores.state.lock();
        state.answered = Some(Instant::now());
        state.commands = state.commands.saturating_sub(1);
    }
}

impl Life {
    /// A client that restores has connected.
    pub(crate) fn restorer(self: &Arc<Self>) -> Restorer {
        let mut state = self.restores.state.lock();
        state.numbered += 1;
        Restorer { life: Arc::downgrade(self), number: state.numbered }
    }

    /// Such a client asks something.
    pub(crate) fn restorer_asks(self: &Arc<Self>) -> Asks {
        self.restores.state.lock().commands += 1;
        Asks(Arc::downgrade(self))
    }

    /// Whether a restore of the database is under way.
    pub(crate) fn is_restoring(&self, db: &str) -> bool {
        self.restores.state.lock().is_restoring(db)
    }

    /// Whether rules of the database rest, or are not on yet since then.
    pub(crate) fn is_pending(&self, db: &str) -> bool {
        self.restores.is_any.load(Ordering::Relaxed) && self.restores.state.lock().pending.contains(db)
    }

    /// The client brings or changes rules of the database.
    pub(super) fn begin_restore(&self, db: &str, by: RestoredBy) {
        self.restores_now(db, by, |_| {});
        self.restores.state.lock().pending.insert(db.into());
        self.restores.is_any.store(true, Ordering::Relaxed);
    }

    fn restores_now(&self, db: &str, by: RestoredBy, note: impl FnOnce(&mut Restoring)) {
        let mut state = self.restores.state.lock();
        let restoring = state.databases.entry(db.into()).or_default();
        restoring.connections.extend(by.connection);
        restoring.sessions.extend(by.session);
        note(restoring);
    }

    /// Waits for the rules of the database (of all, if none is named) after a restore, so that the next command finds them in
    /// force. A restore that is under way is not waited for, and neither are rules that take long.
    pub(crate) async fn after_restore(&self, db: Option<&str>, for_verb: bool) {
        let limit = if for_verb { VERBS_WAIT } else { WRITES_WAIT };
        while self.restores.is_any.load(Ordering::Relaxed) && self.waits_for_restore(db, limit) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Lets a write wait that comes behind a restore, until the rules are in force.
    pub(crate) async fn until_restored(&self, session: &mut Session, ns: &Namespace) {
        let is_apart = session.restores() || session.transaction.is_some() || session.joined.is_some();
        if !is_apart && self.is_pending(&ns.db) {
            self.after_restore(Some(&ns.db), false).await;
        }
    }

    fn waits_for_restore(&self, db: Option<&str>, limit: Duration) -> bool {
        let entries = self.entries();
        let is_over = |db: &Arc<str>| {
            entries.iter().all(|entry| entry.db != *db || entry.row.state == State::On || entry.problem.is_some())
        };
        let mut state = self.restores.state.lock();
        let RestoreState { databases, pending, .. } = &mut *state;
        pending.retain(|db| databases.contains_key(db) || !is_over(db));
        self.restores.is_any.store(!pending.is_empty(), Ordering::Relaxed);
        let since = state.answered.map(|answered| answered.elapsed()).unwrap_or_default();
        let waits_for = |pending: &Arc<str>| match state.databases.contains_key(pending) {
            true => state.commands == 0 && since < PAUSE,
            false => since < limit,
        };
        state.pending.iter().any(|pending| db.is_none_or(|db| **pending == *db) && waits_for(pending))
    }

    /// A client ends these sessions. If it has restored databases in them, that is done: returns when their rules are on, or one
    /// does not get on.
    pub(crate) async fn end_restore(&self, sessions: &[[u8; 16]]) -> Result<()> {
        let mut ended = Vec::new();
        self.restores.state.lock().databases.retain(|db, restoring| {
            let before = restoring.sessions.len();
            restoring.sessions.retain(|session| !sessions.contains(session));
            let is_over = before > 0 && restoring.sessions.is_empty();
            ended.extend(is_over.then(|| db.clone()));
            !is_over
        });
        if ended.is_empty() {
            return Ok(());
        }
        self.wake_reconciler.notify_one();
        for db in ended {
            self.settle(&db).await?;
        }
        Ok(())
    }

    /// The catalog of a database is to be that of the dump. Nothing is dropped: a rule that the dump lacks stays, since its
    /// documents may stay too, and no moment exists in which a stop would lose the rules.
    pub(crate) fn replace_catalog(&self, db: &str, by: RestoredBy) {
        self.restores_now(db, by, |restoring| restoring.replaces_catalog = true);
    }

    /// Whether rows of the dump take the place of those that are there.
    pub(super) fn replaces_catalog(&self, db: &str) -> bool {
        self.restores.state.lock().databases.get(db).is_some_and(|restoring| restoring.replaces_catalog)
    }
}
