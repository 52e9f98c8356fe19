//! The one clock: commit timestamps, cluster time and `operationTime` are its ticks. BSON timestamps: seconds in the upper
//! half, a counter in the lower; never the same twice, never backwards, over restarts too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct Clock {
    last: AtomicU64,
    committed: AtomicU64,
}

impl Clock {
    /// A clock that goes on after `last`.
    pub(crate) fn new(last: u64) -> Clock {
        Clock { last: AtomicU64::new(last), committed: AtomicU64::new(last) }
    }

    /// The next timestamp.
    pub(crate) fn tick(&self) -> u64 {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = (seconds << 32) | 1;
        let next = |last: u64| now.max(last + 1);
        let before = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        before.map_or(now, next)
    }

    /// The timestamp of the newest visible commit.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    pub(crate) fn commit(&self, time: u64) {
        self.committed.fetch_max(time, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back_even_if_the_system_does() {
        let future = 4_000_000_000 << 32;
        let clock = Clock::new(future);
        assert_eq!(clock.tick(), future + 1);
        assert_eq!(clock.tick(), future + 2);
        assert_eq!(clock.committed(), future);
        let now = Clock::new(0).tick();
        assert!(now >> 32 > 1_700_000_000 && now as u32 == 1);
    }
}
