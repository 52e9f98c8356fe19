//! A folder as `mongodump` writes it, loaded into a temporary store: one document after the other, whatever the folder holds.

use crate::compose;
use crate::progress::Progress;
use crate::report::{self, Code, Failure};
use advisor::Cancel;
use bson::{Bson, Document};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture, Context, Durability, Insert, Namespace, WriteOp};
use document::{Doc, Value};
use engine::Engine;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// So much is inserted at once.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// MongoDB's limit, and what its own bookkeeping may add.
const LONGEST_DOCUMENT: usize = (16 << 20) + (16 << 10);

/// What a collection's metadata may be at most.
const MOST_OF_METADATA: u64 = 16 << 20;

/// The store's own memory.
const MEMORY: u64 = 128 << 20;

/// Databases that hold no data of applications.
const INTERNAL: [&str; 3] = ["admin", "config", "local"];

/// One collection's file.
struct Dumped {
    ns: Namespace,
    file: PathBuf,
    bytes: u64,
    /// The options and indexes, as `<name>.metadata.json` has them.
    metadata: Document,
}

/// Loads the collections of these databases, or of all, into a store in a temporary folder. When told to stop it leaves what is loaded.
pub(crate) fn load(folder: &Path, databases: &[String], cancel: &Cancel) -> Result<TempDir, Failure> {
    let all = collections(folder, databases)?;
    let temporary = tempfile::Builder::new().prefix("pleach-dump-").tempdir().map_err(|error| {
        Failure::new(format!("cannot make a temporary folder: {error}"))
            .hint("set TMPDIR to a folder that has room for the dump")
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        let engine =
            Engine::open(temporary.path(), engine::Options { memory_bytes: MEMORY, ..engine::Options::default() })?;
        let mut loading = Loading {
            engine: &engine,
            context: Context { durability: Durability::Relaxed, ..compose::new_context() },
            progress: Progress::of("bytes"),
            total: all.iter().map(|dumped| dumped.bytes).sum(),
            done: 0,
            cancel,
        };
        for dumped in &all {
            loading.collection(dumped).await?;
        }
        loading.progress.end();
        engine.close();
        Ok::<(), Failure>(())
    })?;
    Ok(temporary)
}

