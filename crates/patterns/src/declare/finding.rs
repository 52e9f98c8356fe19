//! What is wrong with a declaration: each finding names its place and the way out. Findings are collected; the first never
//! hides the second.

use crate::declare::tree::Spot;
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing, and no reason to change anything: a declaration with notes is fine.
    Note,
    Warning,
    Error,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub severity: Severity,
    /// The rule it concerns (`posts.author`), if it concerns one.
    pub rule: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    /// None when the declaration did not come from a file.
    pub spot: Option<Spot>,
    /// The path inside the declaration: `collections.posts.extended_reference.author.by`.
    pub field: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Finding {
    /// In one sentence, with its place.
    pub(crate) fn described(&self) -> String {
        match self.field.is_empty() {
            true => self.message.clone(),
            false => format!("{} (at {})", self.message, self.field),
        }
    }
}

/// What a finding is about: the place, the path and the rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    /// The file, where several are checked together.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) spot: Option<Spot>,
    pub(crate) field: String,
    pub(crate) rule: Option<Arc<str>>,
}

/// A path is made for every key of the file: a longer one is cut.
const LONGEST_PATH: usize = 1_000;

/// Of errors, and of what is less than an error, so many are told; of the others only how many there are.
const MOST_FINDINGS: usize = 1_000;

impl At {
    /// A key inside this place.
    pub(crate) fn inside(&self, key: &str, spot: Option<Spot>) -> At {
        let field = match (self.field.is_empty(), self.field.len() + key.len() < LONGEST_PATH) {
            _ if self.field.ends_with('…') && self.field.len() >= LONGEST_PATH => self.field.clone(),
            (true, true) => key.to_owned(),
            (false, true) => format!("{}.{key}", self.field),
            (_, false) => {
                let room = LONGEST_PATH.saturating_sub(self.field.len());
                let key: String = key.chars().take(room).collect();
                format!("{}.{key}…", self.field)
            }
        };
        At { file: self.file.clone(), spot: spot.or(self.spot), field, rule: self.rule.clone() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) file: Option<Arc<str>>,
    pub(crate) list: Vec<Finding>,
    errors: usize,
    /// Warnings and notes in the list.
    others: usize,
    /// How many are not in the list.
    untold: usize,
}

impl Findings {
    pub(crate) fn of(file: &str) -> Findings {
        Findings { file: Some(file.into()), ..Findings::default() }
    }

    /// Takes what was found in another part that is declared together with this one.
    pub(crate) fn extend(&mut self, other: Findings) {
        self.errors += other.errors;
        self.others += other.others;
        self.untold += other.untold;
        self.list.extend(other.list);
    }

    pub(crate) fn error(&mut self, at: &At, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, at, message.into(), hint.into());
    }

    pub(crate) fn warning(&mut self, at: &At, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Warning, at, message.into(), hint.into());
    }

    pub(crate) fn note(&mut self, at: &At, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Note, at, message.into(), hint.into());
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Takes back what is less than an error about `place`, as far as it was added from number `before` on.
    pub(crate) fn forgive(&mut self, place: &str, before: usize) {
        let tail = self.list.split_off(before.min(self.list.len()));
        for finding in tail {
            match finding.severity == Severity::Error || finding.field != place {
                true => self.list.push(finding),
                false => self.others = self.others.saturating_sub(1),
            }
        }
    }

    fn add(&mut self, severity: Severity, at: &At, message: String, hint: String) {
        let count = if severity == Severity::Error { &mut self.errors } else { &mut self.others };
        *count += 1;
        if *count > MOST_FINDINGS {
            self.untold += 1;
            return;
        }
        self.list.push(Finding {
            severity,
            rule: at.rule.clone(),
            file: at.file.clone().or_else(|| self.file.clone()),
            spot: at.spot,
            field: at.field.clone(),
            message,
            hint: (!hint.is_empty()).then_some(hint),
        });
    }

    /// In the order of the files. A warning or a note where there is an error would only repeat it.
    pub(crate) fn sorted(mut self, files: &[Arc<str>]) -> Vec<Finding> {
        type Place = (Option<Arc<str>>, String);
        let place = |finding: &Finding| -> Place { (finding.file.clone(), finding.field.clone()) };
        let errors = self.list.iter().filter(|finding| finding.severity == Severity::Error);
        let wrong: HashSet<Place> = errors.map(place).collect();
        self.list.retain(|finding| finding.severity == Severity::Error || !wrong.contains(&place(finding)));
        let number = |finding: &Finding| files.iter().position(|file| finding.file.as_ref() == Some(file));
        self.list.sort_by_key(|finding| (number(finding), finding.spot.map(|spot| spot.start)));
        if self.untold > 0 {
            let severity = if self.errors > MOST_FINDINGS { Severity::Error } else { Severity::Note };
            self.list.push(Finding {
                severity,
                rule: None,
                file: self.file,
                spot: None,
                field: String::new(),
                message: format!("{} more findings are not shown", self.untold),
                hint: Some("mend those above first".to_owned()),
            });
        }
        self.list
    }
}
