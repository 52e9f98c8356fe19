//! The profiler: which operations are kept in a database's `system.profile`, and which are logged as slow.
//!
//! The settings are MongoDB's: a level and a filter for each database, a threshold and a sample rate for all. What is kept is a list in
//! memory of a megabyte for each database, the oldest leaving first; it is not written to disk and ends with the server. On a backend
//! that is a real MongoDB that one profiles.

mod bounded_entries;
pub(crate) mod collection;
mod entry;

use crate::client::Client;
use crate::identity;
use crate::workload::{Outcome, Seen};
use bounded_entries::BoundedEntries;
use document::filter::Filter;
use document::{Doc, Env};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The name of the collection that shows what was kept.
pub(crate) const COLLECTION: &str = "system.profile";

/// MongoDB's own threshold.
const SLOW_MILLISECONDS: i64 = 100;

pub(crate) struct Profiler {
    databases: Mutex<HashMap<Box<str>, Database>>,
    /// How many databases have a level above 0 or a filter.
    watching: AtomicUsize,
    slow: AtomicI64,
    /// The bits of a number between 0 and 1.
    sample_rate: AtomicU64,
}

#[derive(Default)]
struct Database {
    setting: Setting,
    /// There once profiling was on, until it is dropped.
    kept: Option<BoundedEntries>,
}

/// What `profile` sets for one database.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    pub(crate) level: i32,
    pub(crate) filter: Option<Arc<Filter>>,
}

/// What `profile` sets and shows.
pub(crate) struct Settings {
    pub(crate) setting: Setting,
    pub(crate) slow: i64,
    pub(crate) sample_rate: f64,
}

impl Default for Profiler {
    fn default() -> Profiler {
        Profiler {
            databases: Mutex::default(),
            watching: AtomicUsize::new(0),
            slow: AtomicI64::new(SLOW_MILLISECONDS),
            sample_rate: AtomicU64::new(1_f64.to_bits()),
        }
    }
}

impl Profiler {
    pub(crate) fn settings(&self, db: &str) -> Settings {
        Settings {
            setting: self.databases.lock().get(db).map(|database| database.setting.clone()).unwrap_or_default(),
            slow: self.slow.load(Ordering::Relaxed),
            sample_rate: f64::from_bits(self.sample_rate.load(Ordering::Relaxed)),
        }
    }

    pub(crate) fn set_thresholds(&self, slow: i64, sample_rate: f64) {
        self.slow.store(slow, Ordering::Relaxed);
        self.sample_rate.store(sample_rate.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, db: &str, setting: Setting) {
        let mut databases = self.databases.lock();
        let database = databases.entry_ref(db).or_default();
        if setting.level > 0 {
            database.kept.get_or_insert_default();
        }
        database.setting = setting;
        if database.setting.level == 0 && database.setting.filter.is_none() && database.kept.is_none() {
            databases.remove(db);
        }
        let watching = databases.values().filter(|database| database.setting.is_watching()).count();
        self.watching.store(watching, Ordering::Relaxed);
    }

    /// What `db.system.profile` holds, oldest first; `None` if there is no such collection.
    pub(crate) fn entries(&self, db: &str) -> Option<Vec<Doc<'static>>> {
        self.databases.lock().get(db)?.kept.as_ref().map(BoundedEntries::all)
    }

    /// The UUID of `db.system.profile`.
    pub(crate) fn uuid(&self, db: &str) -> Option<[u8; 16]> {
        self.databases.lock().get(db)?.kept.as_ref().map(BoundedEntries::uuid)
    }

    /// Forgets what was kept; whether there was something.
    pub(crate) fn drop_entries(&self, db: &str) -> bool {
        self.databases.lock().get_mut(db).is_some_and(|database| database.kept.take().is_some())
    }

    /// A database was dropped. As in MongoDB, its level stays.
    pub(crate) fn drop_database(&self, db: &str) {
        if let Some(database) = self.databases.lock().get_mut(db) {
            database.kept = (database.setting.level > 0).then(BoundedEntries::default);
        }
    }

    /// Whether any database keeps operations.
    pub(crate) fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Relaxed) > 0
    }

    /// An operation has ended: keeps it, logs it, or, almost always, neither.
    pub(crate) fn ended(&self, client: &Client, seen: &Seen<'_>, outcome: &Outcome<'_>, took: Duration) {
        let milliseconds = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let is_slow = milliseconds >= self.slow.load(Ordering::Relaxed);
        if !is_slow && !self.is_watching() {
            return;
        }
        // Behind a proxy the real MongoDB profiles and logs.
        if client.relay.is_some() {
            return;
        }
        let Settings { setting, sample_rate, .. } = self.settings(seen.db.as_str());
        if !is_slow && !setting.is_watching() {
            return;
        }
        let entry = entry::entry(client, seen, outcome, took);
        let meant = match &setting.filter {
            Some(filter) => filter.matches(&entry, &environment()).unwrap_or(false),
            None => is_slow && (sample_rate >= 1.0 || identity::fraction() < sample_rate),
        };
        if meant {
            entry::log(seen, outcome, client, milliseconds);
        }
        if setting.level >= 2 || (setting.level == 1 && meant) {
            let mut databases = self.databases.lock();
            if let Some(database) = databases.get_mut(seen.db.as_str()) {
                database.kept.get_or_insert_default().push(entry);
            }
        }
    }
}

impl Setting {
    fn is_watching(&self) -> bool {
        self.level > 0 || self.filter.is_some()
    }
}

/// What a filter may ask of the world.
fn environment() -> Env {
    Env { now: identity::milliseconds(), new_id: identity::object_id, random: identity::fraction, ..Env::fixed() }
}
