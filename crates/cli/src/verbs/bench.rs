//! `pleach bench`: measurements that a person can repeat on their own machine.

use super::{Verb, parsed};
use crate::bench::case_study;
use crate::report::{Failure, Verdict};
use clap::{CommandFactory, Parser, Subcommand};

pub(super) const VERB: Verb =
    Verb { name: "bench", command: Bench::command, run: |arguments| run(&parsed(arguments)?) };

/// Measure on this machine, in one run
#[derive(Debug, Parser)]
struct Bench {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Debug, Subcommand)]
enum Measurement {
    CaseStudy(case_study::Options),
}

fn run(bench: &Bench) -> Result<Verdict, Failure> {
    match &bench.measurement {
        Measurement::CaseStudy(study) => case_study::run(study),
    }
}
