//! What clients cannot ask of a logical name, as on every view of MongoDB; and what only MongoDB itself can answer.

use crate::active::Rules;
use crate::shapes::Stack;
use document::backend::Head;
use document::filter::Filter;
use document::op::{AdminOp, Namespace};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// Refuses work on the indexes of a logical name.
pub(in crate::layer) fn indexes(rules: &Rules, op: &AdminOp) -> Result<()> {
    let (AdminOp::CreateIndexes { ns, .. } | AdminOp::DropIndexes { ns, .. } | AdminOp::ListIndexes { ns }) = op else {
        return Ok(());
    };
    match rules.shaped(ns) {
        Some(shaped) => Err(on_view(format!("Namespace {ns} is a view, not a collection"), shaped)),
        None => Ok(()),
    }
}

/// Refuses another definition of the view over buckets, or another validator of theirs: both belong to the rule.
pub(in crate::layer) fn redefinition(rules: &Rules, ns: &Namespace, change: &Doc<'_>) -> Result<()> {
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
pub(in crate::layer) fn stream(rules: &Rules, command: &Head<'_>) -> Option<Error> {
    let shaped = target(rules, command)?;
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return None };
    let Some(Value::Document(first)) = stages.get(0) else { return None };
    let watches = first.contains("$changeStream");
    let message = || format!("Namespace {} is a view, not a collection: it cannot be watched", shaped.logical);
    watches.then(|| on_view(message(), shaped))
}

fn on_view(message: String, shaped: &Stack) -> Error {
    let stored = shaped.sides.first().map_or(&shaped.logical, |side| &side.stored);
    let hint = format!("its documents are stored in '{stored}' by rule {}; use that name", shaped.rule.name);
    Error::new(Code::CommandNotSupportedOnView, message).with_hint(hint)
}

fn target<'r>(rules: &'r Rules, command: &Head<'_>) -> Option<&'r Arc<Stack>> {
    rules.shaped(&Namespace::new(command.db, command.target?))
}

/// Whether a command reads a logical name in a way that is planned here. What only a real MongoDB understands goes to the
/// view that it has under that name.
pub(in crate::layer) fn plans(rules: &Rules, command: &Head<'_>) -> bool {
    let reads = matches!(command.name, "find" | "aggregate" | "count" | "distinct");
    let indexes = matches!(command.name, "createIndexes" | "dropIndexes" | "deleteIndexes" | "listIndexes");
    match target(rules, command) {
        None => false,
        Some(_) if indexes => true,
        Some(_) => reads && (stream(rules, command).is_some() || !is_for_mongodb_only(command)),
    }
}

fn is_for_mongodb_only(command: &Head<'_>) -> bool {
    if command.body.contains("collation") {
        return true;
    }
    let unknown = |error: Option<Error>| error.is_some_and(|error| error.code() == Code::NotImplemented);
    let filter = |name: &str| match command.body.get(name) {
        Some(Value::Document(filter)) => unknown(Filter::parse(&filter, &mut Names::new()).err()),
        _ => false,
    };
    match (command.name, command.body.get("pipeline")) {
        ("aggregate", Some(Value::Array(stages))) => unknown(Pipeline::parse(&stages, &mut Names::new()).err()),
        ("find", _) => filter("filter"),
        _ => filter("query"),
    }
}
