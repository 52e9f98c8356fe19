//! Sampling units by size: each class holds units up to twice as large as its smallest, so that few heavy ones do not decide.
//!
//! All units pass by once. Of each class the first ones in the random order stay, which is a simple random sample however
//! many of them are taken afterwards.

use crate::estimate::Known;
use std::collections::BinaryHeap;

/// How many units of one class stay at most: more would not make an estimate better.
const CAPACITY: usize = 200_000;

/// So many of each class are taken, whatever share was asked for: the spread within a class cannot be seen from fewer.
const LEAST_TAKEN: u64 = 6;

/// What may be taken into the sample as a whole: a parent with its children, a series, a document. Ordered by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<K> {
    place: u64,
    documents: u64,
    bytes: u64,
    key: K,
}

/// The units of one class of size.
#[derive(Clone, Debug, Default)]
pub struct Stratum {
    pub units: u64,
    pub documents: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct Strata<K: Ord> {
    classes: Vec<(Stratum, BinaryHeap<Candidate<K>>)>,
}

/// A unit of the sample.
#[derive(Clone, Debug)]
pub struct Unit<K> {
    pub key: K,
    /// Its class.
    pub stratum: usize,
    /// What it has as the data is.
    pub documents: u64,
    pub bytes: u64,
}

impl Stratum {
    pub fn bytes(&self) -> Known {
        Known { units: self.units as f64, today: self.bytes as f64 }
    }

    pub fn documents(&self) -> Known {
        Known { units: self.units as f64, today: self.documents as f64 }
    }
}

impl<K: Ord> Default for Strata<K> {
    fn default() -> Strata<K> {
        Strata { classes: Vec::new() }
    }
}

impl<K: Ord + Clone> Strata<K> {
    /// One more unit; `place` is its place in the random order.
    pub fn add(&mut self, key: K, place: u64, documents: u64, bytes: u64) {
        let class = usize::try_from(bytes.max(1).ilog2()).unwrap_or_default();
        while self.classes.len() <= class {
            self.classes.push((Stratum::default(), BinaryHeap::new()));
        }
        let Some((stratum, candidates)) = self.classes.get_mut(class) else { return };
        stratum.units += 1;
        stratum.documents += documents;
        stratum.bytes += bytes;
        if candidates.len() < CAPACITY || candidates.peek().is_some_and(|last| place < last.place) {
            candidates.push(Candidate { place, documents, bytes, key });
            if candidates.len() > CAPACITY {
                candidates.pop();
            }
        }
    }

    pub fn documents(&self) -> u64 {
        self.classes.iter().map(|(stratum, _)| stratum.documents).sum()
    }

    pub fn units(&self) -> u64 {
        self.classes.iter().map(|(stratum, _)| stratum.units).sum()
    }

    /// Takes units with about so many documents. From classes of larger units a larger share is taken, with the root of their size:
    /// the least error for what is read.
    pub fn take(self, documents: u64) -> (Vec<Stratum>, Vec<Unit<K>>) {
        let factor = self.factor(documents);
        let (mut strata, mut units) = (Vec::new(), Vec::new());
        for (at, (stratum, candidates)) in self.classes.into_iter().enumerate() {
            let number = usize::try_from(taken(&stratum, factor)).unwrap_or(usize::MAX);
            let chosen = candidates.into_sorted_vec().into_iter().take(number);
            units.extend(chosen.map(|unit| Unit {
                key: unit.key,
                stratum: at,
                documents: unit.documents,
                bytes: unit.bytes,
            }));
            strata.push(stratum);
        }
        (strata, units)
    }

    /// The factor by which the shares of all classes together give so many documents.
    fn factor(&self, documents: u64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let would = self
                .classes
                .iter()
                .map(|(stratum, _)| taken(stratum, middle) as f64 * ratio(stratum.documents, stratum.units));
            if would.sum::<f64>() > documents as f64 { high = middle } else { low = middle }
        }
        if documents >= self.documents() { 1.0 } else { low }
    }
}

/// How many units of a class are taken.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not more than there are")]
fn taken(stratum: &Stratum, factor: f64) -> u64 {
    let share = factor * ratio(stratum.bytes, stratum.units).max(1.0).sqrt();
    let wanted = (stratum.units as f64 * share.min(1.0)).ceil() as u64;
    wanted.max(LEAST_TAKEN).min(stratum.units)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata() -> Strata<u32> {
        let mut strata = Strata::default();
        for key in 0..10_000_u32 {
            let documents = if key % 1_000 == 0 { 900 } else { 1 + u64::from(key % 7) };
            strata.add(key, crate::random::place(1, &key.to_be_bytes()), documents, documents * 100);
        }
        strata
    }

    #[test]
    fn the_share_is_about_what_was_asked_for_and_all_is_all() {
        let (strata_of, units) = strata().take(u64::MAX);
        assert_eq!(units.len(), 10_000);
        assert_eq!(strata_of.iter().map(|stratum| stratum.units).sum::<u64>(), 10_000);
        let asked = strata().documents() / 5;
        let (strata_of, units) = strata().take(asked);
        let documents: u64 = units.iter().map(|unit| unit.bytes / 100).sum();
        assert!(documents > asked / 2 && documents < asked * 2, "{documents} of {asked}");
        // Few heavy units are taken whole: their class is small.
        let heavy = strata_of.iter().position(|stratum| stratum.bytes / stratum.units.max(1) > 50_000).unwrap();
        assert!(units.iter().filter(|unit| unit.stratum == heavy).count() >= 6);
    }

    #[test]
    fn the_sample_is_that_of_the_seed() {
        let keys = |strata: Strata<u32>| strata.take(2_000).1.into_iter().map(|unit| unit.key).collect::<Vec<_>>();
        assert_eq!(keys(strata()), keys(strata()));
    }
}
