//! What a crash run writes and checks: one model per worker, exact because each worker has documents of its own.

use anyhow::Result;
use judge::client::Client;
use std::sync::atomic::AtomicBool;

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

    /// Writes until the server is gone. Gives the model back with the request that was under way, and how many were
    /// acknowledged.
    fn run(self, address: &str, allow_relaxed: bool, stop: &AtomicBool) -> Result<(Self, u64)>;

    /// Whether everything acknowledged, and nothing else, is there.
    fn verify(client: &mut Client, models: &[Self]) -> Result<()>;
}
