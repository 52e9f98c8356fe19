//! Hosts of which something was seen last: a guess that saves a flight, never more.

use crate::execute::host_queue::HostHash;
use hashbrown::HashSet;
use parking_lot::Mutex;

/// So many are remembered before all are forgotten.
const MANY: usize = 100_000;

#[derive(Default)]
pub(crate) struct HostMemory {
    hosts: Mutex<HashSet<HostHash>>,
}

impl HostMemory {
    pub(crate) fn contains(&self, host: HostHash) -> bool {
        self.hosts.lock().contains(&host)
    }

    pub(crate) fn contains_any(&self, hosts: &[HostHash]) -> bool {
        let known = self.hosts.lock();
        !known.is_empty() && hosts.iter().any(|host| known.contains(host))
    }

    pub(crate) fn add(&self, host: HostHash) {
        let mut hosts = self.hosts.lock();
        if hosts.len() >= MANY {
            hosts.clear();
        }
        hosts.insert(host);
    }

    pub(crate) fn remove(&self, hosts: &[HostHash]) {
        let mut known = self.hosts.lock();
        if known.is_empty() {
            return;
        }
        for host in hosts {
            known.remove(host);
        }
    }
}
