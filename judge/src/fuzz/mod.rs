//! Differential fuzzing: random documents and commands on a server and on the judge, the first difference made small.

mod generate;
mod literal;
mod shrink;
mod template;
mod text;
mod trial;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::Client;
use crate::random::Random;
use generate::Generator;
use trial::{Pair, Trial};

/// What to do, and for how long.
pub struct Settings {
    pub seconds: u64,
    pub seed: u64,
    /// Two errors agree only if their codes do.
    pub strict: bool,
    /// Stop after so many different differences.
    pub most: usize,
    /// Only trials of kinds whose name contains this: find, update, upsert, pipeline, expression, text.
    pub kind: String,
}

/// What became of a run; the judge's errors and empty answers count trials while shrinking, too.
pub struct Outcome {
    pub trials: usize,
    pub refused: usize,
    pub empty: usize,
    pub differences: usize,
}

/// Runs trials until the time is up or enough differences were found; `report` gets each, ready to be read.
pub fn run(
    server: &mut Client,
    judge: &mut Client,
    settings: &Settings,
    report: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let mut pair = Pair::new(server, judge, settings.strict)?;
    let end = Instant::now() + Duration::from_secs(settings.seconds);
    let mut seen = std::collections::HashSet::new();
    let mut count = 0;
    'rounds: for round in 0.. {
        // Each round depends on nothing but its own number, so that it can be found again.
        let mut generator = Generator::new(Random::new(settings.seed.wrapping_mul(1_000_003).wrapping_add(round)));
        for trial in round_of(&mut generator, &settings.kind) {
            if Instant::now() > end || seen.len() >= settings.most {
                pair.clean_up()?;
                break 'rounds;
            }
            count += 1;
            if pair.difference(&trial)?.is_none() {
                continue;
            }
            let (small, difference) = shrink::shrink(&mut pair, trial)?;
            if seen.insert(small.signature()) {
                report(&format!("round {round}\n{}\n{}", small.render(), difference));
            }
        }
    }
    Ok(Outcome { trials: count, refused: pair.refused, empty: pair.empty, differences: seen.len() })
}

/// One collection, and a number of commands on it.
fn round_of(generator: &mut Generator, kind: &str) -> Vec<Trial> {
    if generator.random.one_in(5) {
        let mut trials = if "text".contains(kind) { generator.searches() } else { Vec::new() };
        trials.sort_by_key(Trial::writes);
        return trials;
    }
    let documents = generator.documents();
    let indexes = generator.indexes();
    let mut trials = Vec::new();
    for _ in 0..40 {
        let (name, run) = generator.commands(documents.len());
        if name.contains(kind) {
            trials.push(Trial { documents: documents.clone(), indexes: indexes.clone(), run });
        }
    }
    // Reads first: they leave the collection as it is, and it need not be filled again.
    trials.sort_by_key(Trial::writes);
    trials
}
