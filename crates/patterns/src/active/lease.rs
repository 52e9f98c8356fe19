//! The lease of this process on the rules (SEMANTICS R3), as writers look at it: until when it may write.
//!
//! Two clocks must agree: the steady one stands still while a machine sleeps, the one on the wall can be set back.

use document::{Code, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// No lease is needed: nobody else can change the rules.
const ALWAYS: u64 = u64::MAX;

pub(crate) struct Lease {
    base: Instant,
    /// In milliseconds since `base`, and since 1970.
    steady: AtomicU64,
    wall: AtomicU64,
}

impl Default for Lease {
    fn default() -> Lease {
        Lease { base: Instant::now(), steady: AtomicU64::new(ALWAYS), wall: AtomicU64::new(ALWAYS) }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, milliseconds)
}

/// A moment on both clocks.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    steady: u64,
    wall: u64,
}

impl Lease {
    pub(crate) fn now(&self) -> Moment {
        Moment { steady: milliseconds(self.base.elapsed()), wall: since_1970() }
    }

    /// The lease lasts for so long from the moment it was asked for.
    pub(crate) fn extend(&self, asked: Moment, lasts: Duration) {
        let lasts = milliseconds(lasts);
        self.wall.store(asked.wall.saturating_add(lasts), Ordering::Relaxed);
        self.steady.store(asked.steady.saturating_add(lasts), Ordering::Relaxed);
    }

    /// From now on nothing is written without it.
    pub(crate) fn end(&self) {
        self.steady.store(0, Ordering::Relaxed);
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self.steady.load(Ordering::Relaxed) {
            ALWAYS => true,
            until => milliseconds(self.base.elapsed()) < until && since_1970() < self.wall.load(Ordering::Relaxed),
        }
    }

    /// The error of a write without it, after which drivers try again.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_valid() {
            true => Ok(()),
            false => Err(Error::new(
                Code::NotWritablePrimary,
                "this Pleach holds no lease on the rules: it was paused or cut off from the upstream MongoDB, and the rules may have changed meanwhile",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_valid_for_its_time_and_not_needed_before_the_first() {
        let lease = Lease::default();
        assert!(lease.check().is_ok());
        lease.extend(lease.now(), Duration::from_secs(60));
        assert!(lease.check().is_ok());
        lease.extend(lease.now(), Duration::ZERO);
        assert_eq!(lease.check().unwrap_err().code(), Code::NotWritablePrimary);
        lease.extend(lease.now(), Duration::from_secs(60));
        lease.end();
        assert!(!lease.is_valid());
        // A machine that slept: only the clock on the wall has gone on.
        let now = lease.now();
        lease.extend(Moment { wall: now.wall - 100_000, ..now }, Duration::from_secs(60));
        assert!(!lease.is_valid());
    }
}
