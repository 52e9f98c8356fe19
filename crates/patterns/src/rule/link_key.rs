//! The two sides of a link: where a document holds the values that it links by (SEMANTICS R27).
//!
//! A host is always found by a path. A source document has its key at a path too, or an expression computes it: then documents are
//! rolled up by month, by region, by both.

use crate::rule::key::{Linked, add, linked};
use crate::rule::key_expression::KeyExpression;
use document::value::Path;
use document::{Doc, Env};
use std::sync::Arc;

/// A path at which a document has its link values.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPath {
    /// A dotted path. Null and missing values never link.
    pub path: Path,
    /// `each: true`: an array of values at the end of the path links once per element. Arrays on the way that `by` and the kept
    /// field share (`items.product` by `items.productId`) link per element without it.
    pub each: bool,
}

impl KeyPath {
    pub fn new(path: Path) -> KeyPath {
        KeyPath { path, each: false }
    }
}

/// What a source document is linked by.
#[derive(Clone, Debug)]
pub enum LinkKey {
    Path(KeyPath),
    Expression(Arc<KeyExpression>),
}

impl LinkKey {
    /// The link values of a document.
    pub fn linked(&self, doc: &Doc<'_>, env: &Env) -> Linked {
        match self {
            LinkKey::Path(key) => linked(doc, key),
            LinkKey::Expression(expression) => {
                let mut found = Linked::default();
                add(expression.value(doc, env), &mut found.values);
                found
            }
        }
    }

    /// The paths of the document that it is computed from.
    pub fn paths(&self) -> &[Path] {
        match self {
            LinkKey::Path(key) => std::slice::from_ref(&key.path),
            LinkKey::Expression(expression) => &expression.reads,
        }
    }

    /// The path, unless it is computed.
    pub fn path(&self) -> Option<&KeyPath> {
        match self {
            LinkKey::Path(key) => Some(key),
            LinkKey::Expression(_) => None,
        }
    }

    /// Whether an array links once per element.
    pub fn each(&self) -> bool {
        self.path().is_some_and(|key| key.each)
    }

    /// Whether the documents of a key can be found without reading all.
    pub fn is_seekable(&self) -> bool {
        match self {
            LinkKey::Path(_) => true,
            LinkKey::Expression(expression) => expression.seek.is_some(),
        }
    }
}

impl std::fmt::Display for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LinkKey::Path(key) => key.path.fmt(f),
            LinkKey::Expression(expression) => document::value::show::element(&expression.source).fmt(f),
        }
    }
}
