//! The binary: parse, run, print the error, set the exit code.

mod args;
mod ask;
mod bench;
mod commands;
mod compose;
mod declaration;
mod input;
mod missing_role;
mod outcome;
mod outlook;
mod plain;
mod progress;
mod report;
mod size;
mod snippet;
mod table;
mod target;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let result = match args.command {
        args::Command::Apply(apply) => commands::apply::run(&apply),
        args::Command::Audit(audit) => commands::audit::run(&audit),
        args::Command::Bench(bench) => bench::run(&bench),
        args::Command::Check(check) => commands::check::run(&check),
        args::Command::Drop(drop) => commands::drop::run(&drop),
        args::Command::Explain(explain) => commands::explain::run(&explain),
        args::Command::Forget(forget) => commands::forget::run(&forget),
        args::Command::Patterns(patterns) => commands::patterns::run(&patterns),
        args::Command::Plan(plan) => commands::plan::run(&plan),
        args::Command::Repair(repair) => commands::repair::run(&repair),
        args::Command::Serve(serve) => commands::serve::run(&serve).map(|()| report::Verdict::Fine),
        args::Command::Status(status) => commands::status::run(&status),
        args::Command::Uninstall(uninstall) => commands::uninstall::run(&uninstall),
    };
    match result {
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
