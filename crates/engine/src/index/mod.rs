//! Indexes: which entries a document has in them, which of them answers a query ([`access`]), and how the answer is read
//! ([`scan`]).

pub mod access;
mod cursor;
mod entries;
mod merged_scans;
pub mod scan;
pub mod text_entries;
mod text_scan;

pub use entries::{Entries, Entry, entries, values};
