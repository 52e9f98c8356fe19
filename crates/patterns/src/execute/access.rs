//! Short words for reading and writing documents through a backend: what the life of a rule does with bookkeeping and hosts.

use crate::rule::names;
use document::backend::{Backend, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::{
    Aggregate, Capture, Context, Delete, DeleteStatement, Find, Insert, Namespace, ReadOp, SortKey, SortSpec, UpdateOp,
    UpdateStatement, WriteOp, Written,
};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Doc, Result, Value};

/// A backend, and the session in which it is asked.
pub(crate) struct Access<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) session: &'a mut Session,
    pub(crate) context: &'a Context,
}

/// How much of a read is taken at once.
const BATCH: BatchLimit = BatchLimit { documents: 10_000, bytes: 16 << 20 };

impl Access<'_> {
    /// All documents of a read.
    pub(crate) async fn all(&mut self, op: ReadOp) -> Result<Vec<Doc<'static>>> {
        let cursor = self.backend.read(self.session, self.context, op).await?;
        self.drained(cursor).await
    }

    /// All documents that are left in a cursor.
    pub(crate) async fn drained(&mut self, mut cursor: Box<dyn Cursor>) -> Result<Vec<Doc<'static>>> {
        let mut documents = Vec::new();
        loop {
            let batch = cursor.next(self.session, self.context, BATCH).await?;
            if documents.is_empty() {
                documents = batch.documents;
            } else {
                documents.extend(batch.documents);
            }
            if batch.exhausted {
                return Ok(documents);
            }
        }
    }

    pub(crate) async fn find(&mut self, find: Find) -> Result<Vec<Doc<'static>>> {
        self.all(ReadOp::Find(find)).await
    }

    pub(crate) async fn one(&mut self, ns: &Namespace, id: &Value<'_>) -> Result<Option<Doc<'static>>> {
        let find = Find { limit: Some(1), ..find(ns, Filter::equality("_id", id)) };
        Ok(self.find(find).await?.into_iter().next())
    }

    /// Runs a write whose every statement must succeed.
    pub(crate) async fn write(&mut self, op: &WriteOp) -> Result<Written> {
        let mut written = self.backend.write(self.session, self.context, op, &Capture::Nothing).await?;
        match written.errors.pop() {
            Some(failed) => Err(failed.error),
            None => Ok(written),
        }
    }

    /// Writes the document under its `_id`, whatever is there.
    pub(crate) async fn put(&mut self, ns: &Namespace, document: &Doc<'static>) -> Result<()> {
        let id = document.get("_id").unwrap_or(Value::Null);
        let update = Update::parse(&Value::Document(document.borrow()), &[], &mut Names::new())?;
        let statement = UpdateStatement { upsert: true, ..update_one(Filter::equality("_id", &id), update) };
        self.write(&update_op(ns, vec![statement])).await.map(drop)
    }

    pub(crate) async fn insert(&mut self, ns: &Namespace, documents: Vec<Doc<'static>>) -> Result<()> {
        let (ns, bypass_validation) = (ns.clone(), bypasses(ns));
        let op = Insert { bypass_validation, ..Insert::of(ns, documents) };
        self.write(&WriteOp::Insert(op)).await.map(drop)
    }

    /// Deletes everything that matches; says how many documents that were.
    pub(crate) async fn delete(&mut self, ns: &Namespace, filter: Filter) -> Result<u64> {
        let statements = vec![DeleteStatement::all(filter)];
        let op = Delete::of(ns.clone(), statements);
        Ok(self.write(&WriteOp::Delete(op)).await?.n)
    }
}

pub(crate) fn find(ns: &Namespace, filter: Filter) -> Find {
    Find { allow_disk_use: false, ..Find::matching(ns.clone(), filter) }
}

pub(crate) fn by_id() -> SortSpec {
    SortSpec { keys: vec![SortKey { path: Path::new("_id"), descending: false }] }
}

pub(crate) fn aggregate(ns: &Namespace, pipeline: Pipeline) -> ReadOp {
    ReadOp::Aggregate(Aggregate {
        ns: ns.clone(),
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: true,
        collation: None,
    })
}

pub(crate) fn update_one(filter: Filter, update: Update) -> UpdateStatement {
    UpdateStatement { filter, update, multi: false, upsert: false, hint: None }
}

/// Statements of our own: what a validator says about the user's documents is not asked again.
pub(crate) fn update_op(ns: &Namespace, statements: Vec<UpdateStatement>) -> WriteOp {
    let (ns, bypass_validation) = (ns.clone(), bypasses(ns));
    WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(ns, statements) })
}

/// What needs a right of its own is asked for only where there can be a validator.
fn bypasses(ns: &Namespace) -> bool {
    !names::is_bookkeeping(ns)
}
