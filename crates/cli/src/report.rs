//! How results are shown to people: data on stdout, everything else on stderr, readable without colour.
#![expect(clippy::print_stderr, reason = "the one module that prints")]

use crate::plain;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::prelude::*;

/// What went wrong and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What is wrong with a declaration, as `check --json` prints it.
    pub(crate) findings: Vec<serde_json::Value>,
}

/// What kind of failure it is, for programs: `docs/errors.md` lists the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// MongoDB's.
    Number(i32),
    Word(&'static str),
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { code: Code::Word("failed"), message: message.into(), hint: None, findings: Vec::new() }
    }

    /// Of that kind.
    pub(crate) fn of(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, ..Failure::new(message) }
    }

    /// `{ error: { code, message, hint } }`; what there is none of is left out.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut error = serde_json::Map::new();
        let code = match self.code {
            Code::Number(number) => number.into(),
            Code::Word(word) => word.into(),
        };
        error.insert("code".to_owned(), code);
        error.insert("message".to_owned(), (*self.message).into());
        if let Some(hint) = &self.hint {
            error.insert("hint".to_owned(), (**hint).into());
        }
        if !self.findings.is_empty() {
            error.insert("findings".to_owned(), self.findings.clone().into());
        }
        serde_json::json!({ "error": error })
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
        let hint = error.hint().map(str::to_owned).or_else(|| crate::missing_role::hint(&message));
        Failure { hint, ..Failure::of(Code::Number(error.code().number()), message) }
    }
}

/// How a verb ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Fine = 0,
    /// Findings, drift, or something to be done.
    Findings = 1,
    Failed = 2,
}

/// What a person asked for, on stdout.
pub(crate) fn text(text: &str) {
    styled(&plain::lines(text));
}

/// As [`text`], with colours of its own: whoever made it has made its parts plain. Nobody need read it to the end: a closed
/// pipe is no failure.
pub(crate) fn styled(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// What a program asked for: one JSON document on stdout.
pub(crate) fn json(value: &serde_json::Value) {
    styled(&plain::json(&format!("{value:#}\n")));
}

/// Whether a program reads stdout. Looked up in the arguments themselves: they may be what is wrong.
pub(crate) fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Whether stdout is a terminal that takes colour.
pub(crate) fn colour() -> bool {
    takes_colour(&std::io::stdout())
}

/// Only a terminal does, and not where nobody wants it.
fn takes_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Something beside the answer, on stderr.
pub(crate) fn note(text: &str) {
    eprintln!("{}", plain::lines(text));
}

/// Whether somebody sits there who can answer.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks on stderr, and gives the line that is typed; an end of input is an empty one.
pub(crate) fn ask(question: &str) -> String {
    eprint!("{} ", plain::lines(question));
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    line.trim().to_owned()
}

pub(crate) fn failure(failure: &Failure) {
    eprintln!("error: {}", plain::line(&failure.message));
    if let Some(hint) = &failure.hint {
        // Lines after the first are set in: none of them can be taken for another message.
        let hint = plain::lines(hint).replace('\n', "\n  ").replace("\n  \n", "\n\n");
        eprintln!("\nhint: {hint}");
    }
}

/// What is wrong with the command line, or the help that was asked for. A connection string in the wrong place is repeated in
/// the message, but not what it holds.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let shown = plain::without_connection_strings(&text);
    match error.use_stderr() && shown != text {
        true => eprint!("{}", plain::lines(&shown)),
        false => drop(error.print()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The first thing a person sees; the connection string is on a line of its own, for scripts. Nobody need listen: a closed
/// pipe does not stop a server.
pub(crate) fn listening(uri: &str, about: &str, is_upstream: bool) {
    let about = plain::lines(about);
    let try_out = if is_upstream { reads_to_try(uri) } else { rules_to_try(uri) };
    let text = format!(
        "Pleach is listening on\n\n    {uri}\n\n{about}\n\nThree things to try:\n{try_out}\nStop it with Ctrl-C.\n"
    );
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// A rule, a write, and what the rule made of it.
fn rules_to_try(uri: &str) -> String {
    format!(
        "\n    mongosh {uri}/shop --eval 'db.runCommand({{ pleach: \"apply\", declaration: {{ collections: {{ \
         products: {{ computed: {{ reviewCount: {{ count: \"reviews\", by: \"productId\" }} }} }} }} }} }})'\
         \n    mongosh {uri}/shop --eval 'db.products.insertOne({{ _id: 1, name: \"tea\" }}); \
         db.reviews.insertMany([{{ productId: 1 }}, {{ productId: 1 }}])'\
         \n    mongosh {uri}/shop --eval 'db.products.find()'    shows reviewCount: 2, which nobody wrote\n"
    )
}

/// A real MongoDB holds somebody's data: nothing here writes.
fn reads_to_try(uri: &str) -> String {
    format!(
        "\n    pleach status --server {uri}                               the rules that are kept\
         \n    pleach plan --server {uri} --declare pleach.yaml           what `apply` would do; does nothing\
         \n    pleach audit --server {uri} --declare pleach.yaml          which derived values are wrong today\n"
    )
}

pub(crate) fn stopped() {
    eprintln!("stopped");
}

/// What is logged.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
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
    let colour = takes_colour(&std::io::stderr());
    tracing_subscriber::registry().with(log_lines(std::io::stderr, colour).with_filter(ours)).init();
}

/// Events as lines, with what they carry made plain.
fn log_lines<S, W>(writer: W, colour: bool) -> impl tracing_subscriber::Layer<S>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(colour);
    layer.fmt_fields(debug_fn(log_field).delimited(" "))
}

/// One value of a log line. It may hold what a client sent: it stays on its line.
fn log_field(writer: &mut Writer<'_>, field: &tracing::field::Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    let mut text = String::new();
    write!(text, "{value:?}")?;
    let text = plain::line(&text);
    match (field.name(), writer.has_ansi_escapes()) {
        ("message", _) => write!(writer, "{text}"),
        (name, true) => write!(writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{text}"),
        (name, false) => write!(writer, "{name}={text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_client_sends_stays_on_its_log_line() {
        for colour in [false, true] {
            let lines = Lines::default();
            let writer = lines.clone();
            let logging = tracing_subscriber::registry().with(log_lines(move || writer.clone(), colour));
            let nasty = "a\n2026-01-01 ERROR forged\r\u{1b}[2J\u{9b}1m";
            tracing::subscriber::with_default(logging, || {
                tracing::warn!(database = nasty, error = %nasty, "message with {nasty}");
            });
            let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.lines().count(), 1, "{text:?}");
            assert!(!text.contains("\u{1b}[2J") && !text.contains(['\u{9b}', '\r']), "{text:?}");
            assert_eq!(text.contains('\u{1b}'), colour, "{text:?}");
            assert_eq!(text.matches("ERROR forged").count(), 3, "{text:?}");
        }
    }
}
