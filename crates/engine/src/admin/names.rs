//! Which names a new collection may have.

use crate::catalog::Catalog;
use document::op::Namespace;
use document::{Code, Error, Result};

/// MongoDB's limit of a namespace.
const MAX_NAMESPACE: usize = 255;

/// Refuses a name that MongoDB would not give to a collection.
pub(super) fn check(ns: &Namespace, catalog: &Catalog) -> Result<()> {
    let (db, name) = (&*ns.db, &*ns.collection);
    let invalid = |message: String| Err(Error::new(Code::InvalidNamespace, message));
    if name.is_empty() {
        return invalid(format!("Invalid namespace specified '{ns}'"));
    }
    if name.contains('$') || name.contains('\0') {
        return invalid(format!("Invalid collection name: {name}"));
    }
    if name.starts_with('.') {
        return invalid(format!("Collection names cannot start with '.': {name}"));
    }
    if name.starts_with("system.") && !matches!(name, "system.js" | "system.profile") {
        return invalid(format!("Invalid system namespace: {ns}"));
    }
    let length = ns.to_string().len();
    if length > MAX_NAMESPACE {
        return invalid(format!("Fully qualified namespace is too long. Namespace: {ns} Max: {MAX_NAMESPACE}"));
    }
    let other = catalog.databases().into_iter().find(|other| &***other != db && other.eq_ignore_ascii_case(db));
    match other {
        Some(other) => Err(Error::new(
            Code::Location(13297),
            format!("db already exists with different case already have: [{other}] trying to create [{db}]"),
        )),
        None => Ok(()),
    }
}
