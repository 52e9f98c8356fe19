//! Retryable writes: what each statement answered, written in the batch of its effects, so that a repeated command is
//! answered and not run again (SEMANTICS R4), and which transaction was committed. One session's latest transaction number
//! is kept, as in MongoDB.
//!
//! Space `retries`: the session's id and a chunk number (4 bytes); each batch of a command adds a chunk, and a newer
//! command begins again at chunk 0. The value is a document: number, time, results; or number, time, and that
//! it is a committed transaction.

use super::locks::{LockKey, Owner};
use super::write_set::WriteSet;
use crate::engine::Engine;
use crate::store::{Space, StoreSnapshot};
use bytes::Bytes;
use document::backend::Mode;
use document::op::{Context, Written};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a statement answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementAnswer {
    n: u64,
    modified: u64,
    upserted: Option<Value<'static>>,
    document: Option<Doc<'static>>,
}

impl StatementAnswer {
    /// Adds the remembered answer of statement `index` to a reply.
    pub(crate) fn add_to(self, written: &mut Written, index: usize, statement: i32) {
        written.n += self.n;
        written.modified += self.modified;
        written.upserted.extend(self.upserted.map(|id| (index, id)));
        written.document = self.document.or(written.document.take());
        written.retried.push(statement);
    }
}

/// What is known of all sessions.
#[derive(Default)]
pub(crate) struct Retries {
    sessions: Mutex<HashMap<[u8; 16], Known, foldhash::fast::RandomState>>,
}

#[derive(Clone, Copy)]
struct Known {
    number: i64,
    chunks: u32,
    /// Milliseconds since 1970.
    used: i64,
    /// The number is that of a committed transaction.
    committed: bool,
}

impl Retries {
    /// Reads the sessions of earlier runs.
    pub(crate) fn load(space: &Space, snapshot: &Arc<StoreSnapshot>) -> Result<Retries> {
        let mut sessions: HashMap<[u8; 16], Known, _> = HashMap::default();
        for entry in snapshot.range(space, &[0], &[0xFF; 21], false) {
            let (key, value) = entry?;
            let Some((id, chunk)) = split_key(&key) else { continue };
            let record = Doc::trusted_bytes(value);
            let (Some(Value::Int64(number)), Some(Value::DateTime(used))) = (record.get("t"), record.get("at")) else {
                continue;
            };
            let known = sessions.entry(id).or_insert(Known { number, chunks: 0, used, committed: false });
            known.chunks = known.chunks.max(chunk + 1);
            known.number = known.number.max(number);
            known.committed |= known.number == number && matches!(record.get("c"), Some(Value::Bool(true)));
        }
        Ok(Retries { sessions: Mutex::new(sessions) })
    }

    /// The sessions that were not used for so long.
    pub(crate) fn idle(&self, kept: Duration) -> Vec<[u8; 16]> {
        let limit = now().saturating_sub(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX));
        self.sessions.lock().iter().filter(|(_, known)| known.used < limit).map(|(id, _)| *id).collect()
    }

    /// Forgets an idle session, unless a command of it is just running; its records go with `write_set`.
    pub(crate) fn forget(&self, id: &[u8; 16], space: &Space, write_set: &mut WriteSet) {
        if write_set.lock(LockKey::session(id)).is_err() {
            return;
        }
        if let Some(known) = self.sessions.lock().remove(id) {
            for chunk in 0..known.chunks {
                write_set.remove(space, chunk_key(id, chunk));
            }
        }
    }

    pub(crate) fn is_committed(&self, id: &[u8; 16], number: i64) -> bool {
        self.sessions.lock().get(id).is_some_and(|known| known.committed && known.number == number)
    }

    pub(crate) fn count(&self) -> usize {
        self.sessions.lock().len()
    }
}

/// The retryable writes of one command.
pub(crate) struct Retry {
    engine: Engine,
    id: [u8; 16],
    number: i64,
    owner: Owner,
    /// Answers of an earlier run.
    done: HashMap<i32, StatementAnswer, foldhash::fast::RandomState>,
    fresh: Vec<(i32, StatementAnswer)>,
    chunks: u32,
    /// Chunks of the command before, that this one does not overwrite.
    stale: u32,
}

