//! Asks for reports, five ranges at once as the study does, and compares every one with the raw events.

use super::client::{Client, Server};
use super::events::{Request, Status, YEARS};
use super::latency::Latencies;
use super::random::Random;
use super::subject::Subject;
use super::truth::{Sums, Truth};
use crate::progress::Progress;
use crate::report::Failure;
use bson::{Bson, Document, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Requests of each client before the clock starts.
const WARM_UP: usize = 10;

pub(crate) struct Reported {
    pub(crate) time: Duration,
    pub(crate) requests: Latencies,
    /// The first report that was not the sums over the raw events.
    pub(crate) mismatch: Option<String>,
}

impl Reported {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn per_second(&self) -> f64 {
        self.requests.count() as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// How reports are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) clients: usize,
    /// Requests in all.
    pub(crate) requests: usize,
    /// It ends by then, whatever was asked.
    pub(crate) at_most: Duration,
    pub(crate) seed: u64,
    pub(crate) users: u32,
}

pub(crate) async fn report(
    server: &Server,
    subject: Subject,
    truth: &Arc<Truth>,
    pace: Pace,
    step: &str,
) -> Result<Reported, Failure> {
    let mut askers: Vec<Asker> = (0..pace.clients).map(|at| Asker::new(server, subject, truth, pace, at)).collect();
    for asker in &mut askers {
        for _ in 0..WARM_UP.min(pace.requests) {
            asker.ask().await?;
        }
        asker.requests = Latencies::default();
    }
    let began = Instant::now();
    let left = Arc::new(AtomicUsize::new(pace.requests));
    let mut tasks = JoinSet::new();
    for mut asker in askers {
        let left = left.clone();
        tasks.spawn(async move {
            let take = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
                && began.elapsed() < pace.at_most
            {
                asker.ask().await?;
            }
            Ok::<Asker, Failure>(asker)
        });
    }
    let what = [format!("{step}, reports: {}, {}", subject.where_and_how(), subject.layout.name())];
    let mut progress = Progress::of("reports");
    let mut all = Reported { time: Duration::ZERO, requests: Latencies::default(), mismatch: None };
    loop {
        match tokio::time::timeout(Duration::from_millis(200), tasks.join_next()).await {
            Ok(Some(ended)) => {
                let asker = ended.map_err(|error| Failure::new(error.to_string()))??;
                all.requests.join(asker.requests);
                all.mismatch = all.mismatch.or(asker.mismatch);
            }
            Ok(None) => break,
            Err(_) => {
                let done = pace.requests - left.load(Ordering::Relaxed);
                progress.show(done as u64, pace.requests as u64, &what);
            }
        }
    }
    progress.end();
    all.time = began.elapsed();
    Ok(all)
}

/// Asks one request after the other; five lines, as the five reports of a request are asked for at once.
struct Asker {
    clients: [Client; 5],
    subject: Subject,
    truth: Arc<Truth>,
    random: Random,
    users: u32,
    requests: Latencies,
    mismatch: Option<String>,
}

impl Asker {
    fn new(server: &Server, subject: Subject, truth: &Arc<Truth>, pace: Pace, at: usize) -> Asker {
        Asker {
            clients: std::array::from_fn(|_| server.client()),
            subject,
            truth: truth.clone(),
            random: Random::seeded(pace.seed.wrapping_add(at as u64).wrapping_mul(0x5851_F42D)),
            users: pace.users,
            requests: Latencies::default(),
            mismatch: None,
        }
    }

    async fn ask(&mut self) -> Result<(), Failure> {
        let request = Request::random(&mut self.random, self.users);
        let subject = self.subject;
        let began = Instant::now();
        let [one, three, five, seven, ten] = &mut self.clients;
        let ask = |client, years| sums(client, subject, request, years);
        let [a, b, c, d, e] = YEARS;
        let (a, b, c, d, e) = tokio::join!(ask(one, a), ask(three, b), ask(five, c), ask(seven, d), ask(ten, e));
        self.requests.add(began.elapsed());
        let found = [a?, b?, c?, d?, e?];
        let expected = self.truth.reports(request);
        if found != expected && self.mismatch.is_none() {
            self.mismatch = Some(format!("{request:?}: {found:?} was reported, {expected:?} is right"));
        }
        Ok(())
    }
}

async fn sums(client: &mut Client, subject: Subject, request: Request, years: u16) -> Result<Sums, Failure> {
    let pipeline = subject.report(request.key, request.start(years), request.end);
    let command = doc! { "aggregate": subject.collection(), "pipeline": pipeline, "cursor": {} };
    let rows = client.rows(&subject.db(), command).await?;
    Ok(Status::ALL.map(|status| rows.first().map_or(0, |row| number(row, status.name()))))
}

fn number(row: &Document, name: &str) -> i64 {
    match row.get(name) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        // Not a number that events could have: shows as a mismatch.
        _ => -1,
    }
}
