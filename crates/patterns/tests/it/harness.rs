//! A layer on an engine in a folder of its own, rules from a declaration, and short words for what tests do with them.

#![allow(dead_code, reason = "each test file uses its own part")]

use bson::doc;
use document::Result;
use document::backend::{Backend, Session};
use document::op::*;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use engine::{Engine, Options};
use pleach_patterns::gate::Gate;
use pleach_patterns::life::{Life, State};
use pleach_patterns::{ClientFront, Patterned};
use std::future::Future;
use std::sync::Arc;
pub(crate) use testing::{change, context, filter, statement, told};

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) layer: Patterned,
    pub(crate) front: ClientFront,
    declaration: String,
    folder: tempfile::TempDir,
}

pub(crate) fn run<R>(test: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

pub(crate) fn ns(collection: &str) -> Namespace {
    Namespace::new("shop", collection)
}

pub(crate) fn insert(collection: &str, documents: Vec<bson::Document>) -> WriteOp {
    testing::insert(ns(collection), documents)
}

/// One update statement; `how` is any of `multi`, `upsert`.
pub(crate) fn update(collection: &str, query: bson::Document, update: impl Into<bson::Bson>, how: &[&str]) -> WriteOp {
    testing::update(ns(collection), query, update, how)
}

pub(crate) fn updates(collection: &str, statements: Vec<UpdateStatement>, ordered: bool) -> WriteOp {
    testing::updates(ns(collection), statements, ordered)
}

pub(crate) fn delete(collection: &str, query: bson::Document, multi: bool) -> WriteOp {
    testing::delete(ns(collection), query, multi)
}

pub(crate) fn find_and_modify(collection: &str, query: bson::Document, action: Modify) -> WriteOp {
    WriteOp::FindAndModify(Box::new(testing::find_and_modify(ns(collection), query, action)))
}

/// `new: true`.
pub(crate) fn modify(update: impl Into<bson::Bson>, upsert: bool) -> Modify {
    Modify::Update { update: change(update), upsert, return_new: true }
}

fn options() -> Options {
    Options { memory_bytes: 64 << 20, ..Options::default() }
}

impl World {
    /// All rules of the declaration (without its `database: shop`) are on.
    pub(crate) fn new(collections: &str) -> World {
        World::build(collections, None, tempfile::tempdir().unwrap(), options())
    }

    pub(crate) fn with_options(collections: &str, options: Options) -> World {
        World::build(collections, None, tempfile::tempdir().unwrap(), options)
    }

    pub(crate) fn with_gate(collections: &str, gate: Arc<dyn Gate>) -> World {
        World::build(collections, Some(gate), tempfile::tempdir().unwrap(), options())
    }

    fn build(collections: &str, gate: Option<Arc<dyn Gate>>, folder: tempfile::TempDir, options: Options) -> World {
        let engine = Engine::open(folder.path(), options).unwrap();
        let inner: Arc<dyn Backend> = Arc::new(engine.clone());
        let layer = match gate {
            Some(gate) => Patterned::with_gate(inner, gate),
            None => Patterned::new(inner),
        };
        let front = ClientFront::new(Life::new(&layer, Arc::new(context)));
        let world = World { engine, layer, front, declaration: collections.to_owned(), folder };
        world.set_state(|_| State::On);
        world
    }

    /// Puts the declared rules in force in these states.
    pub(crate) fn set_state(&self, state: impl Fn(&str) -> State) {
        let text = format!("database: shop\ncollections:\n{}", self.declaration);
        let checked = pleach_patterns::declare::from_yaml("pleach.yaml", &text);
        let declaration = checked.into_result().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let rules = declaration.rules.into_iter().map(|rule| {
            let state = state(&rule.name);
            (Arc::new(rule), state)
        });
        self.layer.set_rules(rules.collect()).unwrap();
    }

    /// Closes and opens again.
    pub(crate) fn reopen(self) -> World {
        let World { engine, layer, front, declaration, folder } = self;
        drop((layer, front));
        engine.close();
        drop(engine);
        World::build(&declaration, None, folder, options())
    }

    pub(crate) async fn write_at(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        self.layer.write(session, &context(), op, &Capture::Nothing).await
    }

    pub(crate) async fn write(&self, op: WriteOp) -> Result<Written> {
        self.write_at(&mut Session::default(), &op).await
    }

    /// All went well.
    pub(crate) async fn did(&self, op: WriteOp) -> Written {
        let written = self.write(op).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        written
    }

    /// Behind the layer's back.
    pub(crate) async fn engine_insert(&self, collection: &str, documents: Vec<bson::Document>) {
        let op = insert(collection, documents);
        self.engine.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
    }

    /// The code and message of the only error.
    pub(crate) async fn refused(&self, op: WriteOp) -> (i32, String) {
        match self.write(op).await {
            Ok(written) => {
                assert_eq!(written.errors.len(), 1, "{written:?}");
                told(&written.errors[0].error)
            }
            Err(error) => told(&error),
        }
    }

    pub(crate) async fn all(&self, collection: &str) -> Vec<bson::Document> {
        self.all_at(&mut Session::default(), collection).await
    }

    pub(crate) async fn all_at(&self, session: &mut Session, collection: &str) -> Vec<bson::Document> {
        self.read(session, ReadOp::Find(find(collection, doc! {}))).await.unwrap()
    }

    pub(crate) async fn one(&self, collection: &str, id: impl Into<bson::Bson>) -> bson::Document {
        let query = doc! { "_id": id.into() };
        let found = self.read(&mut Session::default(), ReadOp::Find(find(collection, query.clone()))).await.unwrap();
        found.into_iter().next().unwrap_or_else(|| panic!("{collection} has no {query}"))
    }

    /// One field of one document; nothing if it is not there.
    pub(crate) async fn field(&self, collection: &str, id: impl Into<bson::Bson>, name: &str) -> Option<bson::Bson> {
        self.one(collection, id).await.get(name).cloned()
    }

    pub(crate) async fn read(&self, session: &mut Session, op: ReadOp) -> Result<Vec<bson::Document>> {
        testing::rows(&self.layer, session, op).await
    }

    pub(crate) async fn begin(&self) -> Session {
        let mut session = Session::default();
        self.layer.begin(&mut session, &context()).await.unwrap();
        session
    }

    pub(crate) async fn commit(&self, session: &mut Session) -> Result<()> {
        session.transaction.take().unwrap().commit(&context()).await
    }

    /// Every derived value is what its definition says.
    pub(crate) async fn check(&self) {
        for kept in self.layer.rules().all() {
            let Some(field) = &kept.field else { continue };
            let pipeline = Pipeline::parse(&field.expected(true), &mut Names::new()).unwrap();
            let op = ReadOp::Aggregate(Aggregate {
                ns: kept.rule.host.clone(),
                collectionless: false,
                pipeline,
                hint: None,
                allow_disk_use: true,
            });
            let drift = self.read(&mut Session::default(), op).await.unwrap();
            assert!(drift.is_empty(), "{}: {drift:?}", kept.rule.name);
        }
    }
}

pub(crate) fn find(collection: &str, query: bson::Document) -> Find {
    testing::find(ns(collection), query)
}
