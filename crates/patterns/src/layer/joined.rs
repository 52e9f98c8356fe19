//! Clients' transactions that live in the server behind, and commands on their way there. Both hold the rules they were begun
//! under: a rule that begins is seeded when they are over, since seeding cannot see what they have written (SEMANTICS R2, R3).

use super::Shared;
use crate::rules::Rules;
use document::Value;
use document::backend::{Head, UnderWay};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// MongoDB ends a transaction after 60 seconds, a little later than that.
const LIFETIME: Duration = Duration::from_secs(90);

/// From so many on, old ones are forgotten whenever one begins.
const MANY: usize = 1_000;

/// By session: one transaction at a time.
#[derive(Default)]
pub(super) struct Joined {
    open: Mutex<HashMap<SessionOf, Open>>,
}

/// A session of a user: as in MongoDB, users that use the same id have a session each.
pub(super) type SessionOf = ([u8; 16], Option<Arc<str>>);

struct Open {
    number: i64,
    since: Instant,
    rules: Arc<Rules>,
}

impl Joined {
    /// A statement of a transaction; the first one counts.
    pub(super) fn note(&self, session: SessionOf, number: i64, rules: &Arc<Rules>) {
        let mut open = self.open.lock();
        if open.get(&session).is_none_or(|known| known.number != number) {
            if open.len() >= MANY {
                open.retain(|_, open| open.since.elapsed() < LIFETIME);
            }
            open.insert(session, Open { number, since: Instant::now(), rules: rules.clone() });
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
pub(super) struct OnItsWay {
    _rules: Arc<Rules>,
    /// The transaction that is over when this is.
    ends: Option<(SessionOf, i64)>,
    /// The transaction that begins with this, unless the server refuses it.
    begins: Option<(SessionOf, i64)>,
    shared: Arc<Shared>,
}

impl OnItsWay {
    pub(super) fn new(shared: &Arc<Shared>, rules: Arc<Rules>, command: &Head<'_>) -> OnItsWay {
        let (mut ends, mut begins) = (None, None);
        if let Some((session, number)) = transaction(command) {
            match command.name {
                "commitTransaction" | "abortTransaction" => ends = Some((session, number)),
                _ => {
                    shared.joined.note(session.clone(), number, &rules);
                    begins = command.body.contains("startTransaction").then_some((session, number));
                }
            }
        }
        OnItsWay { _rules: rules, ends, begins, shared: shared.clone() }
    }
}

impl UnderWay for OnItsWay {
    /// A transaction whose first statement failed does not exist. A later one that failed may leave it open: a command that could
    /// not be parsed, for example.
    fn refused(&self) {
        if let Some((session, number)) = &self.begins {
            self.shared.joined.ended(session, *number);
        }
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        if let Some((session, number)) = &self.ends {
            self.shared.joined.ended(session, *number);
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
