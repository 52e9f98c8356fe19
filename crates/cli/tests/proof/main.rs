//! What the rules promise, proven on both backends by the same code: every interleaving of two plans, and random histories
//! with failures between any two steps.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod buckets;
mod changing;
mod failing;
mod history;
mod interleave;
mod living;
mod mended;
mod relied;
mod restored;
mod scheduler;
mod schedules;
mod unfinished;
mod world;

use document::backend::Backend;
use scheduler::Scheduler;
use std::sync::Arc;

fn engine() -> (Arc<dyn Backend>, Option<tempfile::TempDir>) {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine::Engine::open(folder.path(), engine::Options::default()).unwrap();
    (Arc::new(engine), Some(folder))
}

/// A real MongoDB, if there is one.
async fn upstream(test: &str) -> Option<Arc<dyn Backend>> {
    let uri = upstream::Uri::parse(&judge::real::uri_or_skip(test)?).unwrap();
    Some(Arc::new(upstream::Upstream::open(uri).await.unwrap()))
}

/// Where random choices begin: always the same, unless PLEACH_SEED says otherwise.
fn seed() -> u64 {
    std::env::var("PLEACH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3)
}

/// How many interleavings of each pair are tried: some, at random, or with PLEACH_PROOF=all up to 20,000.
fn all_or(some: usize) -> usize {
    if std::env::var("PLEACH_PROOF").is_ok_and(|how| how == "all") { 20_000 } else { some }
}

#[tokio::test(flavor = "multi_thread")]
async fn interleavings_on_a_real_mongodb() {
    let Some(backend) = upstream("interleavings_on_a_real_mongodb").await else { return };
    interleave::check(backend, None, Scheduler::step_by_step(), all_or(6)).await;
}

/// The same with plans that are sent at once: they meet others between their reads and their flight.
#[tokio::test(flavor = "multi_thread")]
async fn interleavings_in_flight_on_a_real_mongodb() {
    let Some(backend) = upstream("interleavings_in_flight_on_a_real_mongodb").await else { return };
    interleave::check(backend, None, Scheduler::default(), all_or(6)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_read_lately_on_a_real_mongodb() {
    let Some(first) = upstream("copies_read_lately_on_a_real_mongodb").await else { return };
    let Some(second) = upstream("copies_read_lately_on_a_real_mongodb").await else { return };
    relied::check(first, second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_on_a_real_mongodb() {
    let Some(kept) = upstream("histories_on_a_real_mongodb").await else { return };
    for (seed, faults) in [(11, false), (12, true)] {
        let (plain, _folder) = engine();
        history::check(kept.clone(), plain, None, &history::Setting { seed, acts: 60, faults }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_on_the_engine() {
    let (engine, _folder) = engine();
    schedules::check(engine, all_or(4)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_rules_on_the_engine() {
    let (engine, _folder) = engine();
    schedules::check_changes(engine, all_or(16)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_mended_on_the_engine() {
    let (engine, _folder) = engine();
    mended::check(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_mended_on_a_real_mongodb() {
    let Some(backend) = upstream("drift_is_mended_on_a_real_mongodb").await else { return };
    mended::check(backend).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_compared_is_said_on_the_engine() {
    let (engine, _folder) = engine();
    unfinished::check(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_compared_is_said_on_a_real_mongodb() {
    let Some(backend) = upstream("what_was_not_compared_is_said_on_a_real_mongodb").await else { return };
    unfinished::check(backend).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_change_under_load_on_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    changing::check(changing::Place::Folder(folder.path().into()), seed(), 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_is_restored_under_load_on_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    restored::check(changing::Place::Folder(folder.path().into()), seed(), 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_is_restored_under_load_on_a_real_mongodb() {
    let Some(uri) = judge::real::uri_or_skip("what_was_there_is_restored_under_load_on_a_real_mongodb") else { return };
    restored::check(changing::Place::Upstream(uri.into()), seed(), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_on_a_real_mongodb() {
    let Some(backend) = upstream("schedules_on_a_real_mongodb").await else { return };
    schedules::check(backend.clone(), all_or(1)).await;
    schedules::check_changes(backend, all_or(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_change_under_load_on_a_real_mongodb() {
    let Some(uri) = judge::real::uri_or_skip("rules_change_under_load_on_a_real_mongodb") else { return };
    changing::check(changing::Place::Upstream(uri.into()), seed(), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interleavings_on_the_engine() {
    let (engine, folder) = engine();
    interleave::check(engine, folder, Scheduler::default(), all_or(16)).await;
}

/// Seeds that once failed stay here.
const SEEDS: &[u64] = &[1, 2, 3, 4];

#[tokio::test(flavor = "multi_thread")]
async fn histories_on_the_engine() {
    for seed in SEEDS {
        let ((kept, folder), (plain, _folder)) = (engine(), engine());
        history::check(kept, plain, folder, &history::Setting { seed: *seed, acts: 120, faults: false }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_with_faults_on_the_engine() {
    for seed in SEEDS {
        let ((kept, folder), (plain, _folder)) = (engine(), engine());
        history::check(kept, plain, folder, &history::Setting { seed: *seed, acts: 120, faults: true }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_on_the_engine() {
    let (engine, _folder) = engine();
    buckets::concurrent(engine.clone()).await;
    buckets::full(engine.clone()).await;
    buckets::sent_again(engine.clone(), 1).await;
    buckets::cut_off(engine.clone(), 1).await;
    buckets::in_transactions(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_under_concurrency_on_a_real_mongodb() {
    let Some(backend) = upstream("buckets_under_concurrency_on_a_real_mongodb").await else { return };
    buckets::concurrent(backend.clone()).await;
    buckets::full(backend).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_written_once_on_a_real_mongodb() {
    let Some(backend) = upstream("buckets_written_once_on_a_real_mongodb").await else { return };
    buckets::sent_again(backend.clone(), 2).await;
    buckets::cut_off(backend.clone(), 2).await;
    buckets::in_transactions(backend).await;
}
