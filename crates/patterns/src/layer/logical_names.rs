//! What no statement on a logical name may say, and what no client may write beneath it.

use crate::execute::statements;
use crate::rule::Stack;
use document::op::{Namespace, WriteOp};
use document::{Code, Doc, Error, Value};

/// A client's write to where the documents of a logical collection are stored.
pub(crate) fn stored(ns: &Namespace, shaped: &Stack) -> Error {
    let (logical, rule) = (&shaped.logical, &shaped.rule.name);
    let message =
        format!("'{ns}' holds what '{logical}' is made of (rule {rule}): clients may read it, but not write to it");
    let hint = match shaped.is_virtual() {
        true => format!("write to the array of '{}' instead", shaped.rule.host),
        false => format!("write to '{logical}' instead"),
    };
    Error::new(Code::OperationFailed, message).with_hint(hint)
}

/// A client's write to the items of an array as a collection.
pub(super) fn items(ns: &Namespace, stack: &Stack) -> Error {
    let message = format!("Namespace {ns} is a view, not a collection");
    let rule = &stack.rule;
    Error::new(Code::CommandNotSupportedOnView, message)
        .with_hint(format!("write to the array '{}' of '{}' instead", rule.field, rule.host))
}

/// The first statement from `from` on that says what none on a logical name may say, and why.
pub(super) fn statement(op: &WriteOp, from: usize) -> Option<(usize, Error)> {
    (from..statements::count(op)).find_map(|index| Some((index, unsupported(op, index)?)))
}

fn unsupported(op: &WriteOp, index: usize) -> Option<Error> {
    let (filter, hint) = match op {
        WriteOp::Insert(_) => return None,
        WriteOp::Update(op) => op.statements.get(index).map(|statement| (&statement.filter, &statement.hint))?,
        WriteOp::Delete(op) => op.statements.get(index).map(|statement| (&statement.filter, &statement.hint))?,
        WriteOp::FindAndModify(op) => (&op.filter, &op.hint),
    };
    let other = |collation: &&Doc<'static>| collation.get("locale").as_ref().and_then(Value::as_str) != Some("simple");
    if filter.collation.as_ref().is_some_and(|collation| other(&collation)) {
        // Logical documents are compared by Pleach, which knows only the simple collation.
        let message = "writes to a collection that is kept in buckets take no collation";
        return Some(Error::new(Code::NotImplemented, message));
    }
    // What a hint names is an index of the logical collection, which has none.
    hint.as_ref().map(|_| {
        Error::bad_value(
            "error processing query: Planner returned error: bad hint: hint provided does not correspond to an existing index",
        )
    })
}
