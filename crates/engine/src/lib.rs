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
pub mod index;
mod locks;
pub mod read;
mod removals;
mod retries;
pub mod scan;
pub mod store;
mod transaction;
mod ttl;
mod validate;
pub mod view;
mod work;
mod write;

pub use engine::{Engine, Options};
pub use store::folder::{holder_address, is_store};
pub use work::Moment;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
