//! What rules ask of documents, one folder each: a [`crate::rule::Constraint`] lowers to validators and indexes in the database, and
//! says what is wrong with a document. [`CONSTRAINTS`] lists them: what is listed is proven by the proofs.

pub mod polymorphic;

pub use polymorphic::Polymorphic;

use crate::rule::RegistryEntry;

/// All constraints, sorted by name.
pub const CONSTRAINTS: &[RegistryEntry] = &[polymorphic::registered::ENTRY];
