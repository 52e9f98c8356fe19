//! Rules on a backend, whichever it is, and words for what clients do and see.

use crate::data::Opened;
use bson::{Bson, Document, doc};
use document::Result;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Aggregate, Capture, Context, Namespace, ReadOp, WriteOp, Written};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use patterns::declare::Declaration;
use patterns::gate::Gate;
use patterns::life::Life;
use patterns::rule::State;
use patterns::{ClientFront, Patterned};
use std::sync::Arc;

/// Makes what an operation carries.
pub type Contexts = Arc<dyn Fn() -> Context + Send + Sync>;

pub struct World {
    pub layer: Patterned,
    /// What clients meet.
    pub front: ClientFront,
    pub db: String,
    pub opened: Opened,
    pub contexts: Contexts,
}

impl World {
    /// On an engine in a folder of its own, database `shop`; the rules of the declaration (what stands below `collections:`) are
    /// on.
    pub fn new(collections: &str) -> World {
        World::on(Opened::engine(), "shop").declaring(collections)
    }

    /// Whatever is in this database; no rule is known.
    pub fn on(opened: Opened, db: &str) -> World {
        World::of(Patterned::new(opened.backend.clone()), opened, db)
    }

    /// The same; plans stop at a gate.
    pub fn with_gate(opened: Opened, db: &str, gate: Arc<dyn Gate>) -> World {
        World::of(Patterned::with_gate(opened.backend.clone(), gate), opened, db)
    }

    /// With a layer that is there.
    pub fn of(layer: Patterned, opened: Opened, db: &str) -> World {
        let contexts: Contexts = Arc::new(crate::context);
        let front = ClientFront::new(Life::new(&layer, contexts.clone()));
        World { layer, front, db: db.to_owned(), opened, contexts }
    }

    /// Another process with the same data.
    pub fn another(&self) -> World {
        World::on(self.opened.clone(), &self.db)
    }

    /// Closes the folder and opens it again; no rule is known.
    #[must_use]
    pub fn reopen(self) -> World {
        let World { layer, front, db, opened, contexts } = self;
        drop((layer, front));
        let data = opened.data.clone();
        opened.close();
        World { contexts, ..World::on(data.open_folder(crate::data::options()), &db) }
    }

    /// A database that no other test has, ready for rules.
    pub async fn fresh(opened: Opened, gate: Arc<dyn Gate>) -> World {
        let db = format!("test_{}_{}", std::process::id(), crate::next());
        crate::prepare(&*opened.backend, &db).await;
        World::with_gate(opened, &db, gate)
    }

    #[must_use]
    pub fn declaring(self, collections: &str) -> World {
        self.declare(collections, |_| State::On);
        self
    }

    /// Puts rules in force, each in a state; nothing is seeded, and nobody else learns of it.
    pub fn declare(&self, collections: &str, state: impl Fn(&str) -> State) {
        let rules = declared(&self.db, collections).rules.into_iter().map(|rule| {
            let state = state(&rule.name);
            (Arc::new(rule), state)
        });
        self.layer.set_rules(rules.collect()).unwrap();
    }

    pub fn context(&self) -> Context {
        (self.contexts)()
    }

