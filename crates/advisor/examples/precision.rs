//! Precision and recall of the advisor on labelled data sets, as a table: `bench/run advise [--seed N …] [--scale N] [--only WORD]`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool that prints what it measured")]

#[path = "../tests/labelled/judge.rs"]
mod judge;

#[path = "../tests/labelled/applied.rs"]
mod applied;

use judge::judge;
use pleach_advisor::Options;
use std::time::Instant;
use testing::labelled::{Making, Score, sets};

const HELP: &str = "\
usage: precision [--seed NUMBER]... [--scale NUMBER] [--only WORD] [--sets] [--apply]
  --seed NUMBER   names, ids, sizes and shares vary with it; may be repeated (1)
  --scale NUMBER  collections have so many times the documents (1: about a thousand)
  --only WORD     sets whose names hold the word
  --sets          a line for each set
  --apply         every declaration is applied and audited, too";

#[tokio::main]
async fn main() {
    let Some(asked) = Asked::parse(std::env::args().skip(1)) else {
        println!("{HELP}");
        std::process::exit(2);
    };
    for seed in &asked.seeds {
        let mut score = Score::default();
        let (mut documents, mut not_applied) = (0, Vec::new());
        for set in sets(Making { seed: *seed, scale: asked.scale }) {
            if !set.name.contains(&asked.only) {
                continue;
            }
            let (name, began) = (set.name.clone(), Instant::now());
            let judged = judge(set, &Options::default(), &mut score).await;
            documents += judged.documents;
            if asked.sets {
                let (seconds, advise) = (began.elapsed().as_secs_f64(), judged.report.looked_at.seconds);
                println!("{seconds:6.1} s {:9} documents, {advise:5.1} s advise: {name}", judged.documents);
            }
            if asked.apply {
                let wrong = applied::apply_all(judged).await;
                not_applied.extend(wrong.into_iter().map(|what| format!("{name}: {what}")));
            }
        }
        println!("seed {seed}, {documents} documents\n{score}");
        for difference in score.differences.iter().chain(&not_applied) {
            println!("  {difference}");
        }
    }
}

struct Asked {
    seeds: Vec<u64>,
    scale: usize,
    only: String,
    sets: bool,
    apply: bool,
}

impl Asked {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Asked> {
        let mut asked = Asked { seeds: Vec::new(), scale: 1, only: String::new(), sets: false, apply: false };
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--seed" => asked.seeds.push(arguments.next()?.parse().ok()?),
                "--scale" => asked.scale = arguments.next()?.parse().ok()?,
                "--only" => asked.only = arguments.next()?,
                "--sets" => asked.sets = true,
                "--apply" => asked.apply = true,
                _ => return None,
            }
        }
        if asked.seeds.is_empty() {
            asked.seeds.push(1);
        }
        Some(asked)
    }
}
