//! The bookkeeping collections, in the database of the rules they belong to (SEMANTICS R6).

use document::op::Namespace;

/// What every bookkeeping collection's name begins with.
pub const PREFIX: &str = "pleach.";

/// The rules and their states.
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

/// The processes that serve a MongoDB: in `admin`, or in each database where they may not write there.
pub fn processes(db: &str) -> Namespace {
    Namespace::new(db, "pleach.processes")
}

/// What a collection is called while it makes room for its new form, or is on its way back.
pub fn aside(ns: &Namespace) -> Namespace {
    Namespace::new(&ns.db, &format!("pleach.aside.{}", ns.collection))
}

/// Whether clients may only read it.
pub fn is_bookkeeping(ns: &Namespace) -> bool {
    ns.collection.starts_with(PREFIX)
}
