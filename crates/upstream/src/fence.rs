//! Fences as documents (SEMANTICS R1): `<database>.pleach.fences` holds rows of slots, made once.
//!
//! A key is a row by its hash; two keys that share a row only cost a retry. Shared is one slot at random, exclusive all of
//! them. Every pass changes what it touches, because a write that changes nothing is no fence. An exclusive pass leaves a
//! version in all slots of its row (see [`crate::version`]).

use crate::answer::{checked, count};
use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::transaction::UpstreamTransaction;
use crate::upstream::Upstream;
use crate::version;
use document::backend::{FenceKey, FenceVersion, Mode, Session};
use document::error::label;
use document::op::Context;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use rand::RngExt;

pub(crate) const COLLECTION: &str = "pleach.fences";

const ROWS: i32 = 256;
const SLOTS: i32 = 32;

/// A slot that is passed with the commit; with a version only if it still has it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pass {
    pub(crate) db: String,
    pub(crate) slot: i32,
    pub(crate) version: Option<FenceVersion>,
}

/// Many fences are at most as many rows as there are: however many keys are evaluated, one command passes them.
pub(crate) async fn take_all(upstream: &Upstream, session: &mut Session, keys: &[(FenceKey, Mode)]) -> Result<()> {
    for keys in keys.chunk_by(|(left, _), (right, _)| left.db == right.db) {
        let Some((FenceKey { db, .. }, _)) = keys.first() else { continue };
        let mut rows: Vec<(i32, Mode)> = keys.iter().map(|(key, mode)| (row(key), *mode)).collect();
        rows.sort_by_key(|(row, mode)| (*row, *mode == Mode::Shared));
        // Exclusive comes first, and is shared as well.
        rows.dedup_by_key(|(row, _)| *row);
        take_rows(upstream, session, db, rows).await?;
    }
    Ok(())
}

pub(crate) fn row(key: &FenceKey) -> i32 {
    i32::try_from(xxhash_rust::xxh3::xxh3_64(&key.key) % u64::from(ROWS.cast_unsigned())).unwrap_or_default()
}

/// The first slot of a row.
pub(crate) fn first_slot(row: i32) -> i32 {
    row * SLOTS
}

pub(crate) fn any_slot(row: i32) -> i32 {
    first_slot(row) + rand::rng().random_range(0..SLOTS)
}

async fn take_rows(upstream: &Upstream, session: &mut Session, db: &str, rows: Vec<(i32, Mode)>) -> Result<()> {
    let Some(transaction) = UpstreamTransaction::of(session) else {
        return Err(Error::new(Code::InternalError, "a fence belongs in a transaction"));
    };
    if !upstream.shared.prepared.lock().contains(db) && transaction.is_started() && !transaction.is_joined() {
        // The index of retry records would wait for this transaction, which has looked for one: it is begun again behind it.
        let line = transaction.line()?;
        let _over_anyway = line.run(transaction.end("abortTransaction")).await;
        transaction.restart()?;
        prepare(upstream, &line, db).await?;
        return Err(missing());
    }
    prepare(upstream, &transaction.line()?, db).await?;
    let (mut statements, mut slots) = (Vec::new(), 0);
    for (row, mode) in rows {
        match mode {
            Mode::Shared => {
                let slot = any_slot(row);
                if transaction.is_joined() {
                    statements.push(closed(statement(&by_id(slot), false)));
                    slots += 1;
                } else {
                    transaction.fences.push(Pass { db: db.to_owned(), slot, version: None });
                }
            }
            Mode::Exclusive => {
                statements.push(pass_row(row));
                slots += SLOTS;
            }
        }
    }
    if statements.is_empty() {
        return Ok(());
    }
    let command = update(db, statements);
    // Its answer is of use to nobody by itself. A first command is answered, as it fixes the transaction's moment, and a client's
    // own transaction is ended by the client.
    if transaction.is_started() && !transaction.is_joined() {
        transaction.ahead.push((command, slots));
        return Ok(());
    }
    let line = transaction.line()?;
    let reply = transaction.run(&no_time_limit(), command).await?;
    passed(&line, reply, slots)
}

/// Whether an exclusive pass has found all its slots.
pub(crate) fn passed(line: &ClientOrOwn, reply: Doc<'static>, slots: i32) -> Result<()> {
    let reply = checked(reply)?;
    if let Some(failed) = crate::answer::write_errors(&reply).into_iter().next() {
        return Err(failed.error);
    }
    match count(&reply, "n") == u64::from(slots.cast_unsigned()) {
        true => Ok(()),
        false => Err(slots_missing(line)),
    }
}

