//! What is said of values that are kept by hand: how severe wrong ones are, the figures of the evidence, and the second look at what
//! differs. A parent and its children are read one after the other: what changed in between is no mistake.

use super::children::{Families, Reading};
use super::row::Paths;
use crate::reader::{Bound, Reader};
use crate::report::{Severity, grouped};
use crate::survey::Collection;
use crate::thresholds::URGENT_WRONG;
use crate::values::{count, hash, list, measure, share};
use document::filter::Filter;
use document::op::{Find, Namespace};
use document::{Doc, Result, Value};
use hashbrown::HashMap;

/// So many documents that differ are looked at again.
const MOST_AGAIN: usize = 1_000;
/// What changes each time it is looked at is left out.
const ATTEMPTS: usize = 3;
/// So many documents are read at once.
const DOCUMENTS_PER_READ: usize = 200;
const EXAMPLES: usize = 5;

/// What was found about values that are kept by hand.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub checked: u64,
    pub wrong: u64,
    /// `_id`s of some documents that are wrong.
    pub examples: Vec<Value<'static>>,
    /// They look as if nobody meant to refresh them.
    pub is_frozen: bool,
}

impl Verdict {
    pub fn of(checked: u64, wrong: &[Doc<'static>]) -> Verdict {
        let id = |doc: &Doc<'static>| doc.get("_id").unwrap_or(Value::Null).into_owned();
        let examples = wrong.iter().take(EXAMPLES).map(id).collect();
        Verdict { checked, wrong: wrong.len() as u64, examples, is_frozen: false }
    }

    pub fn share(&self) -> f64 {
        share(self.wrong, self.checked)
    }

    pub fn severity(&self) -> Severity {
        if self.wrong == 0 || self.is_frozen {
            Severity::Note
        } else if self.share() > URGENT_WRONG {
            Severity::Urgent
        } else {
            Severity::Act
        }
    }

    /// The figures; in a sample also how many wrong ones to expect in all documents.
    pub fn figures(&self, host: &Collection) -> Vec<(&'static str, Value<'static>)> {
        let mut figures = vec![
            ("checked", count(self.checked)),
            ("wrong", count(self.wrong)),
            ("share", measure(self.share())),
            ("examples", list(self.examples.iter().map(Value::borrow))),
        ];
        if self.is_frozen {
            figures.push(("frozen", Value::Bool(true)));
        }
        if host.statistics.count > self.checked {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an estimate"
            )]
            let expected = (self.share() * host.statistics.count as f64).round() as u64;
            figures.push(("wrong_in_all", count(expected)));
        }
        figures
    }

    /// `12 of 400 are wrong (3 %)`, or that none is.
    pub fn words(&self) -> String {
        match self.wrong {
            0 => format!("all {} that were looked at are right", grouped(self.checked)),
            wrong => {
                format!("{} of {} are wrong ({:.1} %)", grouped(wrong), grouped(self.checked), 100.0 * self.share())
            }
        }
    }

    /// How sure it is that the field is kept by hand: more pairs and fewer wrong ones make it surer.
    pub fn confidence(&self, of_relation: f64) -> f64 {
        let support = share(self.checked, self.checked + 5);
        (support * (1.0 - self.share() / 2.0) * of_relation.max(0.9)).clamp(0.0, 1.0)
    }
}

/// Documents as they are now, by the hash of their `_id`.
pub async fn read_again(
    reader: &Reader<'_>,
    ns: &Namespace,
    documents: &[Doc<'static>],
) -> Result<HashMap<u64, Doc<'static>>> {
    let mut now = HashMap::new();
    for chunk in documents.chunks(DOCUMENTS_PER_READ) {
        let ids = chunk.iter().filter_map(|doc| doc.get("_id")).map(Value::into_owned).collect();
        let find = Find::matching(ns.clone(), Filter::among("_id", ids));
        let bound = Bound { documents: DOCUMENTS_PER_READ as u64, bytes: 64 << 20 };
        for doc in reader.find(find, bound).await? {
            let Some(key) = doc.get("_id").map(|id| hash(&id)) else { continue };
            now.insert(key, doc);
        }
    }
    Ok(now)
}

/// The `_id` as a key.
pub fn id_of(doc: &Doc<'_>) -> u64 {
    doc.get("_id").map_or(0, |id| hash(&id))
}

/// Those parents that are still wrong when children and parents are read again, and how many cannot be judged: they changed each time,
/// or are gone. `is_same` says whether what is compared is unchanged, `wrong` which of the parents differ from their children.
pub async fn still_wrong(
    reading: &Reading<'_>,
    ns: &Namespace,
    parents: Vec<Doc<'static>>,
    paths: &Paths,
    is_same: impl Fn(&Doc<'static>, &Doc<'static>) -> bool,
    wrong: impl Fn(&[Doc<'static>], &Families) -> Vec<usize>,
) -> Result<(Vec<Doc<'static>>, u64)> {
    let mut again = parents;
    // So many are wrong that a few more or less do not matter: the others are taken as they are.
    let mut found = again.split_off(again.len().min(MOST_AGAIN));
    let mut unknown = 0;
    for _ in 0..ATTEMPTS {
        if again.is_empty() || reading.reader.cancel.is_set() {
            break;
        }
        let families = reading.families(&again, paths.clone()).await?;
        let now = read_again(reading.reader, ns, &again).await?;
        let differ = wrong(&again, &families);
        let mut changed = Vec::new();
        for (place, parent) in again.iter().enumerate() {
            match now.get(&id_of(parent)) {
                None => unknown += 1,
                Some(now) if !is_same(parent, now) => changed.push(now.clone()),
                Some(_) if differ.contains(&place) => found.push(parent.clone()),
                Some(_) if families.parents.contains(&place) => {}
                Some(_) => unknown += 1,
            }
        }
        again = changed;
    }
    unknown += again.len() as u64;
    Ok((found, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_goes_by_what_is_wrong() {
        let check = |checked, wrong, is_frozen, expected| {
            let verdict = Verdict { checked, wrong, is_frozen, ..Verdict::default() };
            assert_eq!(verdict.severity(), expected, "{wrong} of {checked}");
        };
        check(1_000, 0, false, Severity::Note);
        check(1_000, 1, false, Severity::Act);
        check(1_000, 100, false, Severity::Act);
        check(1_000, 101, false, Severity::Urgent);
        check(1_000, 400, true, Severity::Note);
    }
}
