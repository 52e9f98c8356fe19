//! Speed: the mix on every candidate, in rounds that take turns, so that whatever else the machine does meets all of them.

use crate::mix::{Filled, Mix, Operation, Pools};
use crate::random::Random;
use crate::store::{Candidate, Store};
use bson::Document;
use document::{Doc, Error, Result, Value};
use std::time::{Duration, Instant};

/// How an operation went.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    pub name: String,
    /// In milliseconds, sorted.
    pub times: Vec<f64>,
    /// Why it could not be done.
    pub failed: Option<String>,
}

impl Timed {
    /// Operations of one client.
    pub fn per_second(&self) -> f64 {
        let seconds = self.times.iter().sum::<f64>() / 1_000.0;
        if seconds > 0.0 { self.times.len() as f64 / seconds } else { 0.0 }
    }

    pub fn quantile(&self, share: f64) -> f64 {
        let place = (self.times.len() as f64 * share).ceil() as usize;
        self.times.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// The speed of one candidate.
#[derive(Clone, Debug, Default)]
pub struct Speed {
    pub reads: Vec<Timed>,
    pub writes: Vec<Timed>,
    /// Per client write, beneath the rules.
    pub statements: f64,
    pub bytes: f64,
}

/// The first one warms up and is not counted.
const ROUNDS: u64 = 6;

/// So many writes of each kind are counted beneath the rules.
const COUNTED: u64 = 16;

/// Measures all candidates; each takes about that long. Reads come first: what writes add would make them slower.
pub async fn measure(
    built: &[(&Candidate, &Store)],
    mix: &Mix,
    pools: &Pools,
    seed: u64,
    time: Duration,
    report: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Vec<Speed>> {
    let weights: f64 = mix.reads.iter().chain(&mix.writes).map(|operation| operation.weight).sum();
    let run = Run { pools, seed, weights: weights.max(1e-9), time: time.div_f64(ROUNDS as f64) };
    let total = 2 * ROUNDS;
    let reads = run.rounds(built, &mix.reads, &mut |done| report(done, total)).await?;
    let mut all = Vec::new();
    for ((candidate, store), reads) in built.iter().zip(reads) {
        let (statements, bytes) = amplification(candidate, store, &mix.writes, pools, seed).await?;
        all.push(Speed { reads, statements, bytes, ..Speed::default() });
    }
    let writes = run.rounds(built, &mix.writes, &mut |done| report(ROUNDS + done, total)).await?;
    for (speed, writes) in all.iter_mut().zip(writes) {
        speed.writes = writes;
    }
    Ok(all)
}

/// What is the same in all rounds.
struct Run<'r> {
    pools: &'r Pools,
    seed: u64,
    /// The weights of all operations together.
    weights: f64,
    /// Of all operations in one round.
    time: Duration,
}

/// What is seldom done gets this share of the time at least: its figures are wanted too.
const LEAST_SHARE: f64 = 0.03;

impl Run<'_> {
    /// The operations on every candidate, in rounds that begin with another candidate each.
    async fn rounds(
        &self,
        built: &[(&Candidate, &Store)],
        operations: &[Operation],
        report: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Vec<Vec<Timed>>> {
        let named = |operation: &Operation| Timed { name: operation.name.clone(), ..Timed::default() };
        let mut all: Vec<Vec<Timed>> = built.iter().map(|_| operations.iter().map(named).collect()).collect();
        for round in 0..ROUNDS {
            for turn in 0..built.len() {
                let at = (turn + usize::try_from(round).unwrap_or_default()) % built.len();
                let (Some((candidate, store)), Some(timed)) = (built.get(at), all.get_mut(at)) else { continue };
                for (number, (operation, timed)) in operations.iter().zip(timed).enumerate() {
                    // The same documents for every candidate.
                    let mut random = Random::seeded(self.seed ^ (round << 32) ^ number as u64);
                    let share = self.time.mul_f64((operation.weight / self.weights).max(LEAST_SHARE));
                    let begun = Instant::now();
                    while timed.failed.is_none() && begun.elapsed() < share {
                        match once(operation, candidate, store, self.pools, &mut random).await {
                            Ok(took) if round > 0 => timed.times.push(took.as_secs_f64() * 1_000.0),
                            Ok(_) => {}
                            Err(error) => timed.failed = Some(error.message().to_owned()),
                        }
                    }
                }
            }
            report(round + 1);
        }
        all.iter_mut().flatten().for_each(|timed| timed.times.sort_by(f64::total_cmp));
        Ok(all)
    }
}

/// Counts what the writes of the mix really write, with what is done later: statements and bytes for each.
async fn amplification(
    candidate: &Candidate,
    store: &Store,
    writes: &[Operation],
    pools: &Pools,
    seed: u64,
) -> Result<(f64, f64)> {
    let (mut all_statements, mut all_bytes, mut weights) = (0.0, 0.0, 0.0);
    for operation in writes {
        let mut random = Random::seeded(seed);
        store.meter.start();
        let mut done = 0.0;
        for _ in 0..COUNTED {
            // A value that is unique in the data may come twice: that one is not counted.
            if once(operation, candidate, store, pools, &mut random).await.is_ok() {
                done += 1.0;
            }
        }
        store.settled().await?;
        let (statements, bytes) = store.meter.stop();
        if done > 0.0 {
            weights += operation.weight;
            all_statements += operation.weight * statements as f64 / done;
            all_bytes += operation.weight * bytes as f64 / done;
        }
    }
    Ok(if weights > 0.0 { (all_statements / weights, all_bytes / weights) } else { (0.0, 0.0) })
}

/// Runs an operation once, and says how long the server took: making commands and reading answers is not its work.
async fn once(
    operation: &Operation,
    candidate: &Candidate,
    store: &Store,
    pools: &Pools,
    random: &mut Random,
) -> Result<Duration> {
    let mut filled = Filled::new(pools, random);
    let mut previous: Option<Document> = None;
    let mut took = Duration::ZERO;
    let commands = operation.on(&candidate.rules);
    for (at, command) in commands.iter().enumerate() {
        let command = Doc::from(filled.command(command, previous.as_ref())?);
        let started = Instant::now();
        let reply = store.front.command(&store.db, command).await?;
        took += started.elapsed();
        if let Some(Value::Array(errors)) = reply.get("writeErrors") {
            let said = match errors.get(0) {
                Some(Value::Document(error)) => error.get("errmsg").and_then(|text| text.as_str().map(str::to_owned)),
                _ => None,
            };
            return Err(Error::bad_value(said.unwrap_or_else(|| "no reason is given".to_owned())));
        }
        if at + 1 < commands.len() {
            previous = first_row(&reply);
        }
    }
    Ok(took)
}

fn first_row(reply: &Doc<'_>) -> Option<Document> {
    let Some(Value::Document(cursor)) = reply.get("cursor") else { return None };
    let Some(Value::Array(batch)) = cursor.get("firstBatch") else { return None };
    match batch.get(0) {
        Some(Value::Document(row)) => Document::try_from(&row).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_quantiles_are_of_what_was_measured() {
        let times = (1..=100).map(f64::from).collect();
        let timed = Timed { times, ..Timed::default() };
        assert_eq!((timed.quantile(0.5), timed.quantile(0.99)), (50.0, 99.0));
        assert!((timed.per_second() - 100.0 / 5.05).abs() < 1e-6);
        assert_eq!(Timed::default().per_second(), 0.0);
    }
}
