//! Spaces made ahead: making one takes tens of milliseconds and holds up writers, so it is not done while a client waits.

use super::{Space, Store};
use document::Result;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many spaces lie ready.
const READY: usize = 4;
/// How many emptied ones are kept for use again.
const MOST: usize = 256;
/// The first letter of their names; a number follows.
const LETTER: char = 's';

pub(crate) struct Pool {
    free: Mutex<Vec<Space>>,
    next: AtomicU64,
}

impl Pool {
    /// `free` are the spaces that nobody uses; `names` all that there are.
    pub(crate) fn new(free: Vec<Space>, names: &[String]) -> Pool {
        let highest = names.iter().filter_map(|name| number(name)).max().unwrap_or_default();
        Pool { free: Mutex::new(free), next: AtomicU64::new(highest + 1) }
    }

    pub(crate) fn take(&self, store: &Store) -> Result<Space> {
        let ready = self.free.lock().pop();
        match ready {
            Some(space) => Ok(space),
            None => self.make(store),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.lock().len() >= MOST
    }

    /// For a space that holds nothing: never written to, or emptied.
    pub(crate) fn give_back(&self, space: Space) {
        self.free.lock().push(space);
    }

    pub(crate) fn refill(&self, store: &Store) -> Result<()> {
        while self.free.lock().len() < READY {
            let space = self.make(store)?;
            self.free.lock().push(space);
        }
        Ok(())
    }

    fn make(&self, store: &Store) -> Result<Space> {
        store.space(&format!("{LETTER}{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Whether a space of this name belongs to a collection or to the pool.
pub(crate) fn is_pooled(name: &str) -> bool {
    number(name).is_some()
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix(LETTER)?.parse().ok()
}
