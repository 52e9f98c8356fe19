//! Whether what was found is more than chance: hits among pairs that belong together, against a random pairing of the same values.

use crate::sample::Seeded;
use crate::thresholds::{BEYOND_CHANCE, BY_HAND};
use crate::values::share;
use hashbrown::HashMap;

/// Fewer pairs show nothing.
pub const LEAST_PAIRS: u64 = 5;

/// The place that another one is paired with at random; the same each time. A fixed distance would not do: data goes in cycles.
pub fn partner(place: usize, attempt: usize, length: usize) -> usize {
    let mut random = Seeded::new(place as u64, "partner");
    let drawn = (0..=attempt).fold(0, |_, _| random.draw());
    usize::try_from(drawn % (length.max(1) as u64)).unwrap_or_default()
}

/// How often something holds for pairs that belong together, and for the same values paired otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    pub pairs: u64,
    pub hits: u64,
    pub random_pairs: u64,
    pub random_hits: u64,
}

impl Pairing {
    pub fn add(&mut self, hit: bool) {
        self.pairs += 1;
        self.hits += u64::from(hit);
    }

    pub fn add_random(&mut self, hit: bool) {
        self.random_pairs += 1;
        self.random_hits += u64::from(hit);
    }

    pub fn share(&self) -> f64 {
        share(self.hits, self.pairs)
    }

    pub fn random_share(&self) -> f64 {
        share(self.random_hits, self.random_pairs)
    }

    /// Whether it holds in most of the pairs.
    pub fn is_common(&self) -> bool {
        self.pairs >= LEAST_PAIRS && self.share() > BY_HAND
    }

    /// Whether a random pairing is beaten often enough. Without a random pair there is nothing to beat, and nothing is shown.
    pub fn beats_chance(&self) -> bool {
        self.hits > 0 && self.random_pairs > 0 && self.share() >= BEYOND_CHANCE * self.random_share()
    }
}

/// Pairs of numbers that should be equal: what the parent holds, and what its children give.
///
/// Most parents of a true counter may have no child or one, and then any pairing hits often. So what counts there is how the *rarer*
/// values are met: those that a random pairing hits so seldom that it can be beaten.
#[derive(Clone, Debug, Default)]
pub struct NumberPairs {
    pairs: Vec<(Option<u64>, Option<u64>)>,
}

/// A value that a parent holds more often than this cannot be beaten so many times.
const RARE: f64 = 1.0 / BEYOND_CHANCE;
/// So many pairs with rarer values show something.
const LEAST_RARE: u64 = 15;

impl NumberPairs {
    /// Hashes; nothing is none.
    pub fn add(&mut self, held: Option<u64>, given: Option<u64>) {
        self.pairs.push((held, given));
    }

    pub fn len(&self) -> u64 {
        self.pairs.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// All pairs against all pairings of the same values: their expectation, not a drawing.
    pub fn pairing(&self) -> Pairing {
        self.against(|_| true)
    }

    pub fn beats_chance(&self) -> bool {
        if self.pairing().beats_chance() {
            return true;
        }
        let held = self.held();
        let rare = |value: &Option<u64>| share(held.get(value).copied().unwrap_or(0), self.len()) <= RARE;
        let pairing = self.against(rare);
        pairing.pairs >= LEAST_RARE && pairing.is_common() && pairing.beats_chance()
    }

    fn held(&self) -> HashMap<Option<u64>, u64> {
        let mut held = HashMap::new();
        self.pairs.iter().for_each(|(value, _)| *held.entry(*value).or_insert(0) += 1);
        held
    }

    /// Of the pairs whose given value is wanted.
    fn against(&self, wanted: impl Fn(&Option<u64>) -> bool) -> Pairing {
        let held = self.held();
        let mut pairing = Pairing::default();
        for (value, given) in self.pairs.iter().filter(|(_, given)| wanted(given)) {
            pairing.add(value == given);
            pairing.random_pairs += self.len();
            pairing.random_hits += held.get(given).copied().unwrap_or(0);
        }
        pairing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: impl IntoIterator<Item = (u64, u64)>) -> NumberPairs {
        let mut pairs = NumberPairs::default();
        all.into_iter().for_each(|(held, given)| pairs.add(Some(held), Some(given)));
        pairs
    }

    #[test]
    fn a_counter_beats_chance_and_constants_do_not() {
        assert!(pairs((0..100).map(|n| (n % 12, n % 12))).beats_chance());
        assert!(!pairs((0..100).map(|_| (1, 1))).beats_chance(), "only children");
        assert!(!pairs((0..100).map(|_| (0, 0))).beats_chance(), "zeros");
        let flags = pairs((0..100).map(|n| (u64::from(n % 10 != 0), u64::from(n % 9 != 0))));
        assert!(flags.pairing().is_common() && !flags.beats_chance(), "flags");
        let small = pairs((0..300).map(|n| (u64::from(n % 5 == 0) + 1, u64::from(n % 7 == 0) + 1)));
        assert!(small.pairing().is_common() && !small.beats_chance(), "small integers");
    }

    #[test]
    fn a_counter_that_is_mostly_zero_is_told_by_the_others() {
        let counter = pairs((0..1_000).map(|n| if n % 20 == 0 { (n / 20 % 8 + 1, n / 20 % 8 + 1) } else { (0, 0) }));
        assert!(counter.pairing().random_share() > 0.9 && counter.beats_chance());
        let mostly_zero = pairs((0..1_000).map(|n| (u64::from(n % 20 == 0) * 3, u64::from(n % 21 == 0) * 3)));
        assert!(mostly_zero.pairing().is_common() && !mostly_zero.beats_chance());
    }

    #[test]
    fn nothing_to_compare_with_shows_nothing() {
        assert!(!Pairing { pairs: 9, hits: 9, random_pairs: 0, random_hits: 0 }.beats_chance());
        assert!(Pairing { pairs: 9, hits: 9, random_pairs: 9, random_hits: 1 }.beats_chance());
        assert!(!Pairing { pairs: 4, hits: 4, random_pairs: 4, random_hits: 0 }.is_common());
        assert!(!Pairing { pairs: 10, hits: 5, random_pairs: 4, random_hits: 0 }.is_common(), "half is not over half");
    }
}
