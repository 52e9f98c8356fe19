//! Commands on a line to a server, and the rows of a cursor, batch by batch: what is read is never all in memory.

use bson::{Document, doc};
use document::backend::Relay;
use document::{Doc, Result, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// One connection to a server.
pub type Line = Arc<dyn Relay>;

/// Runs a command; an error reply is an error.
pub async fn run(line: &Line, db: &str, command: Document) -> Result<Document> {
    let reply = line.command(db, Doc::from(command)).await?;
    Document::try_from(&reply)
}

/// All rows of a read, as documents are needed.
pub struct Rows {
    line: Line,
    db: String,
    collection: String,
    cursor: i64,
    batch: VecDeque<Doc<'static>>,
    /// The moment that is read, where the server says it.
    pub at_cluster_time: Option<u64>,
}

const BATCH: i32 = 5_000;

impl Rows {
    /// Begins a read (`find`, `aggregate`, `listCollections` …).
    pub async fn open(line: &Line, db: &str, command: Document) -> Result<Rows> {
        let collection = command.values().next().and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let mut rows = Rows {
            line: line.clone(),
            db: db.to_owned(),
            collection,
            cursor: 0,
            batch: VecDeque::new(),
            at_cluster_time: None,
        };
        let reply = line.command(db, Doc::from(command)).await?;
        rows.take(&reply, "firstBatch");
        Ok(rows)
    }

    /// Begins a `find`.
    pub async fn find(line: &Line, db: &str, collection: &str, filter: Document) -> Result<Rows> {
        Rows::open(line, db, doc! { "find": collection, "filter": filter, "batchSize": BATCH }).await
    }

    pub async fn next(&mut self) -> Result<Option<Doc<'static>>> {
        while self.batch.is_empty() && self.cursor != 0 {
            let more = doc! { "getMore": self.cursor, "collection": &*self.collection, "batchSize": BATCH };
            let reply = self.line.command(&self.db, Doc::from(more)).await?;
            self.take(&reply, "nextBatch");
        }
        Ok(self.batch.pop_front())
    }

    fn take(&mut self, reply: &Doc<'_>, name: &str) {
        self.cursor = 0;
        let Some(Value::Document(cursor)) = reply.get("cursor") else { return };
        if let Some(Value::Int64(id)) = cursor.get("id") {
            self.cursor = id;
        }
        // Documents that the server names: a view's cursor is one of its own collection.
        if let Some((_, collection)) =
            cursor.get("ns").as_ref().and_then(Value::as_str).and_then(|ns| ns.split_once('.'))
        {
            collection.clone_into(&mut self.collection);
        }
        if let Some(Value::Timestamp(time)) = cursor.get("atClusterTime") {
            self.at_cluster_time = Some(time);
        }
        if let Some(Value::Array(batch)) = cursor.get(name) {
            let documents = batch.iter().filter_map(|row| match row {
                Value::Document(row) => Some(row.into_owned()),
                _ => None,
            });
            self.batch.extend(documents);
        }
    }
}

/// The rows of a read that is known to have few.
pub async fn all(line: &Line, db: &str, command: Document) -> Result<Vec<Document>> {
    let mut rows = Rows::open(line, db, command).await?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().await? {
        found.push(Document::try_from(&row)?);
    }
    Ok(found)
}

/// A number of any type; 0 if it is none.
pub fn number(doc: &Document, name: &str) -> f64 {
    match doc.get(name) {
        Some(bson::Bson::Int32(number)) => f64::from(*number),
        Some(bson::Bson::Int64(number)) => *number as f64,
        Some(bson::Bson::Double(number)) => *number,
        _ => 0.0,
    }
}
