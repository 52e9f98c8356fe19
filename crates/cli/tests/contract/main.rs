//! The contract of `Backend`, run unchanged on everything that implements it: the engine, a real MongoDB, and both under the
//! pattern layer without rules.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod cases;
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
