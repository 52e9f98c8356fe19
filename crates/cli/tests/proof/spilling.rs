//! Two who change one document at once, step by step: items that spill and come back against those who push and pull, write-back and
//! migration against updates, clients of older versions and direct writers against all of them. Whatever the order, what comes of
//! it is what one after the other would give (SEMANTICS R18, R19).

use crate::failing::Failing;
use crate::interleave::run;
use crate::older;
use crate::scheduler::{Scheduler, orders};
use bson::{Bson, Document, doc};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Capture, UpdateStatement};
use document::{Error, Value};
use patterns::gate::{Gate, Point};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use testing::shop::{self, set};
use testing::{Act, Living, Opened, World, is_transient};

/// Who does something.
#[derive(Clone, Copy)]
enum Doing {
    /// A client of the newest version.
    Client(fn(i32) -> Act),
    /// A client of the first version.
    Older(fn(i32) -> Act),
    /// A writer of old documents who does not go through Pleach.
    Direct(fn(i32) -> Act),
    /// The migration, and whoever writes back what was read: the same statement.
    Migration,
}

struct Meeting {
    name: &'static str,
    before: fn(i32) -> Act,
    first: Doing,
    second: Doing,
}

const ARRAY: &str = "baskets:
  outlier:
    productIds: { keep: 2, overflow: basket_products, owner: basketId, item: productId, flag: hasMore, count: productCount }";

const VERSIONS: &str = r#"baskets:
  versions:
    field: v
    steps:
      - { nest: { place: { into: place.name, with: { place.land: "NO" } } } }
      - [{ rename: { sum: total } }, { convert: { total: { from: string, to: int } } }]
    migrate: { background: false }"#;

fn filled(n: i32) -> Act {
    Act::Insert("baskets", vec![doc! { "_id": n, "productIds": [1, 2, 3, 4] }])
}

fn full(n: i32) -> Act {
    Act::Insert("baskets", vec![doc! { "_id": n, "productIds": [1, 2] }])
}

fn change(n: i32, change: Document) -> Act {
    Act::Update("baskets", doc! { "_id": n }, change.into(), false, false)
}

fn push(n: i32) -> Act {
    change(n, doc! { "$push": { "productIds": 7 } })
}

fn add(n: i32) -> Act {
    change(n, doc! { "$addToSet": { "productIds": 8 } })
}

fn pull(n: i32) -> Act {
    change(n, doc! { "$pull": { "productIds": 1 } })
}

fn pull_the_last(n: i32) -> Act {
    change(n, doc! { "$pull": { "productIds": { "$gte": 3 } } })
}

fn guarded(n: i32) -> Act {
    Act::Update(
        "baskets",
        doc! { "_id": n, "productIds": { "$ne": 8 } },
        doc! { "$push": { "productIds": 8 } }.into(),
        false,
        false,
    )
}

fn pop(n: i32) -> Act {
    Act::Modify("baskets", doc! { "_id": n }, Some(doc! { "$pop": { "productIds": -1 } }))
}

fn each(n: i32) -> Act {
    change(n, doc! { "$inc": { "productIds.$[]": 10 } })
}

fn anew(n: i32) -> Act {
    change(n, doc! { "$set": { "productIds": [5, 6, 7] } })
}

fn gone(n: i32) -> Act {
    Act::Delete("baskets", doc! { "_id": n }, false)
}

const ARRAYS: &[Meeting] = &[
    Meeting { name: "two spill", before: full, first: Doing::Client(push), second: Doing::Client(add) },
    Meeting { name: "one item for two", before: full, first: Doing::Client(add), second: Doing::Client(guarded) },
    Meeting {
        name: "one spills, one comes back",
        before: filled,
        first: Doing::Client(push),
        second: Doing::Client(pull),
    },
    Meeting { name: "two come back", before: filled, first: Doing::Client(pop), second: Doing::Client(pull) },
    Meeting {
        name: "both parts shrink",
        before: filled,
        first: Doing::Client(pull),
        second: Doing::Client(pull_the_last),
    },
    Meeting { name: "each item changes", before: filled, first: Doing::Client(each), second: Doing::Client(push) },
    Meeting {
        name: "each item changes twice",
        before: filled,
        first: Doing::Client(each),
        second: Doing::Client(each),
    },
    Meeting {
        name: "the array is written anew",
        before: filled,
        first: Doing::Client(anew),
        second: Doing::Client(pull),
    },
    Meeting { name: "the host goes", before: filled, first: Doing::Client(gone), second: Doing::Client(add) },
];

fn old(n: i32) -> Act {
    Act::Insert("baskets", vec![doc! { "_id": n, "place": { "name": "Oslo", "land": "NO" }, "total": 3, "x": 1 }])
}

fn count(n: i32) -> Act {
    Act::Modify("baskets", doc! { "_id": n }, Some(doc! { "$inc": { "total": 1 } }))
}

