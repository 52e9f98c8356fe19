//! Each pattern three ways in one run: without it (`$lookup`, `$group`), written by hand as MongoDB's documentation shows it
//! (two commands), and kept by Pleach; embedded and in front of a real MongoDB; with few and with many children or copies.

mod cases;
mod data;
mod documents;
mod migration;
mod page;
mod readings;

use crate::connection::Connection;
use crate::doors::{Door, Doors};
use crate::measure::{Sample, join_all};
use crate::report::{self, Results};
use crate::target::Target;
use crate::template::{Template, fresh};
use crate::workload::{Concern, fill_in};
use anyhow::{Context, Result};
use bson::doc;
use cases::{Case, Key};
use clap::Args;
use rand::RngExt;
use rand::seq::SliceRandom;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The two databases: the same collections, with and without rules.
const PLAIN: &str = "pleach_bench_plain";
const KEPT: &str = "pleach_bench_kept";

#[derive(Args)]
pub(crate) struct Patterns {
    #[command(flatten)]
    doors: Doors,
    /// Children of a parent, or copies of a source.
    #[arg(long, value_delimiter = ',', default_value = "10,1000,100000")]
    sizes: Vec<i64>,
    /// Parents of the hot-parent comparison.
    #[arg(long, default_value_t = 10_000)]
    parents: i64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of one cell in milliseconds.
    #[arg(long, default_value_t = 500)]
    millis: u64,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    #[arg(long)]
    json: bool,
}

impl Patterns {
    pub(crate) async fn run(&self) -> Result<()> {
        for door in self.doors.open()? {
            report::progress(&format!("loading {}", door.name));
            let is_asked = |case: &Case| case.name.contains(&self.only);
            let (of_links, of_documents) = (cases::all(&self.sizes, self.parents), documents::cases());
            if of_links.iter().any(is_asked) {
                data::load(&door, &self.sizes, self.parents).await.with_context(|| format!("loading {}", door.name))?;
                self.measure_all(&door, &of_links).await?;
            }
            if of_documents.iter().any(is_asked) {
                documents::load(&door).await.with_context(|| format!("loading {}", door.name))?;
                self.measure_all(&door, &of_documents).await?;
            }
            if migration::NAME.contains(&self.only) {
                migration::run(&door).await.context(migration::NAME)?;
            }
        }
        Ok(())
    }

    /// Some cases, in rounds.
    async fn measure_all(&self, door: &Door, cases: &[Case]) -> Result<()> {
        let ways = ["none", "by hand", "pleach"];
        let mut results = Results::new(ways.iter().map(|way| (*way).to_owned()).collect());
        for round in 1..=self.rounds {
            for case in cases.iter().filter(|case| case.name.contains(&self.only)) {
                self.cell(door, case, &mut results).await.with_context(|| case.name.clone())?;
            }
            report::progress(&format!("{}: round {round} of {} done", door.name, self.rounds));
        }
        if self.json {
            report::print_json(&results)
        } else {
            report::print_section(door.name, &results)
        }
        Ok(())
    }

    /// All ways of one case, in random order.
    async fn cell(&self, door: &Door, case: &Case, results: &mut Results) -> Result<()> {
        let concerns: &[Concern] = if case.writes { &[Concern::Default, Concern::Relaxed] } else { &[Concern::Read] };
        for concern in concerns {
            let mut order: Vec<usize> = (0..3).collect();
            order.shuffle(&mut rand::rng());
            for way in order {
                let (target, db, commands) = match way {
                    0 => (&door.plain, PLAIN, &case.none),
                    1 if case.same_door => (&door.kept, KEPT, &case.by_hand),
                    1 => (&door.plain, PLAIN, &case.by_hand),
                    _ => (&door.kept, KEPT, &case.pleach),
                };
                let sample = self.measure(target, db, case, commands, *concern).await?;
                results.add(&case.name, case.clients, concern.name(), way, sample);
            }
        }
        Ok(())
    }

    async fn measure(
        &self,
        target: &Target,
        db: &str,
        case: &Case,
        commands: &[bson::Document],
        concern: Concern,
    ) -> Result<Sample> {
        let mut clients = Vec::new();
        for _ in 0..case.clients {
            let mut templates = Vec::new();
            for command in commands {
                let mut command = command.clone();
                let is_write =
                    command.keys().next().is_some_and(|name| ["insert", "update", "delete"].contains(&&**name));
                if is_write && concern == Concern::Relaxed {
                    command.insert("writeConcern", bson::doc! { "w": 1 });
                }
                // As drivers do: a statement over many documents is not sent again.
                let many = command.get_array("updates").is_ok_and(|all| format!("{all:?}").contains("\"multi\""));
                templates.push(Template::new(command, db, is_write && !many)?);
            }
            clients.push((Connection::open(&target.address).await?, templates));
        }
        let cpu_before = target.cpu_micros();
        let start = Instant::now();
        let end = start + Duration::from_millis(self.millis);
        let is_over = || Instant::now() >= end;
        let workers =
            clients.into_iter().map(|(connection, templates)| worker(connection, templates, case.key, &is_over));
        let mut latencies = Vec::new();
        for result in join_all(workers).await {
            latencies.append(&mut result?);
        }
        let cpu = target.cpu_micros().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        Ok(Sample::of(latencies, start.elapsed().as_secs_f64(), cpu))
    }
}

impl Patterns {
    /// One client that goes on until it is told to stop.
    async fn client(
        connection: Connection,
        templates: Vec<Template>,
        key: Key,
        is_over: &AtomicBool,
    ) -> Result<Vec<Duration>> {
        worker(connection, templates, key, &|| is_over.load(Ordering::Relaxed)).await
    }
}

/// Documents of the first version, under the keys that are chosen at random.
async fn documents_in(connection: &mut Connection, collection: &str, count: i64) -> Result<()> {
    fill_in(connection, KEPT, collection, count, |i| {
        doc! { "_id": data::FIRST_PARENT + i, "phone": i, "name": "a name", "n": 0, "text": "x".repeat(200) }
    })
    .await
}

/// One client: the commands of the operation one after the other, until the time is over.
async fn worker(
    mut connection: Connection,
    mut templates: Vec<Template>,
    key: Key,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(4096);
    loop {
        let start = Instant::now();
        if is_over() && !latencies.is_empty() {
            return Ok(latencies);
        }
        let id = fresh(1);
        let key = match key {
            Key::One(key) => key,
            Key::Any(count) => data::FIRST_PARENT + rand::rng().random_range(0..count),
        };
        for template in &mut templates {
            template.fill(id, key);
            connection.exchange(template.message()).await?;
        }
        latencies.push(start.elapsed());
    }
}
