//! Random histories of client operations over all write paths: afterwards every derived value is what its definition says,
//! and everything else is what a collection without rules has. Then the same with a fault at a step of each plan: an act that
//! failed has had no effect or, sent again under its number, exactly one.

use crate::failing::{Failing, Fault};
use crate::world::{Act, World, context, is_transient};
use bson::{Bson, DateTime, Document, doc};
use document::backend::{Backend, Session};
use document::{Code, Error};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// Fields that rules own, which the plain side does not have.
const OWNED: &[&str] =
    &["reviewCount", "avgRating", "paid", "margin", "tickCount", "tickTotal", "_pleach", "customer", "order"];

/// What is compared: delete policies change the others.
const COMPARED: &[&str] = &["products", "reviews", "sales", "ticks", "orders", "customers"];

fn act(random: &mut StdRng, at: i32) -> Act {
    let key = random.random_range(0..5);
    let other = random.random_range(0..6);
    let number = random.random_range(0..6);
    let rating: Bson = match random.random_range(0..8) {
        0 => Bson::Double(0.1 * f64::from(number)),
        1 => Bson::Int64(i64::from(number)),
        2 => Bson::String("no number".into()),
        3 => Bson::Double(f64::NAN),
        4 => "2.50".parse::<bson::Decimal128>().map(Bson::Decimal128).unwrap(),
        _ => Bson::Int32(number),
    };
    let set = |change: Document| Bson::Document(doc! { "$set": change });
    let by_product = doc! { "productId": key };
    match random.random_range(0..30) {
        0 => Act::Update("products", doc! { "_id": key }, set(doc! { "price": number }), false, true),
        1 => Act::Update(
            "products",
            doc! { "_id": key },
            Bson::Document(doc! { "price": number, "cost": 1 }),
            false,
            true,
        ),
        2 => Act::Delete("products", doc! { "_id": key }, false),
        3 => {
            let bump = Bson::Array(vec![Bson::Document(doc! { "$set": { "cost": { "$add": ["$price", 1] } } })]);
            Act::Update("products", doc! {}, bump, true, false)
        }
        4..=7 => {
            let review = |i: i32| doc! { "_id": at * 10 + i, "productId": (key + i) % 5, "rating": rating.clone() };
            Act::Insert("reviews", (0..random.random_range(1..4)).map(review).collect())
        }
        8 => Act::Update("reviews", by_product, set(doc! { "productId": other }), true, false),
        9 => Act::Update("reviews", by_product, set(doc! { "rating": rating }), false, false),
        10 => Act::Update(
            "reviews",
            by_product,
            Bson::Document(doc! { "productId": other, "rating": rating }),
            false,
            false,
        ),
        11 => Act::Update("reviews", by_product, Bson::Document(doc! { "$unset": { "productId": 1 } }), false, false),
        12 => Act::Modify("reviews", by_product, Some(doc! { "$set": { "rating": rating } })),
        13 => Act::Modify("reviews", by_product, None),
        14 => Act::Delete("reviews", doc! { "productId": key, "_id": { "$mod": [2, 0] } }, true),
        15 | 16 => {
            let status = if number > 2 { "paid" } else { "open" };
            Act::Insert("sales", vec![doc! { "_id": at, "productId": key, "amount": rating, "status": status }])
        }
        17 => Act::Update(
            "sales",
            by_product,
            set(doc! { "status": if number > 2 { "paid" } else { "open" } }),
            true,
            false,
        ),
        18 => Act::Delete("sales", by_product, false),
        19 => Act::Update("customers", doc! { "_id": key }, set(doc! { "name": format!("n{number}") }), false, true),
        20 => Act::Delete("customers", doc! { "_id": key }, false),
        21 => Act::Insert("orders", vec![doc! { "_id": at, "customerId": key }]),
        22 => Act::Update("orders", doc! { "customerId": key }, set(doc! { "customerId": other }), true, false),
        23..=25 => {
            // Readings in buckets: of few days, so that buckets fill.
            let when = |i: i32| DateTime::from_millis(i64::from(number) * 86_400_000 + i64::from(at * 10 + i));
            let tick = |i: i32| doc! { "_id": at * 10 + i, "productId": key, "at": when(i), "amount": rating.clone() };
            Act::Insert("ticks", (0..random.random_range(1..4)).map(tick).collect())
        }
        26 => Act::Update("ticks", by_product, set(doc! { "amount": rating }), true, false),
        27 => {
            let some = doc! { "productId": key, "_id": { "$mod": [3, 0] } };
            Act::Update("ticks", some, set(doc! { "productId": other }), true, false)
        }
        28 => Act::Delete("ticks", doc! { "productId": key, "_id": { "$mod": [2, 0] } }, true),
        _ => Act::Update(
            "orders",
            doc! { "_id": { "$lt": at } },
            Bson::Document(doc! { "$inc": { "n": 1 } }),
            true,
            false,
        ),
    }
}

pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) acts: i32,
    pub(crate) faults: bool,
}

/// One history on `kept`, beside the same one on a plain engine.
pub(crate) async fn check(
    inner: Arc<dyn Backend>,
    plain: Arc<dyn Backend>,
    folder: Option<tempfile::TempDir>,
    setting: &Setting,
) {
    let gate = Arc::new(Failing::default());
    let kept = Arc::new(World::new(inner, folder, gate.clone()).await);
    let plain = World::without_rules(plain, None, Arc::new(Failing::default())).await;
    let mut random = StdRng::seed_from_u64(setting.seed);
    // Not by the seed: a real server remembers the retryable writes of earlier runs by their session.
    let _as_before = random.random::<[u8; 16]>();
    let session = rand::random::<[u8; 16]>();
    for at in 1..=setting.acts {
        let acts: Vec<Act> = (0..3).map(|i| act(&mut random, at * 4 + i)).collect();
        let story = format!("seed {}, act {at}: {acts:?}", setting.seed);
        if random.random_bool(0.25) {
            let commits = random.random_bool(0.7);
            if in_transaction(&kept, &acts, commits).await.unwrap_or_else(|error| panic!("{story}: {error:?}")) {
                for act in &acts {
                    plain.write(act).await.unwrap();
                }
            }
        } else {
            let act = &acts[0];
            let fault = setting.faults.then(|| {
                let kind = if random.random_bool(0.5) { Fault::Error } else { Fault::Gone };
                (random.random_range(0..8), kind)
            });
            let done = sent_until_done(&kept, &gate, act, session, i64::from(at), fault).await;
            match done {
                Ok(()) => drop(plain.write(act).await.unwrap()),
                Err(error) => panic!("{story}: {error:?}"),
            }
        }
        if at % 10 == 0 || at == setting.acts {
            let drift = kept.drift().await;
            assert!(drift.is_empty(), "{story}: {drift:#?}");
            for collection in COMPARED {
                let mut stored = kept.all(collection).await;
                for document in &mut stored {
                    for name in OWNED {
                        document.remove(name);
                    }
                }
                let wanted = plain.all(collection).await;
                // NaN differs from itself: compared as text.
                assert_eq!(format!("{stored:?}"), format!("{wanted:?}"), "{story}: {collection}");
            }
        }
    }
}

/// Whether it was committed. A conflict cannot happen: nobody else is there.
async fn in_transaction(world: &World, acts: &[Act], commits: bool) -> Result<bool, Error> {
    let mut session = Session::default();
    world.begin(&mut session).await?;
    for act in acts {
        let written = world.write_at(&mut session, act).await?;
        if let Some(failed) = written.errors.into_iter().next() {
            return Err(failed.error);
        }
    }
    let Some(transaction) = session.transaction.take() else { return Ok(false) };
    if commits {
        transaction.commit(&context()).await?;
    } else {
        transaction.abort();
    }
    Ok(commits)
}

/// As a driver: the same number again after a failure. A statement over many documents has no number, and its parts stand by
/// themselves (R9); so it is sent without a fault.
async fn sent_until_done(
    world: &Arc<World>,
    gate: &Arc<Failing>,
    act: &Act,
    id: [u8; 16],
    number: i64,
    fault: Option<(usize, Fault)>,
) -> Result<(), Error> {
    let many = matches!(act, Act::Update(_, _, _, true, _) | Act::Delete(_, _, true));
    let session = move || match many {
        true => Session::default(),
        false => Session { id: Some(id), retry: Some(number), ..Session::default() },
    };
    if let (Some((after, fault)), false) = (fault, many) {
        gate.arm(after, fault);
        let (world_, act_) = (world.clone(), act.clone());
        let task = tokio::spawn(async move { world_.write_at(&mut session(), &act_).await });
        let abort = task.abort_handle();
        tokio::select! {
            done = task => {
                let missed = gate.disarm();
                match done.unwrap() {
                    Ok(written) if written.errors.is_empty() && missed => return Ok(()),
                    // The fault, as the client sees it: it sends again.
                    Ok(written) => assert!(written.errors.iter().all(|failed| on_purpose(&failed.error)), "{:?}", written.errors),
                    Err(error) => assert!(on_purpose(&error) || is_transient(&error), "{error:?}"),
                }
            }
            () = gate.stuck.notified() => abort.abort(),
        }
        gate.disarm();
    }
    let written = world.write_at(&mut session(), act).await?;
    match written.errors.into_iter().next() {
        Some(failed) => Err(failed.error),
        None => Ok(()),
    }
}

fn on_purpose(error: &Error) -> bool {
    error.code() == Code::InternalError
}
