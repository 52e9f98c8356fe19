//! Random histories of client operations over all write paths: afterwards every derived value is what its definition says,
//! and everything else is what a collection without rules has. Then the same with a fault at a step of each plan: an act that
//! failed has had no effect or, sent again under its number, exactly one.

use crate::driver::Tries;
use crate::failing::{Failing, Fault};
use crate::older;
use bson::{Bson, Document};
use document::backend::Session;
use document::{Code, Error};
use patterns::rule::Outlier;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use testing::registry::{Declared, marks, outliers, owned};
use testing::shop::{self, COMPARED, Client};
use testing::{Act, Living, Opened, World, is_transient};

pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) acts: i32,
    pub(crate) faults: bool,
}

/// One history with these rules, beside the same one on a plain engine.
pub(crate) async fn check(opened: &Opened, declared: &Declared, setting: &Setting) {
    let gate = Arc::new(Failing::default());
    let kept = Arc::new(shop::open(opened, gate.clone(), &declared.collections).await);
    let plain = shop::open(&Opened::engine(), Arc::new(Failing::default()), "").await;
    let added = [owned(&declared.collections), marks(&declared.collections)].concat();
    let (arrays, mut ageing) = (outliers(&declared.collections), StdRng::seed_from_u64(setting.seed));
    let mut client = Client::new(setting.seed);
    // Not by the seed: a real server remembers the retryable writes of earlier runs by their session.
    let session = rand::random::<[u8; 16]>();
    for at in 1..=setting.acts {
        if at % 3 == 0 {
            older::one_each(&kept, &mut ageing).await;
        }
        let acts: Vec<Act> = (0..3).map(|i| client.act(at * 4 + i)).collect();
        let story = format!("{}, seed {}, act {at}: {acts:?}", declared.name, setting.seed);
        if client.random.random_bool(0.25) {
            let commits = client.random.random_bool(0.7);
            let mut tries = Tries::new();
            let done = loop {
                let done = in_transaction(&kept, &acts, commits).await;
                if !tries.again(&done).await {
                    break done;
                }
            };
            if done.unwrap_or_else(|error| panic!("{story}: {error:?}")) {
                for act in &acts {
                    plain.act(act).await.unwrap();
                }
            }
        } else {
            let act = &acts[0];
            let fault = setting.faults.then(|| {
                let kind = if client.random.random_bool(0.5) { Fault::Error } else { Fault::Gone };
                (client.random.random_range(0..8), kind)
            });
            let done = sent_until_done(&kept, &gate, act, session, i64::from(at), fault).await;
            done.unwrap_or_else(|error| panic!("{story}: {error:?}"));
            plain.act(act).await.unwrap();
        }
        if at % 10 == 0 || at == setting.acts {
            kept.rest().await;
            assert_eq!(kept.drift().await, Vec::<String>::new(), "{story}");
            for collection in COMPARED {
                let stored = comparable(&kept, collection, &added, &arrays).await;
                assert_eq!(stored, comparable(&plain, collection, &[], &[]).await, "{story}: {collection}");
            }
        }
    }
    kept.drop_database().await;
}

/// What clients have written, as text: NaN differs from itself. A bucket gives series and time first.
async fn comparable(
    world: &World,
    collection: &str,
    added: &[(String, String)],
    arrays: &[Arc<Outlier>],
) -> Vec<String> {
    let mut documents = world.sorted(collection).await;
    for outlier in arrays.iter().filter(|outlier| *outlier.host.collection == *collection) {
        make_whole(world, outlier, &mut documents).await;
    }
    for document in &mut documents {
        document.remove("_pleach");
        for (_, path) in added.iter().filter(|(of, _)| of == collection) {
            without(document, path);
        }
        if collection == "visits" {
            // Nobody names them by it.
            document.remove("_id");
        }
    }
    let text = |document: &Document| format!("{:?}", document.iter().collect::<BTreeMap<_, _>>());
    let mut texts: Vec<String> = documents.iter().map(text).collect();
    if collection == "visits" {
        texts.sort();
    }
    texts
}

/// Puts what overflows behind what is embedded.
async fn make_whole(world: &World, outlier: &Outlier, documents: &mut [Document]) {
    let mut overflow = world.sorted(&outlier.overflow.collection).await;
    overflow.sort_by_key(|item| item.get_i32("index").unwrap());
    for document in documents {
        let of_it = overflow.iter().filter(|item| item.get(&outlier.owner) == document.get("_id"));
        let rest: Vec<Bson> = of_it.filter_map(|item| item.get(&outlier.item).cloned()).collect();
        let count = document.get(&outlier.field).and_then(Bson::as_array).map_or(0, Vec::len) + rest.len();
        assert_eq!(document.get_i32(&outlier.count).ok(), i32::try_from(count).ok(), "{document} and {rest:?}");
        if let Ok(items) = document.get_array_mut(&outlier.field) {
            items.extend(rest);
        }
    }
}

/// Takes a value out, at each element of an array on the way; an object that it was alone in goes too.
fn without(document: &mut Document, path: &str) {
    let Some((outer, inner)) = path.split_once('.') else { return drop(document.remove(path)) };
    match document.get_mut(outer) {
        Some(Bson::Document(nested)) => {
            without(nested, inner);
            if nested.is_empty() {
                document.remove(outer);
            }
        }
        Some(Bson::Array(items)) => items.iter_mut().for_each(|item| {
            if let Bson::Document(nested) = item {
                without(nested, inner);
            }
        }),
        _ => {}
    }
}

/// Whether it was committed. A conflict cannot happen: nobody else is there.
async fn in_transaction(world: &World, acts: &[Act], commits: bool) -> Result<bool, Error> {
    let mut session = world.begin().await;
    for act in acts {
        let written = world.act_at(&mut session, act).await?;
        if let Some(failed) = written.errors.into_iter().next() {
            return Err(failed.error);
        }
    }
    let Some(transaction) = session.transaction.take() else { return Ok(false) };
    if commits {
        transaction.commit(&world.context()).await?;
    } else {
        transaction.abort();
    }
    Ok(commits)
}

/// As a driver: the same number again after a failure. A statement over many documents has no number, and its parts stand by
/// themselves (R9); so it is sent without a fault.
async fn sent_until_done(
    world: &Arc<Living>,
    gate: &Arc<Failing>,
    act: &Act,
    id: [u8; 16],
    number: i64,
    fault: Option<(usize, Fault)>,
) -> Result<(), Error> {
    let many = act.is_multi();
    let session = move || match many {
        true => Session::default(),
        false => Session { id: Some(id), retry: Some(number), ..Session::default() },
    };
    if let (Some((after, fault)), false) = (fault, many) {
        gate.arm(after, fault);
        let (world_, act_) = (world.clone(), act.clone());
        let task = tokio::spawn(async move { world_.act_at(&mut session(), &act_).await });
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
    let written = world.act_at(&mut session(), act).await?;
    match written.errors.into_iter().next() {
        Some(failed) => Err(failed.error),
        None => Ok(()),
    }
}

fn on_purpose(error: &Error) -> bool {
    error.code() == Code::InternalError
}
