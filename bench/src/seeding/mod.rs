//! How fast a rule comes on over data that is there, and how fast it is audited: per rule, with one and with many children of a
//! host, beside the pipeline that a person would run once. Each round begins with hosts that never had the field. The indexes that
//! a rule needs are made before: what is measured is the preview, the seeding and the audit.

mod rules;

use crate::connection::Connection;
use crate::doors::{Door, Doors};
use crate::report::{self, Rates};
use crate::workload::fill_in;
use anyhow::{Context, Result, bail, ensure};
use bson::{Document, doc};
use clap::Args;
use rules::{CHILDREN, HOSTS, SeededRule};
use std::time::{Duration, Instant};

const PLAIN: &str = "pleach_seeding_plain";
const KEPT: &str = "pleach_seeding_kept";

/// What is measured of a rule.
const FIGURES: [&str; 4] = ["apply", "of it preview", "audit", "by hand"];

#[derive(Args)]
pub(crate) struct Seeding {
    #[command(flatten)]
    doors: Doors,
    /// Child documents.
    #[arg(long, default_value_t = 100_000)]
    documents: i64,
    /// Children of one host.
    #[arg(long, value_delimiter = ',', default_value = "1,100")]
    per_host: Vec<i64>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these rules.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leaves out the pipelines by hand.
    #[arg(long)]
    no_hand: bool,
}

impl Seeding {
    pub(crate) async fn run(&self) -> Result<()> {
        for door in self.doors.open()? {
            let mut rates = Rates::new(&FIGURES);
            for per_host in &self.per_host {
                for rule in rules::all() {
                    if !self.only.is_empty() && !self.only.iter().any(|name| *name == rule.name) {
                        continue;
                    }
                    let name = format!("{}, {per_host} a host", rule.name);
                    self.measure(&door, &rule, *per_host, &name, &mut rates).await.context(name.clone())?;
                    report::progress(&format!("{}: {name} done", door.name));
                }
            }
            report::print_rates(door.name, &rates);
        }
        Ok(())
    }

    /// All rounds of one rule. Children stay as they are; hosts are made anew for each round.
    async fn measure(
        &self,
        door: &Door,
        rule: &SeededRule,
        per_host: i64,
        name: &str,
        rates: &mut Rates,
    ) -> Result<()> {
        let mut kept = Connection::open(&door.kept.address).await?;
        let mut plain = Connection::open(&door.plain.address).await?;
        let rate = |time: Duration| f64::from(i32::try_from(self.documents).unwrap_or(i32::MAX)) / time.as_secs_f64();
        for _ in 0..self.rounds {
            self.load(&mut kept, KEPT, per_host).await?;
            let [whole, preview] = applied(&mut kept, rule).await?;
            let start = Instant::now();
            let audit = kept.command(&doc! { "pleach": "audit", "$db": KEPT }).await?;
            let audited = start.elapsed();
            ensure!(drifted(&audit) == Some(0), "the audit found {audit}");
            let mut row = vec![rate(whole), rate(preview), rate(audited)];
            kept.command(&doc! { "dropDatabase": 1, "$db": KEPT }).await?;
            // A rule outlives its database; without documents it is gone at once.
            kept.command(&doc! { "pleach": "drop", "rule": format!("{}.field", rule.host), "$db": KEPT }).await?;
            if !self.no_hand {
                self.load(&mut plain, PLAIN, per_host).await?;
                let (on, pipeline) = &rule.by_hand;
                let start = Instant::now();
                plain
                    .command(&doc! { "aggregate": on, "pipeline": pipeline, "cursor": {}, "allowDiskUse": true, "$db": PLAIN })
                    .await?;
                row.push(rate(start.elapsed()));
                plain.command(&doc! { "dropDatabase": 1, "$db": PLAIN }).await?;
            }
            rates.add(name, row);
        }
        Ok(())
    }

    async fn load(&self, connection: &mut Connection, db: &str, per_host: i64) -> Result<()> {
        connection.command(&doc! { "dropDatabase": 1, "$db": db }).await?;
        let hosts = (self.documents / per_host).max(1);
        fill_in(connection, db, HOSTS, hosts, |i| doc! { "_id": i, "name": "a host", "text": "x".repeat(80) }).await?;
        fill_in(connection, db, CHILDREN, self.documents, |i| {
            doc! { "_id": i, "hostId": i % hosts, "v": i % 97, "at": i, "text": "x".repeat(80) }
        })
        .await
    }
}

/// Applies the rule; how long it took until it was on, and until its values were looked at.
async fn applied(kept: &mut Connection, rule: &SeededRule) -> Result<[Duration; 2]> {
    let declaration = doc! { "database": KEPT, "collections": { rule.host: rule.declared.clone() } };
    let plan = kept.command(&doc! { "pleach": "plan", "declaration": declaration.clone(), "$db": KEPT }).await?;
    for step in plan.get_array("steps")?.iter().filter_map(bson::Bson::as_document) {
        if step.get_str("kind").is_ok_and(|kind| kind == "index") {
            let mut command = step.get_document("command")?.clone();
            command.insert("$db", KEPT);
            kept.command(&command).await?;
        }
    }
    let start = Instant::now();
    kept.command(&doc! { "pleach": "apply", "declaration": declaration, "wait": false, "$db": KEPT }).await?;
    let preview = start.elapsed();
    loop {
        let status = kept.command(&doc! { "pleach": "status", "$db": KEPT }).await?;
        if all_on(&status)? {
            return Ok([start.elapsed(), preview]);
        }
        if start.elapsed() > Duration::from_secs(300) {
            bail!("the rule is still not on: {status}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether every rule that a server says something about is on.
pub(crate) fn all_on(status: &Document) -> Result<bool> {
    let is_on = |rule: &bson::Bson| {
        rule.as_document().is_some_and(|rule| rule.get_str("state").is_ok_and(|state| state == "on"))
    };
    Ok(status.get_array("rules")?.iter().all(is_on))
}

fn drifted(audit: &Document) -> Option<i64> {
    let number = audit.get("drifted")?;
    number.as_i64().or_else(|| number.as_i32().map(i64::from))
}
