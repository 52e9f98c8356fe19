//! What a server's reply says: success, an error of the command, errors of its statements.

use document::error::label;
use document::op::WriteError;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// The reply, unless it is an error.
pub(crate) fn checked(reply: Doc<'static>) -> Result<Doc<'static>> {
    match reply.get("ok").is_some_and(|ok| ok.is_truthy()) {
        true => Ok(reply),
        false => Err(error(&reply.borrow())),
    }
}

/// The error that a reply, a statement's error or a write concern's error describes.
pub(crate) fn error(described: &Doc<'_>) -> Error {
    let code =
        match described.get("code").and_then(|code| code.as_number().and_then(|number| number.to_i32_truncated())) {
            Some(number) => Code::from_number(number),
            None => Code::UnknownError,
        };
    let message = described.get("errmsg").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
    let mut error = Error::new(code, message);
    if let Some(Value::Array(labels)) = described.get("errorLabels") {
        for name in labels.iter() {
            if let Some(known) = name.as_str().and_then(|name| label::ALL.iter().find(|known| **known == name)) {
                error = error.with_label(known);
            }
        }
    }
    if let Some(Value::Document(info)) = described.get("errInfo") {
        error = error.with_info(info.into_owned());
    } else if code == Code::DuplicateKey {
        let mut info = DocWriter::new();
        for name in ["keyPattern", "keyValue"] {
            if let Some(value) = described.get(name) {
                info.append(name, &value);
            }
        }
        error = error.with_info(info.finish());
    }
    error
}

/// The `writeErrors` of a reply.
pub(crate) fn write_errors(reply: &Doc<'_>) -> Vec<WriteError> {
    let Some(Value::Array(errors)) = reply.get("writeErrors") else { return Vec::new() };
    let one = |value| match value {
        Value::Document(described) => {
            let index = number(&described, "index").and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
            Some(WriteError { index, error: error(&described) })
        }
        _ => None,
    };
    errors.iter().filter_map(one).collect()
}

/// The first error in a reply to a statement, the command's own or one of its statements'.
pub(crate) fn failure(reply: &Doc<'static>) -> Option<WriteError> {
    match reply.get("ok").is_some_and(|ok| ok.is_truthy()) {
        false => Some(WriteError { index: 0, error: error(reply) }),
        true => write_errors(reply).into_iter().next(),
    }
}

pub(crate) fn concern_error(reply: &Doc<'_>) -> Option<Error> {
    match reply.get("writeConcernError") {
        Some(Value::Document(described)) => Some(error(&described)),
        _ => None,
    }
}

pub(crate) fn number(doc: &Doc<'_>, name: &str) -> Option<i64> {
    doc.get(name).and_then(|value| value.as_number()).map(|number| number.to_i64_saturated())
}

pub(crate) fn count(doc: &Doc<'_>, name: &str) -> u64 {
    number(doc, name).and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}

/// Errors that say: this server is not, or no longer, the one to write to.
pub(crate) fn is_state_change(code: i32) -> bool {
    matches!(code, 91 | 189 | 10058 | 10107 | 11600 | 11602 | 13435 | 13436)
}

/// Whether an error says that another primary is being looked for: the same may succeed a moment later.
pub fn is_failover(error: &Error) -> bool {
    is_state_change(error.code().number()) || error.labels().contains(&label::RETRYABLE)
}

/// The line to the server broke while a command was on it.
pub(crate) fn lost(host: impl std::fmt::Display, error: &std::io::Error) -> Error {
    Error::new(
        Code::InterruptedDueToReplStateChange,
        format!("the connection to {host} was lost while the command ran: {error}"),
    )
    .with_label(label::TRANSIENT)
    .with_label(label::RETRYABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn errors_keep_code_message_labels_and_details() {
        let reply = Doc::from(doc! {
            "ok": 0.0, "code": 112, "codeName": "WriteConflict", "errmsg": "again", "errorLabels": ["TransientTransactionError", "New"],
        });
        let error = checked(reply).unwrap_err();
        assert_eq!(
            (error.code(), error.message(), error.labels()),
            (Code::WriteConflict, "again", &[label::TRANSIENT][..])
        );
        let reply = Doc::from(doc! {
            "ok": 1.0, "n": 0,
            "writeErrors": [{ "index": 3, "code": 11000, "errmsg": "dup", "keyPattern": { "_id": 1 }, "keyValue": { "_id": 5 } }],
            "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" },
        });
        let reply = checked(reply).unwrap();
        let errors = write_errors(&reply);
        assert_eq!((errors.len(), errors[0].index), (1, 3));
        assert_eq!(
            errors[0].error.info().unwrap(),
            &Doc::from(doc! { "keyPattern": { "_id": 1 }, "keyValue": { "_id": 5 } })
        );
        assert_eq!(concern_error(&reply).unwrap().code(), Code::WriteConcernFailed);
        assert!(is_failover(&Error::new(Code::from_number(13435), "not primary and secondaryOk=false")));
        assert!(is_failover(&lost("db1:27017", &std::io::ErrorKind::ConnectionReset.into())));
        assert!(!is_failover(&errors[0].error));
        assert_eq!(checked(Doc::from(doc! { "ok": 0 })).unwrap_err().code(), Code::UnknownError);
    }
}
