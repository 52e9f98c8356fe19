//! The binary: parse, run, print the error, set the exit code.

mod args;
mod ask;
mod bench;
mod commands;
mod compose;
mod declaration;
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
    let args = args::Args::parse();
    let result = match args.command {
        args::Command::Apply(apply) => commands::apply::run(&apply),
        args::Command::Audit(audit) => commands::audit::run(&audit),
        args::Command::Bench(bench) => bench::run(&bench),
        args::Command::Check(check) => commands::check::run(&check),
        args::Command::Drop(drop) => commands::drop::run(&drop),
        args::Command::Explain(explain) => commands::explain::run(&explain),
        args::Command::Patterns(patterns) => commands::patterns::run(&patterns),
        args::Command::Plan(plan) => commands::plan::run(&plan),
        args::Command::Repair(repair) => commands::repair::run(&repair),
        args::Command::Serve(serve) => commands::serve::run(&serve).map(|()| report::Verdict::Fine),
        args::Command::Status(status) => commands::status::run(&status),
    };
    match result {
        Ok(verdict) => ExitCode::from(verdict as u8),
        Err(failure) => {
            report::failure(&failure);
            ExitCode::from(2)
        }
    }
}