/// What there is to load. The folder is that of a dump, or that of one of its databases.
fn collections(folder: &Path, databases: &[String]) -> Result<Vec<Dumped>, Failure> {
    let cannot = |path: &Path, error: &io::Error| {
        Failure::of(Code::Word("target"), format!("cannot read {}: {error}", path.display()))
            .hint("name a folder as mongodump writes it: dump/<database>/<collection>.bson")
    };
    let list = |path: &Path| -> Result<Vec<PathBuf>, Failure> {
        let entries = std::fs::read_dir(path).map_err(|error| cannot(path, &error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    };
    let inside = list(folder)?;
    let mut of_databases: Vec<(String, Vec<PathBuf>)> = Vec::new();
    let is_collection = |path: &PathBuf| stem(path).is_some_and(|name| name != "oplog");
    if inside.iter().any(is_collection) {
        let whole = folder.canonicalize().map_err(|error| cannot(folder, &error))?;
        of_databases.push((name_of(&whole), inside));
    } else {
        for path in inside.into_iter().filter(|path| path.is_dir()) {
            of_databases.push((name_of(&path), list(&path)?));
        }
    }
    let is_asked =
        |db: &str| if databases.is_empty() { !INTERNAL.contains(&db) } else { databases.iter().any(|name| name == db) };
    let mut all = Vec::new();
    for (db, paths) in of_databases.iter().filter(|(db, _)| is_asked(db)) {
        for path in paths {
            all.extend(dumped(db, path).map_err(|error| cannot(path, &error))?);
        }
    }
    match all.is_empty() {
        true => Err(Failure::of(Code::Word("target"), format!("{} holds no dumped collections", folder.display()))
            .hint("name a folder as mongodump writes it: dump/<database>/<collection>.bson, also with --gzip")),
        false => Ok(all),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The collection's name in the name of its file.
fn stem(path: &Path) -> Option<String> {
    let name = name_of(path);
    name.strip_suffix(".bson").or_else(|| name.strip_suffix(".bson.gz")).map(decoded)
}

/// `%24` as `$`: characters that a file's name cannot have.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The collection of a file, if it is a client's: views, time series and what servers keep for themselves are left out.
fn dumped(db: &str, path: &Path) -> io::Result<Option<Dumped>> {
    let Some(name) = stem(path) else { return Ok(None) };
    let metadata = metadata(path)?;
    let name = metadata.get_str("collectionName").map_or(name, str::to_owned);
    let options = metadata.get_document("options");
    let is_other = options.is_ok_and(|options| options.contains_key("viewOn") || options.contains_key("timeseries"));
    if is_other || name.starts_with("system.") || name.starts_with("pleach.") {
        return Ok(None);
    }
    let bytes = std::fs::metadata(path)?.len();
    Ok(Some(Dumped { ns: Namespace::new(db, &name), file: path.to_owned(), bytes, metadata }))
}

/// What stands beside the documents; empty if there is no such file.
fn metadata(path: &Path) -> io::Result<Document> {
    let name = name_of(path);
    let base = name.trim_end_matches(".gz").trim_end_matches(".bson");
    for end in [".metadata.json", ".metadata.json.gz"] {
        let beside = path.with_file_name(format!("{base}{end}"));
        if beside.is_file() {
            let mut text = String::new();
            open(&beside)?.take(MOST_OF_METADATA).read_to_string(&mut text)?;
            let wrong =
                |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", beside.display()));
            let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            return match Bson::try_from(json).map_err(|error| wrong(error.to_string()))? {
                Bson::Document(doc) => Ok(doc),
                _ => Err(wrong("it is no document".to_owned())),
            };
        }
    }
    Ok(Document::new())
}

/// The file's content, without its compression.
fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    Ok(match path.extension().is_some_and(|extension| extension == "gz") {
        true => Box::new(BufReader::with_capacity(1 << 20, MultiGzDecoder::new(file))),
        false => Box::new(BufReader::with_capacity(1 << 20, file)),
    })
}

struct Loading<'l> {
    engine: &'l Engine,
    context: Context,
    progress: Progress,
    total: u64,
    done: u64,
    cancel: &'l Cancel,
}

impl Loading<'_> {
    async fn collection(&mut self, dumped: &Dumped) -> Result<(), Failure> {
        if self.cancel.is_set() {
            return Ok(());
        }
        let broken = |error: io::Error| {
            Failure::of(Code::Word("file"), format!("cannot read {}: {error}", dumped.file.display()))
                .hint("dump the collection again, or move the file away")
        };
        let mut input = open(&dumped.file).map_err(broken)?;
        let (mut batch, mut bytes, mut loaded) = (Vec::new(), 0, 0);
        let what = [dumped.ns.to_string()];
        while let Some(doc) = next(&mut input).map_err(broken)? {
            bytes += doc.as_bytes().len();
            loaded += doc.as_bytes().len() as u64;
            batch.push(doc);
            if batch.len() >= BATCH_DOCUMENTS || bytes >= BATCH_BYTES {
                self.insert(&dumped.ns, std::mem::take(&mut batch)).await?;
                bytes = 0;
                // Compressed, a file is shorter than what it holds.
                self.progress.show(self.done + loaded.min(dumped.bytes), self.total, &what);
                if self.cancel.is_set() {
                    return Ok(());
                }
            }
        }
        self.insert(&dumped.ns, batch).await?;
        self.done += dumped.bytes;
        self.indexes(dumped).await;
        Ok(())
    }

    async fn insert(&self, ns: &Namespace, documents: Vec<Doc<'static>>) -> Result<(), Failure> {
        if documents.is_empty() {
            return Ok(());
        }
        // A dump of a collection that was written to may hold one document twice.
        let op = Insert { ordered: false, bypass_validation: true, ..Insert::of(ns.clone(), documents) };
        let mut session = Session::default();
        self.engine.write(&mut session, &self.context, &WriteOp::Insert(op), &Capture::Nothing).await?;
        Ok(())
    }

    /// Makes the indexes that can be made here: what is unique is a key that others refer to.
    async fn indexes(&self, dumped: &Dumped) {
        let indexes = dumped.metadata.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
        for index in indexes.filter(|index| !matches!(index.get_str("name"), Ok("_id_"))) {
            let mut spec = index.clone();
            spec.remove("ns");
            let op = AdminOp::CreateIndexes { ns: dumped.ns.clone(), indexes: vec![Doc::from(spec)] };
            if let Err(error) = self.engine.admin(&mut Session::default(), &self.context, op).await {
                tracing::debug!(%error, "an index of a dump is left out");
            }
        }
        if dumped.metadata.is_empty() {
            report::note(&format!("{}: no metadata, so nothing is known of its indexes", dumped.ns));
        }
    }
}

/// The next document; nothing at the end.
fn next(input: &mut dyn Read) -> io::Result<Option<Doc<'static>>> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut head = [0; 4];
    let first = input.read(&mut head)?;
    if first == 0 {
        return Ok(None);
    }
    if let Some(rest) = head.get_mut(first..) {
        input.read_exact(rest)?;
    }
    let length = usize::try_from(i32::from_le_bytes(head)).unwrap_or_default();
    if !(5..=LONGEST_DOCUMENT).contains(&length) {
        return Err(invalid("it holds something that is no BSON document"));
    }
    let mut bytes = vec![0; length];
    if let Some((start, rest)) = bytes.split_first_chunk_mut::<4>() {
        *start = head;
        input.read_exact(rest)?;
    }
    let doc = Doc::checked(bytes.into()).map_err(|error| invalid(error.message()))?;
    match doc.get("_id") {
        None | Some(Value::Missing) => Err(invalid("a document has no _id")),
        Some(_) => Ok(Some(doc)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_decoded() {
        assert_eq!(decoded("a%24b%2Fc%"), "a$b/c%");
        assert_eq!(stem(Path::new("x/orders.bson.gz")).as_deref(), Some("orders"));
        assert_eq!(stem(Path::new("x/orders.metadata.json")), None);
    }

    #[test]
    fn documents_are_read_one_by_one_and_broken_ones_refused() {
        let mut bytes = Vec::new();
        for id in 0..3 {
            bytes.extend(Doc::from(bson::doc! { "_id": id }).as_bytes());
        }
        let mut input = &*bytes;
        let mut count = 0;
        while next(&mut input).unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 3);
        let torn = next(&mut &bytes[..10]).unwrap_err();
        assert_eq!(torn.kind(), io::ErrorKind::UnexpectedEof);
        assert!(next(&mut &[255, 255, 255, 127, 0][..]).is_err());
    }
}
