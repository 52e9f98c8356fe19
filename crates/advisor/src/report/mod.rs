//! What the advisor says: what it looked at, and its findings as data.

mod json;
mod text;

pub use text::grouped;

use crate::survey::Collection;
use document::op::Namespace;
use document::{Doc, Error};

/// The answer.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub looked_at: LookedAt,
    /// Strongest first.
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default)]
pub struct LookedAt {
    pub databases: Vec<String>,
    pub collections: u64,
    /// In all collections.
    pub documents: u64,
    pub sampled: u64,
    pub traffic: Vec<crate::traffic::Source>,
    /// Some of these sources show single commands, and not only how many there were.
    pub sees_commands: bool,
    pub seconds: f64,
    /// What could not be looked at, and why.
    pub unseen: Vec<String>,
    /// It was told to stop before its end.
    pub interrupted: bool,
}

impl LookedAt {
    pub(crate) fn add(&mut self, collection: &Collection) {
        self.collections += 1;
        self.documents += collection.statistics.count.max(collection.sampled());
        self.sampled += collection.sampled();
    }

    pub(crate) fn unseen(&mut self, ns: &Namespace, error: &Error) {
        self.unseen.push(format!("{ns}: {}", error.message()));
    }
}

/// How much it matters. Only from `Warn` on the exit code is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    #[default]
    Note,
    Warn,
    Act,
    Urgent,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warn => "warn",
            Severity::Act => "act",
            Severity::Urgent => "urgent",
        }
    }

    /// By how far a figure is past its threshold.
    pub fn by(figure: f64, threshold: f64) -> Severity {
        if figure >= threshold * crate::thresholds::ACT {
            Severity::Act
        } else if figure >= threshold {
            Severity::Warn
        } else {
            Severity::Note
        }
    }
}

/// One symptom at one place.
#[derive(Clone, Debug)]
pub struct Finding {
    pub symptom: &'static str,
    pub pattern: &'static str,
    pub database: String,
    /// The host of the rule that would be declared.
    pub collection: String,
    /// The path that shows the symptom there.
    pub field: String,
    pub severity: Severity,
    /// From 0 to 1.
    pub confidence: f64,
    /// One sentence.
    pub verdict: String,
    /// The three figures that show it, in words.
    pub shown: Vec<String>,
    /// All figures, in order.
    pub evidence: Doc<'static>,
    pub against: Vec<Against>,
    /// A declaration that `pleach check` accepts; `None` if there is none to propose.
    pub declaration: Option<String>,
    /// What the rule would bring, as far as the sample says.
    pub gain: Doc<'static>,
}

/// A reason not to do it.
#[derive(Clone, Debug)]
pub struct Against {
    pub reason: String,
    pub figures: Doc<'static>,
    /// It alone makes the finding a note.
    pub outweighs: bool,
}

impl Against {
    pub fn new(reason: impl Into<String>, figures: Doc<'static>) -> Against {
        Against { reason: reason.into(), figures, outweighs: false }
    }

    pub fn outweighing(self) -> Against {
        Against { outweighs: true, ..self }
    }
}

impl Finding {
    /// Without evidence yet, at a collection and a path.
    pub fn new(symptom: &crate::findings::Symptom, ns: &Namespace, field: &str) -> Finding {
        Finding {
            symptom: symptom.name,
            pattern: symptom.pattern,
            database: ns.db.to_string(),
            collection: ns.collection.to_string(),
            field: field.to_owned(),
            severity: Severity::Note,
            confidence: 0.5,
            verdict: String::new(),
            shown: Vec::new(),
            evidence: Doc::empty(),
            against: Vec::new(),
            declaration: None,
            gain: Doc::empty(),
        }
    }

    /// With the reasons against it: one that outweighs makes it a note, and the verdict says so.
    #[must_use]
    pub fn weighed(mut self, against: Vec<Against>) -> Finding {
        if let Some(reason) = against.iter().find(|reason| reason.outweighs) {
            self.severity = Severity::Note;
            self.verdict = format!("not worth it here, because {}", reason.reason);
        }
        self.against = against;
        self
    }
}

impl Report {
    /// Strongest first; of equal ones the surer, then by place.
    pub fn sort(&mut self) {
        let place = |finding: &Finding| {
            (finding.database.clone(), finding.collection.clone(), finding.field.clone(), finding.symptom)
        };
        self.findings.sort_by(|one, other| {
            let strength = other.severity.cmp(&one.severity).then(other.confidence.total_cmp(&one.confidence));
            strength.then_with(|| place(one).cmp(&place(other)))
        });
    }

    /// The strongest severity; `None` if nothing was found.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
