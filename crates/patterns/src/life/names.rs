//! The bookkeeping collections, in the database of the rules they belong to (SEMANTICS R6).

use document::op::Namespace;

/// What every bookkeeping collection's name begins with.
pub const PREFIX: &str = "pleach.";

/// The rules, their states, and the processes that keep them.
pub fn catalog(db: &str) -> Namespace {
    Namespace::new(db, "pleach.catalog")
}

/// Work that was put off: `{ _id: { rule, key }, gen }`.
pub fn outbox(db: &str) -> Namespace {
    Namespace::new(db, "pleach.outbox")
}

/// Rows that order evaluations against changes, where the backend is a real MongoDB.
pub fn fences(db: &str) -> Namespace {
    Namespace::new(db, "pleach.fences")
}

/// Answers of retryable writes, where the backend is a real MongoDB.
pub fn retries(db: &str) -> Namespace {
    Namespace::new(db, "pleach.retries")
}

/// Whether clients may only read it.
pub fn is_bookkeeping(ns: &Namespace) -> bool {
    ns.collection.starts_with(PREFIX)
}
