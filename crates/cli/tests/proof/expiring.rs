//! Children that expire, with every listed field on them: each is taken off its hosts as a delete would take it (SEMANTICS R7).

use crate::failing::Failing;
use bson::{DateTime, Document, doc};
use document::Doc;
use document::Env;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Context};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use testing::registry::Declared;
use testing::shop::{self, Client, review};
use testing::{Act, Data, Living, Opened, options};

/// An engine that looks for what expired all the time.
pub(crate) fn eager_engine() -> Opened {
    let often = engine::Options { ttl_period: Duration::from_millis(50), ..options() };
    Data::folder().open_folder(often)
}

/// By the clock: expiry is about it.
fn now() -> Context {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let context = testing::context();
    Context { env: Env { now: i64::try_from(now.as_millis()).unwrap(), ..context.env }, ..context }
}

pub(crate) async fn check(opened: &Opened, declared: &Declared) {
    let mut world = shop::empty(opened, Arc::new(Failing::default())).await;
    world.contexts = Arc::new(now);
    let living = Living::of(world);
    living.life.limit_database(&living.db);
    living.set_rules(&declared.collections).await;
    living.rest().await;
    let mut client = Client::new(7);
    for at in 1..=80 {
        // Some are refused, such as deletes of what is referred to.
        let _refused = living.act(&client.act(at)).await;
    }
    // One per product lasts.
    let lasting = (0..5).map(|product| {
        let future = DateTime::from_millis(4_000_000_000_000);
        Document::from_iter(review(1_000_000 + product, product, 1, 1).into_iter().chain(doc! { "at": future }))
    });
    living.act(&Act::Insert("reviews", lasting.collect())).await.unwrap();
    living.rest().await;
    assert_eq!(living.drift().await, Vec::<String>::new(), "{}", declared.name);
    assert!(past(&living, "reviews").await > 10 && past(&living, "visits").await > 0, "{}", declared.name);
    // Before there is an index: the engine by itself would delete without rules.
    let front: Arc<dyn Backend> = Arc::new(living.front.clone());
    if let Some(engine) = &opened.engine {
        engine.expire_through(Arc::downgrade(&front));
    }
    for name in ["reviews", "visits"] {
        let index = doc! { "key": { "at": 1 }, "name": "old", "expireAfterSeconds": 60 };
        let create = AdminOp::CreateIndexes { ns: living.ns(name), indexes: vec![Doc::from(index)] };
        living.front.admin(&mut Session::default(), &now(), create).await.unwrap();
    }
    match &opened.engine {
        Some(_) => {
            for _ in 0..600 {
                if past(&living, "reviews").await + past(&living, "visits").await == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        None => assert!(living.life.expire().await.unwrap() > 10, "{}", declared.name),
    }
    living.rest().await;
    assert_eq!((past(&living, "reviews").await, past(&living, "visits").await), (0, 0), "{}", declared.name);
    assert_eq!(living.find("reviews", doc! { "_id": { "$gte": 1_000_000 } }).await.len(), 5, "{}", declared.name);
    assert_eq!(living.drift().await, Vec::<String>::new(), "{}: expired", declared.name);
    living.drop_database().await;
}

/// How many documents of a collection have a date that is gone.
async fn past(living: &Living, collection: &str) -> usize {
    living.find(collection, doc! { "at": { "$lt": DateTime::now() } }).await.len()
}
