//! One cell: a workload at a number of clients on one server for a while.

use crate::connection::Connection;
use crate::target::Target;
use crate::template::{self, Template};
use crate::workload::{Concern, DB, Ids, Workload};
use anyhow::{Result, ensure};
use bson::doc;
use rand::RngExt;
use std::time::{Duration, Instant};

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

impl Cell<'_> {
    fn template(&self) -> Result<Template> {
        let mut command = (self.workload.command)();
        if *self.concern == Concern::Relaxed {
            command.insert("writeConcern", doc! { "w": 1 });
        }
        let template = Template::new(command, DB, self.workload.writes && self.retry)?;
        ensure!(i64::try_from(template.ids())? == self.workload.per_request, "an id has no place in the request");
        Ok(template)
    }

    fn first_id(&self) -> i64 {
        match self.workload.ids {
            Ids::Loaded => rand::rng().random_range(0..i64::try_from(self.documents).unwrap_or(1)),
            Ids::Fresh => template::fresh(self.workload.per_request),
            Ids::None => 0,
        }
    }
}

pub(crate) async fn run(target: &Target, cell: &Cell<'_>) -> Result<Sample> {
    let mut connections = Vec::new();
    for _ in 0..cell.clients {
        connections.push((Connection::open(&target.address).await?, cell.template()?));
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
    Ok(Sample::of(latencies, elapsed, cpu))
}

impl Sample {
    pub(crate) fn of(mut latencies: Vec<Duration>, seconds: f64, cpu: Option<u64>) -> Sample {
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
        Sample {
            ops_per_second: operations / seconds,
            cpu_micros_per_op: cpu.map(|micros| micros as f64 / operations),
            p50_micros: at(0.5),
            p99_micros: at(0.99),
        }
    }
}

/// All at once on this one thread.
pub(crate) async fn join_all<F: Future<Output = Result<Vec<Duration>>>>(
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
    loop {
        let start = Instant::now();
        if start >= end {
            return Ok(latencies);
        }
        template.fill(cell.first_id(), 0);
        let reply = connection.exchange(template.message()).await?;
        if latencies.is_empty()
            && let Some(expected) = cell.workload.rows
        {
            let rows = reply.get_document("cursor")?.get_array("firstBatch")?.into_iter().count();
            ensure!(rows == expected, "{rows} rows instead of {expected}");
        }
        latencies.push(start.elapsed());
    }
}
