//! The embedded backend: documents, indexes and transactions on a key-value store.
//!
//! Reading order, a folder each: [`store`] (bytes under keys), [`catalog`] (what exists), [`transaction`] (what readers see and how
//! writes are committed), [`index`] (which entries a document has and how they answer a query), then the operations: [`read`], `write`,
//! `explain` and `admin`.

mod admin;
pub mod backend;
mod background;
pub mod catalog;
mod engine;
mod explain;
pub mod index;
pub mod read;
pub mod store;
pub mod transaction;
mod ttl;
mod write;

pub use engine::{Engine, Options};
pub use store::folder::{holder_address, is_store};
pub use transaction::write_set::Moment;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