fn move_away(n: i32) -> Act {
    let moved = doc! { "place.name": "Rome" };
    Act::Update("baskets", doc! { "_id": n, "place.name": "Oslo" }, set(moved), false, false)
}

fn note(n: i32) -> Act {
    change(n, doc! { "$set": { "x": 2 } })
}

fn replace(n: i32) -> Act {
    change(n, doc! { "place": { "name": "Bonn", "land": "NO" }, "total": 9 })
}

fn found_and_gone(n: i32) -> Act {
    Act::Delete("baskets", doc! { "_id": n, "total": { "$gte": 3 } }, false)
}

fn old_set(n: i32) -> Act {
    change(n, doc! { "$set": { "place": "Paris" } })
}

fn old_text(n: i32) -> Act {
    Act::Update("baskets", doc! { "_id": n, "sum": "3" }, set(doc! { "sum": "5" }), false, false)
}

fn old_replace(n: i32) -> Act {
    change(n, doc! { "place": "Wien", "sum": "7" })
}

/// By a writer who knows only the first version: others are none of its documents.
fn direct(n: i32) -> Act {
    let first = doc! { "_id": n, "v": 1 };
    Act::Update("baskets", first, set(doc! { "place": "Paris", "sum": "8" }), false, false)
}

fn direct_replace(n: i32) -> Act {
    Act::Update(
        "baskets",
        doc! { "_id": n, "v": 1 },
        Bson::Document(doc! { "place": "Wien", "sum": "7" }),
        false,
        false,
    )
}

const OLDER: &[Meeting] = &[
    Meeting { name: "write-back against a count", before: old, first: Doing::Migration, second: Doing::Client(count) },
    Meeting {
        name: "write-back against a filter",
        before: old,
        first: Doing::Migration,
        second: Doing::Client(move_away),
    },
    Meeting {
        name: "write-back against what no version changes",
        before: old,
        first: Doing::Migration,
        second: Doing::Client(note),
    },
    Meeting {
        name: "write-back against another document",
        before: old,
        first: Doing::Migration,
        second: Doing::Client(replace),
    },
    Meeting {
        name: "write-back against a delete",
        before: old,
        first: Doing::Migration,
        second: Doing::Client(found_and_gone),
    },
    Meeting {
        name: "migration against an older client",
        before: old,
        first: Doing::Migration,
        second: Doing::Older(old_set),
    },
    Meeting {
        name: "migration against an older filter",
        before: old,
        first: Doing::Migration,
        second: Doing::Older(old_text),
    },
    Meeting {
        name: "migration against an older document",
        before: old,
        first: Doing::Migration,
        second: Doing::Older(old_replace),
    },
    Meeting {
        name: "migration against a direct writer",
        before: old,
        first: Doing::Migration,
        second: Doing::Direct(direct),
    },
    Meeting {
        name: "clients of two versions",
        before: old,
        first: Doing::Client(count),
        second: Doing::Older(old_set),
    },
    Meeting {
        name: "clients of two versions, one filters",
        before: old,
        first: Doing::Client(move_away),
        second: Doing::Older(old_text),
    },
    Meeting { name: "two older clients", before: old, first: Doing::Older(old_set), second: Doing::Older(old_text) },
    Meeting {
        name: "a client and a direct writer",
        before: old,
        first: Doing::Client(count),
        second: Doing::Direct(direct),
    },
    Meeting {
        name: "an older client and a direct writer",
        before: old,
        first: Doing::Older(old_text),
        second: Doing::Direct(direct_replace),
    },
];

type Plan = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

struct Scene {
    living: Living,
    scheduler: Arc<Scheduler>,
}

/// All meetings on one backend; at most so many orders of each.
pub(crate) async fn check(opened: &Opened, scheduler: fn() -> Scheduler, most: usize) {
    for (rules, meetings) in [(ARRAY, ARRAYS), (VERSIONS, OLDER)] {
        if !crate::is_asked(rules) {
            continue;
        }
        let scheduler = Arc::new(scheduler());
        let living = shop::open(opened, scheduler.clone(), rules).await;
        let scene = Arc::new(Scene { living, scheduler });
        let mut n = 0;
        for meeting in meetings {
            for in_transaction in [false, true] {
                meet(&scene, meeting, in_transaction, most, &mut n).await;
            }
            scene.living.assert_clean().await;
        }
        scene.living.drop_database().await;
    }
}

