//! Where blocking stages put what does not fit in memory: files that the backend gives, which nobody else sees and which
//! are gone with the last user, however the process ends.

use crate::error::Result;

/// Gives files to those who may use the disk.
pub trait Spill: Send + Sync {
    /// How many bytes a stage holds in memory before it goes on on disk.
    fn memory(&self) -> usize;

    fn file(&self) -> Result<Box<dyn SpillFile>>;
}

/// Parts written one behind the other, then read in the same order.
pub trait SpillFile: Send {
    fn append(&mut self, part: &[u8]) -> Result<()>;

    /// Ends the writing: reading begins at the first part.
    fn rewind(&mut self) -> Result<()>;

    /// The next part; nothing behind the last.
    fn next(&mut self) -> Result<Option<Vec<u8>>>;
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::env::Env;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Files in memory, counted.
    pub(crate) struct InMemory {
        pub(crate) memory: usize,
        pub(crate) files: AtomicUsize,
    }

    impl Spill for InMemory {
        fn memory(&self) -> usize {
            self.memory
        }

        fn file(&self) -> Result<Box<dyn SpillFile>> {
            self.files.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Parts(VecDeque::new())))
        }
    }

    struct Parts(VecDeque<Vec<u8>>);

    impl SpillFile for Parts {
        fn append(&mut self, part: &[u8]) -> Result<()> {
            self.0.push_back(part.to_vec());
            Ok(())
        }

        fn rewind(&mut self) -> Result<()> {
            Ok(())
        }

        fn next(&mut self) -> Result<Option<Vec<u8>>> {
            Ok(self.0.pop_front())
        }
    }

    /// Surroundings in which a stage may hold so many bytes, and their files.
    pub(crate) fn spilling(memory: usize) -> (Env, Arc<InMemory>) {
        let spill = Arc::new(InMemory { memory, files: AtomicUsize::new(0) });
        (Env { spill: Some(spill.clone()), ..Env::fixed() }, spill)
    }
}
