//! An operation as `system.profile` shows it, with MongoDB's names and order; and as the log does.
//!
//! What only a mongod has (locks, flow control, the storage's waits, execution stages) is left out.

use crate::client::{Client, application};
use crate::identity;
use crate::workload::{Kind, Outcome, Seen};
use document::backend::Class;
use document::traffic::{describe, fingerprint};
use document::value::show;
use document::{Doc, DocWriter, Value};
use std::time::Duration;

/// A command longer than this is shown by its beginning, as in MongoDB.
const COMMAND: usize = 50 * 1024;

/// What is shown of a command that is too long.
const SHOWN: usize = 1_000;

fn long(number: u64) -> Value<'static> {
    i32::try_from(number).map_or_else(|_| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)), Value::Int32)
}

fn operation(kind: Kind) -> &'static str {
    match kind {
        Kind::Query => "query",
        Kind::GetMore => "getmore",
        Kind::Insert => "insert",
        Kind::Update => "update",
        Kind::Remove => "remove",
        Kind::ReadCommand | Kind::WriteCommand | Kind::Command => "command",
    }
}

pub(super) fn entry(client: &Client, seen: &Seen<'_>, outcome: &Outcome<'_>, took: Duration) -> Doc<'static> {
    let mut writer = DocWriter::new();
    let namespace = format!("{}.{}", seen.db, seen.command.collection);
    writer.append("op", &Value::from(operation(seen.kind))).append("ns", &Value::from(namespace));
    command(&mut writer, seen);
    if let Some(original) = &seen.original {
        show(&mut writer, "originatingCommand", original, original);
    }
    if outcome.cursor != 0 {
        writer.append("cursorid", &Value::Int64(outcome.cursor));
    } else if let (Kind::GetMore, Some((_, id))) = (seen.kind, seen.command.body.iter().next()) {
        writer.append("cursorid", &id);
    }
    let found = outcome.ok && !matches!(seen.kind, Kind::Insert | Kind::Command);
    if found {
        writer.append("keysExamined", &long(outcome.keys)).append("docsExamined", &long(outcome.documents));
    }
    if outcome.ok && outcome.has_cursor && outcome.cursor == 0 && seen.kind != Kind::Command {
        writer.append("cursorExhausted", &Value::Bool(true));
    }
    written(&mut writer, seen, outcome);
    writer.append("numYield", &Value::Int32(0));
    if outcome.has_cursor && seen.kind.is_read() {
        writer.append("nreturned", &long(outcome.returned));
    }
    if found {
        let hash = fingerprint(seen.db.as_str(), &seen.command, &seen.statement);
        writer.append("queryHash", &Value::from(format!("{:08X}", hash >> 32)));
    }
    if let Some(error) = &outcome.error {
        writer.append("ok", &Value::Double(0.0));
        for (name, shown) in [("errmsg", "errMsg"), ("codeName", "errName"), ("code", "errCode")] {
            if let Some(value) = error.get(name) {
                writer.append(shown, &value);
            }
        }
    }
    if !matches!(seen.kind, Kind::Update | Kind::Remove) {
        let length = outcome.bytes.saturating_sub(wire::Header::SIZE);
        writer.append("responseLength", &long(u64::try_from(length).unwrap_or_default()));
        writer.append("protocol", &Value::from("op_msg"));
    }
    writer.append("millis", &long(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    if let Some(plan) = client.examined.plan().filter(|_| found) {
        writer.append("planSummary", &Value::from(plan));
    }
    writer.append("ts", &Value::DateTime(identity::milliseconds()));
    writer.append("client", &Value::from(client.address.ip().to_string()));
    if let Some(name) = client.metadata.lock().as_ref().and_then(application) {
        writer.append("appName", &Value::from(name));
    }
    writer.start_array("allUsers").end();
    writer.append("user", &Value::from(""));
    writer.finish()
}

/// The fields of an update statement, in the order in which MongoDB shows them.
const UPDATE: [&str; 8] = ["q", "u", "c", "arrayFilters", "hint", "multi", "upsert", "collation"];

/// An update or delete is shown as its first statement, anything else as its body: documents that travel beside the body are left out.
fn command(writer: &mut DocWriter, seen: &Seen<'_>) {
    let list = match seen.class {
        Class::Update => "updates",
        Class::Delete => "deletes",
        _ => "",
    };
    let body = &seen.command.body;
    let statement = seen.command.statement.clone().or_else(|| match body.get(list) {
        Some(Value::Array(statements)) => match statements.get(0) {
            Some(Value::Document(first)) => Some(first),
            _ => None,
        },
        _ => None,
    });
    let shown: Doc<'_> = match (seen.kind, statement) {
        (Kind::Update, Some(statement)) => shown_update(&statement),
        (Kind::Remove, Some(statement)) => statement,
        _ => body.clone(),
    };
    show(writer, "command", &shown, body);
}

