//! What clients cannot ask of a logical name, as on every view of MongoDB, or of the collection beneath it.

use crate::active::Rules;
use crate::active::route::{Role, is_stream};
use crate::execute::statements;
use crate::rule::Stack;
use document::backend::Head;
use document::op::{AdminOp, Namespace, NamespaceRef, WriteOp};
use document::{Code, Doc, Error, Result, Value};

/// Refuses work on the indexes of a logical name.
pub(super) fn indexes(rules: &Rules, op: &AdminOp) -> Result<()> {
    let (AdminOp::CreateIndexes { ns, .. } | AdminOp::DropIndexes { ns, .. } | AdminOp::ListIndexes { ns }) = op else {
        return Ok(());
    };
    match rules.shaped(ns) {
        Some(shaped) => Err(on_view(format!("Namespace {ns} is a view, not a collection"), shaped)),
        None => Ok(()),
    }
}

/// Refuses another definition of the view over buckets, or another validator of theirs: both belong to the rule.
pub(super) fn redefinition(rules: &Rules, ns: &Namespace, change: &Doc<'_>) -> Result<()> {
    let (shaped, own): (_, &[&str]) = match (rules.shaped(ns), rules.stored(ns)) {
        (Some(shaped), _) => (shaped, &["viewOn", "pipeline"]),
        (None, Some(shaped)) => (shaped, &["validator", "validationLevel", "validationAction"]),
        (None, None) => return Ok(()),
    };
    match change.iter().find(|(name, _)| own.contains(&name.as_str())) {
        Some((name, _)) => {
            let rule = &shaped.rule.name;
            let message = format!("collMod is not allowed to change '{name}' of '{ns}': it belongs to rule {rule}");
            Err(Error::new(Code::OperationFailed, message)
                .with_hint(format!("change the declaration, or remove the rule with `pleach drop {rule}`")))
        }
        None => Ok(()),
    }
}

/// Why a logical name cannot be watched (SEMANTICS R22), if that is what the command asks.
pub(super) fn stream(rules: &Rules, command: &Head<'_>) -> Option<Error> {
    let Role::Logical(shaped) = rules.role(NamespaceRef { db: command.db, collection: command.target? }) else {
        return None;
    };
    let message = || format!("Namespace {} is a view, not a collection: it cannot be watched", shaped.logical);
    is_stream(command).then(|| on_view(message(), shaped))
}

fn on_view(message: String, shaped: &Stack) -> Error {
    let stored = shaped.places.first().map_or(&shaped.logical, |place| &place.stored);
    let hint = format!("its documents are stored in '{stored}' by rule {}; use that name", shaped.rule.name);
    Error::new(Code::CommandNotSupportedOnView, message).with_hint(hint)
}

/// A client's write to where the documents of a logical collection are stored.
pub(super) fn stored(ns: &Namespace, shaped: &Stack) -> Error {
    let (logical, rule) = (&shaped.logical, &shaped.rule.name);
    let message =
        format!("'{ns}' holds what '{logical}' is made of (rule {rule}): clients may read it, but not write to it");
    Error::new(Code::OperationFailed, message).with_hint(format!("write to '{logical}' instead"))
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
