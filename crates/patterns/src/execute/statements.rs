//! A part of a client's statements, and how outcomes of parts become one.

use document::Error;
use document::op::{Delete, Insert, UpdateOp, WriteError, WriteOp, Written};
use std::ops::Range;

pub(crate) fn count(op: &WriteOp) -> usize {
    match op {
        WriteOp::Insert(op) => op.documents.len(),
        WriteOp::Update(op) => op.statements.len(),
        WriteOp::Delete(op) => op.statements.len(),
        WriteOp::FindAndModify(_) => 1,
    }
}

pub(crate) fn is_ordered(op: &WriteOp) -> bool {
    match op {
        WriteOp::Insert(op) => op.ordered,
        WriteOp::Update(op) => op.ordered,
        WriteOp::Delete(op) => op.ordered,
        WriteOp::FindAndModify(_) => true,
    }
}

/// Whether the statement is about many documents.
pub(crate) fn is_multi(op: &WriteOp, at: usize) -> bool {
    match op {
        WriteOp::Insert(_) | WriteOp::FindAndModify(_) => false,
        WriteOp::Update(op) => op.statements.get(at).is_some_and(|statement| statement.multi),
        WriteOp::Delete(op) => op.statements.get(at).is_some_and(|statement| statement.multi),
    }
}

/// How large a statement is, about.
pub(crate) fn size(op: &WriteOp, at: usize) -> usize {
    match op {
        WriteOp::Insert(op) => op.documents.get(at).map_or(0, |doc| doc.as_bytes().len()),
        WriteOp::Update(_) | WriteOp::Delete(_) | WriteOp::FindAndModify(_) => 256,
    }
}

/// The statements of a range, each with its retry number.
pub(crate) fn part(op: &WriteOp, range: Range<usize>) -> WriteOp {
    let ids = |given: &[i32]| -> Vec<i32> {
        let number = |at: usize| given.get(at).copied().unwrap_or_else(|| i32::try_from(at).unwrap_or(i32::MAX));
        range.clone().map(number).collect()
    };
    match op {
        WriteOp::Insert(op) => WriteOp::Insert(Insert {
            ns: op.ns.clone(),
            documents: op.documents.get(range.clone()).unwrap_or_default().to_vec(),
            ordered: op.ordered,
            bypass_validation: op.bypass_validation,
            statement_ids: ids(&op.statement_ids),
        }),
        WriteOp::Update(op) => WriteOp::Update(UpdateOp {
            ns: op.ns.clone(),
            statements: op.statements.get(range.clone()).unwrap_or_default().to_vec(),
            ordered: true,
            bypass_validation: op.bypass_validation,
            statement_ids: ids(&op.statement_ids),
        }),
        WriteOp::Delete(op) => WriteOp::Delete(Delete {
            ns: op.ns.clone(),
            statements: op.statements.get(range.clone()).unwrap_or_default().to_vec(),
            ordered: true,
            statement_ids: ids(&op.statement_ids),
        }),
        WriteOp::FindAndModify(op) => WriteOp::FindAndModify(op.clone()),
    }
}

/// The statements of some places; what the command says otherwise stays.
pub(crate) fn chosen(op: &WriteOp, places: &[usize]) -> WriteOp {
    fn of<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
        places.iter().filter_map(|at| all.get(*at).cloned()).collect()
    }
    match op {
        WriteOp::Insert(op) => {
            WriteOp::Insert(Insert { documents: of(&op.documents, places), statement_ids: Vec::new(), ..op.clone() })
        }
        WriteOp::Update(op) => WriteOp::Update(UpdateOp {
            statements: of(&op.statements, places),
            statement_ids: Vec::new(),
            ..op.clone()
        }),
        WriteOp::Delete(op) => {
            WriteOp::Delete(Delete { statements: of(&op.statements, places), statement_ids: Vec::new(), ..op.clone() })
        }
        WriteOp::FindAndModify(op) => WriteOp::FindAndModify(op.clone()),
    }
}

/// Adds the outcome of the statements from `offset` on.
pub(crate) fn add(total: &mut Written, part: Written, offset: usize) {
    total.n += part.n;
    total.modified += part.modified;
    total.upserted.extend(part.upserted.into_iter().map(|(index, id)| (index + offset, id)));
    total.errors.extend(part.errors.into_iter().map(|error| WriteError { index: error.index + offset, ..error }));
    total.document = part.document.or(total.document.take());
    total.changes.extend(part.changes);
    total.retried.extend(part.retried);
}

/// The reply of a statement that failed, with nothing done.
pub(crate) fn failed(index: usize, error: Error) -> Written {
    Written { errors: vec![WriteError { index, error }], ..Written::default() }
}
