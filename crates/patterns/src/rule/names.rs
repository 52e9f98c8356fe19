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

/// What hosts and documents were before a rule changed them.
pub fn replaced(db: &str) -> Namespace {
    Namespace::new(db, "pleach.replaced")
}

/// The processes that serve a MongoDB: in `admin`, or in each database where they may not write there.
pub fn processes(db: &str) -> Namespace {
    Namespace::new(db, "pleach.processes")
}

/// What a collection is called while it makes room for its new form, or is on its way back.
pub fn aside(ns: &Namespace) -> Namespace {
    Namespace::new(&ns.db, &format!("{ASIDE}{}", ns.collection))
}

/// What every collection that has made room is called by.
pub const ASIDE: &str = "pleach.aside.";

/// Whether `listCollections` leaves it out: all of ours but the catalog, which a dump needs, and documents of clients that have
/// made room.
pub fn is_hidden(collection: &str) -> bool {
    collection.starts_with(PREFIX) && collection != "pleach.catalog" && !collection.starts_with(ASIDE)
}

/// Whether a collection is Pleach's own, by its name.
pub fn is_ours(collection: &str) -> bool {
    collection.starts_with(PREFIX)
}

/// Whether clients may only read it.
pub fn is_bookkeeping(ns: &Namespace) -> bool {
    is_ours(&ns.collection)
}