async fn meet(scene: &Arc<Scene>, meeting: &Meeting, in_transaction: bool, most: usize, n: &mut i32) {
    let (both, story) = ([meeting.first, meeting.second], format!("{}, transaction {in_transaction}", meeting.name));
    let mut one_after_the_other = BTreeSet::new();
    let mut lengths = [0, 0];
    for order in [[0, 1], [1, 0]] {
        scene.prepare(meeting, n).await;
        for who in order {
            let (scene_, doing, n_, story) = (scene.clone(), both[who], *n, story.clone());
            let alone: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                scene_.does(doing, n_, in_transaction).await.unwrap_or_else(|error| panic!("{story}: {error:?}"));
            });
            // Who comes first has the most to do.
            lengths[who] = lengths[who].max(scene.scheduler.steps(alone).await);
        }
        one_after_the_other.insert(scene.outcome(*n).await);
    }
    for order in orders(lengths[0], lengths[1], most) {
        scene.prepare(meeting, n).await;
        let before = scene.outcome(*n).await;
        let plans = both.map(|doing| {
            let (scene, n) = (scene.clone(), *n);
            let plan: Plan = Box::pin(async move { scene.does(doing, n, in_transaction).await });
            plan
        });
        let (results, trace) = scene.scheduler.run(plans.into(), &order).await;
        let mut failed = 0;
        for error in results.into_iter().filter_map(Result::err) {
            assert!(in_transaction && is_transient(&error), "{story}: {error:?}\n{trace:#?}");
            failed += 1;
        }
        let after = scene.outcome(*n).await;
        // One that gave up has done nothing.
        let fine = failed > 0 && after != before || failed == 2 || one_after_the_other.contains(&after);
        assert!(fine, "{story}: {after} is none of {one_after_the_other:#?}\n{trace:#?}");
    }
}

impl Scene {
    async fn prepare(&self, meeting: &Meeting, n: &mut i32) {
        *n += 1;
        self.living.act(&(meeting.before)(*n)).await.unwrap_or_else(|error| panic!("{}: {error:?}", meeting.name));
        for (ns, lens) in older::lenses(&self.living) {
            older::as_version(&self.living, &ns, &lens, 1).await;
        }
    }

    async fn does(&self, doing: Doing, n: i32, in_transaction: bool) -> Result<(), Error> {
        let living = &self.living;
        match doing {
            Doing::Client(act) => run(living, &self.scheduler, &act(n), in_transaction).await,
            Doing::Older(act) => {
                let name = format!("{}@1", living.db);
                let world = World::of(living.layer.clone(), living.opened.clone(), &name);
                run(&world, &self.scheduler, &act(n), in_transaction).await
            }
            Doing::Direct(act) => {
                self.scheduler.pass(Point::Begin { attempt: 0 }).await?;
                living.behind(act(n).op(living)).await;
                Ok(())
            }
            Doing::Migration => {
                self.scheduler.pass(Point::Begin { attempt: 0 }).await?;
                for (ns, lens) in older::lenses(living) {
                    let filter = lens.old().and(Filter::equality("_id", &Value::Int32(n)));
                    let update = lens.upgrade();
                    let statement = UpdateStatement { filter, update, multi: false, upsert: false, hint: None };
                    let op = testing::updates(ns, vec![statement], true);
                    let context = living.context();
                    let written =
                        living.opened.backend.write(&mut Session::default(), &context, &op, &Capture::Nothing).await?;
                    assert!(written.errors.is_empty(), "{:?}", written.errors);
                }
                Ok(())
            }
        }
    }

    /// What clients see, as text.
    async fn outcome(&self, n: i32) -> String {
        let Some(mut basket) = self.living.find("baskets", doc! { "_id": n }).await.pop() else { return "gone".into() };
        for own in ["_id", "v", "hasMore"] {
            basket.remove(own);
        }
        let mut rest = self.living.find("basket_products", doc! { "basketId": n }).await;
        rest.sort_by_key(|item| item.get_i32("index").unwrap());
        let rest: Vec<Bson> = rest.iter().filter_map(|item| item.get("productId").cloned()).collect();
        if let Ok(items) = basket.get_array_mut("productIds") {
            assert!(rest.is_empty() || items.len() == 2, "{items:?} and {rest:?}");
            items.extend(rest);
        }
        older::normal(&basket.into())
    }
}

/// A document is brought up between the two steps of whoever reads it first and writes it then, and fails there: nothing is lost.
pub(crate) async fn cut_off(opened: &Opened) {
    let gate = Arc::new(Failing::default());
    let living = shop::open(opened, gate.clone(), VERSIONS).await;
    let mut n = 0;
    for act in [count as fn(i32) -> Act, move_away, replace, found_and_gone] {
        for step in 0..20 {
            n += 1;
            living.act(&old(n)).await.unwrap();
            for (ns, lens) in older::lenses(&living) {
                older::as_version(&living, &ns, &lens, 1).await;
            }
            let before = living.one("baskets", n).await;
            gate.arm(step, crate::failing::Fault::Error);
            let done = living.act(&act(n)).await;
            let over = gate.disarm();
            let now = living.find("baskets", doc! { "_id": n }).await.pop();
            match done {
                Ok(_) => assert_ne!(now, Some(before), "{:?}, step {step}", act(n)),
                Err(_) => assert_eq!(
                    now.map(|now| older::normal(&now.into())),
                    Some(older::normal(&before.into())),
                    "{:?}, step {step}",
                    act(n)
                ),
            }
            if over {
                break;
            }
        }
    }
    living.drop_database().await;
}
