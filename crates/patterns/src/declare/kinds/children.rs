//! What every value of child documents declares alike: where the children are, by which key, which of them count, how late.

use crate::declare::block::{Block, print_duration};
use crate::declare::finding::Findings;
use crate::declare::kinds::DeclaredField;
use crate::declare::kinds::link_keys::Keys;
use crate::declare::programs;
use crate::rule::{Link, Refers, WhenChanged, WhenDeleted};
use document::filter::Filter;
use document::op::Namespace;
use document::{DocWriter, Value};
use std::time::Duration;

/// The children of a host.
pub(super) struct Children {
    source: Namespace,
    pub(super) keys: Keys,
    filter: Option<Filter>,
    pub(super) lag: Option<Duration>,
}

impl Children {
    /// Reads `by` and what belongs to it, `where` and `lag`; `source` is the collection of the children. A value that is
    /// looked up again (`is_sought`) needs a key that an index serves.
    pub(super) fn read(
        block: &Block<'_>,
        target: &DeclaredField,
        source: Option<&str>,
        is_sought: bool,
        findings: &mut Findings,
    ) -> Option<Children> {
        let keys = Keys::read(block, target, source, findings);
        if let Some(keys) = keys.as_ref().filter(|_| is_sought) {
            keys.require_served(block, findings);
        }
        let filter = block.get("where").map_or(Some(None), |item| programs::filter(&item, findings).map(Some));
        let lag = block.get("lag").map_or(Some(None), |item| item.duration(findings).map(Some));
        Some(Children { source: Namespace::new(&target.host.db, source?), keys: keys?, filter: filter?, lag: lag? })
    }

    /// `where` and `lag` in the normal form.
    pub(super) fn write_conditions(&self, own: &mut DocWriter) {
        if let Some(filter) = &self.filter {
            own.append("where", &Value::Document(filter.source.borrow()));
        }
        if let Some(lag) = self.lag {
            own.append("lag", &Value::string(print_duration(lag)));
        }
    }

    pub(super) fn into_link(self) -> Link {
        Link {
            local: self.keys.local,
            source: self.source,
            foreign: self.keys.foreign,
            refers: Refers::Source,
            filter: self.filter,
            lag: self.lag,
            when_changed: WhenChanged::Refresh,
            when_deleted: WhenDeleted::Keep,
            create: self.keys.create,
        }
    }
}
