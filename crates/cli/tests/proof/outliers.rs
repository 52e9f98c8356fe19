//! Arrays that overflow, on either backend by the same code: what clients see is what a plain collection would show after the same
//! operations; nothing lost and nothing twice under concurrency, with a fault at any step, and with the command sent again (SEMANTICS
//! R4, R18).

use crate::failing::{Failing, Fault};
use bson::{Bson, Document, doc};
use document::Doc;
use document::backend::Session;
use document::op::{AdminOp, Modify, ReadOp, UpdateStatement, WriteError, WriteOp, Written};
use document::pipeline::expr::Names;
use document::update::Update;
use patterns::gate::Gate;
use std::sync::Arc;
use std::time::Duration;
use testing::{Living, Opened, World, shop};

const KEEP: usize = 3;

/// The same documents as a plain collection.
const PLAIN: &str = "people";

struct Outliers {
    world: World,
    keep: usize,
}

fn declaration(keep: usize) -> String {
    let names = "overflow: follower_overflow, owner: userId, item: followerId, flag: hasOverflow, count: followerCount";
    format!("users:\n  outlier:\n    followers: {{ keep: {keep}, {names} }}")
}

fn in_force(world: World, keep: usize) -> Outliers {
    Outliers { world: world.declaring(&declaration(keep)), keep }
}

pub(crate) fn items(document: &Document) -> Vec<Bson> {
    document.get_array("followers").cloned().unwrap_or_default()
}

impl Outliers {
    async fn new(opened: &Opened, gate: Arc<dyn Gate>, keep: usize) -> Outliers {
        let world = shop::empty(opened, gate).await;
        for name in ["users", PLAIN, "follower_overflow"] {
            let op = AdminOp::Create { ns: world.ns(name), options: Default::default() };
            world.inner().admin(&mut Session::default(), &world.context(), op).await.unwrap();
        }
        in_force(world, keep)
    }

    /// Another process with the same data.
    fn another(&self) -> Outliers {
        in_force(self.world.another(), self.keep)
    }

    async fn write(&self, session: &mut Session, op: &WriteOp) -> document::Result<Written> {
        self.world.write_at(session, op).await
    }

    async fn did(&self, op: WriteOp) -> Written {
        self.world.did(op).await
    }

    /// The documents with whole arrays; each must be stored as the rule says.
    async fn logical(&self) -> Vec<Document> {
        let mut overflow = self.world.sorted("follower_overflow").await;
        overflow.sort_by_key(|item| item.get_i32("index").unwrap());
        let mut logical = self.world.sorted("users").await;
        for document in &mut logical {
            let id = document.get("_id").cloned();
            let of_it = overflow.iter().filter(|item| item.get("userId") == id.as_ref());
            let rest: Vec<Bson> = of_it.map(|item| item.get("followerId").unwrap().clone()).collect();
            let embedded = items(document);
            assert!(embedded.len() <= self.keep, "{document}");
            assert!(rest.is_empty() || embedded.len() == self.keep, "{document} and {rest:?}");
            assert_eq!(document.get_bool("hasOverflow").ok(), (!rest.is_empty()).then_some(true), "{document}");
            let count = i32::try_from(embedded.len() + rest.len()).unwrap();
            assert_eq!(document.get_i32("followerCount").ok(), Some(count), "{document} and {rest:?}");
            let is_own = |name: &str| !["hasOverflow", "followerCount"].contains(&name);
            *document = std::mem::take(document).into_iter().filter(|(name, _)| is_own(name)).collect();
            if let Ok(array) = document.get_array_mut("followers") {
                array.extend(rest);
            }
        }
        let owners: Vec<_> = logical.iter().filter_map(|document| document.get("_id").cloned()).collect();
        let orphans = overflow.iter().filter(|item| !owners.contains(item.get("userId").unwrap())).count();
        assert_eq!(orphans, 0, "{overflow:?}");
        logical
    }

