//! Work on the catalog, as the commands that clients would send.

use crate::command::Command;
use crate::read::without_envelope;
use crate::to_mql;
use crate::upstream::Upstream;
use document::backend::Session;
use document::op::{AdminOp, Context, Explained, Namespace, Verbosity, WriteOp};
use document::raw::kind;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};

pub(crate) async fn run(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    let lists = matches!(op, AdminOp::ListCollections { .. } | AdminOp::ListIndexes { .. });
    let databases = matches!(op, AdminOp::ListDatabases { .. });
    let Some(command) = command(op) else { return Ok(vec![Doc::empty()]) };
    let reply = upstream.run(session, context, command).await?;
    if lists {
        return all_rows(upstream, session, context, reply).await;
    }
    if databases {
        return Ok(match reply.get("databases") {
            Some(Value::Array(rows)) => documents(&rows),
            _ => Vec::new(),
        });
    }
    Ok(vec![without_envelope(&reply)])
}

async fn all_rows(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    mut reply: Doc<'static>,
) -> Result<Vec<Doc<'static>>> {
    let mut all = Vec::new();
    loop {
        let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(all) };
        for name in ["firstBatch", "nextBatch"] {
            if let Some(Value::Array(rows)) = cursor.get(name) {
                all.extend(documents(&rows));
            }
        }
        let id = crate::answer::number(&cursor, "id").unwrap_or_default();
        let ns = cursor.get("ns").and_then(|ns| ns.as_str().map(str::to_owned)).unwrap_or_default();
        let Some((db, collection)) = ns.split_once('.').filter(|_| id != 0) else { return Ok(all) };
        let more = Command::new(db, "getMore", id).with("collection", Value::from(collection.to_owned()));
        reply = upstream.run(session, context, more).await?;
    }
}

fn documents(rows: &Array<'_>) -> Vec<Doc<'static>> {
    let document = |row| match row {
        Value::Document(row) => Some(Doc::into_owned(row)),
        _ => None,
    };
    rows.iter().filter_map(document).collect()
}

/// Nothing: there is nothing to do.
fn command(op: AdminOp) -> Option<Command> {
    let on = |ns: &Namespace, name: &str| Command::new(&ns.db, name, Value::from(ns.collection.to_string()));
    Some(match op {
        AdminOp::Sync => return None,
        AdminOp::Create { ns, options } => {
            let mut command = on(&ns, "create");
            if let Some((size, max)) = options.capped {
                command = command.with("capped", true).with("size", size);
                if let Some(max) = max {
                    command = command.with("max", max);
                }
            }
            command = command.with_some("validator", options.validator.as_ref());
            for (name, text) in
                [("validationLevel", options.validation_level), ("validationAction", options.validation_action)]
            {
                if let Some(text) = text {
                    command = command.with(name, Value::from(text));
                }
            }
            for (name, value) in options.other.iter().flat_map(Doc::iter) {
                command = command.with(name.as_str(), value);
            }
            command
        }
        AdminOp::CreateView { ns, on: viewed, pipeline } => {
            on(&ns, "create").with("viewOn", Value::from(viewed)).with("pipeline", pipeline)
        }
        AdminOp::Drop { ns } => on(&ns, "drop"),
        AdminOp::DropDatabase { db } => Command::new(&db, "dropDatabase", 1),
        AdminOp::Rename { from, to, drop_target } => {
            Command::new("admin", "renameCollection", Value::from(from.to_string()))
                .with("to", Value::from(to.to_string()))
                .with("dropTarget", drop_target)
        }
        AdminOp::CollMod { ns, change } => {
            let mut command = on(&ns, "collMod");
            for (name, value) in change.iter().filter(|(name, _)| name.as_str() != "collMod") {
                command = command.with(name.as_str(), value);
            }
            command
        }
        AdminOp::ListCollections { db, filter, name_only } => {
            Command::new(&db, "listCollections", 1).with_doc("filter", &filter.source).with("nameOnly", name_only)
        }
        AdminOp::ListDatabases { filter, name_only } => {
            Command::new("admin", "listDatabases", 1).with_doc("filter", &filter.source).with("nameOnly", name_only)
        }
        AdminOp::CreateIndexes { ns, indexes } => {
            let indexes: Array<'static> = indexes.into_iter().map(Value::Document).collect();
            on(&ns, "createIndexes").with("indexes", indexes)
        }
        AdminOp::ListIndexes { ns } => on(&ns, "listIndexes"),
        AdminOp::DropIndexes { ns, which } => on(&ns, "dropIndexes").with("index", which),
        AdminOp::DbStats { db, scale } => Command::new(&db, "dbStats", 1).with("scale", scale),
        AdminOp::CollStats { ns, scale } => on(&ns, "collStats").with("scale", scale),
        AdminOp::Validate { ns, full } => on(&ns, "validate").with("full", full),
        AdminOp::Compact { ns } => on(&ns, "compact").with("force", true),
        AdminOp::Status => Command::new("admin", "serverStatus", 1),
        // A server that knows it is a Pleach.
        AdminOp::Extension { db, body, .. } => Command::of(&db, &body),
    })
}

pub(crate) async fn explain(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let variables = context.sent.variables.as_ref();
    let (inner, db) = match &op {
        Explained::Read(op) => {
            let aggregates = matches!(op, document::op::ReadOp::Aggregate(_));
            let command = to_mql::read(op, variables);
            let command = if aggregates { command.with_doc("cursor", &Doc::empty()) } else { command };
            command.into_body()
        }
        Explained::Write(WriteOp::Insert(_)) => {
            return Err(Error::new(Code::OperationFailed, "an insert cannot be explained"));
        }
        Explained::Write(WriteOp::FindAndModify(op)) => to_mql::find_and_modify(op, false, variables).into_body(),
        Explained::Write(WriteOp::Update(op)) => {
            let statements: Array<'static> = op
                .statements
                .iter()
                .map(|statement| Value::Document(to_mql::update_statement(statement, &statement.filter.source)))
                .collect();
            let command = Command::new(&op.ns.db, "update", Value::from(op.ns.collection.to_string()));
            command.with_some("let", variables).with("updates", statements).into_body()
        }
        Explained::Write(WriteOp::Delete(op)) => {
            let statements: Array<'static> = op
                .statements
                .iter()
                .map(|statement| Value::Document(to_mql::delete_statement(statement, &statement.filter.source)))
                .collect();
            let command = Command::new(&op.ns.db, "delete", Value::from(op.ns.collection.to_string()));
            command.with_some("let", variables).with("deletes", statements).into_body()
        }
    };
    let verbosity = match verbosity {
        Verbosity::QueryPlanner => "queryPlanner",
        Verbosity::ExecutionStats => "executionStats",
        Verbosity::AllPlansExecution => "allPlansExecution",
    };
    let mut body = DocWriter::new();
    body.append_raw("explain", kind::DOCUMENT, inner.as_bytes()).append("verbosity", &Value::from(verbosity));
    let reply = upstream.run(session, context, Command::of(&db, &body.finish())).await?;
    Ok(without_envelope(&reply))
}
