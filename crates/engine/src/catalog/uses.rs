//! How often queries and statements have used an index since it was made or the store was opened. Not on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Shared by all versions of an index.
#[derive(Clone, Debug)]
pub(crate) struct Uses(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    operations: AtomicU64,
    /// Milliseconds since 1970.
    since: i64,
}

impl Uses {
    pub(crate) fn none() -> Uses {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Uses(Arc::new(Counted { operations: AtomicU64::new(0), since }))
    }

    pub(crate) fn add(&self) {
        self.0.operations.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn operations(&self) -> u64 {
        self.0.operations.load(Ordering::Relaxed)
    }

    pub(crate) fn since(&self) -> i64 {
        self.0.since
    }
}
