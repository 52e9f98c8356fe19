//! A client's transaction as drivers run it: again after a transient error. On a server under load, a transaction that was given up
//! may still be in the way of the next one.

use document::Error;
use std::time::Duration;
use testing::is_transient;

const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// How often a transaction may still be run again.
pub(crate) struct Tries(usize);

impl Tries {
    pub(crate) fn new() -> Tries {
        Tries(50)
    }

    /// Whether the transaction is to be run again, once another may have ended.
    pub(crate) async fn again<T>(&mut self, done: &Result<T, Error>) -> bool {
        let again = self.0 > 0 && done.as_ref().is_err_and(is_transient);
        if again {
            self.0 -= 1;
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        again
    }
}
