//! The binary: parse, run, print the error, set the exit code.

mod args;
mod commands;
mod compose;
mod report;
mod size;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = match args.command {
        args::Command::Serve(serve) => commands::serve::run(&serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::failure(&failure);
            ExitCode::from(2)
        }
    }
}
