//! The binary: parse, run, print the error, set the exit code.

mod args;
mod commands;
mod compose;
mod report;
mod size;
mod snippet;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = match args.command {
        args::Command::Check(check) => commands::check::run(&check),
        args::Command::Patterns(patterns) => commands::patterns::run(&patterns),
        args::Command::Serve(serve) => commands::serve::run(&serve).map(|()| report::Verdict::Fine),
    };
    match result {
        Ok(verdict) => ExitCode::from(verdict as u8),
        Err(failure) => {
            report::failure(&failure);
            ExitCode::from(2)
        }
    }
}
