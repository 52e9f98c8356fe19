//! Hosts that `drop --restore` leaves as they are, because their items do not fit into the array again.

use crate::life::preview::shown;
use crate::life::{CatalogRule, Life};
use crate::mql::object;
use document::{Doc, DocWriter, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many are named.
const NAMED: usize = 100;

/// The hosts of one rule that were left.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LeftHosts {
    number: i64,
    /// The first of them, and why.
    named: Vec<(Value<'static>, String)>,
}

/// By database and rule, until somebody asks.
#[derive(Debug, Default)]
pub(crate) struct AllLeftHosts(Mutex<BTreeMap<Key, LeftHosts>>);

/// A database, and a rule in it.
type Key = (Arc<str>, Arc<str>);

impl LeftHosts {
    /// `{ documents, examples: [ { _id, why } ] }`.
    pub(crate) fn show(&self) -> Doc<'static> {
        let examples = self.named.iter().map(|(id, why)| object([("_id", id.borrow()), ("why", Value::from(&**why))]));
        let mut left = DocWriter::new();
        left.append("documents", &Value::Int64(self.number));
        left.append("examples", &Value::Array(examples.collect()));
        left.finish()
    }
}

impl Life {
    pub(super) fn note_left_host(&self, entry: &CatalogRule, id: &Value<'static>, why: &str) {
        tracing::warn!(rule = &*entry.rule.name, host = shown(id), why, "a document does not get its items back");
        let mut all = self.left_hosts.0.lock();
        let left = all.entry((entry.db.clone(), entry.rule.name.clone())).or_default();
        left.number += 1;
        if left.named.len() < NAMED {
            left.named.push((id.clone(), why.to_owned()));
        }
    }

    /// The hosts that were left when the rule was last dropped.
    pub(crate) fn take_left_hosts(&self, db: &str, rule: &str) -> Option<LeftHosts> {
        self.left_hosts.0.lock().remove(&(db.into(), rule.into()))
    }
}
