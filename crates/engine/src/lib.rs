//! The embedded backend: documents, indexes and transactions on a key-value store.
//!
//! Reading order: [`store`] (bytes), [`keys`] (which bytes), [`catalog`] (what exists), [`view`] (what a reader sees).

pub mod access;
pub mod catalog;
pub mod index;
pub mod keys;
pub mod read;
pub mod scan;
pub mod store;
#[cfg(test)]
mod testing;
pub mod view;
