//! Reading one block of a declaration strictly: every key is known, every value has its type, and nothing is empty by
//! accident. What is wrong becomes a finding, and reading goes on.

use crate::declare::finding::{At, Findings};
use crate::declare::kinds::{KeyDef, ValueType};
use crate::declare::tree::{Entries, MapEntry, Node, NodeContent};
use crate::declare::{names, spelling};
use document::value::Path;
use document::{Doc, Value};
use std::time::Duration;

/// A map of the declaration.
#[derive(Clone)]
pub(crate) struct Block<'a> {
    pub(crate) entries: &'a Entries,
    /// The key that holds it.
    pub(crate) at: At,
}

/// One value of a block.
#[derive(Clone)]
pub(crate) struct BlockItem<'a> {
    pub(crate) node: &'a Node,
    /// The value, or its key where there is no value.
    pub(crate) at: At,
    pub(crate) key: &'a str,
}

impl<'a> Block<'a> {
    /// What the block was compiled to; an error that no check foresaw is a finding about the whole block.
    pub(crate) fn compiled<T>(&self, compiled: document::Result<T>, findings: &mut Findings) -> Option<T> {
        compiled
            .inspect_err(|error| {
                findings.error(&self.at, error.message().to_owned(), "say it in another way".to_owned())
            })
            .ok()
    }

    /// `node` as a map; `what` is it to hold, for the message.
    pub(crate) fn open(node: &'a Node, at: At, what: &str, findings: &mut Findings) -> Option<Block<'a>> {
        match &node.content {
            NodeContent::Map(entries) if !entries.is_empty() => Some(Block { entries, at }),
            NodeContent::Map(_) => {
                findings.error(&at, format!("{} is empty", at.name()), format!("{what}, or leave it out"));
                None
            }
            _ if node.is_empty() => {
                findings.error(&at, format!("{} is empty", at.name()), format!("{what}, or leave it out"));
                None
            }
            _ => {
                findings.error(&at, format!("{} must be a map, not {}", at.name(), node.kind()), what);
                None
            }
        }
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = BlockItem<'a>> + use<'a, '_> {
        self.entries.iter().map(|entry| self.item(entry))
    }

    fn item(&self, entry: &'a MapEntry) -> BlockItem<'a> {
        let place = if entry.value.is_empty() { entry.spot } else { entry.value.spot.or(entry.spot) };
        BlockItem { node: &entry.value, at: self.at.inside(&entry.key, place), key: &entry.key }
    }

    pub(crate) fn get(&self, key: &str) -> Option<BlockItem<'a>> {
        self.entries.find(key).map(|entry| self.item(entry))
    }

    /// The place of a key itself.
    pub(crate) fn key_at(&self, key: &str) -> At {
        let spot = self.entries.find(key).and_then(|entry| entry.spot);
        self.at.inside(key, spot)
    }

    /// As [`Block::get`]; a missing one is a finding.
    pub(crate) fn require(&self, key: &str, example: &str, findings: &mut Findings) -> Option<BlockItem<'a>> {
        let item = self.get(key);
        // A misspelt one is told where it stands.
        let misspelt = || self.entries.iter().any(|entry| spelling::nearest(&entry.key, [key]).is_some());
        if item.is_none() && !misspelt() {
            findings.error(&self.at, format!("{} has no `{key}`", self.at.name()), format!("add `{example}`"));
        }
        item
    }

    /// Reports every key that is not in `keys`.
    pub(crate) fn only(&self, keys: &[KeyDef], findings: &mut Findings) {
        let all = keys.iter().map(|key| key.name);
        let there = keys.iter().filter(|key| key.shape != ValueType::NotYet).map(|key| key.name);
        for entry in self.entries.iter() {
            if !all.clone().any(|name| name == entry.key) {
                self.unknown(&entry.key, all.clone(), there.clone(), findings);
            }
        }
    }

    /// Reports a key that is not among the `known` ones; `there` are those to recommend.
    pub(crate) fn unknown<'k>(
        &self,
        key: &str,
        known: impl Iterator<Item = &'k str>,
        there: impl Iterator<Item = &'k str>,
        findings: &mut Findings,
    ) {
        let allowed = spelling::all_of(there);
        let hint = match spelling::nearest(key, known) {
            Some(meant) => format!("did you mean `{meant}`? The keys here are {allowed}"),
            None => format!("the keys here are {allowed}"),
        };
        findings.error(&self.key_at(key), format!("unknown key `{}`", key.escape_debug()), hint);
    }
}

impl<'a> BlockItem<'a> {
    pub(crate) fn expected(&self, what: &str, example: &str, findings: &mut Findings) {
        let message = match self.node.is_empty() {
            true => format!("`{}` is empty", self.key),
            false => format!("`{}` must be {what}, not {}", self.key, self.node.kind()),
        };
        findings.error(&self.at, message, format!("write `{}: {example}`", self.key));
    }

