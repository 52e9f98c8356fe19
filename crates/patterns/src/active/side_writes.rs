//! Where a command writes to beside the collection that it names: the end of a pipeline, and commands that no plan follows.

use crate::active::Rules;
use document::backend::{Class, Head};
use document::op::Namespace;
use document::{Doc, Value};

/// A collection that a command would change behind the back of its rules.
pub(crate) struct SideWrite {
    pub(crate) ns: Namespace,
    /// What MongoDB asks of the sender there.
    pub(crate) action: &'static str,
}

/// The collection of a rule, or of ours, that a command writes to and that Pleach has no plan for; `None` if there is none.
pub(crate) fn unplanned(rules: &Rules, command: &Head<'_>) -> Option<SideWrite> {
    let named = |collection: &str| Namespace::new(command.db, collection);
    let (ns, action) = match command.class {
        Class::ConvertToCapped => (named(command.target?), "convertToCapped"),
        Class::CloneAsCapped => (named(command.body.get("toCollection")?.as_str()?), "insert"),
        Class::MapReduce => (reduced_into(command)?, "insert"),
        Class::ApplyOps => return applied(rules, command.body),
        _ => return None,
    };
    (!rules.is_free(ns.by_ref())).then_some(SideWrite { ns, action })
}

/// Whether a command is one of those, whatever its collection.
pub(crate) fn is_unplanned(command: &Head<'_>) -> bool {
    match command.class {
        Class::ConvertToCapped | Class::CloneAsCapped | Class::ApplyOps => true,
        Class::MapReduce => reduced_into(command).is_some(),
        _ => false,
    }
}

/// Where `mapReduce` writes to; `None` if it answers with its result.
fn reduced_into(command: &Head<'_>) -> Option<Namespace> {
    match command.body.get("out")? {
        Value::String(collection) => Some(Namespace::new(command.db, collection.as_str())),
        Value::Document(out) => {
            let db = out.get("db");
            let db = db.as_ref().and_then(Value::as_str).unwrap_or(command.db);
            let collection = ["replace", "merge", "reduce"].iter().find_map(|how| out.get(how))?;
            Some(Namespace::new(db, collection.as_str()?))
        }
        _ => None,
    }
}

/// The first operation on a collection of a rule. Commands, and collections that are named by their number, are not looked into: in a
/// database with rules they count as such.
fn applied(rules: &Rules, body: &Doc<'_>) -> Option<SideWrite> {
    // The operations are the value of the command's own field.
    let (_, Value::Array(operations)) = body.iter().next()? else { return None };
    operations.iter().find_map(|operation| {
        let Value::Document(operation) = operation else { return None };
        let ns = operation.get("ns")?;
        let (db, collection) = ns.as_str()?.split_once('.')?;
        let ns = Namespace::new(db, collection);
        let kind = operation.get("op");
        let action = match kind.as_ref().and_then(Value::as_str) {
            Some("i") => "insert",
            Some("u") => "update",
            Some("d") => "remove",
            Some("n") => return None,
            _ => "dropCollection",
        };
        let is_hidden = action == "dropCollection" || operation.contains("ui");
        let concerned = !rules.is_free(ns.by_ref()) || is_hidden && rules.has_database(db);
        concerned.then_some(SideWrite { ns, action })
    })
}

/// `$out` or `$merge` in the pipeline.
pub(super) fn has_sink(command: &Head<'_>) -> bool {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return false };
    let is_sink =
        |stage: &Value<'_>| matches!(stage, Value::Document(doc) if doc.contains("$out") || doc.contains("$merge"));
    stages.iter().any(|stage| is_sink(&stage))
}

/// Where the `$merge` that ends a pipeline writes to; `$out` is checked where it is refused.
pub(crate) fn merged_into(command: &Head<'_>) -> Option<Namespace> {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return None };
    let merges = |stage: &Value<'_>| matches!(stage, Value::Document(stage) if stage.contains("$merge"));
    stages.iter().last().filter(merges).and_then(|_| sink(command))
}

/// Where the `$out` or `$merge` that ends a pipeline writes to; `None` if it is not said as it should be.
pub(super) fn sink(command: &Head<'_>) -> Option<Namespace> {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return None };
    let Some(Value::Document(stage)) = stages.iter().last() else { return None };
    let target = match (stage.get("$out"), stage.get("$merge")) {
        (Some(target), None) => target,
        (None, Some(Value::Document(merge))) => merge.get("into")?,
        (None, Some(target)) => target,
        _ => return None,
    };
    match target {
        Value::String(collection) => Some(Namespace::new(command.db, collection.as_str())),
        Value::Document(target) => {
            let db = target.get("db");
            let db = db.as_ref().map_or(Some(command.db), Value::as_str)?;
            Some(Namespace::new(db, target.get("coll")?.as_str()?))
        }
        _ => None,
    }
}
