//! All items of an outlier array as a collection that fields are kept from, and that is read in a client's own transaction, on either
//! backend by the same code (SEMANTICS R18, R34).

use crate::failing::{Failing, Fault};
use crate::outliers::{Dice, items, some_update, update_of};
use bson::{Bson, Document, doc};
use document::backend::Session;
use document::op::{Aggregate, Modify, ReadOp, UpdateStatement, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use std::collections::BTreeSet;
use std::sync::Arc;
use testing::{Living, Opened, shop};

/// Fields of the owners, of those whom items name, and roll-ups; with `index`, and without.
fn declaration(keep: usize, documents: bool) -> String {
    let (item, number) = if documents { ("followerId.id", "followerId.n") } else { ("followerId", "followerId") };
    [
        "users:".to_owned(),
        "  outlier:".to_owned(),
        format!("    followers: {{ keep: {keep}, overflow: follower_overflow, owner: userId, item: followerId, flag: hasOverflow, count: followerCount }}"),
        "  computed:".to_owned(),
        format!("    big: {{ count: users.followers, by: userId, where: {{ {item}: {{ $gte: 4 }} }} }}"),
        "  subset:".to_owned(),
        "    last: { from: users.followers, by: userId, sort: { index: -1 }, keep: 2, fields: [followerId, index] }".to_owned(),
        "people:".to_owned(),
        "  computed:".to_owned(),
        format!("    followed: {{ count: users.followers, by: {item} }}"),
        format!("    fans: {{ distinct: userId, from: users.followers, by: {item} }}"),
        format!("    highest: {{ max: userId, from: users.followers, by: {item} }}"),
        format!("    late: {{ count: users.followers, by: {item}, lag: 1ms }}"),
        "tallies:".to_owned(),
        "  computed:".to_owned(),
        format!("    n: {{ count: users.followers, by: {item}, create: true }}"),
        format!("    sum: {{ sum: {number}, from: users.followers, by: {item}, create: true }}"),
    ]
    .join("\n")
}

/// Whom an item names.
fn named(item: &Bson) -> Option<i32> {
    match item {
        Bson::Int32(number) => Some(*number),
        Bson::Document(item) => item.get_i32("id").ok(),
        _ => None,
    }
}

fn number(item: &Bson) -> i64 {
    match item {
        Bson::Document(item) => i64::from(item.get_i32("n").unwrap()),
        item => i64::from(named(item).unwrap()),
    }
}

/// The arrays as they are whole.
async fn arrays(living: &Living) -> Vec<(i32, Vec<Bson>)> {
    let mut overflow = living.sorted("follower_overflow").await;
    overflow.sort_by_key(|row| row.get_i32("index").unwrap());
    let users = living.sorted("users").await;
    let whole = |user: &Document| {
        let id = user.get_i32("_id").unwrap();
        let of_it = overflow.iter().filter(|row| row.get_i32("userId").ok() == Some(id));
        let rest = of_it.map(|row| row.get("followerId").unwrap().clone());
        (id, items(user).into_iter().chain(rest).collect())
    };
    users.iter().map(whole).collect()
}

/// Every field against what this test itself computes from the arrays.
async fn compare(living: &Living, what: &str) {
    let arrays = arrays(living).await;
    let all = || arrays.iter().flat_map(|(owner, items)| items.iter().map(move |item| (*owner, item)));
    for user in living.sorted("users").await {
        let id = user.get_i32("_id").unwrap();
        let own: Vec<&Bson> = all().filter(|(owner, _)| *owner == id).map(|(_, item)| item).collect();
        let big = own.iter().filter(|item| named(item).is_some_and(|number| number >= 4)).count();
        assert_eq!(user.get_i32("big").unwrap(), i32::try_from(big).unwrap(), "{user}\n{what}");
        let last = user.get_array("last").unwrap();
        let shown: Vec<&Bson> = last.iter().map(|row| row.as_document().unwrap().get("followerId").unwrap()).collect();
        let expected: Vec<&Bson> = own.iter().rev().take(2).copied().collect();
        assert_eq!(shown, expected, "{user}\n{what}");
    }
    for person in living.sorted("people").await {
        let id = person.get_i32("_id").unwrap();
        let owners: Vec<i32> = all().filter(|(_, item)| named(item) == Some(id)).map(|(owner, _)| owner).collect();
        let count = i32::try_from(owners.len()).unwrap();
        let fans = i32::try_from(owners.iter().collect::<BTreeSet<_>>().len()).unwrap();
        assert_eq!(person.get_i32("followed").unwrap(), count, "{person}\n{what}");
        assert_eq!(person.get_i32("fans").unwrap(), fans, "{person}\n{what}");
        let highest = owners.iter().max().map_or(Bson::Null, |owner| Bson::Int32(*owner));
        assert_eq!(person.get("highest"), Some(&highest), "{person}\n{what}");
    }
    let named: BTreeSet<i32> = all().filter_map(|(_, item)| named(item)).collect();
    let tallies = living.sorted("tallies").await;
    let ids: BTreeSet<i32> = tallies.iter().map(|tally| tally.get_i32("_id").unwrap()).collect();
    assert_eq!(ids, named, "{what}");
    for tally in tallies {
        let id = tally.get_i32("_id").unwrap();
        let of_it: Vec<&Bson> = all().map(|(_, item)| item).filter(|item| self::named(item) == Some(id)).collect();
        assert_eq!(tally.get_i32("n").unwrap(), i32::try_from(of_it.len()).unwrap(), "{tally}\n{what}");
        let sum: i64 = of_it.iter().map(|item| number(item)).sum();
        let shown = tally.get("sum").unwrap();
        let shown = shown.as_i64().unwrap_or_else(|| i64::from(shown.as_i32().unwrap()));
        assert_eq!(shown, sum, "{tally}\n{what}");
    }
}

fn some_act(living: &Living, dice: &mut Dice, documents: bool) -> WriteOp {
    let id = i32::try_from(dice.below(4)).unwrap();
    let (ns, query) = (living.ns("users"), doc! { "_id": id });
    match dice.below(11) {
        0 | 1 => testing::insert(ns, vec![doc! { "_id": id, "followers": dice.items(documents) }]),
        2 => testing::delete(ns, query, false),
        3 => testing::update(ns, query, doc! { "followers": dice.items(documents) }, &["upsert"]),
        4 => {
            let (spec, filters) = some_update(dice, documents);
            let (update, upsert, return_new) = (update_of(spec, &filters), dice.below(2) == 0, dice.below(2) == 0);
            let action = Modify::Update { update, upsert, return_new };
            WriteOp::FindAndModify(Box::new(testing::find_and_modify(ns, query, action)))
        }
        5 => {
            let all = testing::statement(doc! {}, doc! { "$push": { "followers": dice.item(documents) } }, &["multi"]);
            testing::updates(ns, vec![all], true)
        }
        6 => testing::insert(living.ns("people"), vec![doc! { "_id": i32::try_from(dice.below(9)).unwrap() }]),
        _ => {
            let (spec, filters) = some_update(dice, documents);
            let how: &[&str] = if dice.below(3) == 0 { &["upsert"] } else { &[] };
            let statement = testing::statement(query, doc! { "$set": { "x": 1 } }, how);
            let statement = UpdateStatement { update: update_of(spec, &filters), ..statement };
            testing::updates(ns, vec![statement], true)
        }
    }
}

async fn began(opened: &Opened, gate: Arc<Failing>, documents: bool) -> Living {
    let living = Living::of(shop::empty(opened, gate).await);
    living.life.limit_database(&living.db);
    let mut dice = Dice(5);
    let users = (0..3).map(|id| doc! { "_id": id, "followers": dice.items(documents) }).collect();
    living.behind(testing::insert(living.ns("users"), users)).await;
    living.behind(testing::insert(living.ns("people"), (0..6).map(|id| doc! { "_id": id }).collect())).await;
    living
}

/// Seeded from arrays that are there, kept under random operations, right after another limit and after a repair.
pub(crate) async fn fields(opened: &Opened, seed: u64, acts: usize) {
    for (keep, documents) in [(3, false), (0, false), (3, true)] {
        let living = began(opened, Arc::new(Failing::default()), documents).await;
        living.set_rules(&declaration(keep, documents)).await;
        living.rest().await;
        compare(&living, "seeded").await;
        living.assert_clean().await;
        let mut dice = Dice(seed * 104_729 + keep as u64);
        for act in 0..acts {
            let op = some_act(&living, &mut dice, documents);
            let what = format!("seed {seed}, keep {keep}, act {act}: {op:?}");
            let _some_are_refused = living.write(op).await;
            compare(&living, &what).await;
        }
        living.rest().await;
        living.assert_clean().await;
        living.set_rules(&declaration(keep + 2, documents)).await;
        living.rest().await;
        compare(&living, "another limit").await;
        living.assert_clean().await;
        let wrong = doc! { "$set": { "followed": 77, "fans": 77, "late": 77 } };
        living.behind(testing::update(living.ns("people"), doc! {}, wrong, &["multi"])).await;
        living.ask("repair", doc! {}).await.unwrap();
        compare(&living, "repaired").await;
        living.assert_clean().await;
        let refused = living.ask("drop", doc! { "rule": "users.followers" }).await.unwrap_err();
        assert!(refused.message().contains("reads the items of its array"), "{refused:?}");
        // Both at once.
        living.set_rules("others:\n  computed:\n    twice: { expr: { $multiply: [$a, 2] } }").await;
        living.rest().await;
        assert_eq!(living.states().await.len(), 1);
        living.drop_database().await;
    }
}

/// Stopped before any step of its life, while clients write: items are counted once.
pub(crate) async fn seeding(opened: &Opened, steps: usize, stride: usize) {
    for step in (0..steps).step_by(stride) {
        let gate = Arc::new(Failing::default());
        let living = began(opened, gate.clone(), false).await;
        living.set_rules(&declaration(2, false)).await;
        gate.arm(step, Fault::Error);
        let _cut_off = living.life.bring_on().await;
        let over = gate.disarm();
        let mut dice = Dice(step as u64 + 3);
        for _ in 0..4 {
            let op = some_act(&living, &mut dice, false);
            let _some_are_refused = living.write(op).await;
        }
        living.rest().await;
        compare(&living, &format!("stopped before step {step}")).await;
        living.assert_clean().await;
        living.drop_database().await;
        if over {
            return;
        }
    }
}

/// Many writers at one array and at many.
pub(crate) async fn concurrent(opened: &Opened) {
    let living = Arc::new(began(opened, Arc::new(Failing::default()), false).await);
    living.set_rules(&declaration(3, false)).await;
    living.rest().await;
    let tasks: Vec<_> = (0..5_u64)
        .map(|writer| {
            let living = living.clone();
            tokio::spawn(async move {
                let mut dice = Dice(writer * 31 + 1);
                for _ in 0..12 {
                    let op = some_act(&living, &mut dice, false);
                    let _some_are_refused = living.write(op).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    living.rest().await;
    compare(&living, "after all writers").await;
    living.assert_clean().await;
}

async fn rows(living: &Living, session: &mut Session, collection: &str, stages: Vec<Document>) -> Vec<Document> {
    let stages = match document::Value::from(Bson::from(stages)) {
        document::Value::Array(stages) => stages,
        other => panic!("{other:?}"),
    };
    let op = ReadOp::Aggregate(Aggregate {
        ns: living.ns(collection),
        collectionless: false,
        pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
        hint: None,
        allow_disk_use: false,
        collation: None,
    });
    living.read(session, op).await.unwrap()
}

/// A client's own transaction sees its items: found, counted, paged and joined.
pub(crate) async fn read_in_transactions(opened: &Opened) {
    let living = Living::of(shop::empty(opened, Arc::new(Failing::default())).await);
    living.life.limit_database(&living.db);
    let names = "overflow: follower_overflow, owner: userId, item: followerId, flag: hasOverflow, count: followerCount";
    living
        .behind(testing::insert(
            living.ns("people"),
            (0..6).map(|id| doc! { "_id": id, "name": format!("p{id}") }).collect(),
        ))
        .await;
    living.set_rules(&format!("users:\n  outlier:\n    followers: {{ keep: 2, {names} }}")).await;
    living.rest().await;
    let users = vec![doc! { "_id": 1, "followers": [0, 1, 2, 3] }, doc! { "_id": 2, "followers": [5] }];
    living.did(testing::insert(living.ns("users"), users)).await;
    let mut session = living.begin().await;
    let push = doc! { "$push": { "followers": { "$each": [4, 5] } } };
    let push = testing::update(living.ns("users"), doc! { "_id": 1 }, push, &[]);
    living.write_at(&mut session, &push).await.unwrap();

    let mut found = living.find_at(&mut session, "users.followers", doc! { "userId": 1 }).await;
    found.sort_by_key(|row| row.get_i32("index").unwrap());
    let values: Vec<i32> = found.iter().map(|row| row.get_i32("followerId").unwrap()).collect();
    assert_eq!(values, [0, 1, 2, 3, 4, 5]);
    let found = living.find_at(&mut session, "users.followers", doc! { "followerId": 5 }).await;
    assert_eq!(found.len(), 2);
    let page = vec![
        doc! { "$match": { "userId": 1, "index": { "$gte": 1 } } },
        doc! { "$sort": { "index": 1 } },
        doc! { "$limit": 3 },
    ];
    let page = rows(&living, &mut session, "users.followers", page).await;
    assert_eq!(page.iter().map(|row| row.get_i32("index").unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let grouped = vec![doc! { "$group": { "_id": "$userId", "n": { "$sum": 1 } } }, doc! { "$sort": { "_id": 1 } }];
    let grouped = rows(&living, &mut session, "users.followers", grouped).await;
    assert_eq!(grouped, [doc! { "_id": 1, "n": 6 }, doc! { "_id": 2, "n": 1 }]);
    // Joined from its side and from the other.
    let lookup = doc! { "from": "people", "localField": "followerId", "foreignField": "_id", "as": "who" };
    let joined = vec![
        doc! { "$match": { "userId": 1, "followerId": { "$gte": 4 } } },
        doc! { "$sort": { "index": 1 } },
        doc! { "$lookup": lookup },
        doc! { "$project": { "_id": 0, "name": { "$first": "$who.name" } } },
    ];
    let joined = rows(&living, &mut session, "users.followers", joined).await;
    assert_eq!(joined, [doc! { "name": "p4" }, doc! { "name": "p5" }]);
    let own = vec![
        doc! { "$match": { "$expr": { "$eq": ["$followerId", "$$id"] } } },
        doc! { "$project": { "_id": 0, "userId": 1 } },
    ];
    let lookup = doc! { "from": "users.followers", "let": { "id": "$_id" }, "pipeline": own, "as": "by" };
    let joined = vec![
        doc! { "$match": { "_id": { "$in": [0, 5] } } },
        doc! { "$sort": { "_id": 1 } },
        doc! { "$lookup": lookup },
        doc! { "$project": { "_id": 0, "n": { "$size": "$by" } } },
    ];
    assert_eq!(rows(&living, &mut session, "people", joined).await, [doc! { "n": 1 }, doc! { "n": 2 }]);
    session.transaction.take().unwrap().abort();
    assert_eq!(living.find("users.followers", doc! { "userId": 1 }).await.len(), 4);
}
