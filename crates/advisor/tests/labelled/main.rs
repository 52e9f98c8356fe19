//! Precision and recall of the advisor on labelled data sets. `bench/run advise` does the same with more of them and larger ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod judge;

use judge::judge;
use pleach_advisor::Options;
use testing::labelled::{Making, Score, Set, sets};

/// The aim of `advise`: both at least this, at `warn` and above.
const AIM: f64 = 0.95;

/// One of so many sets: the command takes all of them.
const EVERY: usize = 3;

#[tokio::test]
async fn precision_and_recall_are_what_is_aimed_at() {
    let mut score = Score::default();
    let all = sets(Making { seed: 1, scale: 1 });
    assert!(all.len() >= 60 && all.iter().map(Set::shown).sum::<usize>() >= 60, "{}", all.len());
    for set in all.into_iter().step_by(EVERY) {
        judge(set, &Options::default(), &mut score).await;
    }
    let total = score.total();
    let told = format!("{score}\n{}", score.differences.join("\n"));
    assert!(total.precision() >= AIM && total.recall() >= AIM, "{told}");
    for (symptom, tally) in &score.by_symptom {
        assert!(tally.recall() >= 0.8 && tally.precision() >= 0.8, "{symptom}\n{told}");
    }
}
