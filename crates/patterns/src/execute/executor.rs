//! [`Executor`]: what all attempts share. The rules that they work by, the backend that they send to, the queues and memories
//! between them.

use crate::active::Rules;
use crate::active::lease::Lease;
use crate::execute::convoy::Convoys;
use crate::execute::gate::Gate;
use crate::execute::host_memory::HostMemory;
use crate::execute::host_queue::Lines;
use crate::execute::rights::privilege_cache::PrivilegeCache;
use arc_swap::ArcSwap;
use document::backend::Backend;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

pub(crate) struct Executor {
    pub(crate) inner: Arc<dyn Backend>,
    rules: ArcSwap<Rules>,
    /// Rules that are no longer in force, while a write or a client's transaction still works by them.
    earlier: Mutex<Vec<Weak<Rules>>>,
    /// Other rules are in force.
    pub(crate) changed: Notify,
    gate: Option<Arc<dyn Gate>>,
    /// The turns on hot hosts.
    pub(crate) lines: Lines,
    /// Inserts that fly together.
    pub(crate) convoys: Convoys,
    /// Hosts that were looked for in vain: what flies for one takes a fence along instead of relying on the host to be there.
    pub(crate) missing_hosts: HostMemory,
    /// Hosts that did not tell what a change makes of them: the next is looked at before it is written.
    pub(crate) undecided_hosts: HostMemory,
    /// Until when this process may write.
    pub(crate) lease: Lease,
    /// What users may do, as last asked.
    pub(crate) privilege_cache: PrivilegeCache,
    /// How many jobs were put into the outbox; some may have been rolled back.
    jobs_added: AtomicU64,
    /// Jobs were committed: whoever works on the outbox waits for it.
    pub(crate) jobs_committed: Notify,
}

impl Executor {
    pub(crate) fn new(inner: Arc<dyn Backend>, gate: Option<Arc<dyn Gate>>) -> Executor {
        Executor {
            inner,
            rules: ArcSwap::default(),
            earlier: Mutex::default(),
            changed: Notify::new(),
            gate,
            lines: Lines::default(),
            convoys: Convoys::default(),
            missing_hosts: HostMemory::default(),
            undecided_hosts: HostMemory::default(),
            lease: Lease::default(),
            privilege_cache: PrivilegeCache::default(),
            jobs_added: AtomicU64::new(0),
            jobs_committed: Notify::new(),
        }
    }

    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.as_ref()
    }

    /// Whether plans may be sent at once.
    pub(crate) fn flights(&self) -> bool {
        self.inner.pipelining().is_some() && !self.gate.as_ref().is_some_and(|gate| gate.wants_answers())
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// The same for a short look.
    pub(crate) fn current(&self) -> arc_swap::Guard<Arc<Rules>> {
        self.rules.load()
    }

    pub(crate) fn is_current(&self, rules: &Arc<Rules>) -> bool {
        Arc::ptr_eq(&self.rules.load(), rules)
    }

    /// Puts rules in force for all that begins from now on.
    pub(crate) fn put_in_force(&self, rules: Rules) {
        let mut earlier = self.earlier.lock();
        let before = self.rules.swap(Arc::new(rules));
        earlier.retain(|rules| rules.strong_count() > 0);
        earlier.push(Arc::downgrade(&before));
        drop(earlier);
        self.changed.notify_waiters();
    }

    /// The rules of before that something under way still works by.
    pub(crate) fn earlier(&self) -> Vec<Weak<Rules>> {
        let mut earlier = self.earlier.lock();
        earlier.retain(|rules| rules.strong_count() > 0);
        earlier.clone()
    }

    pub(crate) fn jobs_added(&self) {
        self.jobs_added.fetch_add(1, Ordering::Relaxed);
    }

    /// How many jobs were put into the outbox so far: looked at before a transaction begins.
    pub(crate) fn jobs_so_far(&self) -> u64 {
        self.jobs_added.load(Ordering::Relaxed)
    }

    /// Wakes the worker of the outbox, after a commit: if jobs were added since the transaction began, by it or by others.
    pub(crate) fn wake_jobs(&self, before: u64) {
        if self.jobs_so_far() != before {
            self.jobs_committed.notify_one();
        }
    }
}
