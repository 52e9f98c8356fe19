//! Short words for what the contract's tests do with a backend.

use bson::{Document, doc};
use document::backend::{Backend, Session};
use document::filter::Filter;
use document::op::{
    Capture, Context, Durability, Find, FindAndModify, Insert, Modify, Namespace, ReadOp, SortKey, SortSpec,
    UpdateStatement, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Doc, Result};
use std::sync::Arc;
pub(crate) use testing::{change as compile, filter as parse, is_transient};

/// A backend and a collection that no other test uses.
pub(crate) struct Place {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) ns: Namespace,
}

impl Place {
    pub(crate) fn new(backend: Arc<dyn Backend>, db: &str) -> Place {
        Place { backend, ns: Namespace::new(db, &format!("c{}", testing::next())) }
    }

    pub(crate) async fn run(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        self.backend.write(session, &context(), op, &Capture::Everything).await
    }

    /// Outside a session.
    pub(crate) async fn must(&self, op: WriteOp) -> Written {
        let written = self.run(&mut Session::default(), &op).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        written
    }

    pub(crate) async fn begin(&self) -> Session {
        let mut session = Session { id: Some(new_session()), ..Session::default() };
        self.backend.begin(&mut session, &context()).await.unwrap();
        session
    }

    pub(crate) async fn find(&self, session: &mut Session, filter: Document) -> Vec<Document> {
        self.rows(session, ReadOp::Find(self.find_op(filter)), 1000).await.unwrap().concat()
    }

    /// All batches of a cursor.
    pub(crate) async fn rows(&self, session: &mut Session, op: ReadOp, batch: usize) -> Result<Vec<Vec<Document>>> {
        testing::batches(&*self.backend, session, op, batch).await
    }

    pub(crate) fn find_op(&self, filter: Document) -> Find {
        let by_id = SortKey { path: Path::new("_id"), descending: false };
        let sort = Some(SortSpec { keys: vec![by_id] });
        Find { sort, allow_disk_use: true, ..testing::find(self.ns.clone(), filter) }
    }

    pub(crate) fn insert(&self, documents: Vec<Document>, ordered: bool) -> WriteOp {
        match testing::insert(self.ns.clone(), documents) {
            WriteOp::Insert(op) => WriteOp::Insert(Insert { ordered, ..op }),
            other => other,
        }
    }

    pub(crate) fn update(&self, filter: Document, change: Document, multi: bool, upsert: bool) -> WriteOp {
        let statement = UpdateStatement { multi, upsert, ..testing::statement(filter, change, &[]) };
        testing::updates(self.ns.clone(), vec![statement], true)
    }

    pub(crate) fn delete(&self, filter: Document, multi: bool) -> WriteOp {
        testing::delete(self.ns.clone(), filter, multi)
    }

    pub(crate) fn modify(&self, filter: Document, action: Modify, projection: Option<Document>) -> WriteOp {
        let projection = projection.map(|fields| {
            Arc::new(Projection::parse_find(&Doc::from(fields), &Filter::all(), &mut Names::new()).unwrap())
        });
        let op = testing::find_and_modify(self.ns.clone(), filter, action);
        WriteOp::FindAndModify(Box::new(FindAndModify { projection, ..op }))
    }
}

/// Synced, as clients have it.
pub(crate) fn context() -> Context {
    Context { durability: Durability::Synced, ..testing::context() }
}

pub(crate) fn new_session() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&std::process::id().to_be_bytes().repeat(2));
    id[8..].copy_from_slice(&testing::next().to_be_bytes());
    id
}

pub(crate) async fn commit(session: &mut Session) -> Result<()> {
    session.transaction.take().unwrap().commit(&context()).await
}

pub(crate) fn abort(session: &mut Session) {
    session.transaction.take().unwrap().abort();
}

pub(crate) fn docs(numbers: std::ops::Range<i32>) -> Vec<Document> {
    numbers.map(|n| doc! { "_id": n, "a": n % 3 }).collect()
}
