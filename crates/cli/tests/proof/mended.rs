//! Drift that is provoked behind Pleach's back: an audit names document, stored and expected value, and a repair makes it right
//! while clients write, whose writes it never takes back.

use crate::failing::Failing;
use bson::{Bson, Document, doc};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use testing::registry::Declared;
use testing::{Act, Living, Opened, registry, shop};

const RULES: &str = "{
  products: { computed: { reviewCount: { count: reviews, by: productId }, margin: { expr: { $subtract: [$price, 1] } },
                          total: { sum: rating, from: reviews, by: productId } } },
  orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name] } } } }";

const HOSTS: i32 = 20;

fn set(collection: &'static str, query: Document, change: Document) -> Act {
    Act::Update(collection, query, Bson::Document(doc! { "$set": change }), true, false)
}

/// A missing value is left out, not null.
fn entry(db: &str, rule: &str, id: i32, stored: Option<Bson>, expected: impl Into<Bson>) -> Document {
    let (collection, field) = rule.split_once('.').unwrap();
    let mut entry = doc! { "rule": rule, "collection": collection, "_id": id, "field": field };
    entry.extend(stored.map(|stored| ("stored".to_owned(), stored)));
    entry.extend(doc! { "expected": expected.into(), "database": db });
    entry
}

pub(crate) async fn check(opened: &Opened) {
    let living = Arc::new(shop::open(opened, Arc::new(Failing::default()), "").await);
    for act in [
        Act::Insert("products", (0..HOSTS).map(|n| doc! { "_id": n, "price": 5 }).collect()),
        Act::Insert("reviews", (0..HOSTS).map(|n| doc! { "_id": n, "productId": n, "rating": 3 }).collect()),
        Act::Insert("customers", vec![doc! { "_id": 1, "name": "Ada" }, doc! { "_id": 2, "name": "Bob" }]),
        Act::Insert("orders", (0..HOSTS).map(|n| doc! { "_id": n, "customerId": 1 }).collect()),
    ] {
        living.behind(act.op(&living)).await;
    }
    living.set_rules(RULES).await;
    living.rest().await;
    assert_eq!(living.audit().await, Vec::<Document>::new());
    named_and_mended(&living).await;
    mended_under_load(&living).await;
    living.drop_database().await;
}

/// One of each kind: a wrong value, one of another type, one that is gone, and what lies behind them changed.
async fn named_and_mended(living: &Living) {
    for act in [
        set("products", doc! { "_id": 1 }, doc! { "reviewCount": 7 }),
        set("products", doc! { "_id": 2 }, doc! { "reviewCount": "many", "price": 9 }),
        Act::Update("products", doc! { "_id": 3 }, Bson::Document(doc! { "$unset": { "total": 1 } }), false, false),
        Act::Insert("reviews", vec![doc! { "_id": 100, "productId": 4, "rating": 2 }]),
        Act::Delete("reviews", doc! { "_id": 5 }, false),
        set("orders", doc! { "_id": 6 }, doc! { "customerId": 2 }),
        set("orders", doc! { "_id": 7 }, doc! { "customer": { "name": "Eve" } }),
    ] {
        living.behind(act.op(living)).await;
    }
    let (ada, bob, eve) = (doc! { "name": "Ada" }, doc! { "name": "Bob" }, doc! { "name": "Eve" });
    let entry = |rule: &str, id: i32, stored: Bson, expected: Bson| {
        let stored = (stored != Bson::Undefined).then_some(stored);
        entry(&living.db, rule, id, stored, expected)
    };
    let mut wanted = vec![
        entry("products.reviewCount", 1, 7.into(), 1.into()),
        entry("products.reviewCount", 2, "many".into(), 1.into()),
        entry("products.reviewCount", 4, 1.into(), 2.into()),
        entry("products.reviewCount", 5, 1.into(), 0.into()),
        entry("products.margin", 2, 4.into(), 8.into()),
        entry("products.total", 3, Bson::Undefined, 3.into()),
        entry("products.total", 4, 3.into(), 5.into()),
        entry("products.total", 5, 3.into(), 0.into()),
        entry("orders.customer", 6, ada.clone().into(), bob.into()),
        entry("orders.customer", 7, eve.into(), ada.into()),
    ];
    let order = |entry: &Document| format!("{:?} {:?}", entry.get("rule"), entry.get("_id"));
    wanted.sort_by_key(order);
    let mut found = living.audit().await;
    found.sort_by_key(order);
    assert_eq!(found, wanted);
    let report = living.ask("repair", doc! {}).await.unwrap();
    let mended = report.get_array("drift").unwrap().iter().map(|entry| entry.as_document().unwrap().clone());
    let mut mended: Vec<Document> = mended.collect();
    mended.sort_by_key(order);
    assert_eq!(mended, wanted, "what was repaired");
    assert_eq!(living.audit().await, Vec::<Document>::new());
}

