//! Which values of a field may be names of slots.

use document::filter::Regex;
use document::{Code, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// A regular expression that all of them match, compiled.
#[derive(Clone, Debug)]
pub struct Grammar(Arc<Regex>);

impl Grammar {
    pub fn new(pattern: &str) -> Result<Grammar> {
        Regex::compile(pattern, "").map(|regex| Grammar(Arc::new(regex)))
    }

    pub fn pattern(&self) -> &str {
        self.0.pattern()
    }

    /// Refuses what does not match, and what no update could name.
    pub(super) fn check(&self, field: &str, name: &str) -> Result<()> {
        let refuse = |what: &str| {
            let mut details = DocWriter::new();
            details.start_document("details").append("field", &Value::from(field)).append("value", &Value::from(name));
            details.append("pattern", &Value::from(self.pattern())).append("reason", &Value::from(what)).end();
            let message = format!("Document failed validation: \"{name}\" {what}, and '{field}' names a slot");
            Err(Error::new(Code::DocumentValidationFailure, message).with_info(details.finish()))
        };
        if name.is_empty() || name.starts_with('$') || name.contains(['.', '\0']) {
            return refuse("can be no field name (it is empty, begins with '$' or contains '.')");
        }
        match self.0.is_match(name.as_bytes())? {
            true => Ok(()),
            false => refuse(&format!("does not match {}", self.pattern())),
        }
    }
}

impl PartialEq for Grammar {
    fn eq(&self, other: &Grammar) -> bool {
        self.pattern() == other.pattern()
    }
}
