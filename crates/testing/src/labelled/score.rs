//! Precision and recall of what was found, against the labels.

use super::{Label, Set};
use std::collections::BTreeMap;
use std::fmt;

/// A finding, as far as labels say something about it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub symptom: String,
    pub collection: String,
    pub field: String,
    /// `note`, `warn`, `act` or `urgent`.
    pub severity: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub right: u64,
    /// Found at `warn` or above, and not labelled.
    pub wrong: u64,
    pub missed: u64,
    /// Found, but of another severity than the label says; or as a note that should be listed, and is not.
    pub off: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Score {
    pub by_symptom: BTreeMap<String, Tally>,
    pub sets: u64,
    /// One line for each difference.
    pub differences: Vec<String>,
}

impl Score {
    pub fn add(&mut self, set: &str, labels: &[Label], seen: &[Seen]) {
        self.sets += 1;
        let is_of = |label: &Label, seen: &Seen| {
            label.symptom == seen.symptom
                && label.collection == seen.collection
                && label.fields.iter().any(|field| field == "?" || *field == seen.field)
        };
        for label in labels {
            let found = seen.iter().filter(|seen| is_of(label, seen)).max_by_key(|seen| rank(&seen.severity));
            let tally = self.by_symptom.entry(label.symptom.to_owned()).or_default();
            let place = format!("{set}: {} at {}.{}", label.symptom, label.collection, label.fields.join("|"));
            match found {
                Some(found) if label.is_note && found.severity == "note" => {}
                Some(_) if label.is_note => {}
                None if label.is_note => {
                    tally.off += 1;
                    self.differences.push(format!("{place}: not listed as a note"));
                }
                Some(found) if found.severity != "note" => {
                    tally.right += 1;
                    if label.severity.is_some_and(|severity| severity != found.severity) {
                        tally.off += 1;
                        let wanted = label.severity.unwrap_or_default();
                        self.differences.push(format!("{place}: {} instead of {wanted}", found.severity));
                    }
                }
                other => {
                    tally.missed += 1;
                    let note = if other.is_some() { " (a note)" } else { "" };
                    self.differences.push(format!("{place}: missed{note}"));
                }
            }
        }
        for found in seen.iter().filter(|found| found.severity != "note") {
            if !labels.iter().any(|label| !label.is_note && is_of(label, found)) {
                self.by_symptom.entry(found.symptom.clone()).or_default().wrong += 1;
                self.differences.push(format!(
                    "{set}: {} at {}.{}: {}, not labelled",
                    found.symptom, found.collection, found.field, found.severity
                ));
            }
        }
    }

    pub fn total(&self) -> Tally {
        self.by_symptom.values().fold(Tally::default(), |sum, tally| Tally {
            right: sum.right + tally.right,
            wrong: sum.wrong + tally.wrong,
            missed: sum.missed + tally.missed,
            off: sum.off + tally.off,
        })
    }
}

fn rank(severity: &str) -> usize {
    ["note", "warn", "act", "urgent"].iter().position(|known| *known == severity).unwrap_or_default()
}

impl Tally {
    pub fn precision(self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    pub fn recall(self) -> f64 {
        ratio(self.right, self.right + self.missed)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of findings")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// The table that the command prints.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24} {:>6} {:>6} {:>7} {:>10} {:>7}",
            "symptom", "right", "wrong", "missed", "precision", "recall"
        )?;
        let total = self.total();
        let rows = self.by_symptom.iter().map(|(name, tally)| (name.as_str(), *tally));
        for (name, tally) in rows.chain([("all", total)]) {
            writeln!(
                f,
                "{name:<24} {:>6} {:>6} {:>7} {:>8.1} % {:>5.1} %",
                tally.right,
                tally.wrong,
                tally.missed,
                tally.precision() * 100.0,
                tally.recall() * 100.0
            )?;
        }
        write!(f, "{} sets; {} of another severity than labelled, or a note that is not listed", self.sets, total.off)
    }
}

impl Set {
    /// How many symptoms are labelled at `warn` or above.
    pub fn shown(&self) -> usize {
        self.labels.iter().filter(|label| !label.is_note).count()
    }
}
