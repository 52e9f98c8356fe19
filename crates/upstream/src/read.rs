//! Reads: the command at the first batch, `getMore` on the same line for the others.

use crate::answer::{checked, number};
use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::to_mql;
use crate::transaction::UpstreamTransaction;
use crate::upstream::Upstream;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::op::{Context, ReadConcern, ReadOp};
use document::{Code, Doc, Result, Value};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

impl Upstream {
    /// Runs one command where the session stands: in its transaction, or outside.
    pub(crate) async fn run(&self, session: &mut Session, context: &Context, command: Command) -> Result<Doc<'static>> {
        if let Some(transaction) = UpstreamTransaction::of(session) {
            return transaction.run(context, command).await;
        }
        let line = ClientOrOwn::of(&self.shared, session);
        run_outside(&line, context, command).await
    }
}

/// Outside transactions only the client's own time limits a command: an audit may read for minutes.
async fn run_outside(line: &ClientOrOwn, context: &Context, command: Command) -> Result<Doc<'static>> {
    match context.deadline {
        Some(_) => crate::transaction::within(context, line.run(command)).await,
        None => line.run(command).await,
    }
}

pub(crate) fn open(upstream: &Upstream, session: &mut Session, context: &Context, op: ReadOp) -> Box<dyn Cursor> {
    let line = match UpstreamTransaction::of(session) {
        Some(transaction) => transaction.line().ok(),
        None => None,
    };
    let line = line.unwrap_or_else(|| ClientOrOwn::of(&upstream.shared, session));
    let mut command = to_mql::read(&op, context.sent.variables.as_ref());
    let ns = match &op {
        ReadOp::Find(op) => &op.ns,
        ReadOp::Aggregate(op) => &op.ns,
        ReadOp::Count(op) => &op.ns,
        ReadOp::Distinct(op) => &op.ns,
    };
    if session.transaction.is_none() {
        command = with_concern(command, context);
    }
    let stage = match &op {
        // `count` is not allowed in a transaction.
        ReadOp::Count(op) if session.transaction.is_some() => Stage::Count(to_mql::count_in_transaction(op)),
        ReadOp::Find(_) => Stage::Find(command),
        ReadOp::Aggregate(_) => Stage::Aggregate(command),
        _ => Stage::Single(command),
    };
    Box::new(Rows { line, db: ns.db.to_string(), stage, pending: VecDeque::new() })
}

fn with_concern(command: Command, context: &Context) -> Command {
    match (&context.sent.read_concern, context.read_concern) {
        (Some(concern), _) => command.with_doc("readConcern", concern),
        (None, ReadConcern::Local) => command,
        (None, level) => {
            let mut writer = document::DocWriter::new();
            writer.append("level", &Value::from(format!("{level:?}").to_lowercase()));
            command.with_doc("readConcern", &writer.finish())
        }
    }
}

/// An open read.
struct Rows {
    line: ClientOrOwn,
    db: String,
    stage: Stage,
    /// Rows that came and were not asked for yet.
    pending: VecDeque<Doc<'static>>,
}

enum Stage {
    Find(Command),
    Aggregate(Command),
    /// The reply itself is the one row.
    Single(Command),
    /// A pipeline whose one row, if any, holds `n`.
    Count(Command),
    Open {
        id: i64,
        collection: String,
    },
    Done,
}