/// A command, or the beginning of one that is too long, with the comment of the whole.
fn show(writer: &mut DocWriter, name: &str, command: &Doc<'_>, whole: &Doc<'_>) {
    if command.as_bytes().len() <= COMMAND {
        writer.append(name, &Value::Document(command.borrow()));
        return;
    }
    let text: String = show::document(command).to_string().chars().take(SHOWN).collect();
    writer.start_document(name).append("$truncated", &Value::from(format!("{text}...")));
    if let Some(comment) = whole.get("comment") {
        writer.append("comment", &comment);
    }
    writer.end();
}

fn shown_update(statement: &Doc<'_>) -> Doc<'static> {
    let mut own = DocWriter::new();
    for name in UPDATE {
        let absent = ["multi", "upsert"].contains(&name).then_some(Value::Bool(false));
        if let Some(value) = statement.get(name).or(absent) {
            own.append(name, &value);
        }
    }
    for (name, value) in statement.iter().filter(|(name, _)| !UPDATE.contains(&name.as_str())) {
        own.append(name.as_str(), &value);
    }
    own.finish()
}

fn written(writer: &mut DocWriter, seen: &Seen<'_>, outcome: &Outcome<'_>) {
    // An insert that fails halfway says how far it came.
    if !outcome.ok && (seen.kind != Kind::Insert || outcome.error.is_some()) {
        return;
    }
    match seen.kind {
        Kind::Insert => {
            writer.append("ninserted", &long(outcome.written));
        }
        Kind::Update => {
            let modified = outcome.modified.unwrap_or_default().unsigned_abs();
            writer.append("nMatched", &long(outcome.written.saturating_sub(outcome.upserted)));
            writer.append("nModified", &long(modified)).append("nUpserted", &long(outcome.upserted));
        }
        Kind::Remove => {
            writer.append("ndeleted", &long(outcome.written));
        }
        Kind::WriteCommand if seen.command.body.get("remove").is_some_and(|remove| remove.is_truthy()) => {
            writer.append("ndeleted", &long(outcome.written));
        }
        Kind::WriteCommand => {
            let matched = outcome.written.saturating_sub(outcome.upserted);
            writer.append("nMatched", &long(matched)).append("nModified", &long(matched));
            writer.append("nUpserted", &long(outcome.upserted));
        }
        Kind::Query | Kind::GetMore | Kind::ReadCommand | Kind::Command => {}
    }
}

/// One line for a slow operation: its shape and what it took, none of its values.
pub(super) fn log(seen: &Seen<'_>, outcome: &Outcome<'_>, client: &Client, milliseconds: i64) {
    let shape = describe(seen.db.as_str(), &seen.command, &seen.statement);
    tracing::info!(
        op = operation(seen.kind),
        ns = format!("{}.{}", seen.db, seen.command.collection),
        shape = %show::document(&shape),
        plan = client.examined.plan().unwrap_or_default(),
        keys_examined = outcome.keys,
        documents_examined = outcome.documents,
        returned = outcome.returned,
        bytes = outcome.bytes,
        milliseconds,
        client = %client.address,
        "slow operation"
    );
}
