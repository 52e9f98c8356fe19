//! The contract of `Backend`, run unchanged on everything that implements it: the engine, a real MongoDB, and both under the
//! pattern layer without rules.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod flights;
mod versions;
mod versions_reads;
mod words;

use document::backend::Backend;
use std::sync::Arc;
use words::Place;

/// Runs every case; a failure names the promise.
async fn check(backend: Arc<dyn Backend>, db: &str) {
    for (promise, case) in cases::CASES {
        let place = Place::new(backend.clone(), db);
        let run = std::panic::AssertUnwindSafe(case(&place));
        if futures_util::FutureExt::catch_unwind(run).await.is_err() {
            panic!("broken: {promise}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engine() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine::Engine::open(folder.path(), engine::Options::default()).unwrap();
    check(Arc::new(engine), "contract").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_under_the_layer() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine::Engine::open(folder.path(), engine::Options::default()).unwrap();
    check(front(Arc::new(engine)), "contract").await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn upstream() {
    let uri = judge::real::uri().unwrap();
    check(Arc::new(open(&uri).await), &format!("contract{}", std::process::id())).await;
    drop_database(&uri, &format!("contract{}", std::process::id())).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn flights_are_whole() {
    let uri = judge::real::uri().unwrap();
    let db = format!("flights{}", std::process::id());
    flights::whole_or_not(Arc::new(open(&uri).await), &db).await;
    flights::cut_anywhere(&uri, &db).await;
    flights::at_a_version(Arc::new(open(&uri).await), &format!("{db}v")).await;
    drop_database(&uri, &db).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn upstream_under_the_layer() {
    let uri = judge::real::uri().unwrap();
    let db = format!("layered{}", std::process::id());
    check(front(Arc::new(open(&uri).await)), &db).await;
    drop_database(&uri, &db).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_on_the_engine() {
    versions::model(&testing::Opened::engine(), 0..6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn versions_upstream() {
    let data = testing::Data::Mongo(judge::real::uri().unwrap().into());
    versions::model(&data.open().await, 0..4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_versions_on_the_engine() {
    versions_reads::all(&testing::Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn reads_of_versions_upstream() {
    let data = testing::Data::Mongo(judge::real::uri().unwrap().into());
    versions_reads::all(&data.open().await).await;
    versions_reads::collated(&data.open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_over_versions_on_the_engine() {
    versions::fields(&testing::Opened::engine(), 0..6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_versions_on_the_engine() {
    versions::commands(&testing::Opened::engine()).await;
    versions::races(&testing::Opened::engine()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn writes_of_versions_upstream() {
    let data = testing::Data::Mongo(judge::real::uri().unwrap().into());
    versions::commands(&data.open().await).await;
    versions::races(&data.open().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn fields_over_versions_upstream() {
    let data = testing::Data::Mongo(judge::real::uri().unwrap().into());
    versions::fields(&data.open().await, 0..4).await;
}

/// The layer without rules, as clients meet it.
fn front(backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
    let life = patterns::life::Life::new(&patterns::Patterned::new(backend), Arc::new(testing::context));
    Arc::new(patterns::ClientFront::new(life))
}

async fn open(uri: &str) -> upstream::Upstream {
    upstream::Upstream::open(upstream::Uri::parse(uri).unwrap()).await.unwrap()
}

async fn drop_database(uri: &str, db: &str) {
    let op = document::op::AdminOp::DropDatabase { db: db.into() };
    open(uri).await.admin(&mut Default::default(), &words::context(), op).await.unwrap();
}
