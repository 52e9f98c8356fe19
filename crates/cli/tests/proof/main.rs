//! What the rules promise, proven on both backends by the same code and for every field and shape that is listed: every
//! interleaving of two plans, and random histories with failures between any two steps.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod accumulators;
mod buckets;
mod changing;
mod driver;
mod dying;
mod expiring;
mod failing;
mod history;
mod hot;
mod interleave;
mod mended;
mod older;
mod outlier_items;
mod outlier_limits;
mod outlier_owners;
mod outliers;
mod relied;
mod restored;
mod scheduler;
mod schedules;
mod spilling;
mod stacks;
mod unfinished;

use history::Setting;
use scheduler::Scheduler;
use testing::registry::{Declared, bases, fields_alone, small_worlds, some, worlds};
use testing::{Data, Opened};

/// A real MongoDB.
fn mongodb() -> Data {
    Data::Mongo(judge::real::uri().unwrap().into())
}

/// Where random choices begin: always the same, unless PLEACH_SEED says otherwise.
fn seed() -> u64 {
    std::env::var("PLEACH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3)
}

/// What `PLEACH_PROOF` asks for: `all`, or the worlds whose declarations contain it.
fn asked() -> Option<String> {
    std::env::var("PLEACH_PROOF").ok()
}

/// How many of all are tried: some, at random, or with PLEACH_PROOF=all up to 20,000.
fn all_or(some: usize) -> usize {
    if asked().is_some_and(|how| how == "all") { 20_000 } else { some }
}

/// Whether a declaration is among those that are asked for.
fn is_asked(declaration: &str) -> bool {
    asked().is_none_or(|how| how == "all" || declaration.contains(&how))
}

/// The small worlds that are asked for; `None` if no word is.
fn asked_worlds() -> Option<Vec<Declared>> {
    let part = asked().filter(|how| how != "all")?;
    let all = small_worlds().into_iter().chain(worlds());
    let chosen: Vec<Declared> = all.filter(|world| is_asked(&world.name)).collect();
    assert!(!chosen.is_empty(), "no declaration of the registries contains {part}");
    Some(chosen)
}

/// All worlds, each field by itself, and some small worlds; or those that are asked for.
fn worlds_and(number: usize) -> Vec<Declared> {
    if let Some(chosen) = asked_worlds() {
        return chosen;
    }
    [worlds(), fields_alone(), some(&small_worlds(), all_or(number), seed())].concat()
}

/// The same for a real MongoDB, where every step is a round trip: all fields on collections as they are, on arrays and versions,
/// and on so many shapes.
fn plain_and(shapes: usize) -> Vec<Declared> {
    if let Some(chosen) = asked_worlds() {
        return chosen;
    }
    let mut worlds = worlds();
    let mut shaped = worlds.split_off(1);
    worlds.extend(shaped.pop());
    [worlds, some(&shaped, all_or(shapes), seed()), some(&small_worlds(), all_or(0), seed())].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn interleavings_on_the_engine() {
    for (at, declared) in worlds_and(2).iter().enumerate() {
        let most = all_or(if at == 0 { 2 } else { 1 });
        interleave::check(&Opened::engine(), declared, Scheduler::default(), most).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn interleavings_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    for (at, declared) in plain_and(1).iter().enumerate() {
        let most = all_or(if at == 0 { 2 } else { 1 });
        interleave::check(&opened, declared, Scheduler::step_by_step(), most).await;
    }
}

/// The same with plans that are sent at once: they meet others between their reads and their flight.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn interleavings_in_flight_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    for (at, declared) in plain_and(1).iter().enumerate() {
        let most = all_or(if at == 0 { 2 } else { 1 });
        interleave::check(&opened, declared, Scheduler::default(), most).await;
    }
}

/// Seeds that once failed stay here.
const SEEDS: &[u64] = &[1, 2, 3, 4];

#[tokio::test(flavor = "multi_thread")]
async fn histories_on_the_engine() {
    for (declared, seed) in worlds_and(3).iter().zip(SEEDS.iter().cycle()) {
        history::check(&Opened::engine(), declared, &Setting { seed: *seed, acts: 80, faults: false }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_with_faults_on_the_engine() {
    for (declared, seed) in worlds_and(3).iter().zip(SEEDS.iter().cycle()) {
        history::check(&Opened::engine(), declared, &Setting { seed: *seed, acts: 80, faults: true }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn histories_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    for (declared, seed) in plain_and(2).iter().zip(11..) {
        history::check(&opened, declared, &Setting { seed, acts: 40, faults: seed % 2 == 0 }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_on_the_engine() {
    schedules::check(&Opened::engine(), all_or(2), all_or(4)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn schedules_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    schedules::check(&opened, all_or(1), all_or(1)).await;
    schedules::check_changes(&opened, all_or(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_rules_on_the_engine() {
    schedules::check_changes(&Opened::engine(), all_or(16)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_mended_on_the_engine() {
    mended::check(&Opened::engine()).await;
    for world in worlds_and(0) {
        mended::check_listed(&Opened::engine(), &world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn drift_is_mended_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    mended::check(&opened).await;
    for world in plain_and(1) {
        mended::check_listed(&opened, &world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn children_expire_on_the_engine() {
    expiring::check(&expiring::eager_engine(), &worlds()[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn children_expire_on_a_real_mongodb() {
    expiring::check(&mongodb().open().await, &worlds()[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_compared_is_said_on_the_engine() {
    unfinished::check(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn what_was_not_compared_is_said_on_a_real_mongodb() {
    unfinished::check(&mongodb().open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_change_under_load_on_the_engine() {
    for (at, base) in bases().iter().enumerate() {
        let rounds = if at == 0 { 8 } else { 2 };
        changing::check(Data::folder(), base, seed(), rounds).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn rules_change_under_load_on_a_real_mongodb() {
    for base in some(&bases(), all_or(2), seed()) {
        changing::check(mongodb(), &base, seed(), 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_is_restored_under_load_on_the_engine() {
    restored::check(Data::folder(), seed(), 12).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn what_was_there_is_restored_under_load_on_a_real_mongodb() {
    restored::check(mongodb(), seed(), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn copies_read_lately_on_a_real_mongodb() {
    relied::check(mongodb().open().await, mongodb().open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_on_one_document_on_the_engine() {
    spilling::check(&Opened::engine(), Scheduler::default, all_or(6)).await;
    spilling::cut_off(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn two_on_one_document_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    spilling::check(&opened, Scheduler::step_by_step, all_or(2)).await;
    spilling::check(&opened, Scheduler::default, all_or(1)).await;
    spilling::cut_off(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_are_as_plain_collections_on_the_engine() {
    stacks::check(&Opened::engine(), seed(), all_or(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn stacks_are_as_plain_collections_on_a_real_mongodb() {
    stacks::check(&mongodb().open().await, seed(), all_or(25)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_arrays_are_as_plain_ones_on_the_engine() {
    for seed in SEEDS {
        outliers::model(&Opened::engine(), *seed, all_or(120)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_arrays_are_written_once_on_the_engine() {
    let opened = Opened::engine();
    outliers::concurrent(&opened).await;
    outliers::sent_again(&opened, 1).await;
    outliers::cut_off(&opened, 1).await;
    outliers::in_transactions(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_arrays_go_with_fields_on_the_engine() {
    outliers::stacked(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_arrays_go_with_fields_on_a_real_mongodb() {
    outliers::stacked(&mongodb().open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_items_are_a_source_on_the_engine() {
    for seed in SEEDS {
        outlier_items::fields(&Opened::engine(), *seed, all_or(60)).await;
    }
    outlier_items::seeding(&Opened::engine(), 200, 3).await;
    outlier_items::concurrent(&Opened::engine()).await;
    outlier_items::read_in_transactions(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_items_are_a_source_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    outlier_items::fields(&opened, 4, all_or(25)).await;
    outlier_items::seeding(&opened, 200, 30).await;
    outlier_items::concurrent(&opened).await;
    outlier_items::read_in_transactions(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_filters_that_very_many_owners_match_on_the_engine() {
    outlier_owners::very_many(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_filters_that_very_many_owners_match_on_a_real_mongodb() {
    outlier_owners::very_many(&mongodb().open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_limits_hold_on_the_engine() {
    outlier_limits::by_bytes(&Opened::engine()).await;
    outlier_limits::once(&Opened::engine()).await;
    outlier_limits::named_and_not_matched(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_limits_hold_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    outlier_limits::by_bytes(&opened).await;
    outlier_limits::once(&opened).await;
    outlier_limits::named_and_not_matched(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlier_arrays_over_time_on_the_engine() {
    outliers::life(&Opened::engine()).await;
    outliers::stopped(&Opened::engine(), 60).await;
    outliers::huge(&Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_arrays_over_time_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    outliers::life(&opened).await;
    outliers::stopped(&opened, 6).await;
    outliers::huge(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_arrays_are_as_plain_ones_on_a_real_mongodb() {
    outliers::model(&mongodb().open().await, 21, all_or(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn outlier_arrays_are_written_once_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    outliers::concurrent(&opened).await;
    outliers::sent_again(&opened, 2).await;
    outliers::cut_off(&opened, 2).await;
    outliers::in_transactions(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_on_the_engine() {
    let opened = Opened::engine();
    buckets::concurrent(&opened).await;
    buckets::full(&opened).await;
    buckets::sent_again(&opened, 1).await;
    buckets::cut_off(&opened, 1).await;
    buckets::in_transactions(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn buckets_under_concurrency_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    buckets::concurrent(&opened).await;
    buckets::full(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn buckets_written_once_on_a_real_mongodb() {
    let opened = mongodb().open().await;
    buckets::sent_again(&opened, 2).await;
    buckets::cut_off(&opened, 2).await;
    buckets::in_transactions(&opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_those_of_accumulators_on_the_engine() {
    accumulators::check(&Opened::engine(), 0..6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn values_are_those_of_accumulators_on_a_real_mongodb() {
    accumulators::check(&mongodb().open().await, 0..3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_writers_of_one_host_on_the_engine() {
    hot::check(&Opened::engine(), seed(), 30).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn sixteen_writers_of_one_host_on_a_real_mongodb() {
    hot::check(&mongodb().open().await, seed(), 12).await;
}
