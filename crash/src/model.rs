//! What one worker knows to be acknowledged, and the one request whose fate a crash may leave open.

use std::collections::{BTreeMap, BTreeSet};

/// A worker has documents of its own, so that its model is exact without talking to the others.
pub(crate) struct Model {
    pub(crate) worker: usize,
    pub(crate) session: [u8; 16],
    pub(crate) transaction_number: i64,
    pub(crate) next: i64,
    pub(crate) counter: i64,
    /// Document number to its indexed `tag`.
    pub(crate) documents: BTreeMap<i64, i64>,
    /// Numbers written to two collections in one transaction.
    pub(crate) pairs: BTreeSet<i64>,
    pub(crate) in_flight: Option<Operation>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Insert { number: i64, tag: i64 },
    Retag { number: i64, tag: i64 },
    Delete { number: i64 },
    Increment,
    Pair { number: i64 },
}

impl Model {
    pub(crate) fn new(worker: usize) -> Model {
        Model {
            worker,
            session: rand::random(),
            transaction_number: 0,
            next: 0,
            counter: 0,
            documents: BTreeMap::new(),
            pairs: BTreeSet::new(),
            in_flight: None,
        }
    }

    pub(crate) fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Insert { number, tag } | Operation::Retag { number, tag } => {
                self.documents.insert(number, tag);
            }
            Operation::Delete { number } => {
                self.documents.remove(&number);
            }
            Operation::Increment => self.counter += 1,
            Operation::Pair { number } => {
                self.pairs.insert(number);
            }
        }
    }
}
