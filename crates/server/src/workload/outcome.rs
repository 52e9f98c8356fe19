//! What a reply says about its command. Only its top level is read, and the length of its first batch.

use document::{Array, Doc, Value};

/// Where the document of a reply begins: behind the header, the flags and the kind of the section.
const BODY: usize = wire::Header::SIZE + 5;

#[derive(Default)]
pub(crate) struct Outcome<'r> {
    pub(crate) ok: bool,
    /// Rows: documents of a batch, values of a `distinct`; a count is one row.
    pub(crate) returned: u64,
    /// Documents that were inserted, matched or removed.
    pub(crate) written: u64,
    pub(crate) modified: Option<i64>,
    pub(crate) upserted: u64,
    /// The cursor that has more; 0 if none has.
    pub(crate) cursor: i64,
    pub(crate) has_cursor: bool,
    pub(crate) batch: Option<Array<'r>>,
    pub(crate) error: Option<Doc<'r>>,
    /// The length of the whole reply.
    pub(crate) bytes: usize,
    /// What the store looked at; 0 for both where the store is a real MongoDB, whose answers do not say it.
    pub(crate) documents: u64,
    pub(crate) keys: u64,
}

impl<'r> Outcome<'r> {
    /// Reads a reply. `writes` tells whether its `n` is of documents that were written.
    pub(crate) fn of(reply: &'r [u8], writes: bool) -> Outcome<'r> {
        let mut outcome = Outcome { bytes: reply.len(), ok: true, ..Outcome::default() };
        let Some(body) = reply.get(BODY..).filter(|body| body.len() > 5) else { return outcome };
        let body = Doc::trusted(body);
        for (name, value) in body.iter() {
            match (name.as_str(), value) {
                ("cursor", Value::Document(cursor)) => outcome.read_cursor(&cursor),
                ("n", value) => {
                    let count = value.as_i64_exact().unwrap_or_default().unsigned_abs();
                    if writes {
                        outcome.written = count;
                    } else {
                        outcome.returned = 1;
                    }
                }
                ("nModified", value) => outcome.modified = value.as_i64_exact(),
                ("upserted", Value::Array(upserted)) => outcome.upserted = count(&upserted),
                ("values", Value::Array(values)) => outcome.returned = count(&values),
                ("value", Value::Document(_)) => outcome.returned = 1,
                ("lastErrorObject", Value::Document(last)) => {
                    let changed = last.get("n").and_then(|n| n.as_i64_exact()).unwrap_or_default();
                    outcome.written = changed.unsigned_abs();
                    outcome.upserted = u64::from(last.contains("upserted"));
                }
                ("writeErrors", _) => outcome.ok = false,
                ("ok", value) => outcome.ok &= value.is_truthy(),
                // What is behind it is about clusters, and about errors.
                ("errmsg", _) => outcome.error = Some(body.clone()),
                _ => {}
            }
        }
        outcome
    }

    fn read_cursor(&mut self, cursor: &Doc<'r>) {
        self.has_cursor = true;
        for (name, value) in cursor.iter() {
            match (name.as_str(), value) {
                ("firstBatch" | "nextBatch", Value::Array(batch)) => {
                    self.returned = count(&batch);
                    self.batch = Some(batch);
                }
                ("id", Value::Int64(id)) => self.cursor = id,
                _ => {}
            }
        }
    }

    /// The first document of the batch.
    pub(crate) fn first(&self) -> Option<Doc<'r>> {
        match self.batch.as_ref()?.get(0) {
            Some(Value::Document(doc)) => Some(doc),
            _ => None,
        }
    }
}

fn count(array: &Array<'_>) -> u64 {
    u64::try_from(array.count()).unwrap_or(u64::MAX)
}
