//! What is still different between two versions while steps are found.

use super::evidence::{Evidence, KnownField, value_at};
use super::written::{WrittenStep, applied_to};
use super::{Proposal, ProposalNote, ProposedStep};
use document::value::{Path, order};
use document::{Doc, DocWriter, Value};
use std::collections::BTreeMap;

/// Steps are tried on so many documents.
const MOST_PAIRS: usize = 200;

pub(super) struct Search<'e> {
    /// The fields of the older version, as the steps that were found leave them.
    pub(super) old: Vec<KnownField>,
    pub(super) new: &'e Evidence,
    /// The same documents in both versions, the older as the steps leave it.
    pub(super) pairs: Vec<(Doc<'static>, Doc<'static>)>,
    pub(super) found: Vec<Found>,
    pub(super) notes: Vec<ProposalNote>,
}

/// A step that was found, and why.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) written: WrittenStep,
    pub(super) is_sure: bool,
    pub(super) because: String,
}

/// How many documents show something, of how many that could.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) by: usize,
    pub(super) of: usize,
}

impl Shown {
    pub(super) fn by_all(self) -> bool {
        self.of > 0 && self.by == self.of
    }

    /// By almost all.
    pub(super) fn by_most(self) -> bool {
        self.of > 0 && self.by * 10 >= self.of * 9
    }

    pub(super) fn text(self) -> String {
        match self.by_all() {
            true if self.of == 1 => "in the one document that both samples have".to_owned(),
            true => format!("in all {} documents that both samples have", self.of),
            false => format!("in {} of {} documents that both samples have", self.by, self.of),
        }
    }
}

impl<'e> Search<'e> {
    pub(super) fn new(old: &Evidence, new: &'e Evidence) -> Search<'e> {
        let notes = old.notes.iter().chain(&new.notes);
        let notes = notes.map(|text| ProposalNote { text: text.clone(), is_difference: false }).collect();
        let pairs = Some(pairs(&old.documents, &new.documents)).filter(|pairs| are_the_same(pairs, old, new));
        let pairs = pairs.unwrap_or_default();
        Search { old: old.fields.clone(), new, pairs, found: Vec::new(), notes }
    }

    pub(super) fn run(&mut self) {
        self.renamed_documents();
        self.moves(true);
        self.texts();
        self.moves(false);
        self.constants_beside();
        self.changed_types();
        self.new_fields();
        self.gone_fields();
    }

    pub(super) fn finish(self, collection: &str) -> Proposal {
        let step = |found: Found| ProposedStep {
            losses: found.written.step.losses(),
            declared: match found.written.declared {
                Value::Document(declared) => declared,
                _ => Doc::empty(),
            },
            is_sure: found.is_sure,
            because: found.because,
        };
        let steps = self.found.into_iter().map(step).collect();
        Proposal { collection: collection.to_owned(), steps, notes: self.notes, trial: None }
    }

    /// Fields that only older documents have.
    pub(super) fn gone(&self) -> Vec<KnownField> {
        let is_gone = |field: &&KnownField| {
            let is_place = field.types_of_values().all(|name| name == "object") && self.new.is_document(&field.path);
            self.new.field(&field.path).is_none() && !is_place
        };
        self.old.iter().filter(is_gone).cloned().collect()
    }

    /// Fields that only newer documents have.
    pub(super) fn fresh(&self) -> Vec<KnownField> {
        let is_fresh = |field: &&KnownField| {
            let below = |old: &KnownField| field.path.is_prefix_of(&old.path) && field.path != old.path;
            let is_place = field.types_of_values().all(|name| name == "object") && self.old.iter().any(below);
            self.old_field(&field.path).is_none() && !is_place
        };
        self.new.fields.iter().filter(is_fresh).cloned().collect()
    }

    pub(super) fn old_field(&self, path: &Path) -> Option<&KnownField> {
        self.old.iter().find(|field| field.path == *path)
    }

    /// Whether older documents have something at the path or below it.
    pub(super) fn old_has(&self, path: &Path) -> bool {
        self.old.iter().any(|field| path.is_prefix_of(&field.path))
    }

    /// In how many documents the steps make what newer ones have at these paths. Only documents count that have one of `from` before
    /// or one of the paths after.
    pub(super) fn shown(&self, steps: &[WrittenStep], from: &[&Path], to: &[&Path]) -> Option<Shown> {
        let has = |doc: &Doc<'_>, paths: &[&Path]| paths.iter().any(|path| value_at(doc, path).is_some());
        let relevant = self.pairs.iter().filter(|(before, after)| has(before, from) || has(after, to));
        let relevant: Vec<&(Doc<'static>, Doc<'static>)> = relevant.take(MOST_PAIRS).collect();
        let made = applied_to(steps, relevant.iter().map(|(before, _)| before))?;
        let is_same = |(made, (_, after)): &(&Doc<'static>, &&(Doc<'static>, Doc<'static>))| {
            to.iter().all(|path| same(value_at(made, path), value_at(after, path)))
        };
        let by = made.iter().zip(&relevant).filter(is_same).count();
        Some(Shown { by, of: relevant.len() })
    }

    /// Takes steps: what they explain is no longer different.
    pub(super) fn take(
        &mut self,
        steps: Vec<WrittenStep>,
        from: &[Path],
        to: &[KnownField],
        is_sure: bool,
        because: &str,
    ) {
        if let Some(befores) = applied_to(&steps, self.pairs.iter().map(|(before, _)| before)) {
            for (pair, before) in self.pairs.iter_mut().zip(befores) {
                pair.0 = before;
            }
        }
        self.old.retain(|field| !from.contains(&field.path));
        self.old.extend(to.iter().cloned());
        for written in steps {
            self.found.push(Found { written, is_sure, because: because.to_owned() });
        }
    }

    pub(super) fn note(&mut self, text: String, is_difference: bool) {
        self.notes.push(ProposalNote { text, is_difference });
    }
}

/// Whether both hold the same, or nothing.
fn same(one: Option<Value<'_>>, other: Option<Value<'_>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => order::equal(&one, &other),
        _ => false,
    }
}

