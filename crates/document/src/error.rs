//! The one error that reaches a client: MongoDB's code, a sentence, a way out, labels.

use crate::code::Code;
use crate::raw::Doc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The labels that MongoDB puts on errors. A driver decides by them what it may do again.
pub mod label {
    /// The whole transaction may be run again.
    pub const TRANSIENT: &str = "TransientTransactionError";
    /// The same retryable write may be sent again.
    pub const RETRYABLE: &str = "RetryableWriteError";
    /// Only `commitTransaction` may be sent again: it may have been done.
    pub const UNKNOWN_COMMIT: &str = "UnknownTransactionCommitResult";
    pub const NO_WRITES: &str = "NoWritesPerformed";
    pub const RESUMABLE: &str = "ResumableChangeStreamError";
    pub const NOT_RESUMABLE: &str = "NonResumableChangeStreamError";

    pub const ALL: &[&str] = &[NO_WRITES, NOT_RESUMABLE, RESUMABLE, RETRYABLE, TRANSIENT, UNKNOWN_COMMIT];
}

/// How far a failure of a write reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The transaction is lost, but running all of it again may succeed.
    Transient,
    /// The whole command fails; statements behind the failed one are not tried.
    Command,
    /// One statement fails: an entry of `writeErrors`, and an unordered command goes on.
    Statement,
}

#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    code: Code,
    message: String,
    hint: Option<String>,
    labels: Vec<&'static str>,
    /// `errInfo` of a validation failure, or the further fields of a duplicate key error.
    info: Option<Doc<'static>>,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            code,
            message: message.into(),
            hint: None,
            labels: Vec::new(),
            info: None,
            source: None,
        }))
    }

    /// Something is wrong with what the client sent: code 2.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BadValue, message)
    }

    /// A parse failure: code 9.
    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(Code::FailedToParse, message)
    }

    /// A field of the wrong type: code 14.
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(Code::TypeMismatch, message)
    }

    /// Known to MongoDB, not there yet: code 238, and the message says so.
    pub fn not_implemented(what: impl std::fmt::Display) -> Error {
        Error::new(Code::NotImplemented, format!("{what} is not supported by the embedded store"))
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    pub fn with_label(mut self, label: &'static str) -> Error {
        if !self.0.labels.contains(&label) {
            self.0.labels.push(label);
        }
        self
    }

    pub fn with_info(mut self, info: Doc<'static>) -> Error {
        self.0.info = Some(info);
        self
    }

    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.0.source = Some(std::sync::Arc::new(source));
        self
    }

    /// The same error with words before its message: "Invalid $project :: caused by :: …".
    pub fn context(mut self, prefix: &str) -> Error {
        self.0.message = format!("{prefix}{}", self.0.message);
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    pub fn labels(&self) -> &[&'static str] {
        &self.0.labels
    }

    /// Whether it is about one statement of a plan. A statement that follows from the client's may be refused to the client: then
    /// only the client's statement fails.
    pub fn is_of_statement(&self) -> bool {
        self.scope() == Scope::Statement || self.code() == Code::Unauthorized
    }

    /// How far the failure reaches: the only classification of errors by what may follow them.
    pub fn scope(&self) -> Scope {
        match self.code() {
            // A conflict, or a transaction that the server gave up before its commit. MongoDB labels these inside a transaction
            // only, but a plan of ours also meets them where it has none.
            Code::WriteConflict | Code::LockTimeout | Code::SnapshotUnavailable | Code::NoSuchTransaction => {
                Scope::Transient
            }
            _ if self.0.labels.contains(&label::TRANSIENT) => Scope::Transient,
            // MongoDB labels no error of a single statement. The label of an unknown commit must not lead to another attempt.
            _ if !self.0.labels.is_empty() => Scope::Command,
            // The client's time is over, or it gave up.
            Code::MaxTimeMSExpired | Code::Interrupted => Scope::Command,
            // The server cannot be reached, ends, or is no longer the one to write to: the next statement would fail as well.
            Code::HostUnreachable
            | Code::HostNotFound
            | Code::InterruptedAtShutdown
            | Code::InterruptedDueToReplStateChange
            | Code::NotWritablePrimary
            | Code::ShutdownInProgress => Scope::Command,
            // NetworkTimeout and PrimarySteppedDown, which only a MongoDB says.
            code if matches!(code.number(), 89 | 189) => Scope::Command,
            // The store can take no more, or is in a state that it should not be in.
            Code::OutOfDiskSpace | Code::TransactionTooLarge | Code::InternalError => Scope::Command,
            // MongoDB checks these two before it looks at the first statement.
            Code::InvalidNamespace | Code::Unauthorized => Scope::Command,
            _ => Scope::Statement,
        }
    }

    pub fn info(&self) -> Option<&Doc<'static>> {
        self.0.info.as_ref()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_depends_on_code_and_labels() {
        let rows: &[(Code, &[&'static str], Scope)] = &[
            (Code::WriteConflict, &[], Scope::Transient),
            (Code::NoSuchTransaction, &[], Scope::Transient),
            (Code::InterruptedDueToReplStateChange, &[label::RETRYABLE, label::TRANSIENT], Scope::Transient),
            (Code::InterruptedDueToReplStateChange, &[label::RETRYABLE, label::UNKNOWN_COMMIT], Scope::Command),
            (Code::from_number(9001), &[label::RETRYABLE], Scope::Command),
            (Code::from_number(189), &[], Scope::Command),
            (Code::MaxTimeMSExpired, &[], Scope::Command),
            (Code::Unauthorized, &[], Scope::Command),
            (Code::DuplicateKey, &[], Scope::Statement),
            (Code::DocumentValidationFailure, &[], Scope::Statement),
            (Code::from_number(9001), &[], Scope::Statement),
        ];
        for (code, labels, expected) in rows {
            let error = labels.iter().fold(Error::new(*code, ""), |error, label| error.with_label(label));
            assert_eq!(error.scope(), *expected, "{error:?}");
        }
    }
}
