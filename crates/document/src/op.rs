//! The nouns between the layers: what a command asks of a backend, compiled, and what comes back.

mod namespace;

pub use namespace::{Namespace, NamespaceRef};

use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::pipeline::Pipeline;
use crate::project::Projection;
use crate::raw::Doc;
use crate::text::carried;
use crate::update::Update;
use crate::value::{Path, Value};
use std::sync::Arc;

/// `{ a: 1, "b.c": -1 }`, compiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SortSpec {
    pub keys: Vec<SortKey>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub path: Path,
    pub descending: bool,
}

impl SortKey {
    /// By the score of a text search, the best first.
    pub fn by_score() -> SortKey {
        SortKey { path: Path::new(carried::PATH), descending: true }
    }

    pub fn is_by_score(&self) -> bool {
        self.path.first() == carried::PATH
    }
}

impl SortSpec {
    /// Whether it reads the score of a text search.
    pub fn reads_score(&self) -> bool {
        self.keys.iter().any(SortKey::is_by_score)
    }

    /// Refuses to sort by a score that `filter` does not give.
    pub fn check_score(&self, filter: &Filter) -> Result<()> {
        if self.reads_score() && !filter.has_text() { Err(carried::unavailable()) } else { Ok(()) }
    }
}

/// An index by name or by key pattern; `$natural` forces a collection scan.
#[derive(Clone, Debug)]
pub enum Hint {
    Name(String),
    Keys(Doc<'static>),
    Natural { descending: bool },
}

/// Which state of the data a read sees outside a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadConcern {
    #[default]
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

/// When a write is acknowledged (SEMANTICS R30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After a sync shared by the commit group: unspecified, `majority`, `j: true`.
    #[default]
    Synced,
    /// Once visible and handed to the operating system; synced within 100 ms: `{ w: 1 }` without `j`.
    Relaxed,
}

/// Whether text is compared otherwise than byte by byte.
pub fn is_collated(collation: Option<&Doc<'_>>) -> bool {
    collation.is_some_and(|collation| collation.get("locale").as_ref().and_then(Value::as_str) != Some("simple"))
}

#[derive(Clone, Debug)]
pub enum ReadOp {
    Find(Find),
    Aggregate(Aggregate),
    Count(Count),
    Distinct(Distinct),
}

#[derive(Clone, Debug)]
pub struct Find {
    pub ns: Namespace,
    pub filter: Filter,
    pub sort: Option<SortSpec>,
    pub projection: Option<Arc<Projection>>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
    /// Index bounds given by hand: `min` (inclusive) and `max` (exclusive), in the order of the hinted index's keys.
    pub min: Option<Doc<'static>>,
    pub max: Option<Doc<'static>>,
    pub return_key: bool,
    pub show_record_id: bool,
    pub allow_disk_use: bool,
}

impl Find {
    /// All documents that match, as they are.
    pub fn matching(ns: Namespace, filter: Filter) -> Find {
        Find {
            ns,
            filter,
            sort: None,
            projection: None,
            skip: 0,
            limit: None,
            hint: None,
            min: None,
            max: None,
            return_key: false,
            show_record_id: false,
            allow_disk_use: true,
        }
    }

    /// Refuses what only a collection can answer, in MongoDB's words: a view is read by a pipeline.
    pub fn check_for_view(&self) -> Result<()> {
        let only = [
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("returnKey", self.return_key),
            ("showRecordId", self.show_record_id),
        ];
        match only.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Error::new(Code::InvalidPipelineOperator, format!("Option {option} not supported in aggregation.")))
            }
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    pub ns: Namespace,
    /// `{ aggregate: 1 }`: no collection, the first stage makes the documents.
    pub collectionless: bool,
    pub pipeline: Pipeline,
    pub hint: Option<Hint>,
    pub allow_disk_use: bool,
    /// How text is compared, for a backend that knows collations.
    pub collation: Option<Doc<'static>>,
}

/// Gives one document `{ n: <count> }`.
#[derive(Clone, Debug)]
pub struct Count {
    pub ns: Namespace,
    pub filter: Filter,
    pub skip: u64,
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
}

