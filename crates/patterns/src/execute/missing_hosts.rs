//! Hosts that were looked for in vain, as last seen: a guess that saves a flight, never more. What flies for one of them takes
//! a fence along instead of relying on the host to be there.

use crate::execute::host_queue::HostHash;
use hashbrown::HashSet;
use parking_lot::Mutex;

/// So many are remembered before all are forgotten.
const MANY: usize = 100_000;

#[derive(Default)]
pub(crate) struct MissingHosts {
    hosts: Mutex<HashSet<HostHash>>,
}

impl MissingHosts {
    pub(crate) fn contains(&self, host: HostHash) -> bool {
        self.hosts.lock().contains(&host)
    }

    pub(crate) fn missed(&self, host: HostHash) {
        let mut hosts = self.hosts.lock();
        if hosts.len() >= MANY {
            hosts.clear();
        }
        hosts.insert(host);
    }

    pub(crate) fn found(&self, hosts: &[HostHash]) {
        let mut known = self.hosts.lock();
        for host in hosts {
            known.remove(host);
        }
    }
}
