//! The failure of a host's update whose stages do not tell what a delta makes of the host: nothing is written, and the next attempt
//! looks at the host first.

use crate::mql::{call, call_with, literal};
use document::{Code, Error, Value};

const WORDS: &str = "what the host holds does not decide what a change makes of it";

pub fn error() -> Error {
    Error::new(Code::ConversionFailure, WORDS)
}

pub fn is_undecided(error: &Error) -> bool {
    error.code() == Code::ConversionFailure && error.message().contains(WORDS)
}

/// An expression that fails so. `of` is something of the host: the words depend on it, so that nobody evaluates them ahead of time.
pub fn expression(of: Value<'_>) -> Value<'static> {
    let words = [literal(Value::string(format!("{WORDS}: "))), call("$type", of)];
    call("$toInt", call_with("$concat", words))
}
