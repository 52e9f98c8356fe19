//! Kills a server under load, again and again, and checks each time that what it acknowledged is there, that nothing is torn,
//! and that a request sent again after the crash has one effect.
//! With `--full-disk` it fills the disk instead ([`full`]).
//!
//! With `--power-loss` the server runs under `shim.c`, and after the kill every byte that was written but not synced is taken
//! back, as a power cut would.
#![expect(clippy::print_stdout, reason = "a harness prints what it saw")]

mod buckets;
mod full;
mod model;
mod patterns;
mod power;
mod process;
mod replica;
mod rules;
mod scenario;
mod worker;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rand::RngExt;
use scenario::{Progress, Scenario};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    /// The server's binary.
    #[arg(long, default_value = "target/release/pleach")]
    pleach: PathBuf,
    /// The folder of the data; made anew.
    #[arg(long)]
    data: PathBuf,
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// The longest time under load before a kill, in milliseconds.
    #[arg(long, default_value_t = 600)]
    millis: u64,
    /// A kill waits until so many writes of its round are acknowledged, however slow the server is; for a minute at most.
    #[arg(long, default_value_t = 0)]
    writes: u64,
    /// Take back what was not synced; the path of the built shim.
    #[arg(long)]
    power_loss: Option<PathBuf>,
    /// Write to collections with rules, and audit them after each crash.
    #[arg(long)]
    patterns: bool,
    /// The rounds on every shape that is listed, one after the other, instead of on plain collections.
    #[arg(long, requires = "patterns", conflicts_with_all = ["buckets", "failover"])]
    shapes: bool,
    /// Of these only those whose name contains this, such as `forms`: outlier arrays, versions and kinds.
    #[arg(long, requires = "shapes")]
    only: Option<String>,
    /// The collections are stored in buckets: readings and slots.
    #[arg(long, requires = "patterns", conflicts_with_all = ["changing", "failover"])]
    buckets: bool,
    /// One of the workers changes, drops and applies the rules meanwhile.
    #[arg(long, requires = "patterns")]
    changing: bool,
    /// The real MongoDB behind the server, instead of its embedded store.
    #[arg(long, conflicts_with = "power_loss", requires = "patterns")]
    upstream: Option<String>,
    /// Fill the disk instead: the data is on a small file system of its own.
    #[arg(long)]
    full_disk: bool,
    /// Kill the primary of a real replica set of three behind the server, instead of the server; the path of mongod.
    #[arg(long, conflicts_with_all = ["power_loss", "upstream"], requires = "patterns")]
    failover: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    rules::CHANGING.store(args.changing, Ordering::Relaxed);
    if args.full_disk {
        return full::run(&args.pleach, &args.data, args.rounds, args.workers);
    }
    if let Some(mongod) = &args.failover {
        return failover::<patterns::Kept>(&args, mongod);
    }
    if args.shapes {
        let worlds = testing::registry::worlds();
        let is_asked = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only));
        let asked = worlds.iter().enumerate().skip(1).filter(|(_, declared)| is_asked(&declared.name));
        for (world, declared) in asked {
            println!("crash: {}", declared.name);
            rules::WORLD.store(world, Ordering::Relaxed);
            rounds::<patterns::Kept>(&args)?;
        }
        return Ok(());
    }
    match (args.patterns, args.buckets) {
        (_, true) => rounds::<buckets::Bucketed>(&args),
        (true, false) => rounds::<patterns::Kept>(&args),
        (false, false) => rounds::<model::Model>(&args),
    }
}

