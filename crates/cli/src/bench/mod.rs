//! `pleach bench`: measurements that a person can repeat on their own machine.

pub(crate) mod case_study;

use crate::args::bench::{Bench, BenchCommand};
use crate::report::{Failure, Verdict};

pub(crate) fn run(bench: &Bench) -> Result<Verdict, Failure> {
    match &bench.command {
        BenchCommand::CaseStudy(study) => case_study::run(study),
    }
}
