//! Transactions: what a reader sees, what a writer has written and locked before it commits, and how a commit becomes visible
//! and durable. Writes outside a transaction go the same way, as a write set that is committed at once.
//!
//! Reading order: [`snapshot`] (what a reader sees), [`locks`], [`write_set`] (writes before they are committed), [`commit`] (how
//! they are), then the transactions of sessions and their retries.

pub(crate) mod clock;
pub(crate) mod commit;
pub(crate) mod locks;
mod multi_document;
pub(crate) mod removals;
pub(crate) mod retries;
pub mod snapshot;
pub(crate) mod write_set;

pub(crate) use multi_document::{EngineTransaction, Open, Transactions};
