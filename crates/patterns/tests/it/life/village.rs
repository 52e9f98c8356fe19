//! A store whose rules have a life: applied, kept in the background, asked by the `pleach` command.

use crate::harness::{World, context, delete, insert};
use bson::doc;
use document::backend::{Backend, Session};
use document::op::{Capture, Context, WriteOp};
use document::{Env, Error, Result};
use pleach_patterns::Patterned;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use testing::{Data, Living, Opened};

pub(crate) struct Village(Living);

impl Deref for Village {
    type Target = Living;

    fn deref(&self) -> &Living {
        &self.0
    }
}

pub(crate) const COUNT: &str = "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }";
pub(crate) const SUM: &str =
    "{ products: { computed: { total: { sum: n, from: reviews, by: productId, where: { kind: good } } } } }";

/// The real time: lag is measured by it.
fn new_context() -> Context {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let context = context();
    Context { env: Env { now: i64::try_from(now).unwrap(), ..context.env }, ..context }
}

impl Village {
    /// An empty store; the background work is running.
    pub(crate) async fn new() -> Village {
        Village::open(Data::folder(), |backend| backend).await.unwrap()
    }

    pub(crate) async fn open(data: Data, around: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>) -> Result<Village> {
        let opened = data.open().await;
        let layer = Patterned::new(around(opened.backend.clone()));
        let village = Village::on(opened, layer);
        if let Err(error) = village.life.load().await {
            village.opened.clone().close();
            return Err(error);
        }
        village.life.start().await.unwrap();
        Ok(village)
    }

    /// On a store that may have others beside it; nothing is running yet.
    pub(crate) fn on(opened: Opened, layer: Patterned) -> Village {
        Village(Living::of(World { contexts: Arc::new(new_context), ..World::of(layer, opened, "shop") }))
    }

    /// Stops and opens again on the same data.
    pub(crate) async fn reopen(self) -> Village {
        Village::open(self.close().await, |backend| backend).await.unwrap()
    }

    pub(crate) async fn close(self) -> Data {
        let Living { world, life } = self.0;
        life.close().await;
        let World { layer, opened, .. } = world;
        drop((life, layer));
        let data = opened.data.clone();
        opened.close();
        data
    }

    pub(crate) async fn write(&self, op: WriteOp) {
        self.did(op).await;
    }

    /// Work on whole collections, through the layer.
    pub(crate) async fn define(&self, op: document::op::AdminOp) {
        self.front.admin(&mut Session::default(), &context(), op).await.unwrap();
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
            let (layer, stop) = (self.front.clone(), stop.clone());
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
                        layer.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
                    assert!(written.errors.is_empty(), "{:?}", written.errors);
                    if made % 50 == 7 {
                        let op = insert("products", vec![doc! { "_id": id }]);
                        layer.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
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
    testing::declaration("shop", collections)
}

pub(crate) fn told(error: &Error) -> String {
    format!("{}: {error}", error.code().number())
}
