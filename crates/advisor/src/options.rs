//! What is asked of the advisor, and what bounds it.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many documents of a collection are looked at.
pub const SAMPLE: u64 = 10_000;

/// So many bytes of documents are kept of one database, however many collections it has.
pub const MEMORY: usize = 128 << 20;

/// So many bytes of documents are kept of one collection at most.
pub const KEPT_OF_COLLECTION: usize = 16 << 20;

/// So many bytes of a collection are read for its sample at most: one of 16 MB documents is seen through fewer of them.
pub const READ_OF_COLLECTION: u64 = 96 << 20;

/// All documents of a collection are measured where they are stored, if they are not more bytes than this.
pub const MEASURED_WHOLE: u64 = 4 << 30;

/// What is asked.
#[derive(Default)]
pub struct Options {
    /// The databases to look at; all if none is named.
    pub databases: Vec<String>,
    /// How many documents of each collection; 0 stands for [`SAMPLE`].
    pub sample: u64,
    /// The same seed on the same data gives the same answer.
    pub seed: u64,
    /// Logs of a MongoDB.
    pub logs: Vec<Log>,
    pub cancel: Cancel,
    /// What the next command says about the target: `--upstream mongodb://…`.
    pub target: String,
}

impl Options {
    pub fn sample(&self) -> u64 {
        if self.sample == 0 { SAMPLE } else { self.sample }
    }
}

/// A log to read, opened by whoever may do so.
#[derive(Clone)]
pub struct Log {
    pub name: String,
    pub open: Arc<dyn Fn() -> std::io::Result<Box<dyn BufRead + Send>> + Send + Sync>,
}

/// Whether to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
