//! Prebuilt requests: only ids, keys and transaction numbers are written into them.

use crate::connection::message;
use anyhow::Result;
use bson::{Binary, Document, doc, spec::BinarySubtype};
use rand::RngExt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Written into requests where an id goes; the ids of a batch count up from it.
pub(crate) const ID_MARK: i64 = 0x1357_9bdf_0246_8ace;
/// Where another number goes: the key of a parent, a new value.
pub(crate) const KEY_MARK: i64 = 0x2468_ace0_1357_9bdf;
const TXN_MARK: i64 = 0x7654_3210_fedc_ba98;
/// More ids than one request has.
const MOST_IDS: i64 = 1_000;

/// Ids that were never used, over all cells and runs: they start at the clock.
static FRESH: AtomicI64 = AtomicI64::new(0);

pub(crate) fn fresh(count: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| i64::try_from(d.as_micros()).unwrap_or(1));
    let _ = FRESH.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    FRESH.fetch_add(count, Ordering::Relaxed)
}

/// A request and the places where numbers are written into it.
pub(crate) struct Template {
    message: Vec<u8>,
    /// Which id stands at which place: one may stand at several.
    ids: Vec<(i64, usize)>,
    keys: Vec<usize>,
    transaction: Option<(usize, i64)>,
}

impl Template {
    /// With a session of its own and, for a write that drivers would send again, a transaction number.
    pub(crate) fn new(mut command: Document, db: &str, retryable: bool) -> Result<Template> {
        command.insert(
            "lsid",
            doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: rand::rng().random::<[u8; 16]>().to_vec() } },
        );
        if retryable {
            command.insert("txnNumber", TXN_MARK);
        }
        command.insert("$db", db);
        let message = message(&command)?;
        let places_of = |i: i64| Some(places(&message, ID_MARK + i)).filter(|places| !places.is_empty());
        let ids = (0..MOST_IDS).map_while(|i| places_of(i).map(|places| (i, places)));
        let ids = ids.flat_map(|(i, places)| places.into_iter().map(move |at| (i, at))).collect();
        let keys = places(&message, KEY_MARK);
        let transaction = places(&message, TXN_MARK).first().map(|at| (*at, 0));
        Ok(Template { message, ids, keys, transaction })
    }

    pub(crate) fn ids(&self) -> usize {
        self.ids.last().and_then(|(last, _)| usize::try_from(last + 1).ok()).unwrap_or_default()
    }

    /// Writes the numbers in: ids count up from `first_id`; each request has a new transaction number.
    pub(crate) fn fill(&mut self, first_id: i64, key: i64) {
        for (i, at) in self.ids.clone() {
            self.put(at, first_id + i);
        }
        for at in self.keys.clone() {
            self.put(at, key);
        }
        if let Some((at, number)) = self.transaction {
            self.put(at, number + 1);
            self.transaction = Some((at, number + 1));
        }
    }

    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    fn put(&mut self, at: usize, number: i64) {
        if let Some(slot) = self.message.get_mut(at..at + 8) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
    }
}

fn places(message: &[u8], number: i64) -> Vec<usize> {
    let number = number.to_le_bytes();
    message.windows(8).enumerate().filter(|(_, window)| *window == number).map(|(at, _)| at).collect()
}
