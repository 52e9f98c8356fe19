//! The embedded backend: documents, indexes and transactions on a key-value store.
//!
//! Reading order: [`store`] (bytes), [`keys`] (which bytes), [`catalog`] (what exists), [`view`] (what a reader sees), [`locks`],
//! [`work`] (writes before they are committed), [`commit`] (how they are), [`collection`] (one document), then the operations.

pub mod access;
mod admin;
pub mod backend;
mod background;
pub mod catalog;
mod clock;
mod collection;
mod commit;
mod engine;
mod explain;
mod folder;
pub mod index;
pub mod keys;
mod leaves;
mod locks;
mod multikey;
mod pool;
mod private;
pub mod range;
pub mod read;
mod recover;
mod removals;
mod retries;
mod room;
pub mod scan;
pub mod store;
mod synced;
mod temporary;
mod transaction;
mod ttl;
mod validate;
pub mod view;
mod work;
mod write;
mod write_log;

pub use engine::{Engine, Options};
pub use folder::{holder_address, is_store};
pub use work::Moment;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
