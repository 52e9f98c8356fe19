//! The stated error holds the truth nine times in ten, on populations with heavy tails.

use super::*;
use crate::random::{Random, place};
use crate::strata::{Strata, Stratum};

/// Units as they are today and in the candidate.
struct Population(Vec<(u64, f64)>);

impl Population {
    /// Sizes by Pareto's law; what the candidate needs for them grows less than in proportion, with a noise of its own.
    fn heavy(random: &mut Random, units: usize, tail: f64, noise: f64) -> Population {
        let unit = |_| {
            let documents = random.fraction().powf(-1.0 / tail).min(1e6).ceil();
            let spread = (noise * (random.fraction() + random.fraction() + random.fraction() - 1.5)).exp();
            let buckets = (documents / 90.0).ceil();
            ((documents * 120.0) as u64, buckets * 80.0 + documents * 33.0 * spread)
        };
        Population((0..units).map(unit).collect())
    }

    fn truth(&self) -> f64 {
        self.0.iter().map(|(_, then)| then).sum()
    }

    fn estimate(&self, seed: u64, share: f64) -> Estimate {
        let mut strata = Strata::default();
        for (at, (today, _)) in self.0.iter().enumerate() {
            strata.add(at, place(seed, &at.to_be_bytes()), today / 120, *today);
        }
        let documents = (strata.documents() as f64 * share) as u64;
        let (strata, units) = strata.take(documents);
        let measured = |unit: crate::strata::Unit<usize>| Measured {
            stratum: unit.stratum,
            today: unit.bytes as f64,
            then: self.0[unit.key].1,
        };
        let sample: Vec<Measured> = units.into_iter().map(measured).collect();
        Estimate::of(&strata.iter().map(Stratum::bytes).collect::<Vec<_>>(), &sample)
    }
}

#[test]
fn the_truth_lies_inside_the_error_nine_times_in_ten() {
    for (tail, noise, share, units) in [
        (1.1, 0.3, 0.05, 4_000),
        (1.5, 0.8, 0.05, 4_000),
        (0.9, 0.5, 0.02, 20_000),
        (2.0, 1.5, 0.01, 3_000),
        (1.2, 1.0, 0.03, 300),
    ] {
        let mut random = Random::seeded(11);
        let population = Population::heavy(&mut random, units, tail, noise);
        let truth = population.truth();
        let runs = 200_u64;
        let inside = (0..runs).filter(|seed| {
            let estimate = population.estimate(*seed, share);
            (estimate.total - truth).abs() <= estimate.error()
        });
        let inside = inside.count();
        assert!(inside * 10 >= 200 * 9, "tail {tail}, noise {noise}, share {share}: inside {inside} times of {runs}");
    }
}

#[test]
fn a_decent_sample_is_within_two_percent_and_says_so() {
    let mut random = Random::seeded(5);
    // What a layout takes is nearly a function of what it holds.
    let population = Population::heavy(&mut random, 20_000, 1.2, 0.1);
    let truth = population.truth();
    for seed in 0..50 {
        let estimate = population.estimate(seed, 0.1);
        let off = (estimate.total - truth).abs() / truth;
        assert!(off < 0.02 && estimate.share() < 0.02, "seed {seed}: off {off}, said {}", estimate.share());
    }
}

#[test]
fn all_of_it_is_exact_and_nothing_is_nothing() {
    let mut random = Random::seeded(7);
    let population = Population::heavy(&mut random, 500, 1.2, 0.5);
    let estimate = population.estimate(1, 1.0);
    assert!((estimate.total - population.truth()).abs() < 1.0 && estimate.error() < 1e-6, "{estimate:?}");
    assert_eq!(Estimate::of(&[], &[]).error(), 0.0);
}

#[test]
fn classes_of_which_nothing_was_seen_widen_the_error() {
    let known = |units, today| Known { units, today };
    let seen = [(0, 10.0, 5.0), (0, 11.0, 5.0), (0, 12.0, 6.5)];
    let sample: Vec<Measured> =
        seen.iter().map(|(stratum, today, then)| Measured { stratum: *stratum, today: *today, then: *then }).collect();
    let narrow = Estimate::of(&[known(100.0, 1_100.0)], &sample);
    let wide = Estimate::of(&[known(100.0, 1_100.0), known(1.0, 100_000.0)], &sample);
    assert!(wide.error() > 10.0 * narrow.error(), "{narrow:?} {wide:?}");
}

#[test]
fn a_field_that_every_unit_gets_is_exact_whatever_their_sizes() {
    let mut random = Random::seeded(3);
    let sizes: Vec<u64> = (0..5_000).map(|_| (random.fraction().powf(-0.9) * 300.0) as u64).collect();
    let population = Population(sizes.iter().map(|today| (*today, *today as f64 + 40.0)).collect());
    let estimate = population.estimate(1, 0.05);
    assert!((estimate.total - population.truth()).abs() < 1.0 && estimate.share() < 1e-6, "{estimate:?}");
}