impl Retry {
    /// Waits for another command of the same session; refuses a number older than the newest.
    pub(crate) async fn begin(engine: &Engine, id: [u8; 16], number: i64, context: &Context) -> Result<Retry> {
        let owner = engine.inner.core.locks.owner();
        let locks = &engine.inner.core.locks;
        locks.wait(owner, LockKey::session(&id), Mode::Exclusive, context).await?;
        let mut retry = Retry {
            engine: engine.clone(),
            id,
            number,
            owner,
            done: HashMap::default(),
            fresh: Vec::new(),
            chunks: 0,
            stale: 0,
        };
        let known = engine.inner.retries.sessions.lock().get(&id).copied();
        match known {
            Some(known) if known.number > number => {
                // The second part is the digest of the user, of which there is none.
                let message = format!(
                    "Retryable write with txnNumber {number} is prohibited on session {} - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  -  because a newer retryable write with txnNumber {} has already started on this session.",
                    uuid_text(&id),
                    known.number
                );
                return Err(Error::new(Code::TransactionTooOld, message));
            }
            Some(known) if known.number == number => {
                retry.chunks = known.chunks;
                retry.read()?;
            }
            Some(known) => retry.stale = known.chunks,
            None => {}
        }
        Ok(retry)
    }

    /// The answer of a statement that was run before.
    pub(crate) fn done(&self, statement: i32) -> Option<&StatementAnswer> {
        self.done.get(&statement)
    }

    pub(crate) fn inserted(&mut self, statement: i32) {
        self.fresh.push((statement, StatementAnswer { n: 1, ..StatementAnswer::default() }));
    }

    /// An update; one that changed nothing is run again.
    pub(crate) fn updated(&mut self, statement: i32, n: u64, modified: u64, upserted: Option<Value<'static>>) {
        if modified > 0 || upserted.is_some() {
            self.fresh.push((statement, StatementAnswer { n, modified, upserted, document: None }));
        }
    }

    pub(crate) fn deleted(&mut self, statement: i32, n: u64) {
        if n > 0 {
            self.fresh.push((statement, StatementAnswer { n, ..StatementAnswer::default() }));
        }
    }

    /// A findAndModify. The document is kept whole: as in MongoDB, a repeated command gets it without its projection.
    pub(crate) fn modified(&mut self, statement: i32, written: &Written, document: Option<Doc<'static>>) {
        let upserted = written.upserted.first().map(|(_, id)| id.clone());
        if written.n > 0 {
            let (n, modified) = (written.n, written.modified);
            self.fresh.push((statement, StatementAnswer { n, modified, upserted, document }));
        }
    }

    /// Those of `statements` that were answered before, and what with.
    pub(crate) fn recall(&self, statements: &[i32]) -> Written {
        let mut written = Written::default();
        for (index, statement) in statements.iter().enumerate() {
            if let Some(done) = self.done(*statement) {
                done.clone().add_to(&mut written, index, *statement);
            }
        }
        written
    }

    /// What statements answer together, in the place of what was noted before: those behind the first count one each, as inserts do, as far as there is something left.
    pub(crate) fn remember(&mut self, statements: &[i32], written: &Written) {
        self.fresh.retain(|(statement, _)| !statements.contains(statement));
        let mut left = written.n;
        for (index, statement) in statements.iter().enumerate().rev() {
            let first = index == 0;
            let n = if first { left } else { left.min(1) };
            left -= n;
            let upserted = written.upserted.iter().find(|(at, _)| *at == index).map(|(_, id)| id.clone());
            let modified = if first { written.modified } else { 0 };
            let document = written.document.clone().filter(|_| first);
            self.fresh.push((*statement, StatementAnswer { n, modified, upserted, document }));
        }
        self.fresh.sort_by_key(|(statement, _)| *statement);
    }

    /// Adds what is new to the write set that holds its effects, and counts on its commit.
    pub(crate) fn save(&mut self, write_set: &mut WriteSet) {
        if let Some(saved) = self.add_to(write_set) {
            saved.keep();
        }
    }

    pub(crate) fn is_of(&self, id: &[u8; 16], number: i64) -> bool {
        self.id == *id && self.number == number
    }

    /// Adds what is new to the write set that holds its effects; to be kept once that is committed.
    pub(crate) fn add_to(&mut self, write_set: &mut WriteSet) -> Option<Saved> {
        if self.fresh.is_empty() {
            return None;
        }
        let space = &self.engine.inner.core.retries;
        let used = now();
        write_set.put(space, chunk_key(&self.id, self.chunks), encode(self.number, used, &self.fresh));
        self.done.extend(self.fresh.drain(..));
        self.chunks += 1;
        for chunk in self.chunks..self.stale {
            write_set.remove(space, chunk_key(&self.id, chunk));
        }
        self.stale = 0;
        let known = Known { number: self.number, chunks: self.chunks, used, committed: false };
        Some(Saved { engine: self.engine.clone(), id: self.id, known })
    }

    fn read(&mut self) -> Result<()> {
        for chunk in 0..self.chunks {
            let Some(value) = self.engine.inner.core.retries.latest(&chunk_key(&self.id, chunk))? else { continue };
            let record = Doc::trusted_bytes(value);
            if !matches!(record.get("t"), Some(Value::Int64(number)) if number == self.number) {
                continue;
            }
            let Some(Value::Array(results)) = record.get("r") else { continue };
            for result in results.iter() {
                if let Value::Document(result) = result {
                    self.done.extend(decode(&result));
                }
            }
        }
        Ok(())
    }
}

