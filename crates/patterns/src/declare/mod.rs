//! From YAML or BSON to checked rules, with positions in every finding.
//!
//! [`from_yaml`] and [`from_bson`] read a declaration; both give all findings, and the rules if none of them is an error.
//! The way of a declaration: bytes → [`tree`] ([`yaml`], [`bson`]) → blocks ([`walk`], [`block`]) → rules (`kinds`) → checks
//! of the rules together ([`check`]) → their order ([`order`]).

pub(crate) mod block;
mod bson;
mod check;
mod combinations;
mod diff;
mod extended_json;
pub(crate) mod finding;
pub mod kinds;
mod lifted_arrays;
pub(crate) mod names;
pub(crate) mod normal;
mod outliers;
pub(crate) mod programs;
mod shaped_sources;
pub(crate) mod spelling;
pub(crate) mod tree;
mod walk;
pub(crate) mod yaml;

#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod tests;

pub use crate::rule::order::order;
pub use check::compatible;
pub(crate) use diff::change;
pub use diff::{RuleChange, RuleDifference, diff};
pub use finding::{Finding, Severity};
pub use tree::Spot;

use crate::rule::Rule;
use document::{Code, Doc, Error, Result, Value};
use finding::{At, Findings};
use std::sync::Arc;

/// A larger declaration is not read.
pub const MAX_BYTES: usize = 1 << 20;

/// A declaration without errors.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub database: Arc<str>,
    /// In the order of their fields' dependencies: a rule comes after those whose fields it reads (SEMANTICS R29).
    pub rules: Vec<Rule>,
}

/// What reading a declaration gave.
#[derive(Clone, Debug)]
pub struct Checked {
    /// `None` if there is an error among the findings.
    pub declaration: Option<Declaration>,
    /// In the order of the file.
    pub findings: Vec<Finding>,
}

/// One of several parts that are checked together: a file's text, or a document from the wire.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// What findings call it.
    pub file: &'a str,
    pub content: DeclarationText<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum DeclarationText<'a> {
    Yaml(&'a str),
    Bson(&'a Doc<'a>),
}

/// The parts that are for one database, as one declaration.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their positions among all parts.
    pub parts: Vec<usize>,
    pub checked: Checked,
}

/// Reads parts that are declared together: those for one database are one declaration. `database` stands in for one that a
/// part does not name.
pub fn from_parts(parts: &[Part<'_>], database: Option<&str>) -> Vec<Group> {
    struct Open {
        database: Option<Arc<str>>,
        parts: Vec<usize>,
        drafts: Vec<check::Draft>,
        findings: Findings,
    }
    let mut groups: Vec<Open> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut findings = Findings::of(part.file);
        let (own, drafts) = match part.content {
            DeclarationText::Yaml(text) => read_yaml(text, &mut findings),
            DeclarationText::Bson(doc) if is_too_large(doc.as_bytes().len(), &mut findings) => (None, Vec::new()),
            DeclarationText::Bson(doc) => {
                let node = bson::read(doc, &mut findings);
                walk::declaration(&node, database, &mut findings)
            }
        };
        match groups.iter_mut().find(|group| own.is_some() && group.database == own) {
            Some(group) => {
                group.parts.push(index);
                group.drafts.extend(drafts);
                group.findings.extend(findings);
            }
            None => groups.push(Open { database: own, parts: vec![index], drafts, findings }),
        }
    }
    let files: Vec<Arc<str>> = parts.iter().map(|part| part.file.into()).collect();
    let close = |Open { database, parts, drafts, mut findings }: Open| {
        findings.file = None;
        let checked = finish(database, drafts, findings, &files);
        Group { parts, checked }
    };
    groups.into_iter().map(close).collect()
}

/// Reads a file's text; `file` is what findings call it.
pub fn from_yaml(file: &str, text: &str) -> Checked {
    let file: Arc<str> = file.into();
    let mut findings = Findings::of(&file);
    let (database, drafts) = read_yaml(text, &mut findings);
    finish(database, drafts, findings, &[file])
}

