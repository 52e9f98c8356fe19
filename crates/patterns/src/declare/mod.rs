//! From YAML or BSON to checked rules, with positions in every finding.
//!
//! [`from_yaml`] and [`from_bson`] read a declaration; both give all findings, and the rules if none of them is an error.
//! The way of a declaration: bytes → [`tree`] ([`yaml`], [`bson`]) → blocks ([`walk`], [`block`]) → rules (`kinds`) → checks
//! of the rules together ([`check`]) → their order ([`order`]).

mod apart;
pub(crate) mod block;
mod bson;
mod check;
mod diff;
mod extended_json;
pub(crate) mod finding;
pub(crate) mod names;
pub(crate) mod normal;
mod order;
pub(crate) mod programs;
pub(crate) mod spelling;
pub(crate) mod tree;
mod walk;
mod yaml;

#[cfg(test)]
mod tests;

pub use check::compatible;
pub use diff::{Change, Difference, diff};
pub use finding::{Finding, Severity};
pub use order::{Reads, order, reads};
pub use tree::Spot;

use crate::rule::Rule;
use document::{Code, Doc, Error, Result, Value};
use finding::{At, Findings};
use std::sync::Arc;

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
    /// Nothing if there is an error among the findings.
    pub declaration: Option<Declaration>,
    /// In the order of the file.
    pub findings: Vec<Finding>,
}

/// Reads a file's text; `file` is what findings call it.
pub fn from_yaml(file: &str, text: &str) -> Checked {
    let mut findings = Findings { file: Some(file.into()), list: Vec::new() };
    let node = yaml::read(text, &mut findings);
    if node.is_none() && findings.errors() == 0 {
        findings.error(&At::default(), "the file is empty", "begin with `database: <name>` and `collections:`");
    }
    let (database, drafts) = match node {
        Some(node) => walk::declaration(&node, None, &mut findings),
        None => (None, Vec::new()),
    };
    finish(database, drafts, findings)
}

/// The file's text as the document that says the same over the wire; nothing if it is no map of YAML. Says nothing about whether
/// it is a valid declaration.
pub fn to_bson(text: &str) -> Option<Doc<'static>> {
    let mut findings = Findings::default();
    match yaml::read(text, &mut findings)?.to_value() {
        Value::Document(doc) if findings.errors() == 0 => Some(doc),
        _ => None,
    }
}

/// Reads a document from the wire. `database` stands in for a missing `database` of the declaration; a different one is refused.
pub fn from_bson(doc: &Doc<'_>, database: Option<&str>) -> Checked {
    let mut findings = Findings::default();
    let node = bson::read(doc, &mut findings);
    let (database, drafts) = walk::declaration(&node, database, &mut findings);
    finish(database, drafts, findings)
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
            let told: Vec<String> =
                errors.clone().map(|finding| format!("{}: {}", finding.field, finding.message)).collect();
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

fn finish(database: Option<Arc<str>>, drafts: Vec<check::Draft>, mut findings: Findings) -> Checked {
    let rules = check::together(drafts, &mut findings);
    let sound = findings.errors() == 0;
    let declaration = database.zip(rules).filter(|_| sound).map(|(database, rules)| Declaration { database, rules });
    Checked { declaration, findings: findings.sorted() }
}