    async fn compare(&self, what: &str) {
        // In the order of their fields too.
        let shown = |documents: &[Document]| documents.iter().map(Document::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&self.logical().await), shown(&self.world.sorted(PLAIN).await), "{what}");
    }

    /// All items as rows.
    async fn rows(&self, filter: Document) -> Vec<(Bson, Bson)> {
        let mut rows = self.world.find("users.followers", filter).await;
        rows.sort_by_key(|row| (row.get("userId").unwrap().to_string(), row.get_i32("index").unwrap()));
        rows.iter().map(|row| (row.get("userId").unwrap().clone(), row.get("followerId").unwrap().clone())).collect()
    }
}

/// Small numbers that look random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    pub(crate) fn item(&mut self, documents: bool) -> Bson {
        let number = i32::try_from(self.below(8)).unwrap();
        if documents { doc! { "id": number, "n": number % 3 }.into() } else { number.into() }
    }

    pub(crate) fn items(&mut self, documents: bool) -> Vec<Bson> {
        (0..self.below(7)).map(|_| self.item(documents)).collect()
    }
}

pub(crate) fn update_of(spec: impl Into<Bson>, filters: &[Document]) -> Update {
    let filters: Vec<Doc<'static>> = filters.iter().cloned().map(Doc::from).collect();
    Update::parse(&document::Value::from(spec.into()), &filters, &mut Names::new()).unwrap()
}

/// A filter of those that look into both parts.
fn some_filter(dice: &mut Dice, documents: bool) -> Document {
    let (item, other) = (dice.item(documents), dice.item(documents));
    let inside = |name: &str, value: i32| {
        if documents {
            doc! { name: value }
        } else {
            doc! { "followers": value }
        }
    };
    match dice.below(13) {
        0 => doc! { "followers": item },
        1 => doc! { "followers": { "$ne": item } },
        2 => doc! { "followers": { "$in": [item, other] } },
        3 => doc! { "followers": { "$nin": [item, other] } },
        4 => doc! { "followers": { "$all": [item, other] } },
        5 => doc! { "followers": { "$size": i32::try_from(dice.below(9)).unwrap() } },
        6 => doc! { "followers": { "$not": { "$size": i32::try_from(dice.below(9)).unwrap() } } },
        7 => doc! { "followers": { "$exists": dice.below(2) == 0 } },
        8 if documents => doc! { "followers": { "$elemMatch": { "id": { "$gte": 5 }, "n": 1 } } },
        8 => doc! { "followers": { "$elemMatch": { "$gte": 5, "$lt": 7 } } },
        9 if documents && dice.below(2) == 0 => doc! { "followers.n": Bson::Null },
        9 if documents && dice.below(2) == 0 => doc! { "followers.n": { "$ne": Bson::Null } },
        9 => inside("followers.id", 4),
        10 => doc! { "$or": [inside("followers.n", 2), { "a": 1 }] },
        11 => doc! { "a": { "$gte": 1 }, "$nor": [{ "followers": item }] },
        _ => doc! { "_id": i32::try_from(dice.below(4)).unwrap(), "followers": { "$ne": item } },
    }
}