fn read_yaml(text: &str, findings: &mut Findings) -> (Option<Arc<str>>, Vec<check::Draft>) {
    if is_too_large(text.len(), findings) {
        return (None, Vec::new());
    }
    let node = yaml::read(text, findings);
    if node.is_none() && findings.errors() == 0 {
        findings.error(&At::default(), "the file is empty", "begin with `database: <name>` and `collections:`");
    }
    match node {
        Some(node) => walk::declaration(&node, None, findings),
        None => (None, Vec::new()),
    }
}

/// The file's text as the document that says the same over the wire; `None` if it is no map of YAML. Says nothing about whether
/// it is a valid declaration.
pub fn to_bson(text: &str) -> Option<Doc<'static>> {
    let mut findings = Findings::default();
    if is_too_large(text.len(), &mut findings) {
        return None;
    }
    match yaml::read(text, &mut findings)?.to_value() {
        Value::Document(doc) if findings.errors() == 0 => Some(doc),
        _ => None,
    }
}

/// Reads a document from the wire. `database` stands in for a missing `database` of the declaration; a different one is refused.
pub fn from_bson(doc: &Doc<'_>, database: Option<&str>) -> Checked {
    let mut findings = Findings::default();
    if is_too_large(doc.as_bytes().len(), &mut findings) {
        return finish(None, Vec::new(), findings, &[]);
    }
    let node = bson::read(doc, &mut findings);
    let (database, drafts) = walk::declaration(&node, database, &mut findings);
    finish(database, drafts, findings, &[])
}

/// YAML that is no declaration, read as strictly: what it says, or all that is wrong with it.
pub fn plain_yaml(file: &str, text: &str) -> Result<Value<'static>> {
    let mut findings = Findings::of(file);
    let node = yaml::read(text, &mut findings);
    match (node, findings.list.iter().find(|finding| finding.severity == Severity::Error)) {
        (Some(node), None) => Ok(node.to_value()),
        (_, Some(finding)) => {
            let line = finding.spot.map(|spot| format!(":{}", spot.line)).unwrap_or_default();
            Err(Error::bad_value(format!("{file}{line}: {}", finding.message)))
        }
        (None, None) => Ok(Value::Null),
    }
}

/// The rule that a [`Rule::declaration`] was made from.
pub fn from_catalog(declaration: &Doc<'_>) -> Result<Rule> {
    let Declaration { rules, .. } = from_bson(declaration, None).into_result()?;
    match <[Rule; 1]>::try_from(rules) {
        Ok([rule]) => Ok(rule),
        Err(rules) => Err(Error::new(Code::BadValue, format!("a catalog entry declares {} rules", rules.len()))),
    }
}

impl Checked {
    /// The declaration, or its errors as one error for a client.
    pub fn into_result(self) -> Result<Declaration> {
        let Checked { declaration, findings } = self;
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        declaration.ok_or_else(|| {
            let told: Vec<String> = errors.clone().map(Finding::described).collect();
            let hint = errors.clone().find_map(|finding| finding.hint.clone());
            let error = Error::new(Code::BadValue, format!("the declaration has errors: {}", told.join("; ")));
            match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        })
    }

    /// The worst of the findings.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

fn is_too_large(bytes: usize, findings: &mut Findings) -> bool {
    if bytes <= MAX_BYTES {
        return false;
    }
    let message = format!("the declaration has {bytes} bytes; at most 1 MB ({MAX_BYTES} bytes) is read");
    findings.error(&At::default(), message, "declare the rules of one database; data does not belong in it");
    true
}

fn finish(
    database: Option<Arc<str>>,
    drafts: Vec<check::Draft>,
    mut findings: Findings,
    files: &[Arc<str>],
) -> Checked {
    let rules = check::together(drafts, &mut findings);
    let sound = findings.errors() == 0;
    let declaration = database.zip(rules).filter(|_| sound).map(|(database, rules)| Declaration { database, rules });
    Checked { declaration, findings: findings.sorted(files) }
}
