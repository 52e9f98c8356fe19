//! Retryable writes that are known to have been done before. A write is sent together with the look-up of its record; one that turns out
//! to be a repetition behind a statement already sent is tried again, and looked up first then.
//!
//! Inserts of many clients share a transaction (SEMANTICS R12), and after a failover many of them are repetitions. So a line remembers
//! as many as a transaction may hold: with fewer, each try would forget what the one before had learnt.

use std::collections::VecDeque;

/// Above the number of inserts that share a transaction.
const MOST: usize = 256;

/// A client's session and the number of its write.
type WriteName = ([u8; 16], i64);

/// The latest last.
#[derive(Debug, Default)]
pub(crate) struct RepeatedWrites(VecDeque<WriteName>);

impl RepeatedWrites {
    pub(crate) fn add(&mut self, write: WriteName) {
        if self.contains(write) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(write);
    }

    pub(crate) fn contains(&self, write: WriteName) -> bool {
        self.0.contains(&write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_repetitions_of_a_transaction_are_known_and_the_oldest_are_forgotten() {
        let mut repeated = RepeatedWrites::default();
        assert!(!repeated.contains(([7; 16], 0)));
        (0..100).for_each(|number| repeated.add(([7; 16], number)));
        assert!((0..100).all(|number| repeated.contains(([7; 16], number))));
        (0..1_000).for_each(|number| repeated.add(([7; 16], number)));
        assert!(!repeated.contains(([7; 16], 0)) && repeated.contains(([7; 16], 999)));
        assert_eq!(repeated.0.len(), MOST);
    }
}