/// Every listed field of a world: spoilt in all hosts behind Pleach's back, it is named, and made right.
pub(crate) async fn check_listed(opened: &Opened, world: &Declared) {
    let living = Arc::new(shop::open(opened, Arc::new(Failing::default()), &world.collections).await);
    let mut client = shop::Client::new(11);
    for at in 1..=60 {
        // Some are refused, such as deletes of what is referred to.
        let _refused = living.act(&client.act(at)).await;
    }
    living.rest().await;
    assert_eq!(living.audit().await, Vec::<Document>::new(), "{}", world.name);
    let spoilt = spoil_all(&living, world).await;
    let report = living.ask("audit", doc! {}).await.unwrap();
    let rules = report.get_array("rules").unwrap().iter().map(|rule| rule.as_document().unwrap());
    let drifted = rules.filter(|rule| rule.get_i64("drifted").unwrap() > 0);
    let named: BTreeSet<String> = drifted.map(|rule| rule.get_str("rule").unwrap().to_owned()).collect();
    let unnamed: Vec<&String> = spoilt.difference(&named).collect();
    assert!(unnamed.is_empty(), "{}: {unnamed:?} of {spoilt:?}\n{report}", world.name);
    // A world that was asked for by a word may keep no field, or have no host.
    assert!(!spoilt.is_empty() || crate::asked().is_some(), "{}: nothing was spoilt\n{report}", world.name);
    let report = living.ask("repair", doc! {}).await.unwrap();
    assert!(report.get("failed").is_none(), "{}: {report}", world.name);
    living.rest().await;
    assert_eq!(living.audit().await, Vec::<Document>::new(), "{}: repaired", world.name);
    listed_mended_under_load(&living, world).await;
    living.drop_database().await;
}

/// The same while a client writes: what it did in the meantime is in the values. Rounds go on until it has written.
async fn listed_mended_under_load(living: &Arc<Living>, world: &Declared) {
    const MOST_ROUNDS: usize = 100;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let client = tokio::spawn({
        let (living, stop, written) = (living.clone(), stop.clone(), written.clone());
        async move {
            let mut client = shop::Client::new(12);
            for at in 1_000.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if living.act(&client.act(at)).await.is_ok() {
                    written.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    for round in 1..=MOST_ROUNDS {
        spoil_all(living, world).await;
        let report = living.ask("repair", doc! {}).await.unwrap();
        assert!(report.get("failed").is_none(), "{}: {report}", world.name);
        if round >= 2 && written.load(Ordering::Relaxed) > 3 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    client.await.unwrap();
    assert!(written.load(Ordering::Relaxed) > 3, "{}: the client hardly wrote", world.name);
    living.rest().await;
    assert_eq!(living.audit().await, Vec::<Document>::new(), "{}: repaired under load", world.name);
}

/// Returns the rules of which a value was spoilt.
async fn spoil_all(living: &Living, world: &Declared) -> BTreeSet<String> {
    let mut spoilt = BTreeSet::new();
    // Each by another value: a field that is made of another would be right by what that holds.
    for ((collection, path), value) in registry::refreshed(&world.collections).into_iter().zip(-9_000..) {
        if spoil(living, &collection, &path, value).await {
            spoilt.insert(format!("{collection}.{path}"));
        }
    }
    spoilt
}

/// Puts a value that no rule gives at a path of all documents, and in each element of an array on the way. Returns whether there
/// are any.
async fn spoil(living: &Living, collection: &str, path: &str, value: i32) -> bool {
    let documents = living.all(collection).await;
    let collection = shop::COLLECTIONS.iter().find(|known| **known == collection).unwrap();
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let in_array = documents.iter().any(|host| !rest.is_empty() && matches!(host.get(first), Some(Bson::Array(_))));
    let (query, place) = match in_array {
        true => (doc! { format!("{first}.0"): { "$exists": true } }, format!("{first}.$[].{rest}")),
        false => (doc! {}, path.to_owned()),
    };
    living.behind(set(collection, query, doc! { place: value }).op(living)).await;
    !documents.is_empty()
}

async fn mended_under_load(living: &Arc<Living>) {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (1..=3)
        .map(|client| {
            let (living, stop) = (living.clone(), stop.clone());
            tokio::spawn(async move {
                let mut n = client * 10_000;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let host = n % HOSTS;
                    let act = match n % 4 {
                        0 => Act::Modify("reviews", doc! { "productId": host }, None),
                        1 => set("customers", doc! { "_id": 1 }, doc! { "name": n.to_string() }),
                        2 => set("orders", doc! { "_id": host }, doc! { "customerId": n % 3 }),
                        _ => Act::Insert("reviews", vec![doc! { "_id": n, "productId": host, "rating": n % 6 }]),
                    };
                    living.act(&act).await.unwrap_or_else(|error| panic!("{act:?}: {error:?}"));
                }
                n - client * 10_000
            })
        })
        .collect();
    for round in 0..5 {
        let wrong = doc! { "reviewCount": -round, "total": round, "margin": 0 };
        living.behind(set("products", doc! { "_id": { "$mod": [3, round % 3] } }, wrong).op(living)).await;
        living
            .behind(set("orders", doc! { "_id": { "$mod": [4, round % 4] } }, doc! { "customer": round }).op(living))
            .await;
        let report = living.ask("repair", doc! {}).await.unwrap();
        assert!(report.get("failed").is_none(), "{report}");
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 3, "a client hardly wrote");
    }
    assert_eq!(living.audit().await, Vec::<Document>::new(), "repaired under load");
}
