//! What a write means for the items of an array as a collection of its own: fields may be kept from it.

use crate::active::CollectionRules;
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::logical_changes::LogicalChanges;
use crate::execute::react::react;
use crate::rule::{Outlier, Stack};
use document::op::Change;
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// The items that came and went, of the arrays that fields are kept from.
pub(super) struct RowChanges {
    of: Vec<ArrayRows>,
}

/// The rows of one array.
struct ArrayRows {
    stack: Arc<Stack>,
    hosts: Vec<Change>,
    overflow: Vec<Change>,
}

impl ArrayRows {
    fn of(stack: &Arc<Stack>) -> ArrayRows {
        ArrayRows { stack: stack.clone(), hosts: Vec::new(), overflow: Vec::new() }
    }
}

impl RowChanges {
    pub(super) fn of(attempt: &Attempt<'_>, local: &CollectionRules) -> RowChanges {
        let stacks = local.outliers.iter().filter_map(|outlier| attempt.rules.shaped(&outlier.items()));
        RowChanges { of: stacks.filter(|stack| stack.is_source).map(ArrayRows::of).collect() }
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
        let items = outlier.items();
        for rows in self.of.iter_mut().filter(|rows| rows.stack.logical == items) {
            rows.overflow.push(Change { id: Value::Missing, before: before.cloned(), after: after.cloned() });
        }
    }

    /// The changed rows, beside others.
    pub(super) fn put(self, into: &mut Changes) -> Result<()> {
        for ArrayRows { stack, hosts, overflow } in self.of {
            let mut logical = LogicalChanges::default();
            for (place, changes) in stack.places.iter().zip([hosts, overflow]) {
                logical.add(&stack, &place.stored, &changes)?;
            }
            into.derived(&stack.logical, logical.into_changes());
        }
        Ok(())
    }

    /// What follows from them.
    pub(super) async fn follow(self, attempt: &mut Attempt<'_>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        self.put(&mut changes)?;
        react(attempt, changes).await
    }
}

/// A captured document with its `_id`.
pub(super) fn numbered(id: &Value<'_>, doc: &Doc<'static>) -> Doc<'static> {
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
