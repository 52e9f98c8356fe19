//! The binary: parse, run, print the error, set the exit code.

mod ask;
mod bench;
mod compose;
mod declaration;
mod dump;
mod input;
mod lab;
mod missing_role;
mod options;
mod outcome;
mod plain;
mod preview;
mod progress;
mod report;
mod sample;
mod size;
mod snippet;
mod table;
mod target;
mod verbs;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match verbs::command_line().try_get_matches() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    match verbs::run(&arguments) {
        Ok(verdict) => ExitCode::from(verdict as u8),
        Err(failure) => failed(&failure),
    }
}

/// Tells what went wrong: people on stderr, and a program by the one document that it waits for.
fn failed(failure: &report::Failure) -> ExitCode {
    if report::wants_json() {
        report::json(&failure.to_json());
    }
    report::failure(failure);
    ExitCode::from(2)
}

/// Help, or what is wrong with the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !report::wants_json() {
        return report::usage(error);
    }
    let told = error.render().to_string();
    let told = plain::without_connection_strings(&told);
    let (message, rest) = told.split_once("\n\n").unwrap_or((&told, ""));
    let message = message.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let failure = report::Failure::of(report::Code::Word("usage"), message);
    let hint = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    failed(&if hint.is_empty() { failure } else { failure.hint(hint) })
}
