//! The order of a collection's documents in time, and whether a property of them changed once: a step, not noise.

use crate::age::Age;
use crate::survey::Collection;
use crate::values::share;
use document::{Doc, Value};

/// A property that changed at one moment has at most so many exceptions, of the documents of the smaller side.
const EXCEPTIONS: f64 = 0.1;

/// The kept documents from the oldest to the newest; `None` if nothing tells.
pub fn by_age(collection: &Collection) -> Option<Vec<&Doc<'static>>> {
    let documents = || collection.sample.iter();
    match &collection.age {
        // ObjectIds grow with time, and so do running numbers: the sample is in order of `_id`.
        Age::ObjectId => Some(documents().collect()),
        Age::Field(_) => {
            let mut dated: Vec<(i64, &Doc<'static>)> =
                documents().filter_map(|doc| Some((collection.age.made(doc)?, doc))).collect();
            dated.sort_by_key(|(made, _)| *made);
            Some(dated.into_iter().map(|(_, doc)| doc).collect())
        }
        Age::Unknown => {
            let is_number = |doc: &Doc<'static>| matches!(doc.get("_id"), Some(Value::Int32(_) | Value::Int64(_)));
            documents().all(is_number).then(|| documents().collect())
        }
    }
}

/// Where a property changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The share of the documents before it.
    pub place: f64,
    /// The older documents have it.
    pub before: bool,
    /// How many have it, of how many.
    pub with: u64,
    pub documents: u64,
}

/// Finds the moment from which on a property is there, or not any more. `fewest` on either side, else it may be chance.
pub fn step(has: &[bool], fewest: u64) -> Option<Step> {
    let documents = has.len() as u64;
    let with = has.iter().filter(|has| **has).count() as u64;
    let smaller = with.min(documents - with);
    if smaller < fewest.max(1) {
        return None;
    }
    // Exceptions if all before a place had it not and all from it on had it: those before that have, and those after that have not.
    let (mut with_before, mut best) = (0, None::<(u64, u64, bool)>);
    for (place, has) in has.iter().enumerate() {
        with_before += u64::from(*has);
        let before = place as u64 + 1;
        let later = with_before + ((documents - before) - (with - with_before));
        let earlier = documents - later;
        for (exceptions, is_before) in [(later, false), (earlier, true)] {
            if best.is_none_or(|(least, ..)| exceptions < least) {
                best = Some((exceptions, before, is_before));
            }
        }
    }
    let (exceptions, place, before) = best?;
    (share(exceptions, smaller) <= EXCEPTIONS && place < documents).then(|| Step {
        place: share(place, documents),
        before,
        with,
        documents,
    })
}

/// Finds the moment from which on a property is not there any more, although not all documents from before have it: those that lack it were
/// changed since. That none of the newest has it must be no chance.
pub fn gone_since(has: &[bool], fewest: u64) -> Option<Step> {
    /// The newest documents without it are this share at least.
    const NEWEST: f64 = 0.1;
    const LIKELY_CHANCE: f64 = 1e-6;
    let documents = has.len() as u64;
    let with = has.iter().filter(|has| **has).count() as u64;
    let last = has.iter().rposition(|has| *has)?;
    let place = share(last as u64 + 1, documents);
    // So likely it is that as many documents drawn at random are all from before.
    let chance = place.powf(share(with, 1));
    let is_change = with >= fewest.max(1) && with < documents && 1.0 - place >= NEWEST && chance < LIKELY_CHANCE;
    is_change.then_some(Step { place, before: true, with, documents })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_since_a_moment_is_no_chance() {
        let half: String = (0..300).map(|n| if n % 2 == 0 { 'x' } else { '.' }).collect();
        let found = gone_since(&flags(&format!("{half}{}", ".".repeat(100))), 5).unwrap();
        assert!(found.before && found.with == 150 && (found.place - 0.7475).abs() < 0.001, "{found:?}");
        assert_eq!(gone_since(&flags(&half), 5), None);
        assert_eq!(
            gone_since(&flags(&format!("{}{}", "x.".repeat(10), ".".repeat(5))), 5),
            None,
            "twenty may be chance"
        );
        assert_eq!(gone_since(&flags("...."), 1), None);
    }

    fn flags(text: &str) -> Vec<bool> {
        text.chars().map(|letter| letter == 'x').collect()
    }

    #[test]
    fn a_step_is_no_noise() {
        let found = step(&flags(&format!("{}{}", ".".repeat(30), "x".repeat(70))), 5).unwrap();
        assert!((found.place - 0.3).abs() < 0.001 && !found.before && found.with == 70);
        assert!(step(&flags(&format!("{}{}", "x".repeat(30), ".".repeat(70))), 5).unwrap().before);
        assert_eq!(step(&flags(&".x".repeat(50)), 5), None);
        assert_eq!(step(&flags(&format!("xxx{}", ".".repeat(97))), 5), None, "three may be chance");
        assert_eq!(step(&[], 1), None);
        assert_eq!(step(&flags("xxxx"), 1), None);
        let with_noise = format!("{}x{}.{}", ".".repeat(20), ".".repeat(30), "x".repeat(49));
        assert!(step(&flags(&with_noise), 5).is_some());
    }
}
