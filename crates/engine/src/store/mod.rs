//! The store: bytes under keys on a disk. Spaces, snapshots, ranges and atomic batches; which bytes a key has; the data folder and
//! every file in it.
//!
//! [`key_value`] is the only file that names the storage crate.

pub(crate) mod disk_space;
pub(crate) mod folder;
mod key_value;
pub mod keys;
pub(crate) mod pool;
mod private;
pub mod range;
mod range_cache;
pub(crate) mod synced;
pub(crate) mod temporary;
pub(crate) mod write_log;

pub use key_value::{Batch, MAX_KEY, Space, Store, StoreOptions, StoreSnapshot};
