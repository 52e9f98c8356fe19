//! What the workers write, how an open request is settled after a crash, and what must then be true.

use crate::model::{Model, Operation};
use crate::scenario::{Progress, Scenario};
use anyhow::{Result, ensure};
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use judge::client::Client;
use rand::RngExt;

const DB: &str = "crash";

/// From so many documents on a worker deletes as often as it inserts: all are checked after each crash, also after the last.
const MANY: usize = 2_000;

impl Scenario for Model {
    fn new(worker: usize) -> Model {
        Model::new(worker)
    }

    fn worker(&self) -> usize {
        self.worker
    }

    fn prepare(client: &mut Client, _first: bool) -> Result<()> {
        prepare(client)
    }

    fn settle(&mut self, client: &mut Client) -> Result<()> {
        settle(client, self)
    }

    fn run(self, address: &str, allow_relaxed: bool, progress: &Progress) -> Result<Model> {
        run(address, self, allow_relaxed, progress)
    }

    fn verify(client: &mut Client, models: &[Model]) -> Result<()> {
        verify(client, models)
    }
}

/// Collections and indexes; harmless when they are there.
fn prepare(client: &mut Client) -> Result<()> {
    client.must(&doc! { "createIndexes": "documents", "$db": DB, "indexes": [
        { "key": { "tag": 1, "worker": 1 }, "name": "tag" }, { "key": { "unique": 1 }, "name": "unique", "unique": true } ] })?;
    for collection in ["left", "right", "counters"] {
        client.command(&doc! { "create": collection, "$db": DB })?;
    }
    Ok(())
}

fn key(worker: usize, number: i64) -> String {
    format!("{worker}-{number}")
}

fn command(model: &Model, operation: Operation, relaxed: bool) -> Document {
    let id = |number| key(model.worker, number);
    let worker = i64::try_from(model.worker).unwrap_or_default();
    let mut command = match operation {
        Operation::Insert { number, tag } => {
            doc! { "insert": "documents", "documents": [{ "_id": id(number), "worker": worker, "number": number, "tag": tag, "unique": id(number), "filler": "x".repeat(200) }] }
        }
        Operation::Retag { number, tag } => {
            doc! { "update": "documents", "updates": [{ "q": { "_id": id(number) }, "u": { "$set": { "tag": tag } } }] }
        }
        Operation::Delete { number } => {
            doc! { "delete": "documents", "deletes": [{ "q": { "_id": id(number) }, "limit": 1 }] }
        }
        Operation::Increment => {
            doc! { "update": "counters", "updates": [{ "q": { "_id": worker }, "u": { "$inc": { "n": 1_i64 } }, "upsert": true }] }
        }
        Operation::Pair { number } => {
            doc! { "insert": "left", "documents": [{ "_id": id(number), "worker": worker, "number": number }] }
        }
    };
    command.insert("lsid", session(model));
    command.insert("txnNumber", model.transaction_number);
    if relaxed {
        command.insert("writeConcern", doc! { "w": 1 });
    }
    command.insert("$db", DB);
    command
}

/// A session's `lsid`.
pub(crate) fn session_of(id: [u8; 16]) -> Document {
    doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: id.to_vec() } }
}

fn session(model: &Model) -> Document {
    session_of(model.session)
}

fn choose(model: &mut Model) -> Operation {
    let mut rng = rand::rng();
    let existing = {
        let start = rng.random_range(0..model.next.max(1));
        model.documents.range(start..).next().map(|(number, _)| *number)
    };
    match (rng.random_range(0..10), existing) {
        (0 | 1, _) => Operation::Increment,
        (2, _) if model.pairs.len() < MANY => {
            model.next += 1;
            Operation::Pair { number: model.next }
        }
        (3 | 4, Some(number)) => Operation::Retag { number, tag: rng.random_range(0..20) },
        (5, Some(number)) => Operation::Delete { number },
        (_, Some(number)) if model.documents.len() >= MANY => Operation::Delete { number },
        _ => {
            model.next += 1;
            Operation::Insert { number: model.next, tag: rng.random_range(0..20) }
        }
    }
}

/// Writes until the server is gone. Gives the model back with the request that was under way.
fn run(address: &str, mut model: Model, allow_relaxed: bool, progress: &Progress) -> Result<Model> {
    let Ok(mut client) = Client::connect(address) else { return Ok(model) };
    while !progress.is_stopped() {
        let operation = choose(&mut model);
        model.transaction_number += 1;
        model.in_flight = Some(operation);
        let relaxed = allow_relaxed && rand::rng().random_range(0..2) == 0;
        let sent = match operation {
            Operation::Pair { number } => pair(&mut client, &model, number, relaxed),
            _ => send(&mut client, &command(&model, operation, relaxed)),
        };
        match sent {
            Some(reply) => {
                ensure!(fine(&reply), "{operation:?} was refused: {reply}");
                model.apply(operation);
                model.in_flight = None;
                progress.add(1);
            }
            // The connection is gone: the crash.
            None => break,
        }
    }
    Ok(model)
}

pub(crate) fn send(client: &mut Client, command: &Document) -> Option<Document> {
    client.command(command).ok().map(|reply| reply.document)
}

/// Whether it was done, to one document if it says to how many.
pub(crate) fn fine(reply: &Document) -> bool {
    did(reply, 1)
}

