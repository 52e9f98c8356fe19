//! Sorting more than fits in memory. Documents are sorted by the bytes of their keys ([`crate::value::key`]); what does not fit is
//! written as sorted runs and merged when read.

use super::rows::{Rows, Stream, drain};
use super::sort_spec;
use crate::env::Env;
use crate::error::Result;
use crate::op::SortSpec;
use crate::raw::Doc;
use crate::spill::{Spill, SpillFile};
use crate::value::key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub(super) fn sorted(input: Rows, spec: SortSpec, limit: Option<u64>, env: &Env, spill: Arc<dyn Spill>) -> Rows {
    let output = Output::Memory(Vec::new().into_iter());
    Box::new(Sorting { input: Some(input), spec, left: limit, env: env.clone(), spill, output })
}

/// A sort key and its document.
type Entry = (Vec<u8>, Doc<'static>);

struct Sorting {
    /// Gone once it is drained, so that what it holds is freed.
    input: Option<Rows>,
    spec: SortSpec,
    left: Option<u64>,
    env: Env,
    spill: Arc<dyn Spill>,
    output: Output,
}

enum Output {
    Memory(std::vec::IntoIter<Entry>),
    Merged(Merge),
}

impl Stream for Sorting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            self.output = self.sort(&mut *input)?;
        }
        match &mut self.left {
            Some(0) => return Ok(None),
            Some(left) => *left -= 1,
            None => {}
        }
        match &mut self.output {
            Output::Memory(entries) => Ok(entries.next().map(|(_, doc)| doc)),
            Output::Merged(merge) => merge.next(),
        }
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

impl Sorting {
    fn sort(&self, input: &mut dyn Stream) -> Result<Output> {
        let (mut entries, mut runs): (Vec<Entry>, Vec<Box<dyn SpillFile>>) = (Vec::new(), Vec::new());
        let (mut bytes, mut sequence) = (0, 0_u64);
        drain(input, &self.env, |doc| {
            sequence += 1;
            let key = self.key(&doc, sequence)?;
            let entry = (key, doc);
            bytes += size(&entry);
            entries.push(entry);
            if let Some(limit) = self.left.and_then(|limit| usize::try_from(limit).ok())
                && entries.len() >= limit.saturating_mul(2).max(64)
            {
                entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                entries.truncate(limit);
                bytes = entries.iter().map(size).sum();
            }
            if bytes > self.spill.memory() {
                runs.push(self.run(&mut entries)?);
                bytes = 0;
            }
            Ok(())
        })?;
        if runs.is_empty() {
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            return Ok(Output::Memory(entries.into_iter()));
        }
        if !entries.is_empty() {
            runs.push(self.run(&mut entries)?);
        }
        Merge::new(runs).map(Output::Merged)
    }

    /// The sort key as bytes; the sequence behind it keeps equal documents in the order they came in.
    fn key(&self, doc: &Doc<'_>, sequence: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(32);
        for (wanted, value) in self.spec.keys.iter().zip(sort_spec::key(&self.spec, doc)?) {
            let start = bytes.len();
            key::encode(&value, &mut bytes);
            if wanted.descending {
                key::invert_from(&mut bytes, start);
            }
        }
        // What follows an encoding is neither 0x00 nor 0xFF.
        bytes.push(0x80);
        bytes.extend_from_slice(&sequence.to_be_bytes());
        Ok(bytes)
    }

    /// Keys and documents in turn, in order.
    fn run(&self, entries: &mut Vec<Entry>) -> Result<Box<dyn SpillFile>> {
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut file = self.spill.file()?;
        for (key, doc) in entries.drain(..) {
            file.append(&key)?;
            file.append(doc.as_bytes())?;
        }
        file.rewind()?;
        Ok(file)
    }
}

fn size((key, doc): &Entry) -> usize {
    key.len() + doc.as_bytes().len() + size_of::<Entry>()
}

/// The key of a run's first entry, which run, and the document.
type Head = Reverse<(Vec<u8>, usize, Vec<u8>)>;

/// Several runs as one.
struct Merge {
    runs: Vec<Box<dyn SpillFile>>,
    /// The first entry of each run that has one, least first.
    heads: BinaryHeap<Head>,
}

impl Merge {
    fn new(runs: Vec<Box<dyn SpillFile>>) -> Result<Merge> {
        let mut merge = Merge { heads: BinaryHeap::with_capacity(runs.len()), runs };
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, run: usize) -> Result<()> {
        let Some(file) = self.runs.get_mut(run) else { return Ok(()) };
        if let Some(key) = file.next()? {
            let doc = file.next()?.unwrap_or_default();
            self.heads.push(Reverse((key, run, doc)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(Reverse((_, run, doc))) = self.heads.pop() else { return Ok(None) };
        self.advance(run)?;
        Ok(Some(Doc::trusted_bytes(doc.into())))
    }
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::pipeline::{from_documents, sort_spec, sorted};
    use crate::raw::Doc;
    use crate::spill::testing::spilling;
    use crate::value::Value;
    use bson::doc;
    use std::sync::atomic::Ordering;

    /// Sorts by `a` descending, then `b`.
    fn run(env: &Env, limit: Option<u64>) -> Vec<i32> {
        let docs: Vec<Doc<'static>> =
            (0..1000i32).map(|n| Doc::from(doc! {"_id": n, "a": n % 7, "b": [(n * 31) % 11, 50]})).collect();
        let spec = sort_spec::parse(&Doc::from(doc! {"a": -1, "b": 1})).unwrap();
        let mut rows = sorted(from_documents(docs), spec, limit, env);
        let mut ids = Vec::new();
        while let Some(doc) = rows.next().unwrap() {
            if let Some(Value::Int32(id)) = doc.get("_id") {
                ids.push(id);
            }
        }
        ids
    }

    #[test]
    fn the_order_is_the_same_in_memory_and_on_disk() {
        let in_memory = run(&Env::fixed(), None);
        assert_eq!(in_memory.len(), 1000);
        let check = |memory: usize, limit: Option<u64>, files: usize| {
            let (env, spill) = spilling(memory);
            let wanted = usize::try_from(limit.unwrap_or(1000)).unwrap().min(1000);
            assert_eq!(run(&env, limit), in_memory[..wanted]);
            assert_eq!(spill.files.load(Ordering::Relaxed), files, "{memory} {limit:?}");
        };
        check(100 << 20, None, 0);
        check(50_000, None, 3);
        check(50_000, Some(20_000), 3);
        check(50_000, Some(10), 0);
    }

    #[test]
    fn texts_with_nul_keep_their_order_backwards() {
        let docs = ["y", "y\0z", "x", "z"].map(|text| Doc::from(doc! {"a": text}));
        let spec = sort_spec::parse(&Doc::from(doc! {"a": -1})).unwrap();
        let mut rows = sorted(from_documents(docs.to_vec()), spec, None, &spilling(1).0);
        let mut texts = Vec::new();
        while let Some(doc) = rows.next().unwrap() {
            texts.push(doc.get("a").unwrap().as_str().unwrap().to_owned());
        }
        assert_eq!(texts, ["z", "y\0z", "y", "x"]);
    }
}
