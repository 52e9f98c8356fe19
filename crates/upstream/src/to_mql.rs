//! Operations as MongoDB commands: the AST's own source is sent, nothing is translated.

use crate::command::Command;
use document::filter::Filter;
use document::op::{
    Aggregate, Count, DeleteStatement, Distinct, Find, FindAndModify, Hint, Modify, ReadOp, UpdateStatement,
};
use document::raw::kind;
use document::{Array, Doc, DocWriter, Value};

/// The command of a read, without batch size and concerns.
pub(crate) fn read(op: &ReadOp, variables: Option<&Doc<'_>>) -> Command {
    match op {
        ReadOp::Find(op) => find(op).with_some("let", variables),
        ReadOp::Aggregate(op) => aggregate(op).with_some("let", variables),
        ReadOp::Count(op) => count(op),
        ReadOp::Distinct(op) => distinct(op),
    }
}

fn target(collection: &str) -> Value<'static> {
    Value::from(collection.to_owned())
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

fn find(op: &Find) -> Command {
    let mut command = Command::new(&op.ns.db, "find", target(&op.ns.collection)).with_doc("filter", &op.filter.source);
    if let Some(sort) = &op.sort {
        command = command.with_doc("sort", &sort.to_document());
    }
    if let Some(projection) = op.projection.as_ref().and_then(|projection| projection.source()) {
        command = command.with_doc("projection", projection);
    }
    if op.skip > 0 {
        command = command.with("skip", long(op.skip));
    }
    if let Some(limit) = op.limit {
        command = command.with("limit", long(limit));
    }
    command = with_hint(command, op.hint.as_ref())
        .with_some("collation", op.filter.collation.as_ref())
        .with_some("min", op.min.as_ref())
        .with_some("max", op.max.as_ref());
    for (name, set) in [("returnKey", op.return_key), ("showRecordId", op.show_record_id)] {
        if set {
            command = command.with(name, true);
        }
    }
    command
}

fn aggregate(op: &Aggregate) -> Command {
    let on = if op.collectionless { Value::Int32(1) } else { target(&op.ns.collection) };
    let stages = op.pipeline.source.clone().unwrap_or_else(Array::empty);
    // A caller that reads a pipeline with a write at its end writes the rows by itself.
    let writes = |stage: &Value<'_>| matches!(stage, Value::Document(stage) if stage.contains("$merge") || stage.contains("$out"));
    let stages: Array<'static> = match stages.iter().any(|stage| writes(&stage)) {
        true => stages.iter().filter(|stage| !writes(stage)).collect(),
        false => stages,
    };
    let command =
        Command::new(&op.ns.db, "aggregate", on).with("pipeline", stages).with("allowDiskUse", op.allow_disk_use);
    with_hint(command, op.hint.as_ref()).with_some("collation", op.collation.as_ref())
}

fn count(op: &Count) -> Command {
    let mut command = Command::new(&op.ns.db, "count", target(&op.ns.collection)).with_doc("query", &op.filter.source);
    if op.skip > 0 {
        command = command.with("skip", long(op.skip));
    }
    if let Some(limit) = op.limit {
        command = command.with("limit", long(limit));
    }
    with_hint(command, op.hint.as_ref()).with_some("collation", op.filter.collation.as_ref())
}

/// What `count` does, as a pipeline.
pub(crate) fn count_in_transaction(op: &Count) -> Command {
    let mut stages = DocWriter::new();
    stages.start_array("pipeline").start_document_at(0);
    stages.append_raw("$match", kind::DOCUMENT, op.filter.source.as_bytes()).end();
    let mut at = 1;
    for (name, number) in [("$skip", Some(op.skip).filter(|skip| *skip > 0)), ("$limit", op.limit)] {
        if let Some(number) = number {
            stages.start_document_at(at).append(name, &long(number)).end();
            at += 1;
        }
    }
    stages.start_document_at(at).start_document("$group").append("_id", &Value::Null);
    stages.start_document("n").append("$sum", &Value::Int32(1)).end().end().end().end();
    let stages = stages.finish();
    let command = Command::new(&op.ns.db, "aggregate", target(&op.ns.collection))
        .with("pipeline", stages.get("pipeline").unwrap_or(Value::Missing))
        .with_doc("cursor", &Doc::empty());
    with_hint(command, op.hint.as_ref()).with_some("collation", op.filter.collation.as_ref())
}