/// Whether it was done, to so many documents if it says to how many.
pub(crate) fn did(reply: &Document, documents: u64) -> bool {
    let number = |name: &str| {
        reply.get(name).and_then(|n| n.as_f64().or(n.as_i32().map(f64::from)).or(n.as_i64().map(|n| n as f64)))
    };
    let all = |n: f64| (n - documents as f64).abs() < 0.5;
    number("ok") == Some(1.0) && !reply.contains_key("writeErrors") && number("n").is_none_or(all)
}

/// One document in each of two collections, in one transaction.
fn pair(client: &mut Client, model: &Model, number: i64, relaxed: bool) -> Option<Document> {
    let document = doc! { "_id": key(model.worker, number), "worker": i64::try_from(model.worker).unwrap_or_default(), "number": number };
    let step = |mut command: Document, start: bool| {
        command.insert("lsid", session(model));
        command.insert("txnNumber", model.transaction_number);
        command.insert("autocommit", false);
        if start {
            command.insert("startTransaction", true);
        }
        command
    };
    let first = send(client, &step(doc! { "insert": "left", "documents": [document.clone()], "$db": DB }, true))?;
    if !fine(&first) {
        return Some(first);
    }
    let second = send(client, &step(doc! { "insert": "right", "documents": [document], "$db": DB }, false))?;
    if !fine(&second) {
        return Some(second);
    }
    let mut commit = doc! { "commitTransaction": 1, "$db": "admin" };
    if relaxed {
        commit.insert("writeConcern", doc! { "w": 1 });
    }
    send(client, &step(commit, false))
}

/// Settles the request that the crash left open: a single statement is sent again with its number and must have had one effect;
/// a transaction must be there whole or not at all.
fn settle(client: &mut Client, model: &mut Model) -> Result<()> {
    match model.in_flight.take() {
        None => {}
        Some(Operation::Pair { number }) => {
            let id = key(model.worker, number);
            let left = found(client, "left", doc! { "_id": &id })?.len();
            let right = found(client, "right", doc! { "_id": &id })?.len();
            ensure!(left == right, "half a transaction: {id} is {left} times left, {right} times right");
            if left == 1 {
                model.apply(Operation::Pair { number });
            }
        }
        Some(operation) => {
            let reply = client.command(&command(model, operation, false))?.document;
            ensure!(fine(&reply), "sent again, {operation:?} was refused: {reply}");
            model.apply(operation);
        }
    }
    Ok(())
}

fn found(client: &mut Client, collection: &str, filter: Document) -> Result<Vec<Document>> {
    found_in(client, DB, collection, filter)
}

pub(crate) fn found_in(client: &mut Client, db: &str, collection: &str, filter: Document) -> Result<Vec<Document>> {
    let reply = client
        .must(&doc! { "find": collection, "filter": filter, "batchSize": 1_000_000, "singleBatch": true, "$db": db })?;
    let rows = reply.get_document("cursor")?.get_array("firstBatch")?;
    Ok(rows.iter().filter_map(Bson::as_document).cloned().collect())
}

fn verify(client: &mut Client, models: &[Model]) -> Result<()> {
    for model in models {
        let worker = i64::try_from(model.worker)?;
        let stored: Vec<(i64, i64)> = {
            let mut rows = Vec::new();
            for row in found(client, "documents", doc! { "worker": worker })? {
                rows.push((row.get_i64("number")?, row.get_i64("tag")?));
            }
            rows.sort_unstable();
            rows
        };
        let expected: Vec<(i64, i64)> = model.documents.iter().map(|(number, tag)| (*number, *tag)).collect();
        let lost: Vec<_> = expected.iter().filter(|row| !stored.contains(row)).take(5).collect();
        let extra: Vec<_> = stored.iter().filter(|row| !expected.contains(row)).take(5).collect();
        ensure!(lost.is_empty() && extra.is_empty(), "worker {worker}: lost {lost:?}, unexpected {extra:?}");
        // The same by the index.
        let tag = model.documents.values().next().copied().unwrap_or_default();
        let by_index = client.must(
            &doc! { "count": "documents", "query": { "tag": tag, "worker": worker }, "hint": "tag", "$db": DB },
        )?;
        let by_model = model.documents.values().filter(|other| **other == tag).count();
        ensure!(
            by_index.get("n").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64())) == Some(i64::try_from(by_model)?),
            "the index counts {by_index}, the model {by_model}"
        );
        let counter = found(client, "counters", doc! { "_id": worker })?;
        let counter = counter.first().map_or(Ok(0), |row| row.get_i64("n"))?;
        ensure!(
            counter == model.counter,
            "worker {worker}: the counter is {counter}, acknowledged were {}",
            model.counter
        );
        for side in ["left", "right"] {
            let stored = found(client, side, doc! { "worker": worker })?.len();
            ensure!(
                stored == model.pairs.len(),
                "worker {worker}: {stored} pairs in {side}, acknowledged were {}",
                model.pairs.len()
            );
        }
    }
    for collection in ["documents", "left", "right", "counters"] {
        let report = client.must(&doc! { "validate": collection, "full": true, "$db": DB })?;
        ensure!(report.get_bool("valid").unwrap_or(false), "{collection} is not valid: {report}");
    }
    Ok(())
}
