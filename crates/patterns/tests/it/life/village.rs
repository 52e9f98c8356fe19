//! A store whose rules have a life: applied, kept in the background, asked by the `pleach` command.

use crate::harness::{context, delete, insert};
use bson::doc;
use document::backend::{Backend, Session};
use document::op::{Capture, Context, ReadOp, WriteOp};
use document::{Doc, Env, Error, Result};
use engine::{Engine, Options};
use pleach_patterns::life::Life;
use pleach_patterns::{ClientFront, Patterned};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) struct Village {
    pub(crate) engine: Engine,
    /// What clients meet.
    pub(crate) front: ClientFront,
    pub(crate) life: Arc<Life>,
    folder: Option<tempfile::TempDir>,
}

pub(crate) const COUNT: &str = "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }";
pub(crate) const SUM: &str =
    "{ products: { computed: { total: { sum: n, from: reviews, by: productId, where: { kind: good } } } } }";

/// The real time: lag is measured by it.
fn surroundings() -> Context {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let context = context();
    Context { env: Env { now: i64::try_from(now).unwrap(), ..context.env }, ..context }
}

impl Village {
    /// An empty store; the background work is running.
    pub(crate) async fn new() -> Village {
        Village::open(tempfile::tempdir().unwrap(), |backend| backend).await.unwrap()
    }

    pub(crate) async fn open(
        folder: tempfile::TempDir,
        around: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>,
    ) -> Result<Village> {
        let engine = Engine::open(folder.path(), Options { memory_bytes: 64 << 20, ..Options::default() }).unwrap();
        let layer = Patterned::new(around(Arc::new(engine.clone())));
        let village = Village::on(engine, layer, Some(folder));
        if let Err(error) = village.life.load().await {
            village.engine.close();
            return Err(error);
        }
        village.life.start().await.unwrap();
        Ok(village)
    }

    /// On a store that may have others beside it; nothing is running yet.
    pub(crate) fn on(engine: Engine, layer: Patterned, folder: Option<tempfile::TempDir>) -> Village {
        let life = Life::new(&layer, Arc::new(surroundings));
        Village { engine, front: ClientFront::new(life.clone()), life, folder }
    }

    /// Stops and opens again on the same data.
    pub(crate) async fn reopen(self) -> Village {
        Village::open(self.close().await, |backend| backend).await.unwrap()
    }

    pub(crate) async fn close(self) -> tempfile::TempDir {
        let Village { engine, front, life, folder } = self;
        life.close().await;
        drop((life, front));
        engine.close();
        drop(engine);
        folder.unwrap()
    }

    /// `{ pleach: verb, … }` on the database.
    pub(crate) async fn ask(&self, verb: &str, fields: bson::Document) -> Result<bson::Document> {
        let mut body = doc! { "pleach": verb };
        body.extend(fields);
        let answer = self.life.command(&mut Session::default(), &surroundings(), "shop", &Doc::from(body)).await?;
        Ok(bson::Document::try_from(&answer).unwrap())
    }

    pub(crate) async fn apply(&self, collections: &str) -> Result<bson::Document> {
        self.ask("apply", doc! { "declaration": declared(collections) }).await
    }

    /// The same, whatever becomes of the values that are there.
    pub(crate) async fn overwrite(&self, collections: &str) -> Result<bson::Document> {
        self.overwriting(collections, true).await
    }

    pub(crate) async fn overwriting(&self, collections: &str, wait: bool) -> Result<bson::Document> {
        self.ask("apply", doc! { "declaration": declared(collections), "wait": wait, "overwrite": true }).await
    }

    /// Every derived value is right.
    pub(crate) async fn assert_clean(&self) -> i64 {
        let report = self.ask("audit", doc! {}).await.unwrap();
        assert_eq!(report.get_i64("drifted").ok(), Some(0), "{report}");
        report.get_i64("checked").unwrap()
    }

    /// The state of each rule.
    pub(crate) async fn states(&self) -> Vec<(String, String)> {
        let status = self.ask("status", doc! {}).await.unwrap();
        let rules = status.get_array("rules").unwrap();
        let text = |rule: &bson::Bson, name: &str| rule.as_document().unwrap().get_str(name).unwrap().to_owned();
        rules.iter().map(|rule| (text(rule, "rule"), text(rule, "state"))).collect()
    }

    pub(crate) async fn write(&self, op: WriteOp) {
        let written = self.front.write(&mut Session::default(), &surroundings(), &op, &Capture::Nothing).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
    }

    /// Behind the layer's back.
    pub(crate) async fn behind(&self, op: WriteOp) {
        self.engine.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
    }

    /// Work on whole collections, through the layer.
    pub(crate) async fn define(&self, op: document::op::AdminOp) {
        self.front.admin(&mut Session::default(), &context(), op).await.unwrap();
    }

    pub(crate) async fn find(&self, collection: &str, query: bson::Document) -> Vec<bson::Document> {
        loop {
            let op = ReadOp::Find(crate::harness::find(collection, query.clone()));
            match testing::rows(&self.front, &mut Session::default(), op).await {
                // The collection was renamed before the first batch: a server begins such a read anew.
                Err(error) if error.code() == document::Code::QueryPlanKilled => {}
                rows => return rows.unwrap(),
            }
        }
    }

    /// Products 0 … and reviews of them, before any rule is there.
    pub(crate) async fn fill(&self, products: i32, reviews: i32) {
        self.behind(insert("products", (0..products).map(|id| doc! { "_id": id }).collect())).await;
        let review = |id: i32| doc! { "_id": id, "productId": id % products, "n": id, "kind": if id % 3 == 0 { "bad" } else { "good" } };
        self.behind(insert("reviews", (0..reviews).map(review).collect())).await;
    }

    /// Clients of these numbers that insert, move and delete reviews and products until told to stop; all of their writes succeed.
    pub(crate) fn clients(
        &self,
        numbers: std::ops::Range<i32>,
        products: i32,
        stop: &Arc<std::sync::atomic::AtomicBool>,
    ) -> Vec<tokio::task::JoinHandle<i32>> {
        let client = |number: i32| {
            let (front, stop) = (self.front.clone(), stop.clone());
            tokio::spawn(async move {
                let mut made = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let id = 1_000_000 * (number + 1) + made;
                    let product = rand::random_range(0..products + 2);
                    let op = match made % 5 {
                        3 => crate::harness::update(
                            "reviews",
                            doc! { "_id": id - 2 },
                            doc! { "$set": { "productId": product, "kind": "good" } },
                            &[],
                        ),
                        4 => delete("reviews", doc! { "_id": id - 3 }, false),
                        _ => {
                            insert("reviews", vec![doc! { "_id": id, "productId": product, "n": 1.5, "kind": "good" }])
                        }
                    };
                    let written =
                        front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
                    assert!(written.errors.is_empty(), "{:?}", written.errors);
                    if made % 50 == 7 {
                        let op = insert("products", vec![doc! { "_id": id }]);
                        front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
                    }
                    made += 1;
                }
                made
            })
        };
        numbers.map(client).collect()
    }
}

pub(crate) fn declared(collections: &str) -> String {
    format!("database: shop\ncollections: {collections}\n")
}

pub(crate) fn told(error: &Error) -> String {
    format!("{}: {error}", error.code().number())
}
