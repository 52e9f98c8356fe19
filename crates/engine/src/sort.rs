//! Sorting what no index gives in order, on disk if it grows beyond memory.
//!
//! Documents are sorted by the bytes of their keys ([`document::value::key`]). What does not fit is written as sorted runs to
//! temporary files without a name, so that they are gone with the cursor or the process, and merged when read.

use document::op::SortSpec;
use document::pipeline::{Rows, Stream, sort_spec, sorted};
use document::value::key;
use document::{Code, Doc, Env, Error, Result};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// With a small limit only so many documents are kept at a time: that needs no disk.
const SMALL_LIMIT: u64 = 10_000;

/// The documents of `rows` in order. Beyond the memory limit it is an error, unless the disk may be used.
pub(crate) fn in_order(rows: Rows, spec: &SortSpec, limit: Option<u64>, env: &Env, disk: bool) -> Rows {
    if !disk || limit.is_some_and(|limit| limit <= SMALL_LIMIT) {
        return sorted(rows, spec.clone(), limit, env);
    }
    Box::new(Sorting { input: Some(rows), spec: spec.clone(), left: limit, env: env.clone(), output: Output::Nothing })
}

/// A sort key and its document.
type Entry = (Vec<u8>, Doc<'static>);

struct Sorting {
    /// Gone once it is drained, so that what it holds is freed.
    input: Option<Rows>,
    spec: SortSpec,
    left: Option<u64>,
    env: Env,
    output: Output,
}

enum Output {
    Nothing,
    Memory(std::vec::IntoIter<Entry>),
    Merged(Merge),
}

impl Stream for Sorting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            self.output = self.drain(&mut *input)?;
        }
        match &mut self.left {
            Some(0) => return Ok(None),
            Some(left) => *left -= 1,
            None => {}
        }
        match &mut self.output {
            Output::Nothing => Ok(None),
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
    fn drain(&self, input: &mut dyn Stream) -> Result<Output> {
        let (mut entries, mut runs): (Vec<Entry>, Vec<File>) = (Vec::new(), Vec::new());
        let (mut bytes, mut sequence) = (0, 0_u64);
        while let Some(doc) = input.next()? {
            sequence += 1;
            if sequence.is_multiple_of(256) {
                (self.env.interrupt)()?;
            }
            let key = self.key(&doc, sequence)?;
            bytes += key.len() + doc.as_bytes().len() + 64;
            entries.push((key, doc));
            if bytes > self.env.memory_limit {
                runs.push(write_run(&mut entries).map_err(failed)?);
                bytes = 0;
            }
        }
        if runs.is_empty() {
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            return Ok(Output::Memory(entries.into_iter()));
        }
        if !entries.is_empty() {
            runs.push(write_run(&mut entries).map_err(failed)?);
        }
        Ok(Output::Merged(Merge::new(runs).map_err(failed)?))
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
}

fn failed(error: std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull => Code::OutOfDiskSpace,
        _ => Code::InternalError,
    };
    Error::new(code, format!("a sort could not use its temporary file: {error}")).with_source(error)
}

/// A file that nobody else can open and that is gone when it is closed.
fn nameless_file() -> std::io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("pleach-sort-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Per entry: the length of the key, the key, the length of the document, the document.
fn write_run(entries: &mut Vec<Entry>) -> std::io::Result<File> {
    entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut writer = BufWriter::with_capacity(1 << 20, nameless_file()?);
    for (key, doc) in entries.drain(..) {
        for part in [&*key, doc.as_bytes()] {
            writer.write_all(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes())?;
            writer.write_all(part)?;
        }
    }
    let mut file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// The key of a run's first entry, which run, and the document.
type Head = std::cmp::Reverse<(Vec<u8>, usize, Vec<u8>)>;

/// Several runs as one.
struct Merge {
    runs: Vec<BufReader<File>>,
    /// The first entry of each run that has one, least first.
    heads: BinaryHeap<Head>,
}

impl Merge {
    fn new(files: Vec<File>) -> std::io::Result<Merge> {
        let runs = files.into_iter().map(|file| BufReader::with_capacity(1 << 16, file)).collect();
        let mut merge = Merge { runs, heads: BinaryHeap::new() };
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, run: usize) -> std::io::Result<()> {
        let Some(reader) = self.runs.get_mut(run) else { return Ok(()) };
        if let Some(key) = read_part(reader)? {
            let doc = read_part(reader)?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            self.heads.push(std::cmp::Reverse((key, run, doc)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(std::cmp::Reverse((_, run, doc))) = self.heads.pop() else { return Ok(None) };
        self.advance(run).map_err(failed)?;
        Ok(Some(Doc::trusted_bytes(doc.into())))
    }
}

/// A length and so many bytes; nothing at the end of the file.
fn read_part(reader: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match reader.read_exact(&mut length) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| std::io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::Value;
    use document::pipeline::from_documents;

    /// Sorts by `a` descending, then `b`, with so much memory.
    fn run(memory: usize, disk: bool, limit: Option<u64>) -> Result<Vec<i32>> {
        let docs: Vec<Doc<'static>> =
            (0..1000i32).map(|n| Doc::from(doc! {"_id": n, "a": n % 7, "b": [(n * 31) % 11, 50]})).collect();
        let spec = sort_spec::parse(&Doc::from(doc! {"a": -1, "b": 1}))?;
        let env = Env { memory_limit: memory, ..Env::fixed() };
        let mut rows = in_order(from_documents(docs), &spec, limit, &env, disk);
        let mut ids = Vec::new();
        while let Some(doc) = rows.next()? {
            if let Some(Value::Int32(id)) = doc.get("_id") {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    #[test]
    fn the_order_is_the_same_in_memory_and_on_disk() {
        let in_memory = run(100 << 20, false, None).unwrap();
        assert_eq!(in_memory.len(), 1000);
        assert_eq!(run(100 << 20, true, None).unwrap(), in_memory);
        assert_eq!(run(10_000, true, None).unwrap(), in_memory);
        assert_eq!(run(10_000, true, Some(20_000)).unwrap(), in_memory);
        assert_eq!(run(100 << 20, true, Some(10)).unwrap(), in_memory[..10]);
    }

    #[test]
    fn texts_with_nul_keep_their_order_backwards() {
        let docs = ["y", "y\0z", "x", "z"].map(|text| Doc::from(doc! {"a": text}));
        let spec = sort_spec::parse(&Doc::from(doc! {"a": -1})).unwrap();
        let mut rows = in_order(from_documents(docs.to_vec()), &spec, None, &Env::fixed(), true);
        let mut texts = Vec::new();
        while let Some(doc) = rows.next().unwrap() {
            texts.push(doc.get("a").unwrap().as_str().unwrap().to_owned());
        }
        assert_eq!(texts, ["z", "y\0z", "y", "x"]);
    }

    #[test]
    fn without_the_disk_memory_is_the_limit() {
        let error = run(10_000, false, None).unwrap_err();
        assert_eq!(error.code(), Code::QueryExceededMemoryLimitNoDiskUseAllowed);
    }
}
