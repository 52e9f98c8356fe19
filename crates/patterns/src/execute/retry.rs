//! Running a plan again after a conflict: until it goes through, or the client's time is up.

use document::error::Scope;
use document::op::Context;
use document::{Code, Error, Result};
use std::future::Future;
use std::time::{Duration, Instant};

/// How long a command without `maxTimeMS` keeps trying.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// The attempts of one plan.
pub(crate) struct RetryWindow {
    until: Instant,
    made: u32,
}

impl RetryWindow {
    pub(crate) fn new(context: &Context) -> RetryWindow {
        RetryWindow { until: context.deadline.unwrap_or_else(|| Instant::now() + RETRY_LIMIT), made: 0 }
    }

    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// Waits for something, not longer than for the whole plan.
    pub(crate) async fn in_time<T>(&self, wanted: impl Future<Output = T>) -> Result<T> {
        let late = |_| Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit");
        tokio::time::timeout_at(self.until.into(), wanted).await.map_err(late)
    }

    /// The error when the time is up.
    pub(crate) async fn past(&self) -> Error {
        tokio::time::sleep_until(self.until.into()).await;
        Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit")
    }

    /// After a failure: waits a little and says nothing if the plan may be run again, else gives the error.
    pub(crate) async fn again(&mut self, error: Error, context: &Context) -> Result<()> {
        if !is_transient(&error) {
            return Err(error);
        }
        (context.env.interrupt)()?;
        self.made += 1;
        if Instant::now() >= self.until {
            return Err(match context.deadline {
                Some(_) => Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit"),
                None => error,
            });
        }
        if self.made <= 2 {
            tokio::task::yield_now().await;
        } else {
            // Longer each time, and never two writers in step.
            let longest = 1 << self.made.min(9);
            let pause = Duration::from_micros(50 * rand::random_range(longest / 2..=longest));
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }
}

/// Whether running the same again may succeed: a conflict, or a transaction that was lost before its commit.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.scope() == Scope::Transient
}

/// Whether an error is about the whole command and not about one statement.
pub(crate) fn is_of_command(error: &Error) -> bool {
    !error.is_of_statement()
}