/// Fences are small: they have the time that commands without a limit have.
fn no_time_limit() -> Context {
    Context {
        env: document::Env::fixed(),
        read_concern: Default::default(),
        durability: Default::default(),
        deadline: None,
        sent: Default::default(),
    }
}

/// Not all slots are visible: they were made after the transaction's moment, or went with their database. The next attempt
/// makes them if need be, and sees them.
fn missing() -> Error {
    Error::new(Code::WriteConflict, "the fences of this database have just been made").with_label(label::TRANSIENT)
}

/// The error when a slot that is passed with others is not there: see [`pass_some`].
pub(crate) fn is_pass_failure(error: &Error) -> bool {
    error.code() == Code::ImmutableField
}

/// Slots went with their database: they are made again before the next attempt.
pub(crate) fn slots_missing(line: &ClientOrOwn) -> Error {
    line.shared.prepared.lock().clear();
    missing()
}

/// Passes slots with what else goes with the commit, one command for each database. The commit comes behind them whatever
/// they find, so a slot that is not there must be an error: as an upsert that would have another `_id` than it looks for.
pub(crate) fn pass_some(mut passes: Vec<Pass>) -> Vec<Command> {
    passes.sort_unstable();
    passes.dedup();
    let one = |pass: &Pass| {
        let Some(version) = &pass.version else {
            let mut statement = statement(&by_id(pass.slot), false);
            statement.start_document("$setOnInsert").append("_id", &Value::MinKey).end().end();
            statement.append("upsert", &Value::Bool(true));
            return statement.finish();
        };
        version::pass(&by_id(pass.slot), version)
    };
    let of_db = |passes: &[Pass]| {
        let db = passes.first().map(|pass| pass.db.as_str()).unwrap_or_default();
        update(db, passes.iter().map(one).collect())
    };
    passes.chunk_by(|left, right| left.db == right.db).map(of_db).collect()
}

fn pass_row(row: i32) -> Doc<'static> {
    let mut filter = DocWriter::new();
    filter.start_document("_id").append("$gte", &Value::Int32(row * SLOTS));
    filter.append("$lt", &Value::Int32((row + 1) * SLOTS)).end();
    let mut statement = statement(&filter.finish(), true);
    version::leave(&mut statement);
    closed(statement)
}

fn by_id(slot: i32) -> Doc<'static> {
    let mut filter = DocWriter::new();
    filter.append("_id", &Value::Int32(slot));
    filter.finish()
}

/// `{ q, multi, u: { $inc: { n: 1 }` and not yet the end of it.
fn statement(filter: &Doc<'_>, multi: bool) -> DocWriter {
    let mut statement = DocWriter::new();
    statement.append("q", &Value::Document(filter.borrow())).append("multi", &Value::Bool(multi));
    statement.start_document("u").start_document("$inc").append("n", &Value::Int64(1)).end();
    statement
}

fn closed(mut statement: DocWriter) -> Doc<'static> {
    statement.end();
    statement.finish()
}

fn update(db: &str, statements: Vec<Doc<'static>>) -> Command {
    Command::new(db, "update", Value::from(COLLECTION)).with_sequence("updates", statements)
}

/// Makes the slots and the collection of retry records of a database, once.
pub(crate) async fn prepare(upstream: &Upstream, line: &ClientOrOwn, db: &str) -> Result<()> {
    if upstream.shared.prepared.lock().contains(db) {
        return Ok(());
    }
    let all = u64::from((ROWS * SLOTS).cast_unsigned());
    let present = line.run(Command::new(db, "count", Value::from(COLLECTION))).await?;
    if count(&present, "n") < all {
        let slot = |id: i32| {
            let mut writer = DocWriter::with_capacity(32);
            writer.append("_id", &Value::Int32(id)).append("n", &Value::Int64(0));
            writer.finish()
        };
        let insert = Command::new(db, "insert", Value::from(COLLECTION))
            .with("ordered", false)
            .with_sequence("documents", (0..ROWS * SLOTS).map(slot).collect());
        let made = line.run(insert).await?;
        // Another process may make them at the same time.
        let others =
            crate::answer::write_errors(&made).into_iter().find(|failed| failed.error.code() != Code::DuplicateKey);
        if let Some(failed) = others {
            return Err(failed.error);
        }
    }
    crate::retries::prepare(line, db).await?;
    upstream.shared.prepared.lock().insert(db.to_owned());
    Ok(())
}
