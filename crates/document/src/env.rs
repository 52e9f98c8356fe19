//! What a program may ask of the world around it, handed in: the time, new ids, randomness, and whether to stop.

use crate::error::Result;
use crate::spill::Spill;
use crate::traffic::Examined;
use crate::value::Value;
use std::sync::Arc;

/// The surroundings of one command. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// `$$NOW`: milliseconds since 1970, one value for the whole command.
    pub now: i64,
    /// `$$CLUSTER_TIME`.
    pub cluster_time: u64,
    /// A new ObjectId, for upserts and inserts without `_id`.
    pub new_id: fn() -> [u8; 12],
    /// Uniform in [0, 1): `$rand`, `$sample`.
    pub random: fn() -> f64,
    /// Values of variables bound outside the program (`$lookup`'s `let`), by slot.
    pub variables: Vec<Value<'static>>,
    /// Called now and then by long work; an error (killed, past its deadline) ends it.
    pub interrupt: Arc<dyn Fn() -> Result<()> + Send + Sync>,
    /// How many bytes a blocking stage may hold that does not use the disk.
    pub memory_limit: usize,
    /// Where `$sort` and `$group` put what does not fit in memory, if they may.
    pub spill: Option<Arc<dyn Spill>>,
    /// Where the store counts what it looks at for the command; nothing for work that is not counted.
    pub examined: Option<Arc<Examined>>,
}

impl Env {
    /// For tests and constant folding: a fixed time, fixed ids, never interrupted.
    pub fn fixed() -> Env {
        Env {
            now: 1_700_000_000_000,
            cluster_time: 0,
            new_id: || [0x5a; 12],
            random: || 0.5,
            variables: Vec::new(),
            interrupt: Arc::new(|| Ok(())),
            memory_limit: 100 << 20,
            spill: None,
            examined: None,
        }
    }
}
