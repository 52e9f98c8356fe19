//! What is printed: medians with their spread, and ratios taken per round.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the one module that prints")]

use crate::measure::Sample;
use std::collections::BTreeMap;

/// Samples by cell, then by target; the n-th of each target come from one round.
pub(crate) struct Results {
    targets: Vec<String>,
    order: Vec<(String, usize, String)>,
    cells: BTreeMap<(String, usize, String), Vec<Vec<Sample>>>,
}

impl Results {
    pub(crate) fn new(targets: Vec<String>) -> Results {
        Results { targets, order: Vec::new(), cells: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, workload: &str, clients: usize, concern: &str, target: usize, sample: Sample) {
        let key = (workload.to_owned(), clients, concern.to_owned());
        if !self.order.contains(&key) {
            self.order.push(key.clone());
        }
        let per_target = self.cells.entry(key).or_default();
        while per_target.len() <= target {
            per_target.push(Vec::new());
        }
        if let Some(samples) = per_target.get_mut(target) {
            samples.push(sample);
        }
    }
}

/// Figures of one kind per row: documents a second, round by round.
pub(crate) struct Rates {
    figures: &'static [&'static str],
    rows: Vec<(String, Vec<Vec<f64>>)>,
}

impl Rates {
    pub(crate) fn new(figures: &'static [&'static str]) -> Rates {
        Rates { figures, rows: Vec::new() }
    }

    /// Adds a round, its figures in the order of their names; the last ones may be left out.
    pub(crate) fn add(&mut self, name: &str, round: Vec<f64>) {
        match self.rows.iter_mut().find(|(other, _)| other == name) {
            Some((_, rounds)) => rounds.push(round),
            None => self.rows.push((name.to_owned(), vec![round])),
        }
    }
}

/// A line for the program that started this one.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

pub(crate) fn progress(text: &str) {
    eprintln!("bench: {text}");
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn of(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
    samples.iter().map(figure).collect()
}

fn cpu(sample: &Sample) -> f64 {
    sample.cpu_micros_per_op.unwrap_or(f64::NAN)
}

/// Ratios of one round each: above 1 the second is better.
fn ratios(base: &[f64], other: &[f64]) -> (f64, f64, f64) {
    let mut each: Vec<f64> = base.iter().zip(other).map(|(base, other)| other / base).collect();
    each.sort_by(f64::total_cmp);
    (median(each.clone()), each.first().copied().unwrap_or(f64::NAN), each.last().copied().unwrap_or(f64::NAN))
}

pub(crate) fn print_section(name: &str, results: &Results) {
    println!("\n{name}");
    print_table(results);
}

pub(crate) fn print_rates(name: &str, rates: &Rates) {
    println!("\n{name}: documents a second, medians of rounds (min–max)");
    let title: String = rates.figures.iter().map(|figure| format!(" {figure:>30}")).collect();
    println!("{:<24}{title}", "");
    for (name, rounds) in &rates.rows {
        let mut line = format!("{name:<24}");
        for at in 0..rates.figures.len() {
            let mut of_rounds: Vec<f64> = rounds.iter().filter_map(|round| round.get(at).copied()).collect();
            of_rounds.sort_by(f64::total_cmp);
            if let (Some(low), Some(high)) = (of_rounds.first(), of_rounds.last()) {
                let (low, high) = (*low, *high);
                line.push_str(&format!(" {:>30}", format!("{:.0} ({low:.0}–{high:.0})", median(of_rounds))));
            }
        }
        println!("{line}");
    }
}

pub(crate) fn print_table(results: &Results) {
    let base = results.targets.first().cloned().unwrap_or_default();
    println!(
        "medians of rounds; ratio = throughput ÷ {base}'s in the same round (min–max); cpu = server µs per operation"
    );
    println!(
        "{:<42} {:>7} {:>8} {:<10} {:>10} {:>9} {:>9} {:>9} {:>18} {:>9}",
        "workload", "clients", "concern", "server", "ops/s", "p50 µs", "p99 µs", "cpu µs", "ratio", "cpu gain"
    );
    for key in &results.order {
        let Some(per_target) = results.cells.get(key) else { continue };
        let Some(first) = per_target.first() else { continue };
        for (name, samples) in results.targets.iter().zip(per_target) {
            let (ratio, low, high) = ratios(&of(first, |s| s.ops_per_second), &of(samples, |s| s.ops_per_second));
            println!(
                "{:<42} {:>7} {:>8} {:<10} {:>10.0} {:>9.0} {:>9.0} {:>9.1} {:>18} {:>9.1}",
                key.0,
                key.1,
                key.2,
                name,
                median(of(samples, |s| s.ops_per_second)),
                median(of(samples, |s| s.p50_micros)),
                median(of(samples, |s| s.p99_micros)),
                median(of(samples, cpu)),
                format!("{ratio:.2} ({low:.2}–{high:.2})"),
                median(of(first, cpu)) / median(of(samples, cpu)),
            );
        }
    }
}

pub(crate) fn print_json(results: &Results) {
    let cells: Vec<_> = results
        .order
        .iter()
        .filter_map(|key| Some((key, results.cells.get(key)?)))
        .flat_map(|(key, per_target)| {
            results.targets.iter().zip(per_target).map(move |(name, samples)| {
                serde_json::json!({
                    "workload": key.0, "clients": key.1, "concern": key.2, "server": name,
                    "ops_per_second": of(samples, |s| s.ops_per_second), "p50_micros": of(samples, |s| s.p50_micros),
                    "p99_micros": of(samples, |s| s.p99_micros), "cpu_micros_per_op": of(samples, cpu),
                })
            })
        })
        .collect();
    println!("{}", serde_json::json!({ "cells": cells }));
}
