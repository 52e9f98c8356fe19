//! The counters of one shape of command.

use super::bounded::Counted;
use super::namespaces::Activity;
use super::outcome::Outcome;
use document::Doc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Shape {
    /// As `document::traffic::describe` says it.
    pub(super) described: Doc<'static>,
    pub(super) namespace: Box<str>,
    pub(super) activity: Arc<Activity>,
    pub(super) count: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) nanoseconds: AtomicU64,
    pub(super) longest: AtomicU64,
    pub(super) documents: AtomicU64,
    pub(super) keys: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    /// In seconds since the server was started.
    used: AtomicU64,
    retired: AtomicBool,
}

impl Shape {
    pub(super) fn new(described: Doc<'static>, namespace: &str, activity: Arc<Activity>) -> Shape {
        let zero = || AtomicU64::new(0);
        Shape {
            described,
            namespace: namespace.into(),
            activity,
            count: zero(),
            errors: zero(),
            nanoseconds: zero(),
            longest: zero(),
            documents: zero(),
            keys: zero(),
            returned: zero(),
            written: zero(),
            bytes_in: zero(),
            bytes_out: zero(),
            used: zero(),
            retired: AtomicBool::new(false),
        }
    }

    /// Counts one command; a `getMore` counts as more of the command that opened the cursor.
    pub(super) fn add(&self, outcome: &Outcome<'_>, took: Duration, request: usize, now: u64, is_more: bool) {
        let add = |counter: &AtomicU64, amount: u64| {
            if amount > 0 {
                counter.fetch_add(amount, Ordering::Relaxed);
            }
        };
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(&self.count, u64::from(!is_more));
        add(&self.errors, u64::from(!outcome.ok));
        add(&self.nanoseconds, nanoseconds);
        if nanoseconds > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
        }
        add(&self.documents, outcome.documents);
        add(&self.keys, outcome.keys);
        add(&self.returned, outcome.returned);
        add(&self.written, outcome.written);
        add(&self.bytes_in, u64::try_from(request).unwrap_or_default());
        add(&self.bytes_out, u64::try_from(outcome.bytes).unwrap_or_default());
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
}

impl Counted for Shape {
    /// Its runs, less for each minute without one.
    fn worth(&self, now: u64) -> u64 {
        let idle = now.saturating_sub(self.used.load(Ordering::Relaxed)) / 60;
        self.count.load(Ordering::Relaxed) / (1 + idle)
    }

    fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }
}