fn rounds<S: Scenario>(args: &Args) -> Result<()> {
    let _ = std::fs::remove_dir_all(&args.data);
    std::fs::create_dir_all(&args.data)?;
    let log = args.data.with_extension("writes");
    let mut models: Vec<S> = (0..args.workers).map(S::new).collect();
    let (mut acknowledged, mut taken_back) = (0, 0);
    for round in 0..=args.rounds {
        let shim = args.power_loss.as_deref().map(|shim| (shim, log.as_path()));
        let place = match &args.upstream {
            Some(uri) => process::Place::Upstream(uri),
            None => process::Place::Data(&args.data),
        };
        let server = process::start(&args.pleach, &place, shim).with_context(|| format!("start of round {round}"))?;
        let mut client = judge::client::Client::connect(&server.address)?;
        check(&mut client, &mut models, round)?;
        if round == args.rounds {
            server.stop()?;
            break;
        }
        if round > 0 && round % 25 == 0 {
            println!("crash: {round} rounds, {acknowledged} acknowledged writes so far");
        }
        let load = Load::start(&mut models, &server.address, args.power_loss.is_none());
        some_time(args.millis);
        load.wait_for(args.writes);
        server.kill()?;
        acknowledged += load.stop(&mut models)?;
        if args.power_loss.is_some() {
            taken_back += power::take_back(&args.data, &log)?;
        }
    }
    ensure!(acknowledged > 0, "no write was acknowledged in any round: nothing was tested");
    println!(
        "crash: {} rounds, {acknowledged} acknowledged writes, none lost; {taken_back} bytes taken back",
        args.rounds
    );
    Ok(())
}

/// Settles what the last crash left open, and looks whether everything acknowledged is there.
fn check<S: Scenario>(client: &mut judge::client::Client, models: &mut [S], round: usize) -> Result<()> {
    for model in models.iter_mut() {
        model.release(client)?;
    }
    S::prepare(client, round == 0)?;
    for model in models.iter_mut() {
        model.settle(client).with_context(|| format!("round {round}, worker {}", model.worker()))?;
    }
    S::verify(client, models).with_context(|| format!("round {round}"))
}

/// As [`rounds`], with the server left running and the primary behind it killed.
fn failover<S: Scenario>(args: &Args, mongod: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(&args.data);
    std::fs::create_dir_all(&args.data)?;
    let mut replica = replica::Replica::start(mongod, &args.data)?;
    let uri = replica.uri();
    let server = process::start(&args.pleach, &process::Place::Upstream(&uri), None)?;
    let mut models: Vec<S> = (0..args.workers).map(S::new).collect();
    let mut acknowledged = 0;
    for round in 0..=args.rounds {
        let mut client = judge::client::Client::connect(&server.address)?;
        check(&mut client, &mut models, round)?;
        if round == args.rounds {
            break;
        }
        // What a primary acknowledged by itself may be rolled back: only majority writes are checked.
        let load = Load::start(&mut models, &server.address, false);
        some_time(args.millis);
        load.wait_for(args.writes);
        let killed = replica.kill_primary()?;
        replica.bring_back(killed)?;
        some_time(args.millis);
        acknowledged += load.stop(&mut models)?;
    }
    server.stop()?;
    ensure!(acknowledged > 0, "no write was acknowledged in any round: nothing was tested");
    println!("failover: {} rounds, {acknowledged} acknowledged writes, none lost", args.rounds);
    Ok(())
}

fn some_time(millis: u64) {
    std::thread::sleep(Duration::from_millis(rand::rng().random_range(30..millis.max(31))));
}

/// The workers while they run.
struct Load<S> {
    progress: Arc<Progress>,
    threads: Vec<std::thread::JoinHandle<Result<S>>>,
}

impl<S: Scenario> Load<S> {
    fn start(models: &mut Vec<S>, address: &str, relaxed: bool) -> Load<S> {
        let progress = Arc::new(Progress::default());
        let threads = models
            .drain(..)
            .map(|model| {
                let (address, progress) = (address.to_owned(), progress.clone());
                std::thread::spawn(move || model.run(&address, relaxed, &progress))
            })
            .collect();
        Load { progress, threads }
    }

    /// Until so many writes are acknowledged, or a worker has ended: it says why when it is stopped.
    fn wait_for(&self, writes: u64) {
        let end = Instant::now() + Duration::from_secs(60);
        let is_over = || self.threads.iter().any(|thread| thread.is_finished()) || Instant::now() > end;
        while self.progress.acknowledged() < writes && !is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Gives the models back and says how many writes were acknowledged.
    fn stop(self, models: &mut Vec<S>) -> Result<u64> {
        self.progress.stop();
        for thread in self.threads {
            models.push(thread.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??);
        }
        models.sort_by_key(Scenario::worker);
        Ok(self.progress.acknowledged())
    }
}
