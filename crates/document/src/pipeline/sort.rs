//! `$sort`: all documents in the order of a pattern; with a limit behind it, only the first so many are kept meanwhile.
//!
//! Equal documents keep the order they came in. Beyond the memory limit it goes on on disk if it may ([`super::external_sort`]); otherwise
//! that is an error.

use super::external_sort;
use super::rows::drain;
use super::sort_spec::{self, SortKeyValues};
use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::op::SortSpec;
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const STAGE: StageDef =
    StageDef { name: "$sort", help: "Orders the documents.", parse, place: Place::Anywhere, refused: false };

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(spec) = spec else {
        return Err(Error::new(Code::Location(15973), "the $sort key specification must be an object"));
    };
    let spec = sort_spec::parse(spec)?;
    if spec.reads_score() {
        parser.names.note_score();
    }
    if spec.keys.is_empty() {
        return Err(Error::new(Code::Location(15976), "$sort stage must have at least one sort key"));
    }
    Parsed::one(Sort { spec, limit: None })
}

/// With a small limit only so many documents are kept at a time: that needs no disk.
const SMALL_LIMIT: u64 = 1_000;

/// A compiled `$sort`.
#[derive(Clone, Debug)]
pub struct Sort {
    pub spec: SortSpec,
    /// How many of the first are wanted: the `$limit` behind it, put here by the optimiser.
    pub limit: Option<u64>,
}

impl Stage for Sort {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(sorted(input, self.spec.clone(), self.limit, &run.env))
    }

    fn role(&self) -> Role<'_> {
        Role::Sort(self)
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = after?;
        needed.extend(self.spec.keys.iter().map(|key| key.path.clone()));
        Some(needed)
    }

    fn keeps(&self, _path: &Path) -> bool {
        self.limit.is_none()
    }
}

/// The documents of `input` in order, only the first `limit` if there is one. Serves `find` too.
pub fn sorted(input: Rows, spec: SortSpec, limit: Option<u64>, env: &Env) -> Rows {
    if let Some(spill) = env.spill.as_ref().filter(|_| limit.is_none_or(|limit| limit > SMALL_LIMIT)) {
        return external_sort::sorted(input, spec, limit, env, spill.clone());
    }
    Box::new(Sorting { input: Some(input), spec, limit, env: env.clone(), output: Vec::new().into_iter() })
}

struct Sorting {
    /// Gone once it is drained, so that what it holds is freed.
    input: Option<Rows>,
    spec: SortSpec,
    limit: Option<u64>,
    env: Env,
    output: std::vec::IntoIter<Entry>,
}

impl Stream for Sorting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            let limit = self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
            let mut kept = SortBuffer { spec: &self.spec, limit, entries: Vec::new(), worst: None, bytes: 0 };
            let (mut sequence, memory) = (0, self.env.memory_limit);
            drain(&mut *input, &self.env, |doc| {
                sequence += 1;
                kept.add(Entry { key: sort_spec::key(&self.spec, &doc)?, sequence, doc }, memory)
            })?;
            self.output = kept.finish().into_iter();
        }
        Ok(self.output.next().map(|entry| entry.doc))
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

struct Entry {
    key: SortKeyValues<'static>,
    sequence: u64,
    doc: Doc<'static>,
}

/// What is kept while draining. With a limit, up to twice as many; then the worse half is dropped at once, which costs a
/// comparison or two per document, and `worst` lets most later ones be dropped by one.
struct SortBuffer<'s> {
    spec: &'s SortSpec,
    limit: Option<usize>,
    entries: Vec<Entry>,
    /// No entry behind this one can be among the first.
    worst: Option<SortKeyValues<'static>>,
    bytes: usize,
}

impl SortBuffer<'_> {
    fn add(&mut self, entry: Entry, memory: usize) -> Result<()> {
        if self.worst.as_ref().is_some_and(|worst| sort_spec::compare(self.spec, &entry.key, worst) != Ordering::Less) {
            return Ok(());
        }
        self.bytes += size(&entry);
        self.entries.push(entry);
        if self.limit.is_some_and(|limit| self.entries.len() > limit.saturating_mul(2).max(64)) {
            self.cut();
        }
        if self.bytes > memory {
            self.cut();
        }
        if self.bytes > memory {
            return Err(Error::new(
                Code::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!("Sort exceeded memory limit of {memory} bytes, but did not opt in to external sorting."),
            ));
        }
        Ok(())
    }

    fn cut(&mut self) {
        let Some(limit) = self.limit.filter(|limit| *limit > 0 && *limit < self.entries.len()) else { return };
        let spec = self.spec;
        let (_, last, _) = self.entries.select_nth_unstable_by(limit - 1, |a, b| compare(spec, a, b));
        self.worst = Some(last.key.clone());
        self.entries.truncate(limit);
        self.bytes = self.entries.iter().map(size).sum();
    }

    fn finish(mut self) -> Vec<Entry> {
        self.cut();
        self.entries.sort_unstable_by(|a, b| compare(self.spec, a, b));
        self.entries
    }
}

fn compare(spec: &SortSpec, a: &Entry, b: &Entry) -> Ordering {
    sort_spec::compare(spec, &a.key, &b.key).then_with(|| a.sequence.cmp(&b.sequence))
}

fn size(entry: &Entry) -> usize {
    size_of::<Entry>() + entry.doc.as_bytes().len()
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error, documents};
    use bson::{bson, doc};

    #[test]
    fn documents_come_in_order() {
        let input =
            || documents(bson!([{ "_id": 1, "a": 2 }, { "_id": 2 }, { "_id": 3, "a": [0, 9] }, { "_id": 4, "a": 2 }]));
        check(
            input(),
            bson!([{ "$sort": { "a": 1 } }, { "$replaceWith": { "_id": "$_id" } }]),
            bson!([{ "_id": 2 }, { "_id": 3 }, { "_id": 1 }, { "_id": 4 }]),
        );
        check(
            input(),
            bson!([{ "$sort": { "a": -1 } }, { "$limit": 2 }, { "$replaceWith": { "_id": "$_id" } }]),
            bson!([{ "_id": 3 }, { "_id": 1 }]),
        );
        check(
            input(),
            bson!([{ "$sort": { "a": -1, "_id": -1 } }, { "$skip": 1 }, { "$limit": 1 }, { "$replaceWith": { "_id": "$_id" } }]),
            bson!([{ "_id": 4 }]),
        );
    }

    #[test]
    fn the_first_of_many_are_kept() {
        let input: Vec<_> = (0..1000).map(|n| doc! { "_id": (n * 7919) % 1000 }).collect();
        check(
            input,
            bson!([{ "$sort": { "_id": -1 } }, { "$limit": 3 }]),
            bson!([{ "_id": 999 }, { "_id": 998 }, { "_id": 997 }]),
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        check_error(bson!([{ "$sort": 1 }]), 15973, "the $sort key specification must be an object");
        check_error(bson!([{ "$sort": {} }]), 15976, "$sort stage must have at least one sort key");
        check_error(
            bson!([{ "$sort": { "a": 0 } }]),
            15975,
            "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
        );
    }
}
