//! Statements about arrays with overflow take no collation: items are compared here, byte by byte, and a filter would miss those that
//! only the collation takes for the same.

use crate::active::CollectionRules;
use crate::execute::statements;
use crate::rule::owned::touched_by_update;
use crate::shapes::outlier::filter::is_about;
use document::Error;
use document::op::{Modify, WriteOp, is_collated};
use document::value::Path;

/// The first statement from `from` on that compares items by a collation.
pub(super) fn refused(local: &CollectionRules, op: &WriteOp, from: usize) -> Option<(usize, Error)> {
    if local.outliers.is_empty() {
        return None;
    }
    let index = (from..statements::count(op)).find(|index| compares_items(local, op, *index))?;
    Some((index, Error::not_implemented("a collation other than { locale: \"simple\" } for an array with overflow")))
}

fn compares_items(local: &CollectionRules, op: &WriteOp, index: usize) -> bool {
    let (filter, update) = match op {
        WriteOp::Insert(_) => return false,
        WriteOp::Update(op) => match op.statements.get(index) {
            Some(statement) => (&statement.filter, Some(&statement.update)),
            None => return false,
        },
        WriteOp::Delete(op) => match op.statements.get(index) {
            Some(statement) => (&statement.filter, None),
            None => return false,
        },
        WriteOp::FindAndModify(op) => match &op.action {
            Modify::Update { update, .. } => (&op.filter, Some(update)),
            Modify::Remove => (&op.filter, None),
        },
    };
    if !is_collated(filter.collation.as_ref()) {
        return false;
    }
    let arrays: Vec<Path> = local.outliers.iter().map(|outlier| Path::new(&outlier.field)).collect();
    let changes_array = update.is_some_and(|update| !update.is_replacement() && touched_by_update(update, &arrays));
    is_about(&local.outliers, filter) || changes_array
}
