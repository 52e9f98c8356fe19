//! One operation as the profiler's entries and the log's "Slow query" lines show it. Both have the same names for nearly everything.

use super::OWN_NAME;
use super::is_internal;
use crate::values::{figure, text};
use document::traffic::{Command, Statement};
use document::{Doc, DocWriter, Text, Value};

/// What was run, where, and what it took.
pub(super) struct Operation<'d> {
    pub(super) database: String,
    pub(super) collection: String,
    /// `find`, `aggregate`, `update` … as the command is called.
    pub(super) name: String,
    /// The command; of an update or delete the statement.
    command: Doc<'d>,
    pub(super) examined: u64,
    pub(super) returned: u64,
    pub(super) written: u64,
    pub(super) milliseconds: u64,
    pub(super) bytes: u64,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    /// A `getMore` is more of the command that it belongs to.
    pub(super) is_more: bool,
    /// What stands for the connection.
    pub(super) line: String,
}

/// Commands with a shape.
const COMMANDS: [&str; 9] =
    ["find", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify", "findandmodify"];

impl<'d> Operation<'d> {
    /// Of an entry of `system.profile`.
    pub(super) fn of_entry(entry: &Doc<'d>) -> Option<Operation<'d>> {
        let mut operation = Operation::of(entry, &text(entry, "op"))?;
        operation.milliseconds = figure(entry, "millis");
        operation.bytes = figure(entry, "responseLength");
        if let Some(Value::DateTime(at)) = entry.get("ts") {
            operation.at = at;
        }
        // An entry does not name its connection; drivers use one session after the other on it.
        let session = match entry.get("command") {
            Some(Value::Document(command)) => session(&command),
            _ => None,
        };
        operation.line = format!("{} {}", text(entry, "client"), session.unwrap_or_default());
        Some(operation)
    }

    /// Of the `attr` of a line of the log.
    pub(super) fn of_line(attributes: &Doc<'d>, connection: &str, at: i64) -> Option<Operation<'d>> {
        let kind = text(attributes, "type");
        let mut operation = Operation::of(attributes, &kind)?;
        // A write is logged by its statements, and once more as the command that they came in.
        if kind == "command" && matches!(&*operation.name, "update" | "delete") {
            return None;
        }
        operation.milliseconds = figure(attributes, "durationMillis");
        operation.bytes = figure(attributes, "reslen");
        operation.at = at;
        connection.clone_into(&mut operation.line);
        Some(operation)
    }

    fn of(source: &Doc<'d>, kind: &str) -> Option<Operation<'d>> {
        if text(source, "appName") == OWN_NAME || source.contains("errMsg") {
            return None;
        }
        let namespace = text(source, "ns");
        let (database, collection) = namespace.split_once('.')?;
        let Some(Value::Document(mut command)) = source.get("command") else { return None };
        let first = command.iter().next()?.0.as_str().to_owned();
        let is_more = first == "getMore";
        if is_more {
            let Some(Value::Document(original)) = source.get("originatingCommand") else { return None };
            command = original;
        }
        let name = match kind {
            "update" => "update".to_owned(),
            "remove" => "delete".to_owned(),
            _ => command.iter().next()?.0.as_str().to_owned(),
        };
        if !COMMANDS.contains(&&*name) || is_internal(database, collection) {
            return None;
        }
        let count = |names: &[&str]| names.iter().map(|name| figure(source, name)).sum();
        Some(Operation {
            database: database.to_owned(),
            collection: collection.to_owned(),
            name,
            command,
            examined: figure(source, "docsExamined").max(figure(source, "keysExamined")),
            returned: figure(source, "nreturned"),
            written: count(&["ninserted", "nMatched", "ndeleted", "nUpserted"]),
            milliseconds: 0,
            bytes: 0,
            at: 0,
            is_more,
            line: String::new(),
        })
    }

    /// Gives command and statement, as a server sees them.
    pub(super) fn with_command<T>(&self, visit: impl FnOnce(&Command<'_>, &Statement<'_>) -> T) -> T {
        let is_statement = self.command.contains("q");
        let mut named = DocWriter::new();
        named.append(&self.name, &Value::from(&*self.collection));
        let (body, statement) = match is_statement {
            true => (named.finish(), Some(self.command.borrow())),
            false => (self.command.borrow(), None),
        };
        let command =
            Command { name: Text::borrowed(&self.name), collection: Text::borrowed(&self.collection), body, statement };
        let statement = Statement::of(&command);
        visit(&command, &statement)
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(&*self.name, "find" | "aggregate" | "count" | "distinct")
    }
}

/// The session of a command, as a word.
fn session(command: &Doc<'_>) -> Option<String> {
    let Some(Value::Document(session)) = command.get("lsid") else { return None };
    let id = session.get("id")?;
    Some(format!("{:016x}", crate::values::hash(&id)))
}
