//! Compares servers in one run: the same raw-socket client, rounds interleaved in random order, medians and spread, and the
//! server's CPU time per operation beside its throughput.
//!
//! A closed loop: each connection has one request under way. Requests are prebuilt; only ids and transaction numbers are
//! written into them, so that the client costs a few microseconds per operation.

mod connection;
mod doors;
mod measure;
mod patterns;
mod relay;
mod report;
mod seeding;
mod target;
mod template;
mod workload;

use anyhow::{Context, Result};
use clap::Parser;
use rand::seq::SliceRandom;
use std::time::Duration;
use target::Target;

/// Side-by-side benchmark of MongoDB-wire servers.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// A server to measure, as NAME=HOST:PORT or NAME=HOST:PORT:PID (the pid gives CPU per operation). The first is the base
    /// of the ratios.
    #[arg(long = "target", required = true)]
    targets: Vec<String>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    clients: Vec<usize>,
    /// Rounds; each measures every cell once on every server.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of one cell in milliseconds.
    #[arg(long, default_value_t = 700)]
    millis: u64,
    /// Documents in the collection that is read and updated.
    #[arg(long, default_value_t = 200_000)]
    documents: u64,
    /// Documents for the `group` workload.
    #[arg(long, default_value_t = 1_000_000)]
    group_documents: u64,
    /// Only workloads whose name contains one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Writes without session and transaction number (drivers send them by default).
    #[arg(long)]
    no_retry: bool,
    /// Measure on the data that an earlier run left.
    #[arg(long)]
    keep: bool,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Each pattern three ways: without it, by hand, by Pleach.
    Patterns(patterns::Patterns),
    /// A bare byte relay to measure beside a proxy.
    Relay(relay::Relay),
    /// How fast rules come on over data that is there, and are audited.
    Seeding(seeding::Seeding),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    match &args.command {
        Some(Command::Patterns(patterns)) => return patterns.run().await,
        Some(Command::Relay(relay)) => return relay.run().await,
        Some(Command::Seeding(seeding)) => return seeding.run().await,
        None => {}
    }
    let targets = args.targets.iter().map(|text| Target::parse(text)).collect::<Result<Vec<_>>>()?;
    let workloads: Vec<_> = workload::all()
        .into_iter()
        .filter(|w| args.only.is_empty() || args.only.iter().any(|only| w.name.contains(only.as_str())))
        .collect();
    let needs_group = workloads.iter().any(|w| w.name == "group");
    let needs_texts = workloads.iter().any(|w| w.name.starts_with("text_"));
    for target in targets.iter().filter(|_| !args.keep) {
        report::progress(&format!("loading {}", target.name));
        workload::load(target, args.documents, if needs_group { args.group_documents } else { 0 })
            .await
            .with_context(|| format!("loading {}", target.name))?;
        if needs_texts {
            workload::load_texts(target, args.documents).await.with_context(|| format!("loading {}", target.name))?;
        }
    }
    let mut results = report::Results::new(targets.iter().map(|target| target.name.clone()).collect());
    let mut rng = rand::rng();
    for round in 1..=args.rounds {
        for load in &workloads {
            for clients in load.clients(&args.clients) {
                for concern in load.concerns() {
                    let mut order: Vec<usize> = (0..targets.len()).collect();
                    order.shuffle(&mut rng);
                    for at in order {
                        let Some(target) = targets.get(at) else { continue };
                        let cell = measure::Cell {
                            workload: load,
                            clients,
                            concern,
                            documents: args.documents,
                            retry: !args.no_retry,
                            length: Duration::from_millis(args.millis),
                        };
                        let sample = measure::run(target, &cell)
                            .await
                            .with_context(|| format!("{} on {} at {clients} clients", load.name, target.name))?;
                        results.add(load.name, clients, concern.name(), at, sample);
                    }
                }
            }
        }
        report::progress(&format!("round {round} of {} done", args.rounds));
    }
    if args.json {
        report::print_json(&results)
    } else {
        report::print_table(&results)
    }
    Ok(())
}
