//! A command on its way to a server: its document, and the statements sent beside it.

use document::raw::kind;
use document::{Blob, Doc, DocWriter, Value};
use wire::encode;

/// Writes one command. The database comes last, when the command is encoded.
pub(crate) struct Command {
    pub(crate) writer: DocWriter,
    db: String,
    sequence: Option<(&'static str, Vec<Doc<'static>>)>,
}

impl Command {
    /// `{ <name>: <target> }` on `db`.
    pub(crate) fn new(db: &str, name: &str, target: impl Into<Value<'static>>) -> Command {
        let mut writer = DocWriter::new();
        writer.append(name, &target.into());
        Command { writer, db: db.to_owned(), sequence: None }
    }

    /// A command that is already there, without `$db`.
    pub(crate) fn of(db: &str, command: &Doc<'_>) -> Command {
        let bytes = command.as_bytes();
        let mut writer = DocWriter::with_capacity(bytes.len() + 64);
        writer.append_elements(bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default());
        Command { writer, db: db.to_owned(), sequence: None }
    }

    pub(crate) fn with<'v>(mut self, name: &str, value: impl Into<Value<'v>>) -> Command {
        self.writer.append(name, &value.into());
        self
    }

    pub(crate) fn with_doc(mut self, name: &str, doc: &Doc<'_>) -> Command {
        self.writer.append_raw(name, kind::DOCUMENT, doc.as_bytes());
        self
    }

    pub(crate) fn with_some(self, name: &str, doc: Option<&Doc<'_>>) -> Command {
        match doc {
            Some(doc) => self.with_doc(name, doc),
            None => self,
        }
    }

    /// The documents that belong in the body as the array `name`: sent apart, not copied into it.
    pub(crate) fn with_sequence(mut self, name: &'static str, documents: Vec<Doc<'static>>) -> Command {
        self.sequence = Some((name, documents));
        self
    }

    /// The command's document as it is, and its database: for `explain`.
    pub(crate) fn into_body(self) -> (Doc<'static>, String) {
        (self.writer.finish(), self.db)
    }

    /// Appends the whole message to `buffer`.
    pub(crate) fn encode(self, buffer: &mut Vec<u8>, request_id: i32) {
        let Command { mut writer, db, sequence } = self;
        writer.append("$db", &Value::from(db));
        let body = writer.finish();
        let start = encode::begin_msg(buffer, request_id, 0, 0);
        buffer.extend_from_slice(body.as_bytes());
        if let Some((name, documents)) = sequence {
            encode::append_sequence(buffer, name, documents.iter().map(Doc::as_bytes));
        }
        encode::finish(buffer, start);
    }
}

/// A session's id as the wire has it: `{ id: UUID }`.
pub(crate) fn session_document(id: &[u8; 16]) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("id", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(id) });
    writer.finish()
}