    /// The backend beneath the rules.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        self.layer.inner()
    }

    pub fn ns(&self, collection: &str) -> Namespace {
        Namespace::new(&self.db, collection)
    }

    pub async fn write_at(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        self.front.write(session, &self.context(), op, &Capture::Nothing).await
    }

    pub async fn write(&self, op: WriteOp) -> Result<Written> {
        self.write_at(&mut Session::default(), &op).await
    }

    /// All went well.
    pub async fn did(&self, op: WriteOp) -> Written {
        let written = self.write(op).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        written
    }

    /// The code and message of the only error.
    pub async fn refused(&self, op: WriteOp) -> (i32, String) {
        match self.write(op).await {
            Ok(written) => {
                assert_eq!(written.errors.len(), 1, "{written:?}");
                crate::told(&written.errors[0].error)
            }
            Err(error) => crate::told(&error),
        }
    }

    /// Behind the back of the layer and of whatever is around the backend.
    pub async fn behind(&self, op: WriteOp) {
        let written = self.opened.backend.write(&mut Session::default(), &self.context(), &op, &Capture::Nothing).await;
        let written = written.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
    }

    pub async fn begin(&self) -> Session {
        let mut session = Session::default();
        self.front.begin(&mut session, &self.context()).await.unwrap();
        session
    }

    pub async fn commit(&self, session: &mut Session) -> Result<()> {
        session.transaction.take().unwrap().commit(&self.context()).await
    }

    pub async fn read(&self, session: &mut Session, op: ReadOp) -> Result<Vec<Document>> {
        crate::rows(&self.front, session, op).await
    }

    pub async fn find_at(&self, session: &mut Session, collection: &str, query: Document) -> Vec<Document> {
        loop {
            let op = ReadOp::Find(crate::find(self.ns(collection), query.clone()));
            match self.read(session, op).await {
                // The collection was renamed before the first batch: a server begins such a read anew.
                Err(error) if error.code() == document::Code::QueryPlanKilled => {}
                rows => return rows.unwrap(),
            }
        }
    }

    pub async fn find(&self, collection: &str, query: Document) -> Vec<Document> {
        self.find_at(&mut Session::default(), collection, query).await
    }

    pub async fn all_at(&self, session: &mut Session, collection: &str) -> Vec<Document> {
        self.find_at(session, collection, doc! {}).await
    }

    /// In the order in which they are stored.
    pub async fn all(&self, collection: &str) -> Vec<Document> {
        self.find(collection, doc! {}).await
    }

    /// In the order of their `_id`s.
    pub async fn sorted(&self, collection: &str) -> Vec<Document> {
        let sort = document::Value::from(Bson::from(vec![doc! { "$sort": { "_id": 1 } }]));
        let document::Value::Array(stages) = sort else { panic!("an array is an array") };
        let op = ReadOp::Aggregate(Aggregate {
            ns: self.ns(collection),
            collectionless: false,
            pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
            hint: None,
            allow_disk_use: true,
            collation: None,
        });
        self.read(&mut Session::default(), op).await.unwrap()
    }

    pub async fn one(&self, collection: &str, id: impl Into<Bson>) -> Document {
        let query = doc! { "_id": id.into() };
        let found = self.find(collection, query.clone()).await;
        found.into_iter().next().unwrap_or_else(|| panic!("{collection} has no {query}"))
    }

    /// One field of one document; `None` if it is not there.
    pub async fn field(&self, collection: &str, id: impl Into<Bson>, name: &str) -> Option<Bson> {
        self.one(collection, id).await.get(name).cloned()
    }

    /// Every derived value that is not what its definition says.
    pub async fn drift(&self) -> Vec<String> {
        let mut found = Vec::new();
        for kept in self.layer.rules().all() {
            let Some(field) = kept.rule.kept_field() else { continue };
            let op = ReadOp::Aggregate(Aggregate {
                ns: kept.rule.host.clone(),
                collectionless: false,
                pipeline: Pipeline::parse(&field.expected(true), &mut Names::new()).unwrap(),
                hint: None,
                allow_disk_use: true,
                collation: None,
            });
            let rows = self.read(&mut Session::default(), op).await.unwrap();
            found.extend(rows.into_iter().map(|row| format!("{}: {row}", kept.rule.name)));
        }
        found
    }

    /// Every derived value is what its definition says.
    pub async fn check(&self) {
        assert_eq!(self.drift().await, Vec::<String>::new());
    }

    pub async fn drop_database(&self) {
        let op = AdminOp::DropDatabase { db: self.db.clone() };
        self.inner().admin(&mut Session::default(), &self.context(), op).await.unwrap();
    }
}

/// The rules of what stands below `collections:`, on the same line or on lines of its own.
pub fn declared(db: &str, collections: &str) -> Declaration {
    let text = declaration(db, collections);
    let checked = patterns::declare::from_yaml("pleach.yaml", &text);
    checked.into_result().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The same as a whole declaration.
pub fn declaration(db: &str, collections: &str) -> String {
    match collections.trim_start().starts_with('{') {
        true => format!("database: {db}\ncollections: {collections}\n"),
        false => format!("database: {db}\ncollections:\n{}\n", indented(collections)),
    }
}

/// Below `collections:`.
fn indented(block: &str) -> String {
    let lines = block.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("  {line}\n")).collect()
}