/// One statement of a client: what it matches, what it does, with which array filters.
pub(crate) fn some_update(dice: &mut Dice, documents: bool) -> (Bson, Vec<Document>) {
    let item = dice.item(documents);
    let mut filters = Vec::new();
    let spec = match dice.below(15) {
        0..=2 => doc! { "$push": { "followers": item } },
        3 | 4 => doc! { "$push": { "followers": { "$each": dice.items(documents) } }, "$inc": { "a": 1 } },
        5 => doc! { "$addToSet": { "followers": item } },
        6 => doc! { "$addToSet": { "followers": { "$each": dice.items(documents) } } },
        7 => doc! { "$pull": { "followers": item } },
        8 if documents => doc! { "$pull": { "followers": { "n": i32::try_from(dice.below(3)).unwrap() } } },
        8 => doc! { "$pull": { "followers": { "$in": [item, 3] } }, "$set": { "a": 2 } },
        9 => doc! { "$pullAll": { "followers": dice.items(documents) } },
        10 => doc! { "$pop": { "followers": if dice.below(2) == 0 { 1 } else { -1 } } },
        11 => doc! { "$set": { "followers": dice.items(documents), "b": 1 } },
        12 if documents => {
            filters.push(doc! { "x.id": { "$gte": 0 } });
            doc! { "$inc": { "followers.$[x].n": 1 } }
        }
        12 => doc! { "$inc": { "followers.$[]": 1 } },
        13 if documents => {
            filters.push(doc! { "x.id": { "$gte": 4 } });
            doc! { "$set": { "followers.$[x].n": 0 } }
        }
        13 => {
            filters.push(doc! { "x": { "$gte": 5 } });
            doc! { "$set": { "followers.$[x]": 0 } }
        }
        _ => doc! { "$unset": { "followers": "" } },
    };
    (spec.into(), filters)
}

fn same_outcome(one: &Written, other: &Written, what: &str) {
    let shown = |written: &Written| {
        let errors: Vec<i32> = written.errors.iter().map(|failed| failed.error.code().number()).collect();
        // A findAndModify does not say whether it changed something.
        let modified = if written.document.is_some() { 0 } else { written.modified };
        (written.n, modified, written.upserted.clone(), errors)
    };
    assert_eq!(shown(one), shown(other), "{what}");
}

/// The same operations on the array and on a plain collection.
pub(crate) async fn model(opened: &Opened, seed: u64, acts: usize) {
    for (keep, documents) in [(0, false), (3, false), (3, true)] {
        let outliers = Outliers::new(opened, Arc::new(Failing::default()), keep).await;
        let world = &outliers.world;
        let mut dice = Dice(seed * 7_919 + keep as u64);
        for act in 0..acts {
            let id = i32::try_from(dice.below(4)).unwrap();
            let (query, how): (Document, &[&str]) = match dice.below(9) {
                0 => (some_filter(&mut dice, documents), &[]),
                1 => (some_filter(&mut dice, documents), &["multi"]),
                // It makes a document, or fails because this one is there and does not match.
                8 => (doc! { "$and": [some_filter(&mut dice, documents), { "_id": id }] }, &["upsert"]),
                2 => (doc! { "_id": id }, &["upsert"]),
                _ => (doc! { "_id": id }, &[]),
            };
            // The first of several is a matter of the server's plan.
            let query = match how.is_empty() && !query.contains_key("_id") {
                true => doc! { "$and": [query, { "_id": id }] },
                false => query,
            };
            let op = |collection: &str, dice: &mut Dice| -> WriteOp {
                let ns = world.ns(collection);
                match dice.below(12) {
                    0 => {
                        let mut document = doc! { "_id": id, "a": id };
                        if dice.below(3) > 0 {
                            document.insert("followers", dice.items(documents));
                        }
                        testing::insert(ns, vec![document])
                    }
                    1 => testing::delete(ns, query.clone(), how.contains(&"multi")),
                    2 => {
                        let replacement = doc! { "a": 7, "followers": dice.items(documents) };
                        testing::update(ns, doc! { "_id": id }, replacement, &["upsert"])
                    }
                    3 => {
                        let (spec, filters) = some_update(dice, documents);
                        let action =
                            Modify::Update { update: update_of(spec, &filters), upsert: false, return_new: false };
                        let modify = testing::find_and_modify(ns, query.clone(), action);
                        WriteOp::FindAndModify(Box::new(modify))
                    }
                    // A number among documents has no field, not even a missing one.
                    5 if documents => {
                        testing::update(ns, doc! { "_id": id }, doc! { "$push": { "followers": 7 } }, &[])
                    }
                    4 => testing::update(ns, query.clone(), Bson::Array(vec![doc! { "$set": { "a": 5 } }.into()]), how),
                    _ => {
                        let (spec, filters) = some_update(dice, documents);
                        let statement = testing::statement(query.clone(), doc! { "$set": { "x": 1 } }, how);
                        let statement = UpdateStatement { update: update_of(spec, &filters), ..statement };
                        testing::updates(ns, vec![statement], true)
                    }
                }
            };
            let before = dice.0;
            let first = op("users", &mut dice);
            dice.0 = before;
            let second = op(PLAIN, &mut dice);
            let stored = world.sorted("users").await;
            let what = format!("seed {seed}, keep {keep}, act {act}: {first:?}\non {stored:?}");
            let as_statement = |outcome: document::Result<Written>| {
                let failed = |error| Written { errors: vec![WriteError { index: 0, error }], ..Written::default() };
                outcome.unwrap_or_else(failed)
            };
            let (told, expected) = (as_statement(world.write(first).await), as_statement(world.write(second).await));
            same_outcome(&told, &expected, &what);
            outliers.compare(&what).await;
            let filter = some_filter(&mut dice, documents);
            let ids = |found: Vec<Document>| {
                let mut ids: Vec<i32> = found.iter().map(|document| document.get_i32("_id").unwrap()).collect();
                ids.sort_unstable();
                ids
            };
            let (found, expected) =
                (world.find("users", filter.clone()).await, world.find(PLAIN, filter.clone()).await);
            assert_eq!(ids(found), ids(expected), "{filter}\n{what}");
            if act % 5 == 0 {
                let all = world.sorted(PLAIN).await;
                let rows = |document: &Document| {
                    let id = document.get("_id").unwrap().clone();
                    items(document).into_iter().map(move |item| (id.clone(), item)).collect::<Vec<_>>()
                };
                let expected: Vec<(Bson, Bson)> = all.iter().flat_map(rows).collect();
                assert_eq!(outliers.rows(doc! {}).await, expected, "{what}");
                let of_one: Vec<_> = expected.into_iter().filter(|(owner, _)| *owner == Bson::Int32(id)).collect();
                assert_eq!(outliers.rows(doc! { "userId": id }).await, of_one, "{what}");
            }
        }
        world.drop_database().await;
    }
}

