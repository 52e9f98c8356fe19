//! The one place that writes `ok`, `code`, `codeName`, `errmsg`, labels and cluster times.
//!
//! A reply is written straight into the connection's buffer, behind the message header; an error throws away what a command
//! had written before.

use document::op::WriteError;
use document::{Code, Doc, DocWriter, Error, Value};
use std::borrow::Cow;
use wire::encode;

/// Messages of statement errors stop here: with more bytes of them than this, further ones are left empty, as mongod does.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// A few old commands fail without a code.
pub(crate) const NO_CODE: Code = Code::Location(0);

/// How the request came, so that the answer goes the same way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Msg { checksum: bool },
    Legacy,
}

pub(crate) struct Reply {
    writer: DocWriter,
    /// Where the message and its document start in the buffer.
    message: usize,
    document: usize,
}

impl Reply {
    /// Begins a reply behind what `buffer` holds.
    pub(crate) fn begin(mut buffer: Vec<u8>, form: Form, request_id: i32, response_to: i32) -> Reply {
        let message = match form {
            Form::Legacy => encode::begin_reply(&mut buffer, request_id, response_to),
            Form::Msg { checksum } => {
                let flags = if checksum { wire::message::flags::CHECKSUM_PRESENT } else { 0 };
                encode::begin_msg(&mut buffer, request_id, response_to, flags)
            }
        };
        let document = buffer.len();
        Reply { writer: DocWriter::onto(buffer), message, document }
    }

    /// The fields of the reply; the command writes its own here.
    pub(crate) fn fields(&mut self) -> &mut DocWriter {
        &mut self.writer
    }

    pub(crate) fn append(&mut self, name: &str, value: impl Into<Value<'static>>) -> &mut Self {
        self.writer.append(name, &value.into());
        self
    }

    pub(crate) fn append_text(&mut self, name: &str, text: &str) -> &mut Self {
        self.writer.append(name, &Value::from(text));
        self
    }

    /// Appends every field of `doc`.
    pub(crate) fn append_all(&mut self, doc: &Doc<'_>) -> &mut Self {
        for (name, value) in doc.borrow().iter() {
            self.writer.append(name.as_str(), &value);
        }
        self
    }

    /// Appends `writeErrors`, if there are any.
    pub(crate) fn append_write_errors(&mut self, errors: &[WriteError]) -> &mut Self {
        if errors.is_empty() {
            return self;
        }
        self.writer.start_array("writeErrors");
        let mut message_bytes = 0;
        for (position, write_error) in errors.iter().enumerate() {
            let error = &write_error.error;
            self.writer.start_document_at(position);
            self.writer.append("index", &Value::Int32(i32::try_from(write_error.index).unwrap_or(i32::MAX)));
            self.writer.append("code", &Value::Int32(error.code().number()));
            let is_duplicate = error.code() == Code::DuplicateKey;
            let message = if message_bytes < MAX_ERROR_BYTES { message(error) } else { "".into() };
            message_bytes += message.len();
            self.writer.append("errmsg", &Value::from(&*message));
            match error.info() {
                Some(info) if is_duplicate => {
                    for (name, value) in info.borrow().iter() {
                        self.writer.append(name.as_str(), &value);
                    }
                }
                Some(info) => {
                    self.writer.append("errInfo", &Value::Document(info.borrow()));
                }
                None => {}
            }
            self.writer.end();
        }
        self.writer.end();
        self
    }

    /// Appends `writeConcernError`.
    pub(crate) fn append_concern_error(&mut self, error: &Error) -> &mut Self {
        self.writer.start_document("writeConcernError");
        self.writer.append("code", &Value::Int32(error.code().number()));
        self.writer.append("codeName", &Value::from(error.code().name()));
        self.writer.append("errmsg", &Value::from(error.message()));
        if let Some(info) = error.info() {
            self.writer.append("errInfo", &Value::Document(info.borrow()));
        }
        self.writer.end();
        self
    }

    /// Makes it an error, whatever was written before.
    pub(crate) fn fail(&mut self, error: &Error, labels: &[&str]) {
        let mut buffer = std::mem::take(&mut self.writer).into_buffer();
        buffer.truncate(self.document);
        self.writer = DocWriter::onto(buffer);
        let writer = &mut self.writer;
        if !labels.is_empty() {
            writer.start_array("errorLabels");
            for (index, label) in labels.iter().enumerate() {
                writer.append_at(index, &Value::from(*label));
            }
            writer.end();
        }
        writer.append("ok", &Value::Double(0.0));
        writer.append("errmsg", &Value::from(&*message(error)));
        if error.code() != NO_CODE {
            writer.append("code", &Value::Int32(error.code().number()));
            writer.append("codeName", &Value::from(error.code().name()));
        }
        match error.info() {
            Some(info) if error.code() == Code::DuplicateKey => {
                for (name, value) in info.borrow().iter() {
                    writer.append(name.as_str(), &value);
                }
            }
            Some(info) => {
                writer.append("errInfo", &Value::Document(info.borrow()));
            }
            None => {}
        }
    }

    /// Ends a reply that is not an error.
    pub(crate) fn succeed(&mut self) {
        self.writer.append("ok", &Value::Double(1.0));
    }

    /// Closes the message. `cluster_time` is the newest commit; `signed` is what another server says about it.
    pub(crate) fn finish(mut self, cluster_time: Option<u64>, signed: Option<&Doc<'_>>) -> Vec<u8> {
        match (cluster_time, signed) {
            (Some(time), Some(signed)) => {
                self.writer.append("$clusterTime", &Value::Document(signed.borrow()));
                self.writer.append("operationTime", &Value::Timestamp(time));
            }
            (Some(time), None) => self.append_cluster_time(time),
            (None, _) => {}
        }
        let message = self.message;
        let mut buffer = self.writer.into_buffer();
        encode::finish(&mut buffer, message);
        buffer
    }

    fn append_cluster_time(&mut self, time: u64) {
        let writer = &mut self.writer;
        writer.start_document("$clusterTime");
        writer.append("clusterTime", &Value::Timestamp(time));
        writer.start_document("signature");
        // No keys: clients are not authenticated, so nobody checks the signature.
        writer.append("hash", &Value::Binary { subtype: 0, bytes: document::Blob::Borrowed(&[0; 20]) });
        writer.append("keyId", &Value::Int64(0));
        writer.end().end();
        writer.append("operationTime", &Value::Timestamp(time));
    }
}

/// The message with its hint behind it: drivers show nothing else.
fn message(error: &Error) -> Cow<'_, str> {
    match error.hint() {
        None => Cow::Borrowed(error.message()),
        Some(hint) => Cow::Owned(format!("{}; {hint}", error.message())),
    }
}