/// What a session is known by once its new records are committed.
pub(crate) struct Saved {
    engine: Engine,
    id: [u8; 16],
    known: Known,
}

impl Saved {
    /// Adds to a transaction's write set that it was committed: a caller that asks again, even after a restart, learns it.
    pub(crate) fn commit(engine: &Engine, id: [u8; 16], number: i64, write_set: &mut WriteSet) -> Saved {
        let (space, used) = (&engine.inner.core.retries, now());
        let mut record = DocWriter::new();
        record.append("t", &Value::Int64(number)).append("at", &Value::DateTime(used)).append("c", &Value::Bool(true));
        write_set.put(space, chunk_key(&id, 0), record.finish().into_bytes());
        let chunks = engine.inner.retries.sessions.lock().get(&id).map_or(0, |known| known.chunks);
        for chunk in 1..chunks {
            write_set.remove(space, chunk_key(&id, chunk));
        }
        Saved { engine: engine.clone(), id, known: Known { number, chunks: 1, used, committed: true } }
    }

    pub(crate) fn keep(self) {
        self.engine.inner.retries.sessions.lock().insert(self.id, self.known);
    }
}

impl Drop for Retry {
    fn drop(&mut self) {
        self.engine.inner.core.locks.release(self.owner, &[LockKey::session(&self.id)]);
    }
}

/// `b1dadcad-7b5f-4756-8205-2183dd92247a`
pub(crate) fn uuid_text(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (position, byte) in id.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or_default())
}

fn chunk_key(id: &[u8; 16], chunk: u32) -> Bytes {
    let mut key = Vec::with_capacity(20);
    key.extend_from_slice(id);
    key.extend_from_slice(&chunk.to_be_bytes());
    Bytes::from(key)
}

fn split_key(key: &[u8]) -> Option<([u8; 16], u32)> {
    let (id, chunk) = key.split_at_checked(16)?;
    Some((id.try_into().ok()?, u32::from_be_bytes(chunk.try_into().ok()?)))
}

/// Inserts with consecutive numbers are one entry with their count.
fn encode(number: i64, used: i64, fresh: &[(i32, StatementAnswer)]) -> Bytes {
    let mut writer = DocWriter::new();
    writer.append("t", &Value::Int64(number));
    writer.append("at", &Value::DateTime(used));
    writer.start_array("r");
    let plain = |done: &StatementAnswer| {
        done.n == 1 && done.modified == 0 && done.upserted.is_none() && done.document.is_none()
    };
    let mut rest = fresh;
    let mut position = 0;
    while let Some((statement, done)) = rest.first() {
        let same = rest
            .iter()
            .zip(0..)
            .take_while(|((other, done), offset)| Some(*other) == statement.checked_add(*offset) && plain(done));
        let count = if plain(done) { same.count() } else { 1 };
        writer.start_document(&position.to_string());
        writer.append("s", &Value::Int32(*statement));
        if plain(done) {
            writer.append("k", &Value::Int32(i32::try_from(count).unwrap_or(i32::MAX)));
        } else {
            writer.append("n", &Value::Int64(i64::try_from(done.n).unwrap_or(i64::MAX)));
            writer.append("m", &Value::Int64(i64::try_from(done.modified).unwrap_or(i64::MAX)));
            writer.append("u", done.upserted.as_ref().unwrap_or(&Value::Missing));
            writer.append("d", &done.document.as_ref().map_or(Value::Missing, |doc| Value::Document(doc.borrow())));
        }
        writer.end();
        position += 1;
        rest = rest.get(count..).unwrap_or_default();
    }
    writer.finish().into_bytes()
}

fn decode(result: &Doc<'_>) -> Vec<(i32, StatementAnswer)> {
    let Some(Value::Int32(statement)) = result.get("s") else { return Vec::new() };
    if let Some(Value::Int32(count)) = result.get("k") {
        return (0..count)
            .map(|offset| (statement + offset, StatementAnswer { n: 1, ..StatementAnswer::default() }))
            .collect();
    }
    let number = |name: &str| match result.get(name) {
        Some(Value::Int64(number)) => u64::try_from(number).unwrap_or_default(),
        _ => 0,
    };
    let document = match result.get("d") {
        Some(Value::Document(doc)) => Some(doc.into_owned()),
        _ => None,
    };
    let upserted = result.get("u").map(Value::into_owned);
    vec![(statement, StatementAnswer { n: number("n"), modified: number("m"), upserted, document })]
}
