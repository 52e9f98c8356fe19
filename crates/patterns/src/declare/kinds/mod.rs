//! The patterns, one file each: what it is for, which keys its blocks have, and how a block is lowered to a rule.

mod bucket;
mod children;
pub(crate) mod computed;
mod excerpt_fields;
pub(crate) mod extended_reference;
mod field_names;
mod lift;
mod link_keys;
mod outlier;
mod polymorphic;
mod sort_keys;
mod subset;
mod versions;

use crate::declare::block::Block;
use crate::declare::finding::Findings;
use crate::declare::kinds::extended_reference::{CLIENT_WRITES, word};
use crate::declare::normal;
use crate::rule::{ClientWrites, Field, HostField, Kind, Rule};
use document::op::Namespace;
use document::value::Path;
use document::{DocWriter, Value};
use std::sync::Arc;

/// All patterns, sorted by name.
pub const PATTERNS: &[&Pattern] = &[
    &bucket::PATTERN,
    &computed::PATTERN,
    &extended_reference::PATTERN,
    &field_names::PATTERN,
    &outlier::PATTERN,
    &polymorphic::PATTERN,
    &subset::PATTERN,
    &versions::PATTERN,
];

/// One entry of the catalogue.
pub struct Pattern {
    /// The key in the declaration; of the concept page and the example folder.
    pub name: &'static str,
    pub title: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// What hurts without it.
    pub problem: &'static str,
    /// What Pleach does about it.
    pub mechanism: &'static str,
    /// How to recognise the problem in one's own application.
    pub symptom: &'static str,
    pub when_not: &'static str,
    /// A declaration in miniature.
    pub example: &'static str,
    pub status: Status,
}

pub enum Status {
    There(Definition),
    /// There, as a way to declare another pattern: `layout: field_names` of a bucket.
    Within {
        pattern: &'static str,
        written: &'static str,
    },
    /// Recognised and refused.
    NotYet,
}

/// How a pattern is declared and lowered.
pub struct Definition {
    pub per: Per,
    /// The keys of a block, sorted by name.
    pub keys: &'static [KeyDef],
    /// Which keys go together: a block has exactly one of these forms.
    pub forms: &'static [KeySet],
    pub(crate) lower: fn(&Block<'_>, &DeclaredField, &mut Findings) -> Option<Rule>,
}

/// What a block of a pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A field of the collection, under its name: the rule is called `collection.field`.
    Field,
    /// The whole collection: the rule is called `collection.pattern`.
    Collection,
}

/// One key of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyDef {
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    pub shape: ValueType,
}

/// One way to fill a block: these keys, and no others.
pub struct KeySet {
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
}

/// What a key's value looks like; the schema for editors is made from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueType {
    /// The name of a collection.
    Collection,
    /// A dotted path.
    Path,
    /// A list of names, or a map from name to path.
    Fields,
    /// The name of a top-level field.
    Name,
    Choice(&'static [&'static str]),
    Flag,
    /// A whole number from 1.
    Number {
        most: u32,
    },
    /// A whole number from 0.
    Amount {
        most: u32,
    },
    /// A regular expression.
    Regex,
    /// `500ms`, `5s`, `2m`, `1h`.
    Duration,
    /// A query filter.
    Filter,
    /// A map from paths to 1 or -1.
    Order,
    /// An aggregation expression.
    Expression,
    /// An aggregation expression that is a map: operators, or a document of expressions.
    Operators,
    /// A list, each item once.
    List {
        of: &'static ValueType,
        least: usize,
    },
    /// A map from names of fields.
    Map(&'static ValueType),
    /// A map with one entry: from one of these words to a name.
    Pair(&'static [&'static str]),
    /// A map with exactly these keys.
    Record(&'static [KeyDef]),
    /// A map with some of these keys.
    Part {
        keys: &'static [KeyDef],
        required: &'static [&'static str],
    },
    /// Any text but none.
    Word,
    /// A map from any text but none.
    Words(&'static ValueType),
    /// A map from paths to whole numbers from 1.
    Weights,
    Either(&'static [ValueType]),
    /// Part of the contract, not there yet: refused, whatever it holds.
    NotYet,
}

/// The rule that a block declares, before its block is read.
pub(crate) struct DeclaredField {
    pub(crate) name: Arc<str>,
    pub(crate) host: Namespace,
    pub(crate) field: Path,
}

impl DeclaredField {
    pub(crate) fn host_field(&self) -> HostField {
        HostField { rule: self.name.clone(), host: self.host.clone(), path: self.field.clone() }
    }

    /// The rule that keeps the field; `own` is its block in the normal form, but for `client_writes`.
    fn rule(&self, pattern: &Pattern, field: Arc<dyn Field>, client_writes: ClientWrites, mut own: DocWriter) -> Rule {
        if client_writes != ClientWrites::Override {
            own.append("client_writes", &Value::string(word(CLIENT_WRITES, client_writes)));
        }
        Rule {
            name: self.name.clone(),
            pattern: pattern.name,
            host: self.host.clone(),
            field: self.field.clone(),
            lift: None,
            kind: Kind::Field(field),
            client_writes,
            declaration: normal::field_rule(&self.host, pattern.name, &self.field, own.finish()),
        }
    }
}

impl Definition {
    /// The keys that can be declared today.
    pub fn keys_there(&self) -> impl Iterator<Item = &'static KeyDef> {
        self.keys.iter().filter(|key| key.shape != ValueType::NotYet)
    }

    /// Whether every form has the key.
    pub fn requires(&self, key: &str) -> bool {
        self.forms.iter().all(|form| form.required.contains(&key))
    }
}

impl Pattern {
    pub fn named(name: &str) -> Option<&'static Pattern> {
        PATTERNS.iter().copied().find(|pattern| pattern.name == name)
    }

    pub fn is_there(&self) -> bool {
        !matches!(self.status, Status::NotYet)
    }

    /// The names of the available patterns, as keys of a collection.
    pub fn available() -> impl Iterator<Item = &'static str> + Clone {
        PATTERNS.iter().filter(|pattern| matches!(pattern.status, Status::There(_))).map(|pattern| pattern.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_sorted_unique_and_documented() {
        assert!(PATTERNS.is_sorted_by(|a, b| a.name < b.name));
        for pattern in PATTERNS {
            for text in [pattern.help, pattern.problem, pattern.mechanism, pattern.symptom, pattern.when_not] {
                assert!(
                    text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || c == '`' || c == '$'),
                    "{}: {text}",
                    pattern.name
                );
            }
            assert!(!pattern.title.is_empty() && !pattern.example.is_empty(), "{}", pattern.name);
            if let Status::There(definition) = &pattern.status {
                assert!(definition.keys.is_sorted_by(|a, b| a.name < b.name), "{}", pattern.name);
                for key in definition.forms.iter().flat_map(|form| form.required.iter().chain(form.optional)) {
                    assert!(definition.keys_there().any(|def| def.name == *key), "{}: {key}", pattern.name);
                }
                for key in definition.keys_there() {
                    let mut all = definition.forms.iter().flat_map(|form| form.required.iter().chain(form.optional));
                    assert!(all.any(|name| *name == key.name), "{}: {} is in no form", pattern.name, key.name);
                }
                assert!(definition.keys.iter().all(|key| key.help.ends_with('.')), "{}", pattern.name);
            }
        }
    }
}
