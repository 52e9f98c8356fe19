//! A link between two collections: *where host.local = source.foreign and the filter holds*.

use crate::rule::key::Linked;
use crate::rule::{KeyPath, LinkKey};
use document::filter::Filter;
use document::op::Namespace;
use document::value::Path;
use document::{Doc, Env, Value};
use std::time::Duration;

/// How a field's host finds its source documents.
#[derive(Clone, Debug)]
pub struct Link {
    pub local: KeyPath,
    pub source: Namespace,
    pub foreign: LinkKey,
    /// Which side holds the reference: what the declaration's `by` names.
    pub refers: Refers,
    /// `where`: which documents of the source count.
    pub filter: Option<Filter>,
    /// How late the host may be; nothing means in the same transaction.
    pub lag: Option<Duration>,
    pub when_changed: WhenChanged,
    pub when_deleted: WhenDeleted,
    /// A roll-up (SEMANTICS R35): a host is made by its first source, and goes with its last.
    pub create: bool,
}

/// The side of a link that refers to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refers {
    /// Many hosts may refer to one source: a copy.
    Host,
    /// Many sources may refer to one host: its children.
    Source,
}

/// What a change of a copied field in the source does to the copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenChanged {
    #[default]
    Refresh,
    /// A frozen, point-in-time copy.
    Keep,
}

/// What deleting the source does to the hosts that refer to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenDeleted {
    #[default]
    Keep,
    Unset,
    Reject,
    Cascade,
}

impl Link {
    /// The declaration's `by`, as it is shown: the side of the link that is not a key of its collection.
    pub fn by(&self) -> String {
        match self.refers {
            Refers::Host => self.local.path.dotted(),
            Refers::Source => self.foreign.to_string(),
        }
    }

    /// The keys of a source document. What no `_id` can be makes no host.
    pub fn source_keys(&self, source: &Doc<'_>, env: &Env) -> Linked {
        let mut linked = self.foreign.linked(source, env);
        if self.create {
            linked.values.retain(|value| !matches!(value, Value::Regex { .. }));
        }
        linked
    }

    /// Whether a source document may link to several hosts.
    pub fn each_foreign(&self) -> bool {
        self.foreign.each()
    }

    /// Whether a key names at most one host, by its `_id`.
    pub fn is_by_id(&self) -> bool {
        self.local.path.parts.len() == 1 && self.local.path.first() == "_id"
    }

    /// How many leading parts the reference in the host and the kept field have in common: arrays there hold one value per
    /// element.
    pub fn shared_with(&self, field: &Path) -> usize {
        let (by, at) = (&self.local.path.parts, &field.parts);
        let most = by.len().min(at.len()).saturating_sub(1);
        by.iter().zip(at).take(most).take_while(|(by, at)| by.name == at.name).count()
    }
}
