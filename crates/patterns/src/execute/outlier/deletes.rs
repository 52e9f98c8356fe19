//! A host that is deleted, by whomever, takes its overflow with it.

use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::outlier::derive;
use crate::execute::outlier::rows::RowChanges;
use document::filter::Filter;
use document::op::{Capture, Change, Delete, DeleteStatement, WriteOp};
use document::{Result, Value};

/// Deletes the overflow of hosts that are gone, and adds what that means for the items.
pub(crate) async fn follow_deletes(attempt: &mut Attempt<'_>, changes: &mut Changes) -> Result<()> {
    let rules = attempt.rules.clone();
    let mut gone: Vec<(document::op::Namespace, Vec<Change>)> = Vec::new();
    for (ns, changed) in changes.all() {
        if rules.of(ns).is_none_or(|local| local.outliers.is_empty()) {
            continue;
        }
        let deleted = changed.iter().map(|changed| &changed.change).filter(|change| change.after.is_none());
        let deleted: Vec<Change> = deleted.cloned().collect();
        if !deleted.is_empty() {
            gone.push((ns.clone(), deleted));
        }
    }
    for (ns, deleted) in gone {
        let Some(local) = rules.of(&ns) else { continue };
        let mut rows = RowChanges::of(attempt, local);
        deleted.iter().for_each(|change| rows.captured(change));
        for outlier in &local.outliers {
            let had = |change: &&Change| {
                change
                    .before
                    .as_ref()
                    .is_none_or(|before| before.get(&outlier.flag).is_some_and(|flag| flag.is_truthy()))
            };
            let owners: Vec<Value<'static>> = deleted.iter().filter(had).map(|change| change.id.clone()).collect();
            if owners.is_empty() {
                continue;
            }
            let statement = DeleteStatement::all(Filter::among(&outlier.owner, owners));
            let op = WriteOp::Delete(Delete::of(outlier.overflow.clone(), vec![statement]));
            let capture = if rows.is_empty() { Capture::Nothing } else { Capture::Everything };
            let written = derive(attempt, local, outlier, &op, &capture).await?;
            written.changes.iter().for_each(|change| rows.overflow(outlier, change.before.as_ref(), None));
        }
        rows.put(changes)?;
    }
    Ok(())
}
