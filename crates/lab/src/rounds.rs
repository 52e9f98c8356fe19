//! Speed: the mix on every candidate, in rounds that take turns, so that whatever else the machine does meets all of them.

use crate::line;
use crate::mix::{Filled, Mix, Operation, Pools};
use crate::random::Random;
use crate::store::{Candidate, Store};
use bson::Document;
use document::{Error, Result};
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
                        let started = Instant::now();
                        if let Err(error) = once(operation, candidate, store, self.pools, &mut random).await {
                            timed.failed = Some(error.message().to_owned());
                        } else if round > 0 {
                            timed.times.push(started.elapsed().as_secs_f64() * 1_000.0);
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

/// Runs an operation once.
async fn once(
    operation: &Operation,
    candidate: &Candidate,
    store: &Store,
    pools: &Pools,
    random: &mut Random,
) -> Result<()> {
    let mut filled = Filled::new(pools, random);
    let mut previous: Option<Document> = None;
    for command in operation.on(&candidate.rules) {
        let command = filled.command(command, previous.as_ref())?;
        let reply = line::run(&store.front, &store.db, command).await?;
        if let Ok(errors) = reply.get_array("writeErrors") {
            let first = errors.first().and_then(bson::Bson::as_document);
            let said = first.and_then(|error| error.get_str("errmsg").ok()).unwrap_or("no reason is given");
            return Err(Error::bad_value(said.to_owned()));
        }
        let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).ok();
        previous = batch.and_then(|rows| rows.first()).and_then(|row| row.as_document()).cloned();
    }
    Ok(())
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
