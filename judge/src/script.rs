//! Compat scripts: the format of the files, and the commands that each case stands for.
//!
//! A file is `{ about, setup?, indexes?, share?, cases }`. A case has a name, a set-up of its own if need be, and says
//! what to send in exactly one of these ways (judge/README.md has the details):
//! `run` (commands), `filter`/`projection`/`sort` (a find), `pipeline`, `expr`, `exprs`, `update`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bson::{Bson, Document, doc};

use crate::json;

/// The collection that short forms work on.
pub const COLLECTION: &str = "c";

/// One file of cases.
pub struct Script {
    /// `area/topic`.
    pub name: String,
    pub about: String,
    /// All cases read from one database that is set up once.
    pub share: bool,
    pub cases: Vec<Case>,
}

/// One fresh database, and commands whose replies are compared.
pub struct Case {
    pub name: String,
    pub setup: Vec<(String, Vec<Document>)>,
    pub indexes: Vec<(String, Vec<Document>)>,
    pub run: Vec<Document>,
    pub options: Options,
    /// A digest of all that is sent: a recorded answer to something else is stale.
    pub digest: String,
}

impl Case {
    /// Nothing but documents of the one collection is read or written, so that the next such case can have it emptied
    /// and filled again, which is much quicker than a database of its own.
    pub fn is_plain(&self) -> bool {
        const PLAIN: &[&str] =
            &["find", "aggregate", "update", "delete", "insert", "findAndModify", "count", "distinct"];
        let plain = |command: &Document| match command.iter().next() {
            Some((name, Bson::String(collection))) => PLAIN.contains(&name.as_str()) && collection == COLLECTION,
            _ => false,
        };
        let stays = |command: &Document| {
            let text = json::line_of(command);
            !["$out", "$merge\"", "lsid", "batchSize", "$db"].iter().any(|word| text.contains(word))
        };
        let one = matches!(self.setup.as_slice(), [(name, _)] if name == COLLECTION);
        one && self.run.iter().all(|command| plain(command) && stays(command))
    }
}

/// How the replies of a case are compared.
#[derive(Clone, Default)]
pub struct Options {
    /// Error messages must agree too.
    pub message: bool,
    /// The order of results is unspecified.
    pub unordered: bool,
    /// The order of all arrays is unspecified.
    pub sets: bool,
    /// Paths that are left out of the comparison; `*` stands for any one step.
    pub ignore: Vec<String>,
    /// Paths of which only the type is compared.
    pub types: Vec<String>,
    /// If not empty, only these top-level fields are compared.
    pub only: Vec<String>,
    /// Why we answer otherwise on purpose. Such a case is named `diff_…` and is not compared.
    pub differs: Option<String>,
}

const FILE_KEYS: &[&str] = &["about", "setup", "indexes", "share", "unordered", "message", "cases"];
const CASE_KEYS: &[&str] = &[
    "name",
    "setup",
    "indexes",
    "run",
    "filter",
    "projection",
    "sort",
    "pipeline",
    "expr",
    "exprs",
    "update",
    "query",
    "arrayFilters",
    "upsert",
    "multi",
    "message",
    "unordered",
    "sets",
    "ignore",
    "types",
    "only",
    "differs",
];

