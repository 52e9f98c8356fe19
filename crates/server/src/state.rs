//! What all connections share.

use crate::Front;
use crate::client::Client;
use crate::counters::Counters;
use crate::cursors::Cursors;
use crate::options::Options;
use crate::profiler::Profiler;
use crate::session::Sessions;
use crate::workload::Workload;
use document::Doc;
use document::backend::Remote;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

pub(crate) struct Server {
    pub(crate) backend: Arc<dyn Front>,
    pub(crate) options: Options,
    pub(crate) address: SocketAddr,
    pub(crate) cursors: Cursors,
    pub(crate) sessions: Sessions,
    pub(crate) counters: Counters,
    pub(crate) workload: Workload,
    pub(crate) profiler: Profiler,
    pub(crate) started: Instant,
    pub(crate) clients: Mutex<HashMap<i32, Arc<Client>>>,
    /// What is left of the memory for messages, in units of [`MEMORY_UNIT`].
    pub(crate) message_memory: Arc<Semaphore>,
    /// See `connection::Memory`.
    pub(crate) exempt_message: Arc<Semaphore>,
    next_connection: AtomicI32,
    next_operation: AtomicI32,
}

/// Message memory is counted in kilobytes: a semaphore's permits are 32 bits wide.
pub(crate) const MEMORY_UNIT: usize = 1024;

impl Server {
    pub(crate) fn new(backend: Arc<dyn Front>, options: Options, address: SocketAddr) -> Server {
        Server {
            backend,
            address,
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            counters: Counters::default(),
            workload: Workload::new(options.counts_workload),
            profiler: Profiler::default(),
            started: Instant::now(),
            clients: Mutex::default(),
            message_memory: Arc::new(Semaphore::new(options.message_memory / MEMORY_UNIT)),
            exempt_message: Arc::new(Semaphore::new(1)),
            next_connection: AtomicI32::new(0),
            next_operation: AtomicI32::new(0),
            options,
        }
    }

    pub(crate) fn next_connection(&self) -> i32 {
        positive(&self.next_connection)
    }

    pub(crate) fn next_operation(&self) -> i32 {
        positive(&self.next_operation)
    }

    /// The `$clusterTime` of the server behind, if there is one.
    pub(crate) fn gossip(&self) -> Option<Doc<'static>> {
        self.backend.remote().and_then(Remote::gossip)
    }

    /// `name:port`, as serverStatus and hostInfo say it.
    pub(crate) fn host(&self) -> String {
        format!("{}:{}", host_name(), self.address.port())
    }

    /// Lets go of what was left alone for too long: cursors, transactions, sessions.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.cursors.expire(now, self.options.cursor_timeout);
        for (session, number) in self.sessions.expire(now, self.options.session_timeout) {
            self.counters.transactions_aborted.add(1);
            self.cursors.end_of_transaction(&session, number);
        }
    }
}

fn positive(counter: &AtomicI32) -> i32 {
    (counter.fetch_add(1, Ordering::Relaxed) & i32::MAX).wrapping_add(1).max(1)
}

pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
