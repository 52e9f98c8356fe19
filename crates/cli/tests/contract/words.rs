//! Short words for what the contract's tests do with a backend.

use bson::{Document, doc};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{
    Capture, Context, Delete, DeleteStatement, Durability, Find, FindAndModify, Insert, Modify, Namespace, ReadConcern,
    ReadOp, UpdateOp, UpdateStatement, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::update::Update;
use document::value::Path;
use document::{Code, Doc, Env, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A backend and a collection that no other test uses.
pub(crate) struct Place {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) ns: Namespace,
}

impl Place {
    pub(crate) fn new(backend: Arc<dyn Backend>, db: &str) -> Place {
        Place { backend, ns: Namespace::new(db, &format!("c{}", NEXT.fetch_add(1, Ordering::Relaxed))) }
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
        let context = context();
        let mut cursor = self.backend.read(session, &context, op).await?;
        let mut batches = Vec::new();
        loop {
            let limit = BatchLimit { documents: batch, bytes: 16 << 20 };
            let rows = cursor.next(session, &context, limit).await?;
            batches.push(rows.documents.iter().map(|doc| Document::try_from(doc).unwrap()).collect());
            if rows.exhausted {
                return Ok(batches);
            }
        }
    }

    pub(crate) fn find_op(&self, filter: Document) -> Find {
        Find {
            ns: self.ns.clone(),
            filter: parse(filter),
            sort: Some(document::op::SortSpec {
                keys: vec![document::op::SortKey { path: Path::new("_id"), descending: false }],
            }),
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

    pub(crate) fn insert(&self, documents: Vec<Document>, ordered: bool) -> WriteOp {
        WriteOp::Insert(Insert {
            ns: self.ns.clone(),
            documents: documents.into_iter().map(Doc::from).collect(),
            ordered,
            bypass_validation: false,
            statement_ids: Vec::new(),
        })
    }

    pub(crate) fn update(&self, filter: Document, change: Document, multi: bool, upsert: bool) -> WriteOp {
        let statement = UpdateStatement { filter: parse(filter), update: compile(change), multi, upsert, hint: None };
        WriteOp::Update(UpdateOp {
            ns: self.ns.clone(),
            statements: vec![statement],
            ordered: true,
            bypass_validation: false,
            statement_ids: Vec::new(),
        })
    }

    pub(crate) fn delete(&self, filter: Document, multi: bool) -> WriteOp {
        let statement = DeleteStatement { filter: parse(filter), multi, hint: None };
        WriteOp::Delete(Delete {
            ns: self.ns.clone(),
            statements: vec![statement],
            ordered: true,
            statement_ids: Vec::new(),
        })
    }

    pub(crate) fn modify(&self, filter: Document, action: Modify, projection: Option<Document>) -> WriteOp {
        let projection = projection.map(|fields| {
            Arc::new(Projection::parse_find(&Doc::from(fields), &Filter::all(), &mut Names::new()).unwrap())
        });
        WriteOp::FindAndModify(Box::new(FindAndModify {
            ns: self.ns.clone(),
            filter: parse(filter),
            sort: None,
            action,
            projection,
            hint: None,
            bypass_validation: false,
            statement_id: 0,
        }))
    }
}

pub(crate) fn context() -> Context {
    let new_id = || {
        let mut id = [7; 12];
        id[4..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id
    };
    Context {
        env: Env { new_id, ..Env::fixed() },
        read_concern: ReadConcern::Local,
        durability: Durability::Synced,
        deadline: None,
        sent: Default::default(),
    }
}

pub(crate) fn new_session() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&std::process::id().to_be_bytes().repeat(2));
    id[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    id
}

pub(crate) fn parse(filter: Document) -> Filter {
    Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap()
}

pub(crate) fn compile(change: Document) -> Update {
    Update::parse(&Value::Document(Doc::from(change)), &[], &mut Names::new()).unwrap()
}

pub(crate) async fn commit(session: &mut Session) -> Result<()> {
    session.transaction.take().unwrap().commit(&context()).await
}

pub(crate) fn abort(session: &mut Session) {
    session.transaction.take().unwrap().abort();
}

/// Whether a transaction that met this may be run again.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.code() == Code::WriteConflict || error.labels().contains(&"TransientTransactionError")
}

pub(crate) fn docs(numbers: std::ops::Range<i32>) -> Vec<Document> {
    numbers.map(|n| doc! { "_id": n, "a": n % 3 }).collect()
}
