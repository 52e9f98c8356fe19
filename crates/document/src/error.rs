//! The one error that reaches a client: MongoDB's code, a sentence, a way out, labels.

use crate::code::Code;
use crate::raw::Doc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

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
