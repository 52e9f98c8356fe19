//! What a crash run writes and checks: one model per worker, exact because each worker has documents of its own.

use anyhow::Result;
use judge::client::Client;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) trait Scenario: Send + Sized + 'static {
    fn new(worker: usize) -> Self;

    fn worker(&self) -> usize;

    /// Makes what the workers need; harmless when it is there.
    fn prepare(client: &mut Client, first: bool) -> Result<()>;

    /// Ends a client's transaction that the crash left open in a server behind: nobody else does before its time is over.
    fn release(&mut self, _client: &mut Client) -> Result<()> {
        Ok(())
    }

    /// Settles the request that the crash left open: sent again, it must have had one effect.
    fn settle(&mut self, client: &mut Client) -> Result<()>;

    /// Writes until the server is gone or the load ends. Gives the model back with the request that was under way.
    fn run(self, address: &str, allow_relaxed: bool, progress: &Progress) -> Result<Self>;

    /// Whether everything acknowledged, and nothing else, is there.
    fn verify(client: &mut Client, models: &[Self]) -> Result<()>;
}

/// How far the workers of a round are.
#[derive(Default)]
pub(crate) struct Progress {
    stopped: AtomicBool,
    acknowledged: AtomicU64,
}

impl Progress {
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// So many more writes were acknowledged.
    pub(crate) fn add(&self, writes: u64) {
        self.acknowledged.fetch_add(writes, Ordering::Relaxed);
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }
}