/// All scripts below a folder, sorted by name.
pub fn load_all(root: &Path) -> Result<Vec<Script>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    files.iter().map(|file| load(root, file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn load(root: &Path, file: &Path) -> Result<Script> {
    let name = file.strip_prefix(root)?.with_extension("").to_string_lossy().replace('\\', "/");
    let text = std::fs::read_to_string(file)?;
    parse(&name, &text).with_context(|| format!("in {}", file.display()))
}

/// Parses the text of one script.
pub fn parse(name: &str, text: &str) -> Result<Script> {
    let file = json::parse(text)?;
    known_keys(&file, FILE_KEYS)?;
    let mut seen = HashSet::new();
    let mut cases = Vec::new();
    for item in file.get_array("cases").context("`cases` is missing")? {
        let item = item.as_document().context("a case is not a document")?;
        let case_name = item.get_str("name").context("a case has no name")?;
        let case = case(&file, item).with_context(|| format!("in case `{case_name}`"))?;
        ensure!(seen.insert(case.name.clone()), "two cases are named `{}`", case.name);
        cases.push(case);
    }
    ensure!(!cases.is_empty(), "no cases");
    Ok(Script {
        name: name.to_owned(),
        about: file.get_str("about").context("`about` is missing")?.to_owned(),
        share: flag(&file, "share"),
        cases,
    })
}

fn case(file: &Document, item: &Document) -> Result<Case> {
    known_keys(item, CASE_KEYS)?;
    let name = item.get_str("name")?.to_owned();
    let setup = per_collection(item.get("setup").or(file.get("setup")))?;
    let indexes = per_collection(item.get("indexes").or(file.get("indexes")))?;
    let run = commands(item)?;
    let options = Options {
        message: flag(item, "message") || flag(file, "message"),
        unordered: flag(item, "unordered") || flag(file, "unordered"),
        sets: flag(item, "sets"),
        ignore: strings(item, "ignore")?,
        types: strings(item, "types")?,
        only: strings(item, "only")?,
        differs: item.get_str("differs").ok().map(str::to_owned),
    };
    ensure!(name.starts_with("diff_") == options.differs.is_some(), "`diff_…` names and `differs` go together");
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for part in
        setup.iter().chain(&indexes).flat_map(|(name, items)| items.iter().map(move |item| (name.as_str(), item)))
    {
        hash(&mut digest, part.0.as_bytes());
        hash(&mut digest, &part.1.to_vec()?);
    }
    for command in &run {
        hash(&mut digest, &command.to_vec()?);
    }
    Ok(Case { name, setup, indexes, run, options, digest: format!("{digest:016x}") })
}

/// FNV-1a: stable over platforms and releases.
fn hash(digest: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *digest = (*digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

/// The commands that a case stands for.
fn commands(item: &Document) -> Result<Vec<Document>> {
    let forms = ["run", "filter", "pipeline", "expr", "exprs", "update"];
    let given: Vec<_> = forms.into_iter().filter(|form| item.contains_key(form)).collect();
    let find = item.contains_key("projection") || item.contains_key("sort");
    match (given.as_slice(), find) {
        (["run"], false) => documents(item.get("run")),
        (["filter"], _) | ([], true) => {
            let mut command = doc! { "find": COLLECTION };
            if let Some(filter) = item.get("filter") {
                command.insert("filter", filter.clone());
            }
            command.insert("sort", item.get("sort").cloned().unwrap_or_else(|| doc! { "_id": 1 }.into()));
            if let Some(projection) = item.get("projection") {
                command.insert("projection", projection.clone());
            }
            Ok(vec![command])
        }
        (["pipeline"], false) => Ok(vec![aggregate(item.get("pipeline").cloned().unwrap_or(Bson::Null))]),
        (["expr"], false) => Ok(vec![expression(item.get("expr").cloned().unwrap_or(Bson::Null))]),
        (["exprs"], false) => Ok(item.get_array("exprs")?.iter().cloned().map(expression).collect()),
        (["update"], false) => Ok(update(item)),
        _ => bail!("say what to send in exactly one way, not {given:?}"),
    }
}

fn aggregate(pipeline: Bson) -> Document {
    doc! { "aggregate": COLLECTION, "pipeline": pipeline, "cursor": {} }
}

fn expression(value: Bson) -> Document {
    aggregate(vec![doc! { "$sort": { "_id": 1 } }, doc! { "$project": { "r": value } }].into())
}

/// The update, then what became of the collection.
fn update(item: &Document) -> Vec<Document> {
    let query = item.get("query").cloned().unwrap_or_else(|| Document::new().into());
    let mut statement = doc! { "q": query, "u": item.get("update").cloned().unwrap_or(Bson::Null) };
    for option in ["arrayFilters", "upsert", "multi"] {
        if let Some(value) = item.get(option) {
            statement.insert(option, value.clone());
        }
    }
    vec![
        doc! { "update": COLLECTION, "updates": [statement] },
        doc! { "find": COLLECTION, "filter": {}, "sort": { "_id": 1 } },
    ]
}

/// `{ collection: [documents] }`, or an array for the one collection.
fn per_collection(value: Option<&Bson>) -> Result<Vec<(String, Vec<Document>)>> {
    match value {
        None => Ok(Vec::new()),
        Some(Bson::Document(all)) => {
            all.iter().map(|(name, items)| Ok((name.clone(), documents(Some(items))?))).collect()
        }
        items => Ok(vec![(COLLECTION.to_owned(), documents(items)?)]),
    }
}

fn documents(value: Option<&Bson>) -> Result<Vec<Document>> {
    match value {
        Some(Bson::Document(document)) => Ok(vec![document.clone()]),
        Some(Bson::Array(items)) => {
            items.iter().map(|item| item.as_document().cloned().context("expected a document")).collect()
        }
        _ => bail!("expected a document or an array of documents"),
    }
}

fn strings(item: &Document, key: &str) -> Result<Vec<String>> {
    let Some(value) = item.get(key) else { return Ok(Vec::new()) };
    let items = value.as_array().with_context(|| format!("`{key}` is not an array"))?;
    items.iter().map(|item| item.as_str().map(str::to_owned).context("expected a string")).collect()
}

fn flag(item: &Document, key: &str) -> bool {
    item.get_bool(key).unwrap_or(false)
}

fn known_keys(item: &Document, known: &[&str]) -> Result<()> {
    match item.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => bail!("unknown key `{key}`"),
        None => Ok(()),
    }
}
