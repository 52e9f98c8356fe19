//! What a write means for the items of an array as a collection of its own: fields may be kept from it.

use crate::active::{ActiveRule, CollectionRules, Rules};
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::logical_changes::LogicalChanges;
use crate::rule::outlier::INDEX;
use crate::rule::{Lookup, Outlier, Stack, State};
use document::op::{Capture, Change, Namespace};
use document::{Doc, DocWriter, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// The items that came and went, of the arrays that fields are kept from.
pub(super) struct RowChanges {
    of: Vec<ArrayRows>,
}

/// The rows of one array.
struct ArrayRows {
    outlier: Arc<Outlier>,
    stack: Arc<Stack>,
    /// Whether a field depends on where in the array an item is.
    by_place: bool,
    hosts: Vec<Change>,
    overflow: Vec<Change>,
}

impl RowChanges {
    pub(super) fn of(attempt: &Attempt<'_>, local: &CollectionRules) -> RowChanges {
        let of = |outlier: &Arc<Outlier>| {
            let items = outlier.items();
            let stack = attempt.rules.shaped(&items).filter(|stack| stack.is_source)?.clone();
            let by_place = depends_on_places(&attempt.rules, &items);
            Some(ArrayRows { outlier: outlier.clone(), stack, by_place, hosts: Vec::new(), overflow: Vec::new() })
        };
        RowChanges { of: local.outliers.iter().filter_map(of).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A host with its embedded items became another.
    pub(super) fn host(&mut self, before: Option<&Doc<'static>>, after: Option<&Doc<'static>>) {
        for rows in &mut self.of {
            rows.hosts.push(Change { id: Value::Missing, before: before.cloned(), after: after.cloned() });
        }
    }

    /// The same as a statement has captured it.
    pub(super) fn captured(&mut self, change: &Change) {
        if !self.is_empty() {
            let with_id = |doc: &Option<Doc<'static>>| doc.as_ref().map(|doc| numbered(&change.id, doc));
            self.host(with_id(&change.before).as_ref(), with_id(&change.after).as_ref());
        }
    }

    /// A document of the overflow came, went or became another.
    pub(super) fn overflow(&mut self, outlier: &Outlier, before: Option<&Doc<'static>>, after: Option<&Doc<'static>>) {
        for rows in self.of.iter_mut().filter(|rows| rows.outlier.field == outlier.field) {
            rows.overflow.push(Change { id: Value::Missing, before: before.cloned(), after: after.cloned() });
        }
    }

    /// The changed rows, beside others: what is evaluated from now on sees all of them, so that all must be known together.
    pub(super) fn put(self, into: &mut Changes) -> Result<()> {
        for ArrayRows { outlier, stack, by_place, hosts, overflow } in self.of {
            let mut logical = LogicalChanges::default();
            for (place, changes) in stack.places.iter().zip([hosts, overflow]) {
                logical.add(&stack, &place.stored, &changes)?;
            }
            let mut changes = logical.into_changes();
            if !by_place {
                changes = without_moved(&outlier, changes);
            }
            let known = into.of(&stack.logical).len();
            for (number, change) in changes.iter_mut().enumerate() {
                change.id = Value::Int64(i64::try_from(known + number).unwrap_or(i64::MAX));
            }
            into.derived(&stack.logical, changes);
        }
        Ok(())
    }
}

/// Whether a field over the items depends on where in the array they are, which a removal changes for all that follow.
pub(crate) fn depends_on_places(rules: &Rules, items: &Namespace) -> bool {
    let Some(local) = rules.of(items) else { return false };
    let names_place = match &local.capture {
        Capture::Nothing => false,
        Capture::Everything => true,
        Capture::Paths(paths) => paths.iter().any(|path| ["_id", INDEX].contains(&path.first())),
    };
    let is_by_place = |kept: &Arc<ActiveRule>| {
        // Equal ones are told apart by their `_id`, and the walk over a source goes by it.
        let orders = kept.field.as_ref().is_some_and(|field| matches!(field.lookup(), Lookup::InOrder(_)));
        orders || kept.makes_hosts() && kept.state != State::On
    };
    names_place || local.sourced.iter().any(is_by_place)
}

/// The changes but for items that only have another place now.
fn without_moved(outlier: &Outlier, changes: Vec<Change>) -> Vec<Change> {
    let content = |row: &Doc<'static>| {
        let mut writer = DocWriter::with_capacity(64);
        for name in [&outlier.owner, &outlier.item] {
            writer.append(name, &row.get(name).unwrap_or(Value::Null));
        }
        writer.finish().as_bytes().to_vec()
    };
    let mut rows: HashMap<Vec<u8>, (Vec<Doc<'static>>, Vec<Doc<'static>>)> = HashMap::new();
    for Change { before, after, .. } in changes {
        if let Some(before) = before {
            rows.entry(content(&before)).or_default().0.push(before);
        }
        if let Some(after) = after {
            rows.entry(content(&after)).or_default().1.push(after);
        }
    }
    let mut changes = Vec::new();
    for (mut before, mut after) in rows.into_values() {
        let moved = before.len().min(after.len());
        let (left, came) = (before.split_off(moved), after.split_off(moved));
        let left = left.into_iter().map(|row| Change { id: Value::Missing, before: Some(row), after: None });
        changes.extend(left);
        let came = came.into_iter().map(|row| Change { id: Value::Missing, before: None, after: Some(row) });
        changes.extend(came);
    }
    changes
}

/// A captured document with its `_id`.
fn numbered(id: &Value<'_>, doc: &Doc<'static>) -> Doc<'static> {
    if doc.contains("_id") {
        return doc.clone();
    }
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 32);
    writer.append("_id", id);
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}
