//! Time and number of operations by collection, for `top` and `$collStats`.

use document::backend::Class;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Of so many collections; those beyond share one that nobody sees.
const COLLECTIONS: usize = 10_000;

/// What an operation is for `top`; commands that read and such that write are told apart for `$collStats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    GetMore,
    Insert,
    Update,
    Remove,
    ReadCommand,
    WriteCommand,
    Command,
}

impl Kind {
    /// Returns `None` for commands that are about no collection's documents, indexes or options.
    pub(crate) fn of(class: Class) -> Option<Kind> {
        Some(match class {
            Class::Find => Kind::Query,
            Class::GetMore => Kind::GetMore,
            Class::Insert => Kind::Insert,
            Class::Update => Kind::Update,
            Class::Delete => Kind::Remove,
            Class::Count | Class::Distinct | Class::Aggregate => Kind::ReadCommand,
            Class::FindAndModify => Kind::WriteCommand,
            Class::Create
            | Class::CollMod
            | Class::Drop
            | Class::CreateIndexes
            | Class::DropIndexes
            | Class::ListIndexes
            | Class::Explain => Kind::Command,
            _ => return None,
        })
    }

    pub(crate) fn is_read(self) -> bool {
        matches!(self, Kind::Query | Kind::GetMore | Kind::ReadCommand)
    }

    pub(crate) fn is_write(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Remove | Kind::WriteCommand)
    }
}

/// How many operations there were, and how long they took together.
#[derive(Default)]
struct Figure {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// What was done to one collection since the server was started, or since the collection was made.
#[derive(Default)]
pub(crate) struct Activity([Figure; 8]);

impl Activity {
    pub(super) fn add(&self, kind: Kind, took: Duration) {
        if let Some(figure) = self.0.get(kind as usize) {
            figure.count.fetch_add(1, Ordering::Relaxed);
            let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            figure.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Microseconds and operations of some kinds together.
    pub(crate) fn of(&self, kinds: &[Kind]) -> (i64, i64) {
        let sum = |of: fn(&Figure) -> &AtomicU64| -> u64 {
            kinds
                .iter()
                .filter_map(|kind| self.0.get(*kind as usize))
                .map(|figure| of(figure).load(Ordering::Relaxed))
                .sum()
        };
        let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        (long(sum(|figure| &figure.nanoseconds) / 1000), long(sum(|figure| &figure.count)))
    }

    fn forget(&self) {
        for figure in &self.0 {
            figure.count.store(0, Ordering::Relaxed);
            figure.nanoseconds.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
pub(crate) struct Namespaces {
    known: Mutex<HashMap<Box<str>, Arc<Activity>>>,
    others: Arc<Activity>,
}

impl Namespaces {
    pub(super) fn of(&self, db: &str, collection: &str) -> Arc<Activity> {
        let namespace = format!("{db}.{collection}");
        let mut known = self.known.lock();
        if let Some(found) = known.get(&*namespace) {
            return found.clone();
        }
        if known.len() >= COLLECTIONS {
            return self.others.clone();
        }
        known.entry(namespace.into()).or_default().clone()
    }

    pub(crate) fn find(&self, namespace: &str) -> Option<Arc<Activity>> {
        self.known.lock().get(namespace).cloned()
    }

    /// A collection, or all of a database, is no more; another of its name begins anew.
    pub(super) fn dropped(&self, db: &str, collection: Option<&str>) {
        let is_gone = |namespace: &str| match (namespace.split_once('.'), collection) {
            (Some((of, name)), Some(collection)) => of == db && name == collection,
            (Some((of, _)), None) => of == db,
            (None, _) => false,
        };
        for (_, activity) in self.known.lock().iter().filter(|(namespace, _)| is_gone(namespace)) {
            activity.forget();
        }
    }

    /// All of them by name.
    pub(crate) fn all(&self) -> Vec<(Box<str>, Arc<Activity>)> {
        let mut all: Vec<_> =
            self.known.lock().iter().map(|(name, activity)| (name.clone(), activity.clone())).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}
