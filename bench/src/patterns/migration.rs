//! The background migration of versions: how many documents a second it brings up, and what clients of the collection notice of it.

use super::documents::{wait_until_on, without_rules};
use super::{KEPT, Patterns, cases};
use crate::connection::Connection;
use crate::doors::Door;
use crate::measure::{Sample, join_all};
use crate::report;
use crate::template::Template;
use anyhow::{Result, bail};
use bson::{Document, doc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What `--only` finds it by.
pub(super) const NAME: &str = "versions: migration";
const DOCUMENTS: i64 = 300_000;
const CLIENTS: usize = 4;
/// How long clients are measured before.
const QUIET: Duration = Duration::from_secs(2);

pub(super) async fn run(door: &Door) -> Result<()> {
    let mut kept = Connection::open(&door.kept.address).await?;
    without_rules(&mut kept, KEPT).await?;
    super::documents_in(&mut kept, "moving", DOCUMENTS).await?;
    let declare = |migrates: bool| {
        let steps =
            vec![doc! { "nest": { "phone": { "into": "phone.number", "with": { "phone.countryCode": "+1" } } } }];
        let versions = doc! { "field": "schemaVersion", "steps": steps, "migrate": { "background": migrates } };
        doc! { "database": KEPT, "collections": { "moving": { "versions": versions } } }
    };
    apply(&mut kept, declare(false)).await?;
    let before = clients(door, async {
        tokio::time::sleep(QUIET).await;
        Ok(())
    })
    .await?;
    let start = Instant::now();
    let during = clients(door, async {
        apply(&mut kept, declare(true)).await?;
        until_done(&mut kept).await
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred thousand")]
    let rate = DOCUMENTS as f64 / seconds;
    report::say(&format!(
        "\n{}: {NAME}: {rate:.0} documents a second with {CLIENTS} clients; their p50 {:.0} µs before, {:.0} meanwhile; p99 {:.0} µs before, {:.0} meanwhile",
        door.name, before.p50_micros, during.p50_micros, before.p99_micros, during.p99_micros
    ));
    Ok(())
}

async fn apply(kept: &mut Connection, declaration: Document) -> Result<()> {
    kept.command(&doc! { "pleach": "apply", "declaration": declaration, "$db": KEPT }).await?;
    wait_until_on(kept, KEPT).await
}

async fn until_done(kept: &mut Connection) -> Result<()> {
    let start = Instant::now();
    loop {
        let status = kept.command(&doc! { "pleach": "status", "$db": KEPT }).await?;
        let rules = status.get_array("rules")?.iter().filter_map(bson::Bson::as_document);
        let left: Vec<i64> = rules.filter_map(left).collect();
        if left == [0] {
            return Ok(());
        }
        if start.elapsed() > Duration::from_secs(300) {
            bail!("documents are still old: {status}");
        }
        // Each look counts all documents.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// How many documents a rule has still to bring up, wherever `status` says it.
fn left(rule: &Document) -> Option<i64> {
    rule.iter().find_map(|(name, value)| match value {
        bson::Bson::Int64(number) if name == "left" => Some(*number),
        bson::Bson::Int32(number) if name == "left" => Some(i64::from(*number)),
        bson::Bson::Document(inner) => left(inner),
        _ => None,
    })
}

/// Clients that read and change single documents while something else is done.
async fn clients(door: &Door, work: impl Future<Output = Result<()>>) -> Result<Sample> {
    let is_over = AtomicBool::new(false);
    let mut workers = Vec::new();
    for _ in 0..CLIENTS {
        let templates = vec![
            Template::new(cases::find("moving"), KEPT, false)?,
            Template::new(
                cases::update("moving", doc! { "_id": crate::template::KEY_MARK }, doc! { "$inc": { "n": 1 } }, false),
                KEPT,
                true,
            )?,
        ];
        workers.push((Connection::open(&door.kept.address).await?, templates));
    }
    let until = |(connection, templates)| Patterns::client(connection, templates, cases::Key::Any(DOCUMENTS), &is_over);
    let start = Instant::now();
    let all = join_all(workers.into_iter().map(until));
    let (results, done) = tokio::join!(all, async {
        let done = work.await;
        is_over.store(true, Ordering::Relaxed);
        done
    });
    done?;
    let mut latencies = Vec::new();
    for result in results {
        latencies.append(&mut result?);
    }
    Ok(Sample::of(latencies, start.elapsed().as_secs_f64(), None))
}
