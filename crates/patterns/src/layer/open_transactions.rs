//! Clients' transactions that live in the server behind, and commands on their way there. Both hold the rules they were begun
//! under: a rule that begins is seeded when they are over, since seeding cannot see what they have written (SEMANTICS R2, R3).

use crate::active::Rules;
use document::Value;
use document::backend::{Head, InFlight};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// MongoDB ends a transaction after 60 seconds, a little later than that.
const LIFETIME: Duration = Duration::from_secs(90);

/// From so many on, old ones are forgotten whenever one begins.
const MANY: usize = 1_000;

/// By session: one transaction at a time.
#[derive(Default)]
pub(super) struct OpenTransactions {
    open: Mutex<HashMap<SessionOf, Open>>,
}

/// A session of a user: as in MongoDB, users that use the same id have a session each.
pub(super) type SessionOf = ([u8; 16], Option<Arc<str>>);

struct Open {
    number: i64,
    since: Instant,
    rules: Arc<Rules>,
    /// How many of its statements are on their way.
    on_their_way: usize,
    /// A statement of it was not refused, so the server has it.
    is_there: bool,
}

impl OpenTransactions {
    /// A statement of a transaction that is run here; the rules of the first one count.
    pub(super) fn note(&self, session: SessionOf, number: i64, rules: &Arc<Rules>) {
        self.with(session, number, rules, |open| open.is_there = true);
    }

    /// A statement that is passed on. Whether there is such a transaction is known when it is answered.
    fn note_passing(&self, session: SessionOf, number: i64, rules: &Arc<Rules>) {
        self.with(session, number, rules, |open| open.on_their_way += 1);
    }

    fn with(&self, session: SessionOf, number: i64, rules: &Arc<Rules>, note: impl FnOnce(&mut Open)) {
        let mut open = self.open.lock();
        if open.len() >= MANY {
            open.retain(|_, open| open.since.elapsed() < LIFETIME);
        }
        let begun = || Open { number, since: Instant::now(), rules: rules.clone(), on_their_way: 0, is_there: false };
        let known = open.entry(session).or_insert_with(begun);
        if known.number != number {
            *known = begun();
        }
        note(known);
    }

    /// A statement that was passed on has been answered, or is not passed on. A transaction of which every statement was refused does
    /// not exist. One that is known to exist may survive a refusal: of a command that could not be parsed, for example.
    fn passed(&self, session: &SessionOf, number: i64, refused: bool) {
        let mut open = self.open.lock();
        let Some(known) = open.get_mut(session).filter(|known| known.number == number) else { return };
        known.on_their_way = known.on_their_way.saturating_sub(1);
        known.is_there |= !refused;
        if !known.is_there && known.on_their_way == 0 {
            open.remove(session);
        }
    }

    /// Whether the transaction began under other rules than these.
    pub(super) fn began_before(&self, session: &SessionOf, number: i64, rules: &Arc<Rules>) -> bool {
        let open = self.open.lock();
        open.get(session).is_some_and(|known| known.number == number && !Arc::ptr_eq(&known.rules, rules))
    }

    pub(super) fn ended(&self, session: &SessionOf, number: i64) {
        let mut open = self.open.lock();
        if open.get(session).is_some_and(|known| known.number == number) {
            open.remove(session);
        }
    }

    /// Forgets those that the server has ended by now.
    pub(super) fn forget_old(&self) {
        self.open.lock().retain(|_, open| open.since.elapsed() < LIFETIME);
    }
}

/// A command on its way.
pub(super) struct CommandInFlight {
    _rules: Arc<Rules>,
    /// The transaction that it is a statement of …
    of: Option<(SessionOf, i64)>,
    /// … and whether that is over with it.
    ends: bool,
    refused: AtomicBool,
    transactions: Arc<OpenTransactions>,
}

impl CommandInFlight {
    pub(super) fn new(transactions: &Arc<OpenTransactions>, rules: Arc<Rules>, command: &Head<'_>) -> CommandInFlight {
        let of = transaction(command);
        let ends = command.class.ends_transaction();
        if let Some((session, number)) = &of
            && !ends
        {
            transactions.note_passing(session.clone(), *number, &rules);
        }
        CommandInFlight { _rules: rules, of, ends, refused: AtomicBool::new(false), transactions: transactions.clone() }
    }
}

impl InFlight for CommandInFlight {
    fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

impl Drop for CommandInFlight {
    fn drop(&mut self) {
        match &self.of {
            Some((session, number)) if self.ends => self.transactions.ended(session, *number),
            Some((session, number)) => {
                self.transactions.passed(session, *number, self.refused.load(Ordering::Relaxed));
            }
            None => {}
        }
    }
}

/// The session and number of the transaction that a command belongs to.
fn transaction(command: &Head<'_>) -> Option<(SessionOf, i64)> {
    command.body.get("autocommit")?;
    let Some(Value::Int64(number)) = command.body.get("txnNumber") else { return None };
    let Some(Value::Document(session)) = command.body.get("lsid") else { return None };
    match session.get("id") {
        Some(Value::Binary { bytes, .. }) => Some(((bytes.as_slice().try_into().ok()?, command.user.cloned()), number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_noted_until_all_its_statements_were_refused() {
        let (joined, rules, session) = (OpenTransactions::default(), Arc::new(Rules::default()), ([1; 16], None));
        let (later, number) = (Arc::new(Rules::default()), 7);
        let is_noted = || joined.began_before(&session, number, &later);
        joined.note_passing(session.clone(), number, &rules);
        assert!(is_noted());
        joined.passed(&session, number, true);
        assert!(!is_noted());
        // Two at a time: the one that is not refused counts, whichever ends first.
        for first_is_refused in [true, false] {
            joined.note_passing(session.clone(), number, &rules);
            joined.note_passing(session.clone(), number, &rules);
            joined.passed(&session, number, first_is_refused);
            joined.passed(&session, number, !first_is_refused);
            assert!(is_noted());
            // A refusal of a transaction that is there leaves it.
            joined.note_passing(session.clone(), number, &rules);
            joined.passed(&session, number, true);
            assert!(is_noted());
            joined.ended(&session, number);
            assert!(!is_noted());
        }
    }
}
