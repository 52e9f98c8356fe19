//! What clients do: commands counted by shape, second reads, time by collection; and the profiler, which sees the same.
//!
//! A connection has a [`Watch`]. It looks at a command's bytes before it is answered and at the reply's bytes after, wherever the answer
//! comes from, so that forwarded commands are counted as others are. Nothing is allocated for a shape that the connection has seen, and
//! nothing but a few counters is shared between connections. What is counted is bounded ([`bounded`]).

mod bounded;
mod ids;
mod namespaces;
mod outcome;
mod report;
mod second_reads;
mod shapes;
mod watch;

pub(crate) use namespaces::{Activity, Kind};
pub(crate) use outcome::Outcome;
pub(crate) use watch::{Seen, Watch};

use crate::identity;
use bounded::Bounded;
use document::Doc;
use hashbrown::HashMap;
use namespaces::Namespaces;
use parking_lot::Mutex;
use second_reads::SecondRead;
use shapes::Shape;
use std::sync::Arc;

/// How many shapes are kept, and as many second reads.
pub(crate) const SHAPES: usize = 1_000;

/// Of so many open cursors it is known which command opened them; what further ones return is not counted.
const CURSORS: usize = 4_096;

/// What all connections count into.
pub(crate) struct Workload {
    /// Off only to measure what counting costs.
    is_on: bool,
    /// Milliseconds since 1970.
    since: i64,
    shapes: Bounded<Shape>,
    second_reads: Bounded<SecondRead>,
    pub(crate) namespaces: Namespaces,
    cursors: Mutex<HashMap<i64, Opened>>,
}

/// What opened a cursor.
struct Opened {
    shape: Arc<Shape>,
    /// The command itself, while a profiler watches: it shows it with each `getMore`.
    command: Option<Doc<'static>>,
}

impl Workload {
    pub(crate) fn new(is_on: bool) -> Workload {
        Workload {
            is_on,
            since: identity::milliseconds(),
            shapes: Bounded::new(SHAPES),
            second_reads: Bounded::new(SHAPES),
            namespaces: Namespaces::default(),
            cursors: Mutex::default(),
        }
    }

    /// A cursor was opened: what it returns later is counted with the command that opened it.
    fn cursor_opened(&self, id: i64, shape: &Arc<Shape>, command: Option<Doc<'static>>) {
        let mut cursors = self.cursors.lock();
        if cursors.len() >= CURSORS && !cursors.contains_key(&id) {
            // Cursors that clients left open: their owners are forgotten together.
            cursors.clear();
        }
        cursors.insert(id, Opened { shape: shape.clone(), command });
    }

    /// What is counted about collections of its name begins anew.
    pub(crate) fn database_dropped(&self, db: &str) {
        self.namespaces.dropped(db, None);
    }

    fn of_cursor(&self, id: i64) -> Option<Arc<Shape>> {
        self.cursors.lock().get(&id).map(|opened| opened.shape.clone())
    }

    fn opened_by(&self, id: i64) -> Option<Doc<'static>> {
        self.cursors.lock().get(&id)?.command.clone()
    }

    fn cursor_ended(&self, id: i64) {
        self.cursors.lock().remove(&id);
    }
}
