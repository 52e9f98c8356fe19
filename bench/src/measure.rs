//! One cell: a workload at a number of clients on one server for a while.

use crate::connection::{Connection, message};
use crate::target::Target;
use crate::workload::{Concern, DB, ID_MARK, Ids, TXN_MARK, Workload};
use anyhow::{Result, ensure};
use bson::{Binary, doc, spec::BinarySubtype};
use rand::RngExt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) struct Cell<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) clients: usize,
    pub(crate) concern: &'a Concern,
    pub(crate) documents: u64,
    pub(crate) retry: bool,
    pub(crate) length: Duration,
}

pub(crate) struct Sample {
    pub(crate) ops_per_second: f64,
    pub(crate) cpu_micros_per_op: Option<f64>,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
}

/// Ids that were never used, over all cells and runs: they start at the clock.
static FRESH: AtomicI64 = AtomicI64::new(0);

fn fresh(count: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| i64::try_from(d.as_micros()).unwrap_or(1));
    let _ = FRESH.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    FRESH.fetch_add(count, Ordering::Relaxed)
}

/// A prebuilt request and the places where numbers are written into it.
struct Template {
    message: Vec<u8>,
    ids: Vec<usize>,
    transaction_number: Option<usize>,
}

impl Template {
    fn new(cell: &Cell<'_>) -> Result<Template> {
        let mut command = (cell.workload.command)();
        command.insert(
            "lsid",
            doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: rand::rng().random::<[u8; 16]>().to_vec() } },
        );
        if cell.workload.writes && cell.retry {
            command.insert("txnNumber", TXN_MARK);
        }
        if *cell.concern == Concern::Relaxed {
            command.insert("writeConcern", doc! { "w": 1 });
        }
        command.insert("$db", DB);
        let message = message(&command)?;
        let ids = (0..cell.workload.per_request).filter_map(|i| find(&message, ID_MARK + i)).collect::<Vec<_>>();
        ensure!(i64::try_from(ids.len())? == cell.workload.per_request, "an id has no place in the request");
        let transaction_number = find(&message, TXN_MARK);
        Ok(Template { message, ids, transaction_number })
    }

    fn put(&mut self, at: usize, number: i64) {
        if let Some(slot) = self.message.get_mut(at..at + 8) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
    }

    fn fill(&mut self, cell: &Cell<'_>, transaction_number: i64) {
        let first = match cell.workload.ids {
            Ids::Loaded => rand::rng().random_range(0..i64::try_from(cell.documents).unwrap_or(1)),
            Ids::Fresh => fresh(cell.workload.per_request),
            Ids::None => 0,
        };
        for (id, at) in (first..).zip(self.ids.clone()) {
            self.put(at, id);
        }
        if let Some(at) = self.transaction_number {
            self.put(at, transaction_number);
        }
    }
}

fn find(message: &[u8], number: i64) -> Option<usize> {
    message.windows(8).position(|window| window == number.to_le_bytes())
}

pub(crate) async fn run(target: &Target, cell: &Cell<'_>) -> Result<Sample> {
    let mut connections = Vec::new();
    for _ in 0..cell.clients {
        connections.push((Connection::open(&target.address).await?, Template::new(cell)?));
    }
    let cpu_before = target.cpu_micros();
    let start = Instant::now();
    let end = start + cell.length;
    let workers = connections.into_iter().map(|(connection, template)| worker(connection, template, cell, end));
    let mut latencies = Vec::new();
    for result in join_all(workers).await {
        latencies.append(&mut result?);
    }
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = target.cpu_micros().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    latencies.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into a list in memory"
        )]
        let index = (latencies.len() as f64 * share) as usize;
        latencies.get(index.min(latencies.len().saturating_sub(1))).map_or(0.0, |d| d.as_secs_f64() * 1e6)
    };
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let operations = latencies.len() as f64;
    #[expect(clippy::cast_precision_loss, reason = "microseconds of one cell")]
    Ok(Sample {
        ops_per_second: operations / elapsed,
        cpu_micros_per_op: cpu.map(|micros| micros as f64 / operations),
        p50_micros: at(0.5),
        p99_micros: at(0.99),
    })
}

/// All at once on this one thread.
async fn join_all<F: Future<Output = Result<Vec<Duration>>>>(
    futures: impl Iterator<Item = F>,
) -> Vec<Result<Vec<Duration>>> {
    let mut running: Vec<_> = futures.map(Box::pin).map(Some).collect();
    let mut results = Vec::new();
    std::future::poll_fn(|context| {
        for slot in &mut running {
            if let Some(future) = slot
                && let std::task::Poll::Ready(result) = future.as_mut().poll(context)
            {
                results.push(result);
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    results
}

async fn worker(
    mut connection: Connection,
    mut template: Template,
    cell: &Cell<'_>,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(4096);
    let mut transaction_number = 0;
    loop {
        let start = Instant::now();
        if start >= end {
            return Ok(latencies);
        }
        transaction_number += 1;
        template.fill(cell, transaction_number);
        let reply = connection.exchange(&template.message).await?;
        if latencies.is_empty()
            && let Some(expected) = cell.workload.rows
        {
            let rows = reply.get_document("cursor")?.get_array("firstBatch")?.into_iter().count();
            ensure!(rows == expected, "{rows} rows instead of {expected}");
        }
        latencies.push(start.elapsed());
    }
}
