//! Reads by ids that came out of an answer before on the same connection: `orders`, then `customers` by `_id` = `orders.customerId`.
//!
//! Of an answer only the first kilobytes are kept, and only until the next one. They are searched when a read by id comes.

use super::Workload;
use super::bounded::Counted;
use super::ids::Asked;
use super::outcome::Outcome;
use super::shapes::Shape;
use foldhash::fast::FixedState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of an answer is kept.
const KEPT: usize = 4 * 1024;

/// So many names of fields are kept of the documents that were read second.
const FIELDS: usize = 64;

/// How often one collection was read by the ids that stood under one path of another's documents.
pub(super) struct SecondRead {
    /// The collection whose documents hold the ids, and where.
    pub(super) from: Box<str>,
    pub(super) path: Box<str>,
    /// The collection that was read by `_id`.
    pub(super) read: Box<str>,
    /// Answers that were followed by at least one such read.
    pub(super) answers: AtomicU64,
    pub(super) count: AtomicU64,
    pub(super) documents: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) fields: Mutex<Fields>,
    used: AtomicU64,
}

/// Fields of the documents that were returned, and in how many reads.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) names: BTreeMap<String, u64>,
}

impl Counted for SecondRead {
    fn worth(&self, now: u64) -> u64 {
        let idle = now.saturating_sub(self.used.load(Ordering::Relaxed)) / 60;
        self.count.load(Ordering::Relaxed) / (1 + idle)
    }

    fn retire(&self) {}
}

/// What a connection remembers of its last answers.
#[derive(Default)]
pub(super) struct Answers {
    /// The last one that was no second read: a list, perhaps, whose references are followed one by one.
    first: Answer,
    /// The one after it.
    latest: Answer,
}

#[derive(Default)]
struct Answer {
    of: Option<Arc<Shape>>,
    batch: Vec<u8>,
    /// The second reads that it was followed by already.
    followed: SmallVec<[u64; 4]>,
}

impl Answers {
    /// Counts the read as a second one if it is, then keeps its answer.
    pub(super) fn read(
        &mut self,
        workload: &Workload,
        shape: &Arc<Shape>,
        asked: Option<Asked<'_>>,
        outcome: &Outcome<'_>,
        now: u64,
    ) {
        let is_second = asked.is_some_and(|asked| {
            let (latest, first) = (&mut self.latest, &mut self.first);
            latest.is_followed(workload, shape, &asked, outcome, now)
                || first.is_followed(workload, shape, &asked, outcome, now)
        });
        if is_second {
            self.latest.keep(shape, outcome);
        } else {
            self.first.keep(shape, outcome);
            self.latest.forget();
        }
    }
}

impl Answer {
    fn keep(&mut self, shape: &Arc<Shape>, outcome: &Outcome<'_>) {
        self.forget();
        if let Some(batch) = outcome.batch.as_ref().filter(|batch| !batch.is_empty()) {
            let bytes = batch.as_bytes();
            self.batch.extend_from_slice(bytes.get(..bytes.len().min(KEPT)).unwrap_or_default());
            self.of = Some(shape.clone());
        }
    }

    fn forget(&mut self) {
        self.of = None;
        self.batch.clear();
        self.followed.clear();
    }

    /// Whether these ids came out of it; if so that is counted, by each path that they stood under.
    fn is_followed(
        &mut self,
        workload: &Workload,
        read: &Shape,
        asked: &Asked<'_>,
        outcome: &Outcome<'_>,
        now: u64,
    ) -> bool {
        let Some(of) = &self.of else { return false };
        let is_same = of.namespace == read.namespace;
        let mut found = false;
        for path in asked.paths(&self.batch) {
            // A document that is read again is not a second one.
            if is_same && path == "_id" {
                continue;
            }
            found = true;
            let key = key(&of.namespace, &path, &read.namespace);
            let entry = workload.second_reads.entry(key, now, || SecondRead {
                from: of.namespace.clone(),
                path: path.as_str().into(),
                read: read.namespace.clone(),
                answers: AtomicU64::new(0),
                count: AtomicU64::new(0),
                documents: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                fields: Mutex::default(),
                used: AtomicU64::new(now),
            });
            if !self.followed.contains(&key) {
                self.followed.push(key);
                entry.answers.fetch_add(1, Ordering::Relaxed);
            }
            entry.add(outcome, now);
        }
        found
    }
}

impl SecondRead {
    fn add(&self, outcome: &Outcome<'_>, now: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.documents.fetch_add(outcome.returned, Ordering::Relaxed);
        let bytes = outcome.batch.as_ref().map_or(0, |batch| batch.as_bytes().len());
        self.bytes.fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
        let Some(first) = outcome.first() else { return };
        let mut fields = self.fields.lock();
        for (name, _) in first.iter().filter(|(name, _)| name.as_str() != "_id").take(FIELDS) {
            if let Some(count) = fields.names.get_mut(name.as_str()) {
                *count += 1;
            } else if fields.names.len() < FIELDS {
                fields.names.insert(name.to_string(), 1);
            }
        }
    }
}

fn key(from: &str, path: &str, read: &str) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    for part in [from, path, read] {
        hasher.write(part.as_bytes());
        hasher.write_u8(0);
    }
    hasher.finish()
}