    pub(crate) fn text(&self, what: &str, example: &str, findings: &mut Findings) -> Option<&'a str> {
        match &self.node.content {
            NodeContent::Scalar(Value::String(text)) if !text.as_str().is_empty() => Some(text.as_str()),
            _ => {
                self.expected(what, example, findings);
                None
            }
        }
    }

    /// The path of a field.
    pub(crate) fn path(&self, example: &str, findings: &mut Findings) -> Option<Path> {
        let text = self.text("a field", example, findings)?;
        let path = names::path(text).map_err(|reason| self.bad(text, &reason, example, findings)).ok()?;
        if path.first() == "_pleach" {
            self.bad(text, "`_pleach` holds Pleach's own state", example, findings);
            return None;
        }
        Some(path)
    }

    /// The name of a collection of `database`.
    pub(crate) fn collection(&self, database: &str, example: &str, findings: &mut Findings) -> Option<&'a str> {
        let text = self.text("the name of a collection", example, findings)?;
        names::collection(database, text).map_err(|reason| self.bad(text, &reason, example, findings)).ok()?;
        Some(text)
    }

    fn bad(&self, text: &str, reason: &str, example: &str, findings: &mut Findings) {
        findings.error(
            &self.at,
            format!("`{}: {}`: {reason}", self.key, text.escape_debug()),
            format!("write it as in `{}: {example}`", self.key),
        );
    }

    /// One of the words that `choices` gives a meaning.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&'static str, T)], findings: &mut Findings) -> Option<T> {
        let words = || choices.iter().map(|(word, _)| *word);
        let text = match &self.node.content {
            NodeContent::Scalar(Value::String(text)) => text.as_str(),
            _ => {
                findings.error(
                    &self.at,
                    format!("`{}` must be a word, not {}", self.key, self.node.kind()),
                    format!("write {}", spelling::one_of(words())),
                );
                return None;
            }
        };
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let hint = match spelling::nearest(text, words()) {
                Some(meant) => format!("did you mean `{meant}`? It is {}", spelling::one_of(words())),
                None => format!("it is {}", spelling::one_of(words())),
            };
            findings.error(&self.at, format!("`{}` cannot be `{}`", self.key, text.escape_debug()), hint);
        }
        found
    }

    pub(crate) fn flag(&self, findings: &mut Findings) -> Option<bool> {
        match &self.node.content {
            NodeContent::Scalar(Value::Bool(truth)) => Some(*truth),
            _ => {
                self.expected("true or false", "true", findings);
                None
            }
        }
    }

    /// A whole number from 1.
    pub(crate) fn number(&self, most: u32, example: &str, findings: &mut Findings) -> Option<u32> {
        self.number_from(1, most, example, findings)
    }

    /// A whole number from 0.
    pub(crate) fn amount(&self, most: u32, example: &str, findings: &mut Findings) -> Option<u32> {
        self.number_from(0, most, example, findings)
    }

    fn number_from(&self, least: u32, most: u32, example: &str, findings: &mut Findings) -> Option<u32> {
        let number = match &self.node.content {
            NodeContent::Scalar(value) if value.is_number() => value.as_i64_exact(),
            _ => {
                self.expected("a whole number", example, findings);
                return None;
            }
        };
        let found =
            number.and_then(|number| u32::try_from(number).ok()).filter(|number| (least..=most).contains(number));
        if found.is_none() {
            findings.error(
                &self.at,
                format!("`{}` must be a whole number from {least} to {most}", self.key),
                format!("write `{}: {example}`", self.key),
            );
        }
        found
    }

    /// `500ms`, `5s`, `2m`, `1h`.
    pub(crate) fn duration(&self, findings: &mut Findings) -> Option<Duration> {
        let text = match &self.node.content {
            NodeContent::Scalar(Value::String(text)) => text.as_str(),
            _ => {
                self.expected("a duration with its unit", "5s", findings);
                return None;
            }
        };
        let parsed = parse_duration(text);
        if parsed.is_none() {
            findings.error(
                &self.at,
                format!("`{}: {}` is no duration between 1ms and 24h", self.key, text.escape_debug()),
                "write a whole number and its unit: `500ms`, `5s`, `2m` or `1h`",
            );
        }
        parsed
    }

    /// A map, as a document: a filter, an expression's operators.
    pub(crate) fn document(&self, example: &str, findings: &mut Findings) -> Option<Doc<'static>> {
        match self.node.to_value() {
            Value::Document(doc) if !doc.is_empty() => Some(doc),
            Value::Document(_) => {
                findings.error(
                    &self.at,
                    format!("`{}` is empty", self.key),
                    format!("write it as in `{}: {example}`, or leave it out", self.key),
                );
                None
            }
            _ => {
                self.expected("a map", example, findings);
                None
            }
        }
    }
}

impl At {
    /// The last name of the path, quoted, for the beginning of a message.
    pub(crate) fn name(&self) -> String {
        match self.field.is_empty() {
            true => "the declaration".to_owned(),
            false => format!("`{}`", self.field.strip_prefix("collections.").unwrap_or(&self.field)),
        }
    }
}

pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => number,
        "s" => number.checked_mul(1_000)?,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        _ => return None,
    };
    (1..=24 * 3_600_000).contains(&millis).then(|| Duration::from_millis(millis))
}

/// As [`parse_duration`] reads it, with the largest unit that keeps it whole.
pub(crate) fn print_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("5s", Some(5_000)),
            ("500ms", Some(500)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("24h", Some(86_400_000)),
            ("25h", None),
            ("0s", None),
            ("5", None),
            ("s", None),
            ("5 s", None),
            ("-5s", None),
            ("1.5s", None),
            ("99999999999999999999s", None),
            ("", None),
        ] {
            assert_eq!(parse_duration(text).map(|it| it.as_millis()), millis, "{text}");
        }
        for text in ["5s", "500ms", "2m", "1h", "1500ms", "90s"] {
            assert_eq!(print_duration(parse_duration(text).expect(text)), text);
        }
    }
}
