//! What the server counts about itself, for `serverStatus` and `top`.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) inserts: Count,
    pub(crate) queries: Count,
    pub(crate) updates: Count,
    pub(crate) deletes: Count,
    pub(crate) get_mores: Count,
    pub(crate) commands: Count,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
    pub(crate) requests: Count,
    pub(crate) user_errors: Count,
    pub(crate) connections_created: Count,
    pub(crate) transactions_started: Count,
    pub(crate) transactions_committed: Count,
    pub(crate) transactions_aborted: Count,
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, amount: usize) {
        self.0.fetch_add(u64::try_from(amount).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        i64::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
    }
}
