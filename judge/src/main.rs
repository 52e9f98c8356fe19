//! The command line of the judge: `compat` runs the scripts, `order` records the order of values.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the one place of the judge that prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use judge::client::Client;
use judge::suite::Suite;
use judge::{fuzz, interleave, order, values};

#[derive(Parser)]
#[command(name = "pleach-judge", about = "Compares a server with a real MongoDB")]
enum Arguments {
    /// Run the compat scripts on a server and compare with recorded or live answers.
    Compat {
        /// The server under test, as `host:port` or a connection string.
        #[arg(long)]
        server: Option<String>,
        /// A real MongoDB: compare with its live answers (`judge/start` prints its address).
        #[arg(long)]
        judge: Option<String>,
        /// Write the judge's answers down instead of comparing.
        #[arg(long)]
        record: bool,
        /// The folder with `scripts/` and `recorded/`.
        #[arg(long, default_value = "crates/cli/tests/compat")]
        folder: PathBuf,
        /// Print names of failing cases only.
        #[arg(long)]
        brief: bool,
        /// Only cases whose `area/topic: name` contains this.
        #[arg(default_value = "")]
        filter: String,
    },
    /// Try random commands on random documents on a server and on the judge; print small cases that differ.
    Fuzz {
        #[arg(long)]
        server: String,
        #[arg(long)]
        judge: String,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Two errors agree only if their codes do.
        #[arg(long)]
        strict: bool,
        /// Stop after so many different differences.
        #[arg(long, default_value_t = 1)]
        most: usize,
        /// Only trials of this kind: find, pipeline, expression, update, upsert.
        #[arg(long, default_value = "")]
        kind: String,
    },
    /// Play pairs of transactions in every order of their statements on a server and on the judge.
    Interleave {
        #[arg(long)]
        server: String,
        #[arg(long)]
        judge: String,
        /// How many random pairs of transactions; each is played in up to 70 orders.
        #[arg(long, default_value_t = 20)]
        pairs: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Ask the judge how values of all types compare, and write its order down.
    Order {
        /// A real MongoDB.
        #[arg(long)]
        judge: String,
        /// The file to write.
        #[arg(long)]
        out: PathBuf,
        /// About how many values.
        #[arg(long, default_value_t = 2500)]
        values: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// True if all agreed.
fn run(arguments: Arguments) -> Result<bool> {
    match arguments {
        Arguments::Compat { server, judge, record, folder, brief, filter } => {
            let suite = Suite::load(&folder, &filter)?;
            let mut judge = judge.map(|address| Client::connect(&address)).transpose()?;
            match (judge.as_mut(), server) {
                (Some(judge), None) if record => {
                    println!("{} recorded", suite.record(judge)?);
                    Ok(true)
                }
                (_, _) if record => bail!("--record needs --judge and no --server"),
                (_, None) => bail!("--server is missing"),
                (judge, Some(server)) => compare(&suite, &server, judge, brief),
            }
        }
        Arguments::Fuzz { server, judge, seconds, seed, strict, most, kind } => {
            let settings = fuzz::Settings { seconds, seed, strict, most, kind };
            let mut server = Client::connect(&server)?;
            let mut judge = Client::connect(&judge)?;
            let outcome = fuzz::run(&mut server, &mut judge, &settings, &mut |text| println!("{text}"))?;
            let fuzz::Outcome { trials, refused, empty, differences } = outcome;
            println!("{trials} trials ({refused} refused, {empty} without results), {differences} differences");
            Ok(differences == 0)
        }
        Arguments::Interleave { server, judge, pairs, seed } => {
            let outcome = interleave::run(&server, &judge, pairs, seed)?;
            if let Some(difference) = &outcome.difference {
                println!("{difference}");
            }
            println!("{} passed, {} failed", outcome.runs, usize::from(outcome.difference.is_some()));
            Ok(outcome.difference.is_none())
        }
        Arguments::Order { judge, out, values, seed } => {
            let values = values::for_order(values, seed);
            let classes = order::classes(&mut Client::connect(&judge)?, &values)?;
            let text = order::render(&classes);
            order::check(&text, &classes)?;
            std::fs::write(&out, text)?;
            println!("{} values in {} classes", values.len(), classes.len());
            Ok(true)
        }
    }
}

fn compare(suite: &Suite, server: &str, judge: Option<&mut Client>, brief: bool) -> Result<bool> {
    let outcome = suite.compare(&mut Client::connect(server)?, judge)?;
    for failure in &outcome.failures {
        println!("{}", failure.case);
        if !brief {
            println!("{}", failure.report);
        }
    }
    if outcome.skipped > 0 {
        println!("{} deliberate differences not compared", outcome.skipped);
    }
    println!("{} passed, {} failed", outcome.passed, outcome.failures.len());
    Ok(outcome.failures.is_empty())
}
