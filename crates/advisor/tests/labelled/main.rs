//! Precision and recall of the advisor on labelled data sets. `bench/run advise` does the same with more of them and larger ones.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod applied;
mod judge;
mod literature;

use applied::apply_all;
use judge::judge;
use pleach_advisor::Options;
use std::collections::BTreeSet;
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
    let mut documents = 0;
    for set in all.into_iter().step_by(EVERY) {
        documents += judge(set, &Options::default(), &mut score).await.documents;
    }
    assert!(documents > 10_000, "{documents}");
    let total = score.total();
    let told = format!("{score}\n{}", score.differences.join("\n"));
    assert!(total.precision() >= AIM && total.recall() >= AIM, "{told}");
    for (symptom, tally) in &score.by_symptom {
        assert!(tally.recall() >= 0.8 && tally.precision() >= 0.8, "{symptom}\n{told}");
    }
}

/// Every declaration that is printed can be applied, and audits clean. One set of each symptom; the command takes all of them (`--apply`).
#[tokio::test(flavor = "multi_thread")]
async fn every_declaration_can_be_applied_and_audits_clean() {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for set in sets(Making { seed: 3, scale: 1 }) {
        let symptoms: BTreeSet<&str> =
            set.labels.iter().filter(|label| !label.is_note).map(|label| label.symptom).collect();
        if symptoms.is_subset(&seen) || set.name.starts_with("together") {
            continue;
        }
        seen.extend(symptoms);
        let name = set.name.clone();
        let judged = judge(set, &Options::default(), &mut Score::default()).await;
        wrong.extend(apply_all(judged).await.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(seen.len() >= 9, "{seen:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