fn distinct(op: &Distinct) -> Command {
    Command::new(&op.ns.db, "distinct", target(&op.ns.collection))
        .with("key", Value::from(op.key.dotted()))
        .with_doc("query", &op.filter.source)
        .with_some("collation", op.filter.collation.as_ref())
}

pub(crate) fn with_hint(command: Command, hint: Option<&Hint>) -> Command {
    match hint {
        Some(hint) => command.with("hint", hint_value(hint)),
        None => command,
    }
}

fn hint_value(hint: &Hint) -> Value<'static> {
    match hint {
        Hint::Name(name) => Value::from(name.clone()),
        Hint::Keys(keys) => Value::Document(keys.clone()),
        Hint::Natural { descending } => {
            let mut writer = DocWriter::new();
            writer.append("$natural", &Value::Int32(if *descending { -1 } else { 1 }));
            Value::Document(writer.finish())
        }
    }
}

/// A statement of `update`; `filter` stands for the statement's own.
pub(crate) fn update_statement(statement: &UpdateStatement, filter: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append_raw("q", kind::DOCUMENT, filter.as_bytes());
    writer.append("u", &statement.update.source);
    if let Some(constants) = &statement.update.constants {
        writer.append_raw("c", kind::DOCUMENT, constants.as_bytes());
    }
    writer.append("multi", &Value::Bool(statement.multi)).append("upsert", &Value::Bool(statement.upsert));
    append_array_filters(&mut writer, &statement.update.array_filters);
    if let Some(hint) = &statement.hint {
        writer.append("hint", &hint_value(hint));
    }
    append_collation(&mut writer, &statement.filter);
    writer.finish()
}

fn append_collation(writer: &mut DocWriter, filter: &Filter) {
    if let Some(collation) = &filter.collation {
        writer.append_raw("collation", kind::DOCUMENT, collation.as_bytes());
    }
}

fn append_array_filters(writer: &mut DocWriter, filters: &[Doc<'static>]) {
    if !filters.is_empty() {
        writer.start_array("arrayFilters");
        for (at, filter) in filters.iter().enumerate() {
            writer.append_raw_at(at, kind::DOCUMENT, filter.as_bytes());
        }
        writer.end();
    }
}

pub(crate) fn delete_statement(statement: &DeleteStatement, filter: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append_raw("q", kind::DOCUMENT, filter.as_bytes());
    writer.append("limit", &Value::Int32(if statement.multi { 0 } else { 1 }));
    if let Some(hint) = &statement.hint {
        writer.append("hint", &hint_value(hint));
    }
    append_collation(&mut writer, &statement.filter);
    writer.finish()
}

/// `findAndModify`; with `images` it gives the whole document before, whatever the client asked to see.
pub(crate) fn find_and_modify(op: &FindAndModify, images: bool, variables: Option<&Doc<'_>>) -> Command {
    let mut command =
        Command::new(&op.ns.db, "findAndModify", target(&op.ns.collection)).with_doc("query", &op.filter.source);
    if let Some(sort) = &op.sort {
        command = command.with_doc("sort", &sort.to_document());
    }
    match &op.action {
        Modify::Remove => command = command.with("remove", true),
        Modify::Update { update, upsert, return_new } => {
            command = command.with("update", update.source.clone()).with("upsert", *upsert);
            append_array_filters(&mut command.writer, &update.array_filters);
            if *return_new && !images {
                command = command.with("new", true);
            }
        }
    }
    if let Some(fields) = op.projection.as_ref().and_then(|projection| projection.source())
        && !images
    {
        command = command.with_doc("fields", fields);
    }
    if op.bypass_validation {
        command = command.with("bypassDocumentValidation", true);
    }
    with_hint(command, op.hint.as_ref())
        .with_some("collation", op.filter.collation.as_ref())
        .with_some("let", variables)
}

/// `{ _id: { $in: ids } }` and the filter.
pub(crate) fn among_ids(ids: &[Value<'static>], filter: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.start_array("$and").start_document_at(0).start_document("_id");
    writer.append("$in", &Value::Array(ids.iter().map(Value::borrow).collect())).end().end();
    writer.append_raw_at(1, kind::DOCUMENT, filter.as_bytes()).end();
    writer.finish()
}

/// `{ _id: { $in: ids } }`.
pub(crate) fn by_ids(ids: &[Value<'static>]) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.start_document("_id").append("$in", &Value::Array(ids.iter().map(Value::borrow).collect())).end();
    writer.finish()
}