/// Gives one document `{ values: [ … ] }`.
#[derive(Clone, Debug)]
pub struct Distinct {
    pub ns: Namespace,
    pub key: Path,
    pub filter: Filter,
    pub hint: Option<Hint>,
}

#[derive(Clone, Debug)]
pub enum WriteOp {
    Insert(Insert),
    Update(UpdateOp),
    Delete(Delete),
    FindAndModify(Box<FindAndModify>),
}

#[derive(Clone, Debug)]
pub struct Insert {
    pub ns: Namespace,
    /// Validated BSON; `_id` may be missing or not first: the backend completes them.
    pub documents: Vec<Doc<'static>>,
    pub ordered: bool,
    pub bypass_validation: bool,
    /// The retry number of each statement; empty means counting from 0.
    pub statement_ids: Vec<i32>,
}

impl Insert {
    /// In order, and validated.
    pub fn of(ns: Namespace, documents: Vec<Doc<'static>>) -> Insert {
        Insert { ns, documents, ordered: true, bypass_validation: false, statement_ids: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct UpdateOp {
    pub ns: Namespace,
    pub statements: Vec<UpdateStatement>,
    pub ordered: bool,
    pub bypass_validation: bool,
    pub statement_ids: Vec<i32>,
}

impl UpdateOp {
    /// In order, and validated.
    pub fn of(ns: Namespace, statements: Vec<UpdateStatement>) -> UpdateOp {
        UpdateOp { ns, statements, ordered: true, bypass_validation: false, statement_ids: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct UpdateStatement {
    pub filter: Filter,
    pub update: Update,
    pub multi: bool,
    pub upsert: bool,
    pub hint: Option<Hint>,
}

#[derive(Clone, Debug)]
pub struct Delete {
    pub ns: Namespace,
    pub statements: Vec<DeleteStatement>,
    pub ordered: bool,
    pub statement_ids: Vec<i32>,
}

impl Delete {
    /// In order.
    pub fn of(ns: Namespace, statements: Vec<DeleteStatement>) -> Delete {
        Delete { ns, statements, ordered: true, statement_ids: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct DeleteStatement {
    pub filter: Filter,
    /// `limit: 0` on the wire.
    pub multi: bool,
    pub hint: Option<Hint>,
}

impl DeleteStatement {
    /// All documents that match.
    pub fn all(filter: Filter) -> DeleteStatement {
        DeleteStatement { filter, multi: true, hint: None }
    }
}

#[derive(Clone, Debug)]
pub struct FindAndModify {
    pub ns: Namespace,
    pub filter: Filter,
    pub sort: Option<SortSpec>,
    pub action: Modify,
    pub projection: Option<Arc<Projection>>,
    pub hint: Option<Hint>,
    pub bypass_validation: bool,
    pub statement_id: i32,
}

#[derive(Clone, Debug)]
pub enum Modify {
    Remove,
    Update { update: Update, upsert: bool, return_new: bool },
}

/// What a write did. Statement errors are in `errors`; a failure of the whole command is the method's `Err`.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Documents inserted, matched or deleted.
    pub n: u64,
    pub modified: u64,
    pub upserted: Vec<(usize, Value<'static>)>,
    pub errors: Vec<WriteError>,
    /// findAndModify: the document before or after, projected.
    pub document: Option<Doc<'static>>,
    /// The before and after images that the caller asked to capture.
    pub changes: Vec<Change>,
    /// Statements answered from the retry record instead of being run.
    pub retried: Vec<i32>,
}

#[derive(Clone, Debug)]
pub struct WriteError {
    pub index: usize,
    pub error: Error,
}

/// One changed document, cut to the captured paths.
#[derive(Clone, Debug)]
pub struct Change {
    pub id: Value<'static>,
    pub before: Option<Doc<'static>>,
    pub after: Option<Doc<'static>>,
}

/// Which parts of changed documents a writer wants to see.
#[derive(Clone, Debug, Default)]
pub enum Capture {
    #[default]
    Nothing,
    Paths(Vec<Path>),
    Everything,
}

impl Capture {
    /// The part of a document that the writer wants to see: whole fields of the first level.
    pub fn cut(&self, doc: &Doc<'_>) -> Doc<'static> {
        match self {
            Capture::Nothing => Doc::empty(),
            Capture::Everything => doc.clone().into_owned(),
            Capture::Paths(paths) => {
                let mut writer = crate::DocWriter::new();
                for (name, value) in doc.borrow().iter() {
                    if paths.iter().any(|path| path.first() == name.as_str()) {
                        writer.append(name.as_str(), &value);
                    }
                }
                writer.finish()
            }
        }
    }
}

/// `explain`'s operation and how much of it to run.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per explain; a box would save nothing")]
pub enum Explained {
    Read(ReadOp),
    Write(WriteOp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}

/// Work on the catalog, and figures about it.
#[derive(Clone, Debug)]
pub enum AdminOp {
    /// Waits until everything acknowledged so far is safe from a loss of power.
    Sync,
    Create {
        ns: Namespace,
        options: CollectionOptions,
    },
    CreateView {
        ns: Namespace,
        on: String,
        pipeline: crate::raw::Array<'static>,
    },
    Drop {
        ns: Namespace,
    },
    DropDatabase {
        db: String,
    },
    Rename {
        from: Namespace,
        to: Namespace,
        drop_target: bool,
    },
    CollMod {
        ns: Namespace,
        change: Doc<'static>,
    },
    /// One document per collection, as `listCollections` shows it.
    ListCollections {
        db: String,
        filter: Filter,
        name_only: bool,
    },
    /// One document per database; totals are the caller's.
    ListDatabases {
        filter: Filter,
        name_only: bool,
    },
    /// The `indexes` array of `createIndexes`, as sent.
    CreateIndexes {
        ns: Namespace,
        indexes: Vec<Doc<'static>>,
    },
    ListIndexes {
        ns: Namespace,
    },
    /// `"*"`, a name, a key pattern or an array of names.
    DropIndexes {
        ns: Namespace,
        which: Value<'static>,
    },
    DbStats {
        db: String,
        scale: i64,
    },
    CollStats {
        ns: Namespace,
        scale: i64,
    },
    Validate {
        ns: Namespace,
        full: bool,
    },
    /// Writes the collection's files anew, without what was overwritten or deleted.
    Compact {
        ns: Namespace,
    },
    /// The storage part of `serverStatus`.
    Status,
    /// A command that belongs to a layer around the store, as sent; the store itself does not know it.
    Extension {
        command: &'static str,
        db: String,
        body: Doc<'static>,
    },
}

/// The options of `create`.
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    pub capped: Option<(i64, Option<i64>)>,
    pub validator: Option<Doc<'static>>,
    pub validation_level: Option<String>,
    pub validation_action: Option<String>,
    /// What else was said and is kept for `listCollections`: `comment`, `storageEngine` … as sent.
    pub other: Option<Doc<'static>>,
}

/// What every operation carries besides itself.
#[derive(Clone)]
pub struct Context {
    pub env: Env,
    pub read_concern: ReadConcern,
    pub durability: Durability,
    /// When the client's `maxTimeMS` runs out.
    pub deadline: Option<std::time::Instant>,
    pub sent: Sent,
}

/// What the client said, for a backend that says it again to a real MongoDB. The embedded store reads none of it.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub write_concern: Option<Doc<'static>>,
    pub read_concern: Option<Doc<'static>>,
    /// The command's `let`.
    pub variables: Option<Doc<'static>>,
    /// Comes back: a write concern that a commit did not satisfy although it was done.
    pub unsatisfied: Option<Arc<std::sync::Mutex<Option<Error>>>>,
    /// No client said it: the store deletes what has expired.
    pub expiry: bool,
    /// No client said it: it is a small part of something that frees space, and is taken when the disk is nearly full.
    pub makes_room: bool,
    /// Comes back: the cluster time of the snapshot that was read, 0 until a server has given one.
    pub read_at: Option<Arc<std::sync::atomic::AtomicU64>>,
}
