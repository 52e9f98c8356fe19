//! `pleach advise`: symptoms in data and traffic, with their evidence, the reasons against and a declaration. Changes nothing.

use super::{Verb, parsed};
use crate::ask::{self, extended_json};
use crate::compose;
use crate::dump;
use crate::options::{OutputFormat, TargetOptions};
use crate::progress::Progress;
use crate::report::{self, Code, Failure, Verdict};
use crate::target::{Purpose, Target};
use advisor::{Cancel, Log, Options, Report, Severity};
use clap::{CommandFactory, Parser};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub(super) const VERB: Verb =
    Verb { name: "advise", command: Advise::command, run: |arguments| run(&parsed(arguments)?) };

/// Find symptoms in data and traffic, and propose declarations; changes nothing
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Advise {
    /// A database to look at; without it all that may be read. May be repeated
    #[arg(long = "db", value_name = "NAME")]
    databases: Vec<String>,

    /// A log of that MongoDB, for its slow queries. May be repeated
    #[arg(long = "log", value_name = "FILE")]
    logs: Vec<PathBuf>,

    /// How many documents of each collection to look at
    #[arg(long, value_name = "NUMBER", default_value_t = advisor::options::SAMPLE, value_parser = clap::value_parser!(u64).range(1..))]
    sample: u64,

    /// The same seed on the same data gives the same answer
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// A folder as mongodump writes it, instead of a server
    #[arg(long, value_name = "FOLDER", group = "target", help_heading = "Target")]
    dump: Option<PathBuf>,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
Nothing is written; the right to read is enough. Ctrl-C ends it with what it
has seen by then. Exit code:
  0  nothing found, or notes only
  1  findings
  2  it could not look

Examples:
  pleach advise --upstream-file mongodb.uri --db shop
      a MongoDB as it is
  pleach advise --upstream-file mongodb.uri --log mongod.log
      with the slow queries of its log
  pleach advise --dump dump/
      what mongodump wrote";

fn run(advise: &Advise) -> Result<Verdict, Failure> {
    let cancel = Cancel::default();
    stop_on_ctrl_c(cancel.clone())?;
    match &advise.dump {
        None => {
            let shown = shown_target(&advise.target);
            ask::run(&advise.target, Purpose::Look, async |target| look(advise, target, shown, cancel, false).await)
        }
        Some(folder) => {
            let loaded = dump::load(folder, &advise.databases, &cancel)?;
            // What is loaded by then is looked at; a second Ctrl-C ends that too.
            let was_stopped = cancel.is_set();
            let cancel = if was_stopped { Cancel::default() } else { cancel };
            let target = TargetOptions::of_folder(loaded.path());
            let shown = format!("--dump {}", quoted(&folder.display().to_string()));
            ask::run(&target, Purpose::Look, async |target| look(advise, target, shown, cancel, was_stopped).await)
        }
    }
}

/// The first Ctrl-C ends the look, and what was seen is reported; the second ends the process.
fn stop_on_ctrl_c(cancel: Cancel) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                report::note("stopping: what was seen by now is reported; Ctrl-C again ends it at once");
                cancel.set();
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(Verdict::Failed as i32);
            }
        });
    });
    Ok(())
}

/// What it finds in these databases, or in all, as `--json` prints it.
pub(super) fn findings(target: &TargetOptions, databases: &[String]) -> Result<serde_json::Value, Failure> {
    let options = Options {
        databases: databases.to_vec(),
        sample: advisor::options::SAMPLE,
        seed: 1,
        logs: Vec::new(),
        cancel: Cancel::default(),
        target: shown_target(target),
    };
    let report = ask::run(target, Purpose::Look, async |target| report(target, &options).await)?;
    Ok(extended_json(bson::Document::try_from(&report.to_document())?))
}

async fn report(target: &mut Target, options: &Options) -> Result<Report, Failure> {
    let watched = Watched(Mutex::new(Progress::new()));
    let report = advisor::advise(&*target.backend(), &compose::new_context(), options, &watched).await;
    watched.end();
    Ok(report?)
}

/// `was_stopped` says that there was more to look at.
async fn look(
    advise: &Advise,
    target: &mut Target,
    shown: String,
    cancel: Cancel,
    was_stopped: bool,
) -> Result<Verdict, Failure> {
    let options = Options {
        databases: advise.databases.clone(),
        sample: advise.sample,
        seed: advise.seed,
        logs: advise.logs.iter().map(|path| log(path)).collect::<Result<_, _>>()?,
        cancel,
        target: shown,
    };
    let mut report = report(target, &options).await?;
    report.looked_at.interrupted |= was_stopped;
    match advise.output.json {
        true => report::json(&extended_json(bson::Document::try_from(&report.to_document())?)),
        false => report::text(&report.to_text(&options.target)),
    }
    Ok(verdict(&report))
}

fn verdict(report: &Report) -> Verdict {
    match report.severity() {
        None | Some(Severity::Note) => Verdict::Fine,
        Some(Severity::Warn | Severity::Act | Severity::Urgent) => Verdict::Findings,
    }
}

/// The log, which must be readable now: one that is not is no reason to begin.
fn log(path: &Path) -> Result<Log, Failure> {
    File::open(path).map_err(|error| {
        Failure::of(Code::Word("file"), format!("cannot read {}: {error}", path.display()))
            .hint("name a log that you may read, as mongod writes it (--logpath)")
    })?;
    let (name, path) = (path.display().to_string(), path.to_owned());
    let open = move || -> std::io::Result<Box<dyn BufRead + Send>> { Ok(Box::new(BufReader::new(File::open(&path)?))) };
    Ok(Log { name, open: Arc::new(open) })
}

/// How the next command names the same data. A connection string may hold a password: it is not repeated.
fn shown_target(target: &TargetOptions) -> String {
    let file = |option: &str, path: &Path| format!("{option} {}", quoted(&path.display().to_string()));
    match target {
        TargetOptions { data: Some(folder), .. } => file("--data", folder),
        TargetOptions { upstream_file: Some(path), .. } => file("--upstream-file", path),
        TargetOptions { server_file: Some(path), .. } => file("--server-file", path),
        TargetOptions { upstream: Some(_), .. } => "--upstream URI".to_owned(),
        _ => "--server URI".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    match text.contains(|letter: char| letter.is_whitespace() || "'\"$&;|<>()*?`\\".contains(letter)) {
        true => format!("'{}'", text.replace('\'', "'\\''")),
        false => text.to_owned(),
    }
}

struct Watched(Mutex<Progress>);

impl Watched {
    fn end(&self) {
        if let Ok(progress) = self.0.lock() {
            progress.end();
        }
    }
}

impl advisor::Progress for Watched {
    fn show(&self, done: u64, total: u64, what: &str) {
        if let Ok(mut progress) = self.0.lock() {
            progress.show(done, total, &[what.to_owned()]);
        }
    }
}
