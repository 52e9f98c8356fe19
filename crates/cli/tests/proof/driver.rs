//! A client's transaction as drivers run it: again after a transient error. On a server under load, a transaction that was given up
//! may still be in the way of the next one.

use document::Error;
use std::time::Duration;
use testing::is_transient;

const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

pub(crate) async fn with_transaction<T>(run: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let mut done = run().await;
    for _ in 1..TRIES {
        if !done.as_ref().is_err_and(is_transient) {
            break;
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
        done = run().await;
    }
    done
}
