//! Retry records (SEMANTICS R4): what a retryable write answered is saved in its own transaction, in `<database>.pleach.retries`,
//! so that the same write sent again is answered from there, also by another process.
//!
//! One record per write: `{ _id: { l: session, u: user, t: number, s: first statement }, ids, n, m, up, doc, at }`, without `u` for
//! clients that do not authenticate: as in MongoDB, a session belongs to a user, and nobody else is answered from its records.
//! They expire with the session.

use crate::answer::{count, number};
use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::line::Line;
use document::backend::Relay;
use document::op::Written;
use document::raw::kind;
use document::{Blob, Code, Doc, DocWriter, Result, Value};
use sha2::{Digest, Sha256};

const COLLECTION: &str = "pleach.retries";

/// How long a session lives that is not used.
const SECONDS: i32 = 30 * 60;

/// A write that is sent under a client's number.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) session: [u8; 16],
    pub(crate) number: i64,
    /// The digest of the user's name, as MongoDB makes it.
    user: Option<[u8; 32]>,
}

impl Attempt {
    /// On behalf of the user of this line.
    pub(crate) fn new(line: &Line, session: [u8; 16], number: i64) -> Attempt {
        Attempt { session, number, user: line.user().map(|user| Sha256::digest(user.as_bytes()).into()) }
    }

    /// The session and the number.
    pub(crate) fn name(self) -> ([u8; 16], i64) {
        (self.session, self.number)
    }
}

pub(crate) async fn prepare(line: &ClientOrOwn, db: &str) -> Result<()> {
    let mut index = DocWriter::new();
    index.start_document("key").append("at", &Value::Int32(1)).end();
    index.append("name", &Value::from("at_1")).append("expireAfterSeconds", &Value::Int32(SECONDS));
    let indexes: document::Array<'static> = [Value::Document(index.finish())].into_iter().collect();
    let create = Command::new(db, "createIndexes", Value::from(COLLECTION)).with("indexes", indexes);
    match line.run(create).await {
        Err(error) if !matches!(error.code(), Code::IndexOptionsConflict | Code::IndexAlreadyExists) => Err(error),
        _ => Ok(()),
    }
}

/// All records of the attempt.
pub(crate) fn look_up(db: &str, attempt: Attempt) -> Command {
    let mut filter = DocWriter::new();
    filter.start_document("_id");
    write_id(&mut filter, "$gte", attempt, &Value::MinKey);
    write_id(&mut filter, "$lte", attempt, &Value::MaxKey);
    filter.end();
    Command::new(db, "find", Value::from(COLLECTION))
        .with_doc("filter", &filter.finish())
        .with("batchSize", 1000)
        .with("singleBatch", true)
}

fn write_id(writer: &mut DocWriter, name: &str, attempt: Attempt, statement: &Value<'_>) {
    writer.start_document(name);
    writer.append("l", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(&attempt.session) });
    if let Some(user) = &attempt.user {
        writer.append("u", &Value::Binary { subtype: 0, bytes: Blob::Borrowed(user) });
    }
    writer.append("t", &Value::Int64(attempt.number)).append("s", statement).end();
}

/// Saves records, one command for each database.
pub(crate) fn save_all(records: Vec<(String, Doc<'static>)>) -> Vec<Command> {
    let of_db = |records: &[(String, Doc<'static>)]| {
        let db = records.first().map(|(db, _)| db.as_str()).unwrap_or_default();
        let documents = records.iter().map(|(_, record)| record.clone()).collect();
        Command::new(db, "insert", Value::from(COLLECTION)).with_sequence("documents", documents)
    };
    records.chunk_by(|(left, _), (right, _)| left == right).map(of_db).collect()
}

/// What to remember of a write.
pub(crate) fn record(attempt: Attempt, ids: &[i32], written: &Written, now: i64) -> Doc<'static> {
    let mut writer = DocWriter::new();
    write_id(&mut writer, "_id", attempt, &Value::Int32(ids.first().copied().unwrap_or_default()));
    writer.append("ids", &Value::Array(ids.iter().map(|id| Value::Int32(*id)).collect()));
    let long = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    writer.append("n", &long(written.n)).append("m", &long(written.modified));
    if !written.upserted.is_empty() {
        writer.start_array("up");
        for (at, (index, id)) in written.upserted.iter().enumerate() {
            let statement = ids.get(*index).copied().unwrap_or_default();
            writer.start_document_at(at).append("s", &Value::Int32(statement)).append("_id", id).end();
        }
        writer.end();
    }
    if let Some(doc) = &written.document {
        writer.append_raw("doc", kind::DOCUMENT, doc.as_bytes());
    }
    writer.append("at", &Value::DateTime(now));
    writer.finish()
}

/// Which of the statements `ids` were answered before, and what with.
pub(crate) fn recall(found: &Doc<'_>, ids: &[i32]) -> Option<Written> {
    let Some(Value::Document(cursor)) = found.get("cursor") else { return None };
    let Some(Value::Array(records)) = cursor.get("firstBatch") else { return None };
    let mut written = Written::default();
    for record in records.iter() {
        let Value::Document(record) = record else { continue };
        let Some(Value::Array(answered)) = record.get("ids") else { continue };
        let answered: Vec<i32> = answered
            .iter()
            .filter_map(|id| id.as_number().and_then(|number| number.to_i32_truncated()))
            .filter(|id| ids.contains(id))
            .collect();
        if answered.is_empty() {
            continue;
        }
        written.n += count(&record, "n");
        written.modified += count(&record, "m");
        if let Some(Value::Array(upserted)) = record.get("up") {
            for one in upserted.iter() {
                let Value::Document(one) = one else { continue };
                let place = number(&one, "s").and_then(|id| ids.iter().position(|other| i64::from(*other) == id));
                if let (Some(place), Some(id)) = (place, one.get("_id")) {
                    written.upserted.push((place, id.into_owned()));
                }
            }
        }
        if let Some(Value::Document(doc)) = record.get("doc") {
            written.document = Some(doc.into_owned());
        }
        written.retried.extend(answered);
    }
    (!written.retried.is_empty()).then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_record_gives_back_what_was_answered() {
        let attempt = Attempt { session: [7; 16], number: 3, user: None };
        let written = Written {
            n: 2,
            modified: 1,
            upserted: vec![(1, Value::Int32(9))],
            document: Some(Doc::from(doc! { "a": 1 })),
            ..Written::default()
        };
        let record = bson::Document::try_from(&record(attempt, &[4, 5], &written, 0)).unwrap();
        let found = Doc::from(doc! { "cursor": { "firstBatch": [record], "id": 0_i64 } });
        let again = recall(&found, &[3, 4, 5]).unwrap();
        assert_eq!((again.n, again.modified, again.retried), (2, 1, vec![4, 5]));
        assert_eq!(again.upserted, [(2, Value::Int32(9))]);
        assert_eq!(again.document, written.document);
        assert!(recall(&found, &[6]).is_none());
    }
}
