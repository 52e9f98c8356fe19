//! What `pleach bench case-study` takes.

use super::layout::Layout;
use crate::options::OutputFormat;
use clap::Args;
use std::path::PathBuf;

/// The same events as day documents, arrays and field names: bytes per event, load rate, reports
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Events per year, of ten years; the study had 50,000,000. 60 of them make a user
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(60..=50_000_000))]
    pub(super) events_per_year: u32,

    /// Names the stream of random events
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// A real MongoDB (a replica set) to compare with: by hand on it, and Pleach in front of it. The databases
    /// pleach_case_study_… there are dropped before and after
    #[arg(long, value_name = "URI", env = "PLEACH_UPSTREAM", hide_env_values = true)]
    pub(super) upstream: Option<String>,

    /// A new folder for the embedded stores, which stay there. Without it: a temporary one, removed at the end
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    /// Only these layouts
    #[arg(long, value_name = "LAYOUT", value_enum, value_delimiter = ',')]
    pub(super) layout: Vec<Layout>,

    /// Only what has one of these in its name, such as embedded, declared-quarter, mongod-hand
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// How many clients write at a time, and how many ask for reports
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(super) clients: usize,

    /// How many times five reports are asked for, per layout
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub(super) reports: usize,

    /// How long they may take; also says how long single writes are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(super) report_seconds: u64,

    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputFormat,
}

const EXAMPLES: &str = "\
Every report is compared with sums over the raw events, every collection with
the documents they make. Exit code: 1 if something is not right.

Examples:
  pleach bench case-study
      five million events on the embedded store
  pleach bench case-study --events-per-year 20000
      two hundred thousand
  pleach bench case-study --upstream 'mongodb://127.0.0.1/?replicaSet=rs' \\
      --html case-study.html
      beside a real MongoDB, with plots";
