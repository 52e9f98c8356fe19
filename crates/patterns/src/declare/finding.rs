//! What is wrong with a declaration: each finding names its place and the way out. Findings are collected; the first never
//! hides the second.

use super::tree::Spot;
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

/// What a finding is about: the place, the path and the rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    pub(crate) spot: Option<Spot>,
    pub(crate) field: String,
    pub(crate) rule: Option<Arc<str>>,
}

impl At {
    /// A key inside this place.
    pub(crate) fn inside(&self, key: &str, spot: Option<Spot>) -> At {
        let field = match self.field.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.field),
        };
        At { spot: spot.or(self.spot), field, rule: self.rule.clone() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) file: Option<Arc<str>>,
    pub(crate) list: Vec<Finding>,
}

impl Findings {
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
        self.list.iter().filter(|finding| finding.severity == Severity::Error).count()
    }

    fn add(&mut self, severity: Severity, at: &At, message: String, hint: String) {
        self.list.push(Finding {
            severity,
            rule: at.rule.clone(),
            file: self.file.clone(),
            spot: at.spot,
            field: at.field.clone(),
            message,
            hint: (!hint.is_empty()).then_some(hint),
        });
    }

    /// In the order of the file. A warning or a note where there is an error would only repeat it.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        let wrong: Vec<String> =
            self.list.iter().filter(|it| it.severity == Severity::Error).map(|it| it.field.clone()).collect();
        self.list.retain(|finding| finding.severity == Severity::Error || !wrong.contains(&finding.field));
        self.list.sort_by_key(|finding| finding.spot.map(|spot| spot.start));
        self.list
    }
}
