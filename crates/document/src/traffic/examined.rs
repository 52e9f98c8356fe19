//! What a command looks at while it is answered. A connection has one, which is emptied before each command.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A plan that can say in a few words how it finds documents: `IXSCAN { customerId: 1 }`.
pub trait PlanSummary: Send + Sync {
    fn summary(&self) -> String;
}

/// Counted by the store, read by the server.
#[derive(Default)]
pub struct Examined {
    documents: AtomicU64,
    keys: AtomicU64,
    plan: Mutex<Option<Arc<dyn PlanSummary>>>,
}

impl Examined {
    pub fn add(&self, documents: u64, keys: u64) {
        if documents > 0 {
            self.documents.fetch_add(documents, Ordering::Relaxed);
        }
        if keys > 0 {
            self.keys.fetch_add(keys, Ordering::Relaxed);
        }
    }

    /// The plan of what the command reads first: those of other collections do not replace it.
    pub fn planned(&self, plan: &Arc<impl PlanSummary + 'static>) {
        let mut first = self.first_plan();
        if first.is_none() {
            *first = Some(plan.clone());
        }
    }

    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    pub fn plan(&self) -> Option<String> {
        self.first_plan().as_ref().map(|plan| plan.summary())
    }

    fn first_plan(&self) -> MutexGuard<'_, Option<Arc<dyn PlanSummary>>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the next command.
    pub fn clear(&self) {
        self.documents.store(0, Ordering::Relaxed);
        self.keys.store(0, Ordering::Relaxed);
        *self.first_plan() = None;
    }
}

impl std::fmt::Debug for Examined {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Examined {{ documents: {}, keys: {} }}", self.documents(), self.keys())
    }
}
