//! Writes the events: batches of unordered upserts in time order, several clients at a time.

use super::client::Server;
use super::events::Event;
use super::latency::Latencies;
use super::subject::{Statements, Subject};
use crate::progress::Progress;
use crate::report::Failure;
use bson::doc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The study's batch.
pub(crate) const BATCH: usize = 250;

/// How often the bar moves.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) struct Loaded {
    pub(crate) events: usize,
    pub(crate) time: Duration,
    /// Of the batches.
    pub(crate) batches: Latencies,
}

impl Loaded {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn per_second(&self) -> f64 {
        self.events as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

pub(crate) async fn load(
    server: &Server,
    subject: Subject,
    events: &Arc<Vec<Event>>,
    clients: usize,
    step: &str,
) -> Result<Loaded, Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (mut client, events) = (server.client(), events.clone());
        let (next, done) = (next.clone(), done.clone());
        tasks.spawn(async move {
            let mut statements = Statements::of(subject);
            let (db, mut bytes, mut batches) = (subject.db(), Vec::new(), Latencies::default());
            loop {
                let from = next.fetch_add(BATCH, Ordering::Relaxed);
                let batch = events.get(from..events.len().min(from + BATCH)).unwrap_or_default();
                if batch.is_empty() {
                    return Ok::<Latencies, Failure>(batches);
                }
                bytes.clear();
                batch.iter().for_each(|event| statements.append(event, &mut bytes));
                let sent = Instant::now();
                client.write(&db, doc! { "update": subject.collection() }, "updates", &bytes).await?;
                batches.add(sent.elapsed());
                done.fetch_add(batch.len(), Ordering::Relaxed);
            }
        });
    }
    let what = [format!("{step}, events: {}, {}", subject.where_and_how(), subject.layout.name())];
    let mut progress = Progress::of("events");
    let mut batches = Latencies::default();
    loop {
        match tokio::time::timeout(LOOK, tasks.join_next()).await {
            Ok(Some(ended)) => batches.join(ended.map_err(|error| Failure::new(error.to_string()))??),
            Ok(None) => break,
            Err(_) => progress.show(done.load(Ordering::Relaxed) as u64, events.len() as u64, &what),
        }
    }
    progress.end();
    Ok(Loaded { events: events.len(), time: began.elapsed(), batches })
}
