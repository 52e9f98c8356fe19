//! `pleach lab`: what would a layout cost and bring on this data? Measured on a sample, before anything is changed.

use super::{Verb, parsed};
use crate::declaration::File;
use crate::dump;
use crate::input;
use crate::lab::{self as runs, Asked};
use crate::options::TargetOptions;
use crate::report::{Code, Failure, Verdict};
use crate::size::AnySize;
use advisor::Cancel;
use clap::{CommandFactory, Parser};
use lab::mix::Mix;
use lab::sample::Amount;
use lab::store::Candidate;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const VERB: Verb = Verb { name: "lab", command: Lab::command, run: |arguments| run(&parsed(arguments)?) };

/// Measure candidate layouts on a sample of the data; changes nothing there
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Lab {
    /// A candidate: a declaration, or `now` for the data as it is. Repeat it to compare; the first is what the others are
    /// held against
    #[arg(long = "declare", value_name = "FILE", required_unless_present = "history")]
    candidates: Vec<PathBuf>,

    /// How much is taken: a share such as 5%, or a number of documents. Parents come with all their children, series as a
    /// whole. Without it: 5%, and 20,000 documents at least
    #[arg(long, value_name = "SHARE")]
    sample: Option<Amount>,

    /// Names the sample: the same seed on the same data takes the same documents
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The reads and writes to measure, with their weights. Without it: those that the server has counted or profiled, else
    /// one read per pattern and one write per source
    #[arg(long, value_name = "FILE")]
    mix: Option<PathBuf>,

    /// Build candidates in databases of their own in this MongoDB, dropped afterwards. Without it: in temporary folders
    #[arg(long, value_name = "URI", hide_env_values = true, env = "PLEACH_SCRATCH")]
    scratch: Option<String>,

    /// What the server has for its cache: says where the bottleneck is. Without it: half of this machine's memory
    #[arg(long, value_name = "SIZE")]
    memory: Option<AnySize>,

    /// How long reads and writes are measured, for each candidate
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,

    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// List the runs that were made in this folder, and what came of them
    #[arg(long, exclusive = false, conflicts_with_all = ["candidates", "verify"])]
    history: bool,

    /// Measure the candidate's figures on the data, after `apply`, and compare them with the prediction
    #[arg(long)]
    verify: bool,

    /// A folder as mongodump writes it, instead of a server
    #[arg(long, value_name = "FOLDER", group = "target", conflicts_with = "verify", help_heading = "Target")]
    dump: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
Nothing is written where the data is; the right to read is enough. Every run is
kept in .pleach/lab.jsonl.

Examples:
  pleach lab --upstream-file mongodb.uri --declare now --declare pleach.yaml
      what the rules would take and bring, against the data as it is
  pleach lab --data ~/shop --declare now --declare a.yaml --declare b.yaml \\
      --sample 5% --memory 4GB --report lab.html
  pleach lab --verify --data ~/shop --declare a.yaml
      after `pleach apply`: was the prediction right?
  pleach lab --history";

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3_600.0 => Ok(seconds),
        _ => Err("write a number of seconds, up to 3600".to_owned()),
    }
}

fn run(lab: &Lab) -> Result<Verdict, Failure> {
    if lab.history {
        return runs::history(lab.json);
    }
    let (database, candidates) = candidates(&lab.candidates)?;
    if lab.verify {
        return runs::verify(&lab.target, &database, &candidates, lab.json);
    }
    if let Some(path) = &lab.report {
        // Before the work: a page that cannot be written is found at its end otherwise.
        let cannot = |error: std::io::Error| {
            Failure::of(Code::Word("file"), format!("cannot write {}: {error}", path.display()))
                .hint("name a file in a folder that you may write to with --report FILE")
        };
        std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(cannot)?;
    }
    let mix = lab.mix.as_deref().map(mix).transpose()?;
    // A dump is loaded once all else is known to be right, and removed at the end.
    let loaded = lab
        .dump
        .as_ref()
        .map(|folder| dump::load(folder, std::slice::from_ref(&database), &Cancel::default()))
        .transpose()?;
    let target = loaded.as_ref().map_or_else(|| lab.target.clone(), |loaded| TargetOptions::of_folder(loaded.path()));
    let asked = Asked {
        target: &target,
        database,
        candidates,
        amount: lab.sample.unwrap_or(Amount::Default),
        seed: lab.seed,
        mix,
        scratch: lab.scratch.clone(),
        memory: lab.memory.map_or_else(half_of_memory, |size| size.0 as f64),
        time: Duration::from_secs_f64(lab.seconds),
        report: lab.report.clone(),
        json: lab.json,
    };
    runs::run(&asked)
}

fn mix(path: &Path) -> Result<Mix, Failure> {
    const MOST: usize = 1 << 20;
    let text =
        input::read(path, MOST).map_err(|failure| failure.hint("name the mix with --mix FILE; it has at most 1 MB"))?;
    Ok(lab::mix::read(&path.display().to_string(), &text)?)
}

/// The candidates, each with a name of its own, and the database that all are for.
fn candidates(paths: &[PathBuf]) -> Result<(String, Vec<Candidate>), Failure> {
    let mut database: Option<(String, String)> = None;
    let mut candidates: Vec<Candidate> = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let declared = match file.as_str() {
            "now" => None,
            _ => {
                let declaration = File::read(path)?.declaration;
                let name = declaration.database.to_string();
                if let Some((first, of)) = &database
                    && *first != name
                {
                    let message = format!("{of} is about database {first}, and {file} about {name}");
                    return Err(Failure::of(Code::Word("declaration"), message)
                        .hint("candidates are layouts of the same data: name declarations of one database"));
                }
                database = Some((name, file.clone()));
                Some(declaration)
            }
        };
        let is_taken = |name: &str| candidates.iter().any(|candidate| candidate.name == name);
        let name = if is_taken(&stem) { file.clone() } else { stem };
        if is_taken(&name) {
            return Err(Failure::of(Code::Word("usage"), format!("{file} is named twice"))
                .hint("name each candidate once with --declare FILE"));
        }
        candidates.push(Candidate::of(&name, declared));
    }
    match database {
        Some((database, _)) => Ok((database, candidates)),
        None => {
            Err(Failure::of(Code::Word("usage"), "only `now` is named: no declaration says which database is meant")
                .hint("name a candidate too: --declare now --declare pleach.yaml"))
        }
    }
}

/// What a MongoDB on this machine takes for its cache by itself, about.
fn half_of_memory() -> f64 {
    const OTHERWISE: f64 = 2_147_483_648.0;
    let about = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = about.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(OTHERWISE, |kilobytes| kilobytes * 512.0)
}