/// Whether pairs are one document each: samples that are both numbered from 1 have the same `_id`s too. Fields that did not change
/// tell.
fn are_the_same(pairs: &[(Doc<'static>, Doc<'static>)], old: &Evidence, new: &Evidence) -> bool {
    let is_telling = |field: &&KnownField| {
        field.values.len() > 1 && new.field(&field.path).is_some_and(|other| other.types == field.types)
    };
    let equal = |field: &KnownField| {
        let is_equal = |(before, after): &&(Doc<'static>, Doc<'static>)| {
            same(value_at(before, &field.path), value_at(after, &field.path))
        };
        pairs.iter().filter(is_equal).count() * 2 >= pairs.len()
    };
    let telling: Vec<&KnownField> = old.fields.iter().filter(is_telling).collect();
    telling.is_empty() || telling.into_iter().any(equal)
}

/// Documents of both samples with one `_id`; none if that is few of them.
fn pairs(old: &[Doc<'static>], new: &[Doc<'static>]) -> Vec<(Doc<'static>, Doc<'static>)> {
    let id = |doc: &Doc<'static>| {
        let mut own = DocWriter::new();
        own.append("", &doc.get("_id")?);
        Some(own.finish().into_bytes())
    };
    let by_id: BTreeMap<_, &Doc<'static>> = old.iter().filter_map(|doc| Some((id(doc)?, doc))).collect();
    let pair = |doc: &Doc<'static>| Some(((*by_id.get(&id(doc)?)?).clone(), doc.clone()));
    let pairs: Vec<_> = new.iter().filter_map(pair).collect();
    // Numbers that two samples count from 1 by chance name other documents.
    if pairs.len() * 2 >= old.len().min(new.len()) { pairs } else { Vec::new() }
}