fn push(world: &World, id: i32, item: impl Into<Bson>) -> WriteOp {
    testing::update(world.ns("users"), doc! { "_id": id }, doc! { "$push": { "followers": item.into() } }, &[])
}

/// Spilling, coming back and guarded pushes at once: every item is there once, or gone once.
pub(crate) async fn concurrent(opened: &Opened) {
    let outliers = Arc::new(Outliers::new(opened, Arc::new(Failing::default()), KEEP).await);
    outliers.did(testing::insert(outliers.world.ns("users"), vec![doc! { "_id": 1, "followers": [] }])).await;
    let tasks: Vec<_> = (0..6)
        .map(|writer| {
            let outliers = outliers.clone();
            tokio::spawn(async move {
                let users = || outliers.world.ns("users");
                for step in 0..6 {
                    let own = writer * 100 + step;
                    outliers.did(push(&outliers.world, 1, own)).await;
                    if step % 2 == 1 {
                        let pull = doc! { "$pull": { "followers": own - 1 } };
                        outliers.did(testing::update(users(), doc! { "_id": 1 }, pull, &[])).await;
                    }
                    // All of them want these, and each is to be there once.
                    let shared = 1_000 + step;
                    let guarded = doc! { "_id": 1, "followers": { "$ne": shared } };
                    outliers
                        .did(testing::update(users(), guarded, doc! { "$push": { "followers": shared } }, &[]))
                        .await;
                    let added = doc! { "$addToSet": { "followers": 2_000 + step } };
                    outliers.did(testing::update(users(), doc! { "_id": 1 }, added, &[])).await;
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(120), task).await.expect("in time").unwrap();
    }
    let logical = outliers.logical().await;
    let mut found: Vec<i32> = items(&logical[0]).iter().map(|item| item.as_i32().unwrap()).collect();
    found.sort_unstable();
    let own = (0..6).flat_map(|writer| [1, 3, 5].map(|step| writer * 100 + step));
    let mut expected: Vec<i32> = own.chain(1_000..1_006).chain(2_000..2_006).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

fn acts(world: &World) -> Vec<WriteOp> {
    let users = || world.ns("users");
    let by_id = |id: i32| doc! { "_id": id };
    let modify = |spec: Document| Modify::Update { update: testing::change(spec), upsert: false, return_new: true };
    vec![
        testing::insert(users(), vec![doc! { "_id": 7, "followers": [1, 2, 3, 4, 5] }]),
        push(world, 1, 70),
        push(world, 2, 71),
        testing::update(users(), by_id(3), doc! { "$push": { "followers": { "$each": [1, 2, 3, 4] } } }, &[]),
        testing::update(users(), by_id(1), doc! { "$pull": { "followers": { "$in": [1, 5] } } }, &[]),
        testing::update(users(), by_id(1), doc! { "$inc": { "followers.$[]": 10 } }, &[]),
        testing::update(users(), by_id(1), doc! { "$set": { "followers": [9] } }, &[]),
        testing::update(users(), by_id(8), doc! { "$push": { "followers": { "$each": [1, 2, 3, 4] } } }, &["upsert"]),
        testing::update(users(), by_id(2), doc! { "a": 1, "followers": [4, 5, 6, 7] }, &[]),
        WriteOp::FindAndModify(Box::new(testing::find_and_modify(
            users(),
            by_id(1),
            modify(doc! { "$pop": { "followers": 1 } }),
        ))),
        WriteOp::FindAndModify(Box::new(testing::find_and_modify(users(), by_id(1), Modify::Remove))),
        testing::delete(users(), doc! { "_id": 1 }, false),
    ]
}

async fn fill(outliers: &Outliers) {
    let users = outliers.world.ns("users");
    outliers.did(testing::delete(users.clone(), doc! {}, true)).await;
    let documents = vec![
        doc! { "_id": 1, "followers": [1, 2, 3, 4, 5, 6] },
        doc! { "_id": 2, "followers": [1, 2] },
        doc! { "_id": 3 },
    ];
    outliers.did(testing::insert(users, documents)).await;
}

fn numbered(session: u8, number: i64) -> Session {
    let mut id = [session; 16];
    id[..4].copy_from_slice(&std::process::id().to_be_bytes());
    Session { id: Some(id), retry: Some(number), ..Session::default() }
}

fn same(first: &Written, again: &Written, what: &str) {
    assert_eq!((again.n, again.modified, again.errors.len()), (first.n, first.modified, 0), "{what}");
    assert_eq!((&again.upserted, &again.document), (&first.upserted, &first.document), "{what}");
}

/// Sent again to this process and to another: done once.
pub(crate) async fn sent_again(opened: &Opened, number: u8) {
    let outliers = Outliers::new(opened, Arc::new(Failing::default()), KEEP).await;
    for (at, op) in acts(&outliers.world).into_iter().enumerate() {
        fill(&outliers).await;
        let (number, what) = (i64::from(number) * 100 + at as i64, format!("{op:?}"));
        let first = outliers.write(&mut numbered(5, number), &op).await.unwrap();
        assert!(first.errors.is_empty() && first.retried.is_empty(), "{what}: {first:?}");
        // Items that go meanwhile make room: what was pushed past the limit would now fit.
        outliers
            .did(testing::update(
                outliers.world.ns("users"),
                doc! { "_id": 1 },
                doc! { "$set": { "followers": [] } },
                &[],
            ))
            .await;
        let logical = outliers.logical().await;
        for process in [None, Some(outliers.another())] {
            let again = process.as_ref().unwrap_or(&outliers).write(&mut numbered(5, number), &op).await.unwrap();
            same(&first, &again, &what);
            assert_eq!(outliers.logical().await, logical, "{what}");
        }
    }
}

/// Cut off before any step, then sent again.
pub(crate) async fn cut_off(opened: &Opened, number: u8) {
    let gate = Arc::new(Failing::default());
    let outliers = Outliers::new(opened, gate.clone(), KEEP).await;
    let mut number = i64::from(number) * 10_000;
    for op in acts(&outliers.world) {
        let (mut expected, what) = (None, format!("{op:?}"));
        for step in 0..30 {
            fill(&outliers).await;
            number += 1;
            if expected.is_some() {
                gate.arm(step, Fault::Error);
            }
            let told = outliers.write(&mut numbered(6, number), &op).await;
            let over = expected.is_some() && gate.disarm();
            let again = outliers.write(&mut numbered(6, number), &op).await.unwrap();
            if let Ok(told) = told.as_ref()
                && told.errors.is_empty()
            {
                same(told, &again, &what);
            }
            let logical = outliers.logical().await;
            match &expected {
                None => expected = Some(logical),
                Some(expected) => assert_eq!(&logical, expected, "{what}, cut off before step {step}"),
            }
            if over {
                break;
            }
        }
    }
}

/// In a transaction that is given up nothing stays; in one that is committed everything does.
pub(crate) async fn in_transactions(opened: &Opened) {
    let outliers = Outliers::new(opened, Arc::new(Failing::default()), KEEP).await;
    fill(&outliers).await;
    let before = outliers.logical().await;
    let mut found = Vec::new();
    for commits in [false, true] {
        let mut session = outliers.world.begin().await;
        for op in acts(&outliers.world) {
            let written = outliers.write(&mut session, &op).await.unwrap();
            assert!(written.errors.is_empty(), "{op:?}: {:?}", written.errors);
        }
        let query = doc! { "followers": 4 };
        let inside = ReadOp::Find(testing::find(outliers.world.ns("users"), query));
        found.push(outliers.world.read(&mut session, inside).await.unwrap().len());
        let transaction = session.transaction.take().unwrap();
        if commits {
            transaction.commit(&outliers.world.context()).await.unwrap();
        } else {
            transaction.abort();
            assert_eq!(outliers.logical().await, before);
        }
    }
    let arrays: Vec<(i32, usize)> =
        outliers.logical().await.iter().map(|user| (user.get_i32("_id").unwrap(), items(user).len())).collect();
    assert_eq!(arrays, [(2, 4), (3, 4), (7, 5), (8, 4)]);
    assert_eq!(found, [4, 4]);
}

/// Documents from before the rule.
fn early() -> Vec<Document> {
    let long: Vec<i32> = (0..20).collect();
    vec![
        doc! { "_id": 1, "a": 1 },
        doc! { "_id": 2, "followers": [1, 2] },
        doc! { "_id": 3, "followers": long, "z": 1 },
        doc! { "_id": 4, "followers": "nobody" },
        doc! { "_id": 5, "followers": [1, 2, 3, 4] },
    ]
}

fn without_count(mut documents: Vec<Document>) -> Vec<Document> {
    documents.iter_mut().for_each(|document| drop(document.remove("followerCount")));
    documents
}

async fn living(opened: &Opened, gate: Arc<dyn Gate>) -> Living {
    let living = Living::of(shop::empty(opened, gate).await);
    living.life.limit_database(&living.db);
    living.behind(testing::insert(living.ns("users"), early())).await;
    living
}

fn of_living(living: &Living, keep: usize) -> Outliers {
    Outliers { world: World { layer: living.layer.clone(), ..living.world.another() }, keep }
}

/// Applied to documents that are there, audited, repaired, changed, dropped.
pub(crate) async fn life(opened: &Opened) {
    let living = living(opened, Arc::new(Failing::default())).await;
    living.set_rules(&declaration(KEEP)).await;
    living.rest().await;
    assert_eq!(living.states().await, [("users.followers".to_owned(), "on".to_owned())]);
    let outliers = of_living(&living, KEEP);
    assert_eq!(outliers.logical().await, early());
    assert_eq!(living.assert_clean().await, 5);
    // The database itself shows all items.
    let op = ReadOp::Find(testing::find(living.ns("users.followers"), doc! { "userId": 3, "index": { "$gte": 2 } }));
    assert_eq!(testing::rows(&**living.inner(), &mut Session::default(), op).await.unwrap().len(), 18);
    let status = living.ask("status", doc! {}).await.unwrap();
    assert!(status.to_string().contains("\"largest\": [{ \"_id\": 3, \"count\": 20"), "{status}");

    let users = || living.ns("users");
    living.behind(testing::update(users(), doc! { "_id": 2 }, doc! { "$set": { "followerCount": 9 } }, &[])).await;
    living.behind(testing::update(users(), doc! { "_id": 3 }, doc! { "$unset": { "hasOverflow": "" } }, &[])).await;
    living.behind(testing::update(users(), doc! { "_id": 5 }, doc! { "$pop": { "followers": 1 } }, &[])).await;
    let orphan = doc! { "userId": 77, "followerId": 1, "index": 0 };
    living.behind(testing::insert(living.ns("follower_overflow"), vec![orphan])).await;
    let mut fields: Vec<String> =
        living.audit().await.iter().map(|drift| drift.get_str("field").unwrap().to_owned()).collect();
    fields.sort();
    assert_eq!(fields, ["followerCount", "followers", "hasOverflow", "userId"]);
    living.ask("repair", doc! {}).await.unwrap();
    living.assert_clean().await;
    let mut expected = early();
    expected[4].insert("followers", vec![1, 2, 4]);
    assert_eq!(outliers.logical().await, expected);

    for keep in [5, 1] {
        living.set_rules(&declaration(keep)).await;
        living.rest().await;
        assert_eq!(of_living(&living, keep).logical().await, expected);
    }
    living.ask("drop", doc! { "rule": "users.followers", "wait": false }).await.unwrap();
    living.rest().await;
    assert_eq!(without_count(living.sorted("users").await), expected);
    assert!(living.states().await.is_empty());
    let names = AdminOp::ListCollections { db: living.db.clone(), filter: testing::filter(doc! {}), name_only: true };
    let names = living.inner().admin(&mut Session::default(), &living.context(), names).await.unwrap();
    let has = |name: &str| names.iter().any(|row| row.get("name").is_some_and(|it| it.as_str() == Some(name)));
    assert!(!has("users.followers") && !has("follower_overflow"));
}

/// Stopped before any step of its life, while a client pushes: it goes on where it was.
pub(crate) async fn stopped(opened: &Opened, steps: usize) {
    for step in 0..steps {
        let gate = Arc::new(Failing::default());
        let living = living(opened, gate.clone()).await;
        living.set_rules(&declaration(KEEP)).await;
        gate.arm(step, Fault::Error);
        let _cut_off = living.life.bring_on().await;
        let over = gate.disarm();
        living.did(push(&living, 3, 100 + i32::try_from(step).unwrap())).await;
        living.rest().await;
        let mut expected = early();
        expected[2].get_array_mut("followers").unwrap().push(Bson::Int32(100 + i32::try_from(step).unwrap()));
        assert_eq!(of_living(&living, KEEP).logical().await, expected, "stopped before step {step}");
        living.assert_clean().await;
        living.ask("drop", doc! { "rule": "users.followers", "wait": false, "restore": true }).await.unwrap();
        gate.arm(step, Fault::Error);
        let _cut_off = living.life.bring_on().await;
        gate.disarm();
        living.rest().await;
        assert_eq!(living.sorted("users").await, expected, "dropped, stopped before step {step}");
        living.drop_database().await;
        if over {
            return;
        }
    }
}

/// A document near 16 MB is divided in several transactions, and becomes whole again.
pub(crate) async fn huge(opened: &Opened) {
    let living = Living::of(shop::empty(opened, Arc::new(Failing::default())).await);
    living.life.limit_database(&living.db);
    let items: Vec<String> = (0..200).map(|number| format!("{number:04}{}", "x".repeat(79_000))).collect();
    let before = doc! { "_id": 1, "followers": items.clone() };
    living.behind(testing::insert(living.ns("users"), vec![before.clone(), doc! { "_id": 2 }])).await;
    living.set_rules(&declaration(KEEP)).await;
    living.rest().await;
    let stored = living.one("users", 1).await;
    assert_eq!((self::items(&stored).len(), stored.get_i32("followerCount").unwrap()), (KEEP, 200));
    living.did(push(&living, 1, "last")).await;
    let mut found: Vec<(i32, String)> = Vec::new();
    for row in living.find("users.followers", doc! { "userId": 1 }).await {
        let item = row.get_str("followerId").unwrap();
        found.push((row.get_i32("index").unwrap(), item.get(..4).unwrap_or(item).to_owned()));
    }
    found.sort();
    let expected = items.iter().map(|item| item[..4].to_owned()).chain(["last".to_owned()]);
    assert_eq!(found.into_iter().map(|(_, item)| item).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    living.ask("drop", doc! { "rule": "users.followers", "wait": false, "with_data": true }).await.unwrap();
    living.rest().await;
    let mut whole = before;
    whole.get_array_mut("followers").unwrap().push(Bson::String("last".to_owned()));
    assert_eq!(living.one("users", 1).await, whole);
}

/// Fields on the collection of an array.
pub(crate) async fn stacked(opened: &Opened) {
    let living = living(opened, Arc::new(Failing::default())).await;
    let fields = [
        "  computed:",
        "    likes: { count: likes, by: userId }",
        "    twice: { expr: { $multiply: [$a, 2] } }",
        "  subset:",
        "    newest: { from: likes, by: userId, sort: { n: -1 }, keep: 2, fields: [n] }",
        "  extended_reference:",
        "    city: { from: cities, by: cityId, fields: [name], when_deleted: cascade }",
    ];
    living.set_rules(&format!("{}\n{}", declaration(KEEP), fields.join("\n"))).await;
    living.rest().await;
    living.assert_clean().await;
    living.did(testing::insert(living.ns("cities"), vec![doc! { "_id": 1, "name": "Oslo" }])).await;
    let mut dice = Dice(9);
    for act in 0..80 {
        let id = i32::try_from(dice.below(5)).unwrap() + 1;
        let (spec, filters) = some_update(&mut dice, false);
        let op = match dice.below(7) {
            0 => testing::insert(living.ns("likes"), vec![doc! { "userId": id, "n": act }]),
            1 => testing::delete(living.ns("users"), doc! { "_id": id }, false),
            2 => testing::insert(living.ns("users"), vec![doc! { "_id": id, "a": 1, "followers": dice.items(false) }]),
            3 => {
                testing::update(living.ns("users"), doc! { "_id": id }, doc! { "$set": { "cityId": 1, "a": act } }, &[])
            }
            _ => {
                let statement = testing::statement(doc! { "_id": id }, doc! { "$set": { "x": 1 } }, &["upsert"]);
                let statement = UpdateStatement { update: update_of(spec, &filters), ..statement };
                testing::updates(living.ns("users"), vec![statement], true)
            }
        };
        let _some_are_refused = living.write(op).await;
    }
    let long = doc! { "_id": 9, "cityId": 1, "followers": [1, 2, 3, 4, 5, 6] };
    living.did(testing::insert(living.ns("users"), vec![long])).await;
    living.rest().await;
    living.assert_clean().await;
    of_living(&living, KEEP).logical().await;
    // The city takes its users with it, and these their items.
    living.did(testing::delete(living.ns("cities"), doc! { "_id": 1 }, false)).await;
    living.rest().await;
    assert!(living.find("users", doc! { "_id": 9 }).await.is_empty());
    of_living(&living, KEEP).logical().await;
    living.assert_clean().await;
}
