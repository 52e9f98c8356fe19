//! An engine in a folder of its own, and short words for what tests do with it.

use crate::{Engine, Options};
use document::backend::{Backend, Session};
use document::op::*;
use document::update::Update;
use document::{Doc, Result};
use std::future::Future;
pub(super) use testing::{context, filter, told};

pub(super) struct Bench {
    pub(super) engine: Engine,
    folder: tempfile::TempDir,
}

pub(super) fn ns() -> Namespace {
    Namespace::new("db", "c")
}

pub(super) fn update(source: bson::Document) -> Update {
    testing::change(source)
}

pub(super) fn insert(documents: Vec<bson::Document>) -> WriteOp {
    testing::insert(ns(), documents)
}

pub(super) fn update_op(query: bson::Document, change: bson::Document, multi: bool, upsert: bool) -> WriteOp {
    let statement = UpdateStatement { multi, upsert, ..testing::statement(query, change, &[]) };
    testing::updates(ns(), vec![statement], true)
}

pub(super) fn delete_op(query: bson::Document, multi: bool) -> WriteOp {
    testing::delete(ns(), query, multi)
}

pub(super) fn find_op(query: bson::Document) -> Find {
    testing::find(ns(), query)
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

    /// The data folder.
    pub(super) fn path(&self) -> &std::path::Path {
        self.folder.path()
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
        Ok(testing::batches(&self.engine, session, op, batch).await?.concat())
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
