//! An engine in a folder of its own, and short words for what tests do with it.

use crate::{Engine, Options};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::*;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, Env, Error, Result, Value};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Bench {
    pub(super) engine: Engine,
    folder: tempfile::TempDir,
}

pub(super) fn context() -> Context {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let new_id = || {
        let mut id = [0; 12];
        id[4..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id
    };
    Context {
        env: Env { new_id, ..Env::fixed() },
        read_concern: ReadConcern::Local,
        durability: Durability::Relaxed,
        deadline: None,
        sent: Default::default(),
    }
}

pub(super) fn ns() -> Namespace {
    Namespace::new("db", "c")
}

pub(super) fn filter(source: bson::Document) -> Filter {
    Filter::parse(&Doc::from(source), &mut Names::new()).unwrap()
}

pub(super) fn update(source: bson::Document) -> Update {
    Update::parse(&Value::Document(Doc::from(source)), &[], &mut Names::new()).unwrap()
}

pub(super) fn insert(documents: Vec<bson::Document>) -> WriteOp {
    WriteOp::Insert(Insert {
        ns: ns(),
        documents: documents.into_iter().map(Doc::from).collect(),
        ordered: true,
        bypass_validation: false,
        statement_ids: Vec::new(),
    })
}

pub(super) fn update_op(query: bson::Document, change: bson::Document, multi: bool, upsert: bool) -> WriteOp {
    let statement = UpdateStatement { filter: filter(query), update: update(change), multi, upsert, hint: None };
    WriteOp::Update(UpdateOp {
        ns: ns(),
        statements: vec![statement],
        ordered: true,
        bypass_validation: false,
        statement_ids: Vec::new(),
    })
}

pub(super) fn delete_op(query: bson::Document, multi: bool) -> WriteOp {
    let statement = DeleteStatement { filter: filter(query), multi, hint: None };
    WriteOp::Delete(Delete { ns: ns(), statements: vec![statement], ordered: true, statement_ids: Vec::new() })
}

pub(super) fn find_op(query: bson::Document) -> Find {
    Find {
        ns: ns(),
        filter: filter(query),
        sort: None,
        projection: None,
        skip: 0,
        limit: None,
        hint: None,
        min: None,
        max: None,
        return_key: false,
        show_record_id: false,
        allow_disk_use: false,
    }
}

impl Bench {
    pub(super) fn new() -> Bench {
        Bench::with(options())
    }

    pub(super) fn with(options: Options) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), options).unwrap();
        Bench { engine, folder }
    }

    /// Closes and opens again.
    pub(super) fn reopen(self) -> Bench {
        let Bench { engine, folder } = self;
        engine.close();
        drop(engine);
        let engine = Engine::open(folder.path(), options()).unwrap();
        Bench { engine, folder }
    }

    pub(super) async fn write_at(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        self.engine.write(session, &context(), op, &Capture::Nothing).await
    }

    pub(super) async fn write(&self, op: WriteOp) -> Result<Written> {
        self.write_at(&mut Session::default(), &op).await
    }

    /// All went well.
    pub(super) async fn did(&self, op: WriteOp) -> Written {
        let written = self.write(op).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        written
    }

    /// All that a read gives, in batches of so many.
    pub(super) async fn read(&self, session: &mut Session, op: ReadOp, batch: usize) -> Result<Vec<bson::Document>> {
        let context = context();
        let mut cursor = self.engine.read(session, &context, op).await?;
        let mut all = Vec::new();
        loop {
            let found = cursor.next(session, &context, BatchLimit { documents: batch, bytes: 16 << 20 }).await?;
            all.extend(found.documents.iter().map(|doc| bson::Document::try_from(doc).unwrap()));
            if found.exhausted {
                return Ok(all);
            }
        }
    }

    pub(super) async fn find_at(&self, session: &mut Session, query: bson::Document) -> Result<Vec<bson::Document>> {
        self.read(session, ReadOp::Find(find_op(query)), 100).await
    }

    pub(super) async fn index(&self, keys: bson::Document, name: &str) {
        let spec = Doc::from(bson::doc! {"key": keys, "name": name});
        self.admin(AdminOp::CreateIndexes { ns: ns(), indexes: vec![spec] }).await.unwrap();
    }

    pub(super) async fn find(&self, query: bson::Document) -> Vec<bson::Document> {
        self.find_at(&mut Session::default(), query).await.unwrap()
    }

    pub(super) async fn begin(&self) -> Session {
        let mut session = Session::default();
        self.engine.begin(&mut session, &context()).await.unwrap();
        session
    }

    pub(super) async fn commit(&self, session: &mut Session) -> Result<()> {
        session.transaction.take().unwrap().commit(&context()).await
    }

    pub(super) async fn admin(&self, op: AdminOp) -> Result<Vec<bson::Document>> {
        let docs = self.engine.admin(&mut Session::default(), &context(), op).await?;
        Ok(docs.iter().map(|doc| bson::Document::try_from(doc).unwrap()).collect())
    }
}

pub(super) fn options() -> Options {
    Options { memory_bytes: 64 << 20, ..Options::default() }
}

pub(super) fn run<R>(test: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// The number and message of the only error.
pub(super) fn only_error(written: &Written) -> (i32, String) {
    assert_eq!(written.errors.len(), 1);
    told(&written.errors[0].error)
}

pub(super) fn told(error: &Error) -> (i32, String) {
    (error.code().number(), error.message().to_owned())
}
