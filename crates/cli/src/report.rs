//! How things are told to people: data on stdout, everything else on stderr, readable without colour.
#![expect(clippy::print_stderr, reason = "the one module that prints")]

use crate::args::LogLevel;
use std::io::{IsTerminal, Write};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

/// What went wrong and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

impl From<document::Error> for Failure {
    fn from(error: document::Error) -> Failure {
        let mut message = error.message().to_owned();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Failure { message, hint: error.hint().map(str::to_owned) }
    }
}

/// How a verb ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine = 0,
    /// Findings, drift, or something to be done.
    Findings = 1,
    Failed = 2,
}

/// What a person asked for, on stdout. Nobody need read it to the end: a closed pipe is no failure.
pub(crate) fn text(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// What a program asked for: one JSON document on stdout.
pub(crate) fn json(value: &serde_json::Value) {
    text(&format!("{value:#}\n"));
}

/// Whether stdout is a terminal that takes colour.
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Something beside the answer, on stderr.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn failure(failure: &Failure) {
    eprintln!("error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        eprintln!("\nhint: {hint}");
    }
}

/// The first thing a person sees; the connection string is on a line of its own, for scripts. Nobody need listen: a closed
/// pipe does not stop a server.
pub(crate) fn listening(uri: &str, about: &str) {
    let text = format!(
        "Pleach is listening on\n\n    {uri}\n\n{about}\n\
         \nThree things to try:\n\
         \n    mongosh {uri}/shop\
         \n    mongosh {uri}/shop --eval 'db.products.insertMany([{{ name: \"tea\", price: 4.5 }}, {{ name: \"cup\", price: 7 }}])'\
         \n    mongosh {uri}/shop --eval 'db.products.aggregate([{{ $group: {{ _id: null, total: {{ $sum: \"$price\" }} }} }}])'\n\
         \nStop it with Ctrl-C.\n"
    );
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

pub(crate) fn stopped() {
    eprintln!("stopped");
}

/// Logs go to stderr, one line each.
pub(crate) fn start_logging(level: LogLevel) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // Only ours: the libraries beneath log what is not for the operator.
    let ours = tracing_subscriber::filter::Targets::new()
        .with_target("pleach", level)
        .with_target("pleach_engine", level)
        .with_target("pleach_server", level)
        .with_target("pleach_upstream", level)
        .with_default(level.min(LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    tracing_subscriber::registry().with(layer.with_filter(ours)).init();
}
