//! What clients cannot ask of a logical name, as on every view of MongoDB.

use crate::active::Rules;
use crate::active::route::{Role, is_stream};
use crate::rule::Stack;
use document::backend::Head;
use document::op::{AdminOp, Namespace, NamespaceRef};
use document::{Code, Doc, Error, Result};

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
