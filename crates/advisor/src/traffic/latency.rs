//! Reads and writes of each collection since its server started: `$collStats: { latencyStats }`.

use super::{Counter, Traffic, is_internal};
use crate::reader::Reader;
use crate::values::{figure, figures, list, text};
use document::filter::Filter;
use document::op::AdminOp;
use document::{Code, Doc, Error, Result, Value};

/// So many collections of a database are asked about.
pub(super) const COLLECTIONS: usize = 1_000;

pub(super) async fn read(reader: &Reader<'_>, databases: &[String], traffic: &mut Traffic) {
    let (mut counters, mut refusal) = (Vec::new(), None);
    for database in databases {
        for collection in collections(reader, database).await {
            if reader.cancel.is_set() {
                break;
            }
            let options = figures([("latencyStats", Value::Document(Doc::empty()))]);
            let stage = figures([("$collStats", Value::Document(options))]);
            match rows(reader, database, &collection, stage).await {
                Ok(rows) => counters.extend(rows.first().map(|row| counter(row, database, &collection))),
                Err(error) => refusal = Some(error),
            }
        }
    }
    counters.retain(|counter| counter.reads + counter.writes > 0);
    if !counters.is_empty() {
        let note = "reads and writes of each collection since the server started, with those of this and earlier looks; no commands";
        let source = traffic.source("$collStats", 0.0, Some(note.to_owned()));
        traffic.counters.extend(counters.into_iter().map(|counter| Counter { source, ..counter }));
    } else if let Some(error) = refusal.filter(|error| error.code() == Code::Unauthorized) {
        traffic.source("$collStats", 0.0, Some(refused(&error)));
    }
}

fn counter(row: &Doc<'_>, database: &str, collection: &str) -> Counter {
    let operations = |kind: &str| match row.get("latencyStats") {
        Some(Value::Document(stats)) => match stats.get(kind) {
            Some(Value::Document(of_kind)) => figure(&of_kind, "ops"),
            _ => 0,
        },
        _ => 0,
    };
    Counter {
        source: 0,
        database: database.to_owned(),
        collection: collection.to_owned(),
        reads: operations("reads"),
        writes: operations("writes"),
    }
}

/// The collections of clients.
pub(super) async fn collections(reader: &Reader<'_>, database: &str) -> Vec<String> {
    let listed = AdminOp::ListCollections { db: database.to_owned(), filter: Filter::all(), name_only: false };
    let rows = reader.admin(listed).await.unwrap_or_default();
    let own = rows.iter().filter(|row| text(row, "type") == "collection").map(|row| text(row, "name"));
    let mut names: Vec<String> = own.filter(|name| !is_internal(database, name)).collect();
    names.sort();
    names.truncate(COLLECTIONS);
    names
}

/// What a stage of the server's own gives: as a command, since no store knows it.
pub(super) async fn rows(
    reader: &Reader<'_>,
    database: &str,
    collection: &str,
    stage: Doc<'static>,
) -> Result<Vec<Doc<'static>>> {
    let body = figures([
        ("aggregate", Value::from(collection)),
        ("pipeline", list([Value::Document(stage)])),
        ("cursor", Value::Document(Doc::empty())),
    ]);
    let op = AdminOp::Extension { command: "aggregate", db: database.to_owned(), body };
    let answers = reader.admin(op).await?;
    let mut rows = Vec::new();
    for answer in &answers {
        if let Some(Value::Document(cursor)) = answer.get("cursor")
            && let Some(Value::Array(batch)) = cursor.get("firstBatch")
        {
            rows.extend(batch.iter().filter_map(|row| match row {
                Value::Document(row) => Some(row.into_owned()),
                _ => None,
            }));
        }
    }
    Ok(rows)
}

/// Why a source is none.
pub(super) fn refused(error: &Error) -> String {
    match error.code() {
        Code::Unauthorized => "not read: the user has no right to it".to_owned(),
        _ => format!("not read: {}", error.message()),
    }
}
