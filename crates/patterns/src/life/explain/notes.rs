//! What `explain` points out about a filter: that it contradicts what rules say of the collection.

use crate::active::Rules;
use document::filter::Filter;
use document::op::{Namespace, ReadOp, WriteOp};
use document::pipeline::Role;
use document::{Array, Doc, DocWriter, Value};

/// About a read.
pub(crate) fn of_read(rules: &Rules, read: &ReadOp) -> Vec<String> {
    match read {
        ReadOp::Find(find) => of(rules, &find.ns, [&find.filter]),
        ReadOp::Count(count) => of(rules, &count.ns, [&count.filter]),
        ReadOp::Distinct(distinct) => of(rules, &distinct.ns, [&distinct.filter]),
        ReadOp::Aggregate(aggregate) => {
            let first = aggregate.pipeline.stages.first().map(|stage| stage.role());
            match first {
                Some(Role::Match(matching)) => of(rules, &aggregate.ns, [&matching.filter]),
                _ => Vec::new(),
            }
        }
    }
}

/// About a write that looks for documents.
pub(crate) fn of_write(rules: &Rules, write: &WriteOp) -> Vec<String> {
    match write {
        WriteOp::Insert(_) => Vec::new(),
        WriteOp::Update(op) => of(rules, write.ns(), op.statements.iter().map(|statement| &statement.filter)),
        WriteOp::Delete(op) => of(rules, write.ns(), op.statements.iter().map(|statement| &statement.filter)),
        WriteOp::FindAndModify(op) => of(rules, write.ns(), [&op.filter]),
    }
}

fn of<'f>(rules: &Rules, ns: &Namespace, filters: impl IntoIterator<Item = &'f Filter>) -> Vec<String> {
    let Some(local) = rules.of(ns) else { return Vec::new() };
    let mut notes: Vec<String> = Vec::new();
    for filter in filters {
        for constraint in local.named_by.iter().filter_map(|kept| kept.rule.constraint()) {
            notes.extend(constraint.notes(filter));
        }
    }
    notes.dedup();
    notes
}

/// The document with `notes`, if there are any.
pub(crate) fn with(doc: &Doc<'_>, notes: &[String]) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    if !notes.is_empty() {
        writer
            .append("notes", &Value::Array(notes.iter().map(|note| Value::from(&**note)).collect::<Array<'static>>()));
    }
    writer.finish()
}