impl Rows {
    async fn fill(&mut self, session: &mut Session, context: &Context, size: i64) -> Result<()> {
        let mut open = None;
        let command = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Find(command) => command.with("batchSize", size),
            Stage::Aggregate(command) => {
                let mut cursor = document::DocWriter::new();
                cursor.append("batchSize", &Value::Int64(size));
                command.with_doc("cursor", &cursor.finish())
            }
            Stage::Single(command) => {
                let reply = self.run(session, context, command).await?;
                self.pending.push_back(without_envelope(&reply));
                return Ok(());
            }
            Stage::Count(command) => {
                let reply = self.run(session, context, command).await?;
                let row = match reply.get("cursor") {
                    Some(Value::Document(cursor)) => match cursor.get("firstBatch") {
                        Some(Value::Array(rows)) => rows.get(0),
                        _ => None,
                    },
                    _ => None,
                };
                let counted = match row {
                    Some(Value::Document(row)) => number(&row, "n").unwrap_or_default(),
                    _ => 0,
                };
                let mut writer = document::DocWriter::new();
                writer.append("n", &i32::try_from(counted).map_or(Value::Int64(counted), Value::Int32));
                self.pending.push_back(writer.finish());
                return Ok(());
            }
            Stage::Open { id, collection } => {
                open = Some((id, collection.clone()));
                Command::new(&self.db, "getMore", id).with("collection", collection).with("batchSize", size)
            }
            Stage::Done => return Ok(()),
        };
        let reply = match self.run(session, context, command).await {
            Ok(reply) => reply,
            Err(error) => {
                // The server still works on it, for a client that no longer waits.
                if let Some((id, collection)) = open.filter(|_| error.code() == Code::MaxTimeMSExpired) {
                    self.kill(id, collection);
                }
                return Err(error);
            }
        };
        let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(()) };
        if let (Some(Value::Timestamp(time)), Some(read_at)) = (cursor.get("atClusterTime"), &context.sent.read_at) {
            read_at.store(time, Ordering::Relaxed);
        }
        for name in ["firstBatch", "nextBatch"] {
            if let Some(Value::Array(rows)) = cursor.get(name) {
                self.pending.extend(rows.iter().filter_map(|row| match row {
                    Value::Document(row) => Some(row.into_owned()),
                    _ => None,
                }));
            }
        }
        let id = number(&cursor, "id").unwrap_or_default();
        if id != 0 {
            let ns = cursor.get("ns").and_then(|ns| ns.as_str().map(str::to_owned)).unwrap_or_default();
            let collection = ns.split_once('.').map(|(_, collection)| collection.to_owned()).unwrap_or_default();
            self.stage = Stage::Open { id, collection };
        }
        Ok(())
    }

    async fn run(&self, session: &mut Session, context: &Context, command: Command) -> Result<Doc<'static>> {
        match UpstreamTransaction::of(session) {
            Some(transaction) => transaction.run(context, command).await,
            None => run_outside(&self.line, context, command).await.and_then(checked),
        }
    }

    /// Closes the cursor in the server, without waiting for it.
    fn kill(&self, id: i64, collection: String) {
        let ids: document::Array<'static> = [Value::Int64(id)].into_iter().collect();
        let kill = Command::new(&self.db, "killCursors", Value::from(collection)).with("cursors", ids);
        let line = self.line.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = line.run(kill).await;
            });
        }
    }
}

impl Cursor for Rows {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let size = i64::try_from(limit.documents).unwrap_or(i64::MAX).clamp(1, i64::from(i32::MAX));
            while self.pending.is_empty() && !matches!(self.stage, Stage::Done) {
                self.fill(session, context, size).await?;
            }
            let mut documents = Vec::new();
            let mut bytes = 0;
            while documents.len() < limit.documents
                && let Some(row) = self.pending.front()
            {
                bytes += row.as_bytes().len();
                if bytes > limit.bytes && !documents.is_empty() {
                    break;
                }
                documents.extend(self.pending.pop_front());
            }
            Ok(Batch { documents, exhausted: self.pending.is_empty() && matches!(self.stage, Stage::Done) })
        })
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Stage::Open { id, collection } = std::mem::replace(&mut self.stage, Stage::Done) {
            self.kill(id, collection);
        }
    }
}

/// A reply without what every reply carries.
pub(crate) fn without_envelope(reply: &Doc<'_>) -> Doc<'static> {
    let mut writer = document::DocWriter::with_capacity(reply.as_bytes().len());
    for (name, value) in reply.iter() {
        if !matches!(name.as_str(), "ok" | "$clusterTime" | "operationTime" | "$configTime" | "$topologyTime") {
            writer.append(name.as_str(), &value);
        }
    }
    writer.finish()
}
