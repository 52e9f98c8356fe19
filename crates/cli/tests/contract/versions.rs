//! A collection with documents of several versions against one that holds the same documents in the newest version: whatever is
//! asked and done, both answer alike (SEMANTICS R19).

use bson::{Bson, Document, doc};
use document::backend::Session;
use document::op::{Aggregate, Count, Distinct, Find, Modify, Namespace, ReadOp, WriteOp, Written};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Doc, Env, Value};
use patterns::rule::lens::steps::{Convert, Default, Nest, Pipelines, Rename, Split, Wrap, stages_of};
use patterns::rule::lens::{Lens, Migrate};
use patterns::rule::{ClientWrites, Kind, Rule, State};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use testing::{Opened, World, change, delete, filter, find_and_modify, insert, update};

pub(crate) const VERSIONED: &str = "users";
pub(crate) const MODEL: &str = "model";

fn stages(stages: Bson) -> Vec<Value<'static>> {
    match Value::from(stages) {
        Value::Array(stages) => stages_of(&stages),
        other => panic!("{other:?}"),
    }
}

/// Every kind of step, over four versions.
fn lens() -> Arc<Lens> {
    let path = Path::new;
    let with = vec![(path("phone.countryCode"), Value::from("+1"))];
    let into = vec![path("first"), path("last")];
    let steps: Vec<patterns::rule::lens::VersionSteps> = vec![
        vec![Arc::new(Nest { from: path("phone"), into: path("phone.number"), with })],
        vec![
            Arc::new(Rename { from: path("mail"), to: path("email") }),
            Arc::new(Split { from: path("name"), into, on: " ".to_owned() }),
            Arc::new(Convert { path: path("age"), from: "string", to: "int" }),
            Arc::new(Default { path: path("active"), value: Value::Bool(true) }),
            Arc::new(Wrap { path: path("nick") }),
        ],
        vec![Arc::new(Pipelines {
            up: stages(bson::bson!([{ "$set": { "mark": { "$concat": ["<", { "$ifNull": ["$mark", ""] }, ">"] } } }])),
            down: stages(bson::bson!([{ "$unset": "mark" }])),
        })],
    ];
    Arc::new(Lens::new("v", steps, Migrate::default()).unwrap())
}

pub(crate) fn rule(db: &str, lens: &Arc<Lens>) -> Rule {
    Rule {
        name: "users.versions".into(),
        pattern: "versions",
        host: Namespace::new(db, VERSIONED),
        field: Path::new("versions"),
        kind: Kind::Lens(lens.clone()),
        client_writes: ClientWrites::Override,
        declaration: Doc::empty(),
        lift: None,
    }
}

/// A document as some client has written it, of any version.
fn stored(id: i32, random: &mut StdRng) -> Document {
    let version = random.random_range(1..=5);
    let mut doc = doc! { "_id": id, "x": random.random_range(0..4) };
    if random.random_bool(0.8) {
        let number = format!("55{id}");
        let nested = doc! { "countryCode": if id % 2 == 0 { "+1" } else { "+49" }, "number": &number };
        doc.insert("phone", if version == 1 { Bson::from(number) } else { Bson::from(nested) });
    }
    let (first, last, age) = (format!("F{}", id % 3), format!("L{id}"), random.random_range(1..60));
    let older = version <= 2;
    if older {
        doc.extend(
            doc! { "name": format!("{first} {last}"), "mail": format!("m{id}"), "age": age.to_string(), "nick": "n" },
        );
    } else {
        doc.extend(
            doc! { "first": first, "last": last, "email": format!("m{id}"), "age": age, "active": true, "nick": ["n"] },
        );
    }
    if version <= 3 {
        doc.insert("mark", "m");
    }
    if version > 1 || random.random_bool(0.5) {
        // The last is one that nobody knows here.
        doc.insert("v", if version == 5 { 9 } else { version });
    }
    doc
}

pub(crate) fn normal(value: &Bson) -> Bson {
    match value {
        Bson::Document(doc) => {
            let mut fields: Vec<(String, Bson)> =
                doc.iter().map(|(name, value)| (name.clone(), normal(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(fields.into_iter().collect())
        }
        Bson::Array(items) => Bson::Array(items.iter().map(normal).collect()),
        other => other.clone(),
    }
}

/// Rows in no order.
pub(crate) fn unordered(rows: Vec<Document>) -> Vec<String> {
    let mut rows: Vec<String> = rows.into_iter().map(|row| normal(&Bson::from(row)).to_string()).collect();
    rows.sort();
    rows
}

pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) done: Vec<String>,
}

impl Pair {
    pub(crate) async fn both(&mut self, what: String, op: impl Fn(Namespace) -> WriteOp) {
        self.done.push(what);
        let outcome = |written: document::Result<Written>| match written {
            Ok(written) => {
                let errors: Vec<i32> = written.errors.iter().map(|failed| failed.error.code().number()).collect();
                let shown = written.document.map(|doc| {
                    let mut doc = Document::try_from(&doc).unwrap();
                    doc.remove("v");
                    normal(&Bson::from(doc)).to_string()
                });
                format!("{} {} {:?} {errors:?} {shown:?}", written.n, written.modified, written.upserted)
            }
            Err(error) => format!("{}", error.code().number()),
        };
        let versioned = outcome(self.world.write(op(self.world.ns(VERSIONED))).await);
        let model = outcome(self.world.write(op(self.world.ns(MODEL))).await);
        assert_eq!(versioned, model, "{:#?}", self.done);
    }

    pub(crate) async fn read(&self, what: &str, op: impl Fn(Namespace) -> ReadOp) -> (Vec<Document>, Vec<Document>) {
        let of = async |collection: &str| {
            let rows = self.world.read(&mut Session::default(), op(self.world.ns(collection))).await;
            rows.unwrap_or_else(|error| panic!("{what}: {error}"))
        };
        (of(VERSIONED).await, of(MODEL).await)
    }

    pub(crate) async fn same(&self, what: &str, op: impl Fn(Namespace) -> ReadOp) {
        let (versioned, model) = self.read(what, op).await;
        assert_eq!(unordered(versioned), unordered(model), "{what} after {:#?}", self.done);
    }

    pub(crate) async fn same_order(&self, what: &str, op: impl Fn(Namespace) -> ReadOp) {
        let (versioned, model) = self.read(what, op).await;
        let rows = |rows: Vec<Document>| {
            rows.iter().map(|row| normal(&Bson::from(row.clone())).to_string()).collect::<Vec<_>>()
        };
        assert_eq!(rows(versioned), rows(model), "{what} after {:#?}", self.done);
    }

    async fn check(&self) {
        for query in queries() {
            let what = format!("find {query}");
            self.same(&what, |ns| ReadOp::Find(testing::find(ns, query.clone()))).await;
            let count =
                |ns| ReadOp::Count(Count { ns, filter: filter(query.clone()), skip: 0, limit: None, hint: None });
            self.same(&format!("count {query}"), count).await;
        }
        for (sort, query) in [
            (doc! { "age": 1, "_id": 1 }, doc! {}),
            (doc! { "phone.number": -1, "_id": 1 }, doc! { "x": { "$gt": 0 } }),
            (doc! { "_id": -1 }, doc! { "phone.number": { "$gt": "55" } }),
            (doc! { "x": 1, "_id": 1 }, doc! { "age": { "$gte": 10 } }),
        ] {
            for (skip, limit) in [(0, None), (1, Some(3)), (2, None)] {
                for shown in [
                    doc! {},
                    doc! { "phone.number": 1, "first": 1 },
                    doc! { "phone": 0, "v": 0 },
                    doc! { "nick": { "$slice": 1 } },
                ] {
                    self.same_order(&format!("find {query} {sort} {skip} {limit:?} {shown}"), |ns| {
                        let filter = filter(query.clone());
                        let projection =
                            Projection::parse_find(&Doc::from(shown.clone()), &filter, &mut Names::new()).unwrap();
                        let projection = (!shown.is_empty()).then(|| Arc::new(projection));
                        let sort = Some(document::pipeline::sort_spec::parse(&Doc::from(sort.clone())).unwrap());
                        ReadOp::Find(Find { sort, skip, limit, projection, ..Find::matching(ns, filter) })
                    })
                    .await;
                }
            }
        }
        for key in ["age", "phone.countryCode", "nick", "x", "v", "first"] {
            let distinct = |ns| {
                ReadOp::Distinct(Distinct {
                    ns,
                    key: Path::new(key),
                    filter: filter(doc! { "x": { "$lt": 3 } }),
                    hint: None,
                })
            };
            let (versioned, model) = self.read(key, distinct).await;
            let values = |rows: Vec<Document>| {
                let mut values: Vec<String> =
                    rows[0].get_array("values").unwrap().iter().map(Bson::to_string).collect();
                values.sort();
                values
            };
            assert_eq!(values(versioned), values(model), "distinct {key} after {:#?}", self.done);
        }
        for pipeline in pipelines() {
            self.same(&format!("{pipeline:?}"), |ns| aggregate(ns, pipeline.clone())).await;
        }
        for (versioned, model) in joins(VERSIONED).into_iter().zip(joins(MODEL)) {
            let rows = async |pipeline| {
                let op = aggregate(self.world.ns("orders"), pipeline);
                unordered(self.world.read(&mut Session::default(), op).await.unwrap())
            };
            assert_eq!(rows(versioned.clone()).await, rows(model).await, "{versioned:?} after {:#?}", self.done);
        }
    }
}

pub(crate) fn aggregate(ns: Namespace, pipeline: Vec<Document>) -> ReadOp {
    let Value::Array(stages) = Value::from(Bson::from(pipeline)) else { panic!("no stages") };
    let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
    ReadOp::Aggregate(Aggregate {
        ns,
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: true,
        collation: None,
    })
}

fn queries() -> Vec<Document> {
    vec![
        doc! {},
        doc! { "x": 1 },
        doc! { "phone.number": "553" },
        doc! { "phone.number": { "$gt": "553" }, "x": { "$ne": 2 } },
        doc! { "phone.number": { "$exists": false } },
        doc! { "phone": { "$exists": true } },
        doc! { "phone.countryCode": "+1" },
        doc! { "email": { "$in": ["m1", "m4", null] } },
        doc! { "mail": { "$exists": true } },
        doc! { "$or": [{ "email": "m2" }, { "first": "F0" }] },
        doc! { "$nor": [{ "email": "m2" }, { "x": 0 }] },
        doc! { "age": { "$gte": 20, "$lt": 40 } },
        doc! { "age": { "$type": "string" } },
        doc! { "nick": "n" },
        doc! { "nick": { "$size": 1 } },
        doc! { "nick": { "$ne": "n" } },
        doc! { "active": true },
        doc! { "active": { "$ne": true } },
        doc! { "v": 4 },
        doc! { "v": { "$lt": 4 } },
        doc! { "mark": "<m>" },
        doc! { "$expr": { "$eq": ["$first", "F1"] } },
    ]
}

fn pipelines() -> Vec<Vec<Document>> {
    vec![
        vec![
            doc! { "$match": { "first": "F1" } },
            doc! { "$group": { "_id": "$phone.countryCode", "n": { "$sum": 1 }, "age": { "$sum": "$age" } } },
        ],
        vec![doc! { "$group": { "_id": "$x", "n": { "$sum": 1 } } }],
        vec![
            doc! { "$match": { "x": 1, "email": { "$gt": "m2" } } },
            doc! { "$sort": { "email": 1 } },
            doc! { "$limit": 2 },
            doc! { "$project": { "email": 1 } },
        ],
        vec![doc! { "$facet": { "a": [{ "$sortByCount": "$active" }], "b": [{ "$count": "n" }] } }],
        vec![doc! { "$unwind": "$nick" }, doc! { "$count": "n" }],
    ]
}

/// From another collection.
fn joins(from: &str) -> Vec<Vec<Document>> {
    vec![
        vec![doc! { "$lookup": { "from": from, "localField": "userId", "foreignField": "_id", "as": "user" } }],
        vec![
            doc! { "$lookup": { "from": from, "localField": "number", "foreignField": "phone.number", "as": "user" } },
        ],
        vec![doc! { "$lookup": { "from": from, "let": { "f": "$first" }, "as": "users", "pipeline": [
            { "$match": { "$expr": { "$eq": ["$first", "$$f"] } } }, { "$sort": { "_id": 1 } }, { "$project": { "email": 1 } },
        ] } }],
        vec![doc! { "$unionWith": from }, doc! { "$match": { "first": { "$exists": true } } }],
        vec![
            doc! { "$facet": { "a": [{ "$unionWith": { "coll": from, "pipeline": [{ "$match": { "age": { "$gt": 10 } } }] } }, { "$count": "n" }] } },
        ],
    ]
}

/// What some client does next.
async fn step(pair: &mut Pair, random: &mut StdRng, number: i32) {
    let id = random.random_range(0..14);
    let one = doc! { "_id": id };
    let by_number = doc! { "phone.number": format!("55{id}") };
    let changes: Vec<Bson> = vec![
        doc! { "$set": { "phone.number": format!("9{number}") } }.into(),
        doc! { "$set": { "phone": { "number": "1", "countryCode": "+2" } } }.into(),
        doc! { "$unset": { "first": "" } }.into(),
        doc! { "$inc": { "age": 1 } }.into(),
        doc! { "$push": { "nick": format!("k{number}") } }.into(),
        doc! { "$set": { "nick.0": "zero" } }.into(),
        doc! { "$rename": { "email": "address" } }.into(),
        doc! { "$set": { "x": number } }.into(),
        doc! { "$set": { "x": number, "v": 4 } }.into(),
        doc! { "$min": { "age": 5 }, "$set": { "last": "new" } }.into(),
        bson::bson!([{ "$set": { "full": { "$concat": ["$first", "-", "$phone.number"] } } }]),
        bson::bson!([{ "$unset": "phone.countryCode" }, { "$set": { "age": { "$add": ["$age", 1] } } }]),
        doc! { "phone": { "number": format!("r{number}") }, "age": 3, "first": "R", "x": 2 }.into(),
        // It fails: text cannot be added to.
        doc! { "$inc": { "first": 1 } }.into(),
    ];
    let chosen = changes[random.random_range(0..changes.len())].clone();
    let is_whole = matches!(&chosen, Bson::Document(doc) if doc.contains_key("phone"));
    let how: &[&str] = if random.random_bool(0.3) { &["upsert"] } else { &[] };
    match random.random_range(0..12) {
        0 => {
            let new =
                doc! { "_id": 100 + number, "x": 1, "phone": { "number": format!("55{}", 100 + number) }, "age": 7 };
            pair.both(format!("insert {new}"), |ns| insert(ns, vec![new.clone()])).await;
        }
        1..=3 => {
            pair.both(format!("update {one} {chosen} {how:?}"), |ns| update(ns, one.clone(), chosen.clone(), how)).await
        }
        4 if !is_whole => {
            let query = doc! { "age": { "$gt": random.random_range(0..60) } };
            pair.both(format!("update many {query} {chosen}"), |ns| {
                update(ns, query.clone(), chosen.clone(), &["multi"])
            })
            .await;
        }
        5 if !is_whole => {
            let query = doc! { "x": random.random_range(0..4) };
            pair.both(format!("update many {query} {chosen}"), |ns| {
                update(ns, query.clone(), chosen.clone(), &["multi"])
            })
            .await;
        }
        6 => {
            pair.both(format!("update {by_number} {chosen}"), |ns| update(ns, by_number.clone(), chosen.clone(), &[]))
                .await
        }
        7 => {
            let query = doc! { "_id": 200 + number, "phone.number": format!("55{}", 200 + number) };
            let set = doc! { "$set": { "age": 5, "x": 1 } };
            pair.both(format!("upsert {query}"), |ns| update(ns, query.clone(), set.clone(), &["upsert"])).await;
        }
        8 | 9 => {
            let (return_new, by_age) = (random.random_bool(0.5), random.random_bool(0.5));
            let (query, sort) = match by_age {
                true => (doc! { "x": { "$gt": 0 } }, Some(doc! { "age": 1, "_id": 1 })),
                false => (one.clone(), None),
            };
            pair.both(format!("modify {query} {sort:?} {chosen} new: {return_new}"), |ns| {
                let action = Modify::Update { update: change(chosen.clone()), upsert: false, return_new };
                let mut modify = find_and_modify(ns, query.clone(), action);
                modify.sort = sort.clone().map(|sort| document::pipeline::sort_spec::parse(&Doc::from(sort)).unwrap());
                WriteOp::FindAndModify(Box::new(modify))
            })
            .await;
        }
        10 => {
            pair.both(format!("remove {by_number}"), |ns| {
                WriteOp::FindAndModify(Box::new(find_and_modify(ns, by_number.clone(), Modify::Remove)))
            })
            .await;
        }
        _ => pair.both(format!("delete {by_number}"), |ns| delete(ns, by_number.clone(), random_multi(number))).await,
    }
}

fn random_multi(number: i32) -> bool {
    number % 2 == 0
}

/// Random documents of all versions, then random statements; reads in between.
pub(crate) async fn model(opened: &Opened, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let db = format!("versions_{}_{}", std::process::id(), testing::next());
        testing::prepare(&*opened.backend, &db).await;
        let lens = lens();
        let world = World::on(opened.clone(), &db);
        let rules: Vec<(Arc<Rule>, State)> = vec![(Arc::new(rule(&db, &lens)), State::On)];
        world.layer.set_rules(rules).unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        for id in 0..14 {
            let old = stored(id, &mut random);
            world.behind(insert(world.ns(VERSIONED), vec![old.clone()])).await;
            let newest = lens.up(&Doc::from(old.clone()), &Env::fixed()).unwrap();
            let newest = newest.map_or(old, |newest| Document::try_from(&newest).unwrap());
            world.behind(insert(world.ns(MODEL), vec![newest])).await;
            let order = doc! { "_id": id, "userId": id, "number": format!("55{id}"), "first": "F1" };
            world.behind(insert(world.ns("orders"), vec![order])).await;
        }
        let mut pair = Pair { world, done: vec![format!("seed {seed}")] };
        pair.check().await;
        for number in 0..40 {
            step(&mut pair, &mut random, number).await;
            let all =
                |ns: Namespace| ReadOp::Find(Find { allow_disk_use: false, ..Find::matching(ns, filter(doc! {})) });
            pair.same("all", |ns| unnumbered(all(ns))).await;
        }
        // A document without a number is the newest to its clients, and gets one.
        let numbered = update(pair.world.ns(MODEL), doc! { "v": null }, doc! { "$set": { "v": 4 } }, &["multi"]);
        pair.world.behind(numbered).await;
        pair.check().await;
        pair.world.drop_database().await;
    }
}

/// Without the number: the model has none where a whole document was written.
fn unnumbered(op: ReadOp) -> ReadOp {
    let ReadOp::Find(find) = op else { return op };
    let projection = Projection::parse_find(&Doc::from(doc! { "v": 0 }), &find.filter, &mut Names::new()).unwrap();
    ReadOp::Find(Find { projection: Some(Arc::new(projection)), ..find })
}

/// Fields in documents of several versions, and made from such.
const FIELDS: &str = r#"
users:
  computed:
    orderCount: { count: orders, by: userId }
    total: { sum: amount, from: orders, by: userId }
    tag: { expr: { $concat: [{ $ifNull: [$first, ""] }, "-", { $ifNull: [$phone.number, ""] }] } }
  subset:
    recent: { from: orders, by: userId, sort: { amount: -1 }, keep: 2, fields: [amount] }
orders:
  extended_reference:
    user: { from: users, by: userId, fields: { first: first, nr: phone.number } }
names:
  computed:
    people: { count: users, by: first }
    age: { avg: age, from: users, by: first }
    eldest: { max: age, from: users, by: first }
"#;

/// Random statements, while documents become older ones behind the back of the layer: no field may be wrong at any time.
pub(crate) async fn fields(opened: &Opened, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let db = format!("versioned_{}_{}", std::process::id(), testing::next());
        testing::prepare(&*opened.backend, &db).await;
        let (lens, world) = (lens(), World::on(opened.clone(), &db));
        let fields = testing::declared(&db, FIELDS).rules.into_iter().map(|rule| (Arc::new(rule), State::On));
        let all: Vec<(Arc<Rule>, State)> = fields.chain([(Arc::new(rule(&db, &lens)), State::On)]).collect();
        world.layer.set_rules(all).unwrap();
        for name in ["F0", "F1", "F2"] {
            world.did(insert(world.ns("names"), vec![doc! { "_id": name }])).await;
        }
        let mut random = StdRng::seed_from_u64(seed);
        let mut done = vec![format!("seed {seed}")];
        for number in 0..60 {
            let user = random.random_range(0..5);
            let first = format!("F{}", random.random_range(0..3));
            let (users, orders, by_user) = (world.ns("users"), world.ns("orders"), doc! { "_id": user });
            let op = match random.random_range(0..14) {
                0 | 1 => {
                    let set = doc! { "$set": { "first": first, "last": "L", "age": number, "phone": { "number": "1", "countryCode": "+1" } } };
                    update(users, by_user, set, &["upsert"])
                }
                2 => update(users, by_user, doc! { "$set": { "first": first } }, &[]),
                3 => update(users, by_user, doc! { "$set": { "phone.number": number.to_string() } }, &[]),
                4 => update(users, by_user, doc! { "$inc": { "age": 1 }, "$set": { "x": 1 } }, &[]),
                5 => update(users, doc! { "age": { "$gt": 20 } }, doc! { "$inc": { "age": 1 } }, &["multi"]),
                6 => update(
                    users,
                    by_user,
                    doc! { "first": first, "age": number, "phone": { "number": "7", "countryCode": "+1" } },
                    &["upsert"],
                ),
                7 => update(users, by_user, bson::bson!([{ "$set": { "first": first } }]), &[]),
                8 => delete(users, by_user, false),
                9 => update(users, doc! { "first": first }, doc! { "$set": { "x": number } }, &["multi"]),
                10 => insert(orders, vec![doc! { "_id": number, "userId": user, "amount": number }]),
                11 => {
                    update(orders, doc! { "_id": random.random_range(0..60) }, doc! { "$set": { "userId": user } }, &[])
                }
                12 => delete(orders, doc! { "_id": random.random_range(0..60) }, false),
                _ => {
                    let action = Modify::Update {
                        update: change(doc! { "$set": { "first": first } }),
                        upsert: false,
                        return_new: true,
                    };
                    WriteOp::FindAndModify(Box::new(find_and_modify(users, by_user, action)))
                }
            };
            done.push(format!("{op:?}"));
            let written = world.write(op).await.unwrap_or_else(|error| panic!("{error} after {done:#?}"));
            assert!(written.errors.is_empty(), "{:?} after {done:#?}", written.errors);
            // An old client writes it as it sees it.
            let version = random.random_range(1..4);
            let stages = patterns::mql::document([("stages", Value::Array(lens.down_stages(version)))]);
            let older = Document::try_from(&stages).unwrap().remove("stages").unwrap();
            world
                .behind(update(world.ns("users"), doc! { "_id": random.random_range(0..5), "v": 4 }, older, &[]))
                .await;
            let drift = world.drift().await;
            assert_eq!(drift, Vec::<String>::new(), "after {}", done[done.len().saturating_sub(3)..].join("\n"));
        }
        world.drop_database().await;
    }
}

/// A world with the lens and nothing else.
async fn versioned(opened: &Opened) -> (World, Arc<Lens>) {
    let db = format!("versions_{}_{}", std::process::id(), testing::next());
    testing::prepare(&*opened.backend, &db).await;
    let (lens, world) = (lens(), World::on(opened.clone(), &db));
    world.layer.set_rules(vec![(Arc::new(rule(&db, &lens)), State::On)]).unwrap();
    (world, lens)
}

/// Clients count while documents become older and newer ones behind their back: no count is lost, and none is added twice.
pub(crate) async fn races(opened: &Opened) {
    let (world, lens) = versioned(opened).await;
    for id in 0..4 {
        world.behind(insert(world.ns(VERSIONED), vec![doc! { "_id": id, "age": "0" }])).await;
    }
    let world = Arc::new(world);
    let clients = (0..4).map(|client| {
        let world = world.clone();
        tokio::spawn(async move {
            let mut counted = 0;
            for number in 0..40 {
                let one = doc! { "_id": (client + number) % 4 };
                let op = update(world.ns(VERSIONED), one, doc! { "$inc": { "age": 1 } }, &[]);
                counted += world.did(op).await.n;
            }
            counted
        })
    });
    let clients: Vec<_> = clients.collect();
    let changes = [lens.down_stages(1), lens.view().clone(), lens.down_stages(2)].map(|stages| {
        let stages = patterns::mql::document([("stages", Value::Array(stages))]);
        Document::try_from(&stages).unwrap().remove("stages").unwrap()
    });
    let mut number = 0;
    while !clients.iter().all(tokio::task::JoinHandle::is_finished) {
        let newest = if number % 3 == 1 {
            doc! { "v": { "$ne": 4 } }
        } else {
            doc! { "v": 4 }
        };
        let one = doc! { "_id": i32::try_from(number % 4).unwrap(), "$and": [newest] };
        world.behind(update(world.ns(VERSIONED), one, changes[number % 3].clone(), &[])).await;
        number += 1;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let mut counted = 0;
    for client in clients {
        counted += client.await.unwrap();
    }
    let all = world.all(VERSIONED).await;
    let sum: i64 = all.iter().map(|doc| i64::from(doc.get_i32("age").unwrap())).sum();
    assert_eq!(sum, i64::try_from(counted).unwrap(), "{all:?}");
    assert!(counted > 100, "{counted} of 160 statements found their document");
    world.drop_database().await;
}

/// Transactions, statements that are sent again, and several statements in one command.
pub(crate) async fn commands(opened: &Opened) {
    let (world, _) = versioned(opened).await;
    let (users, stored) = (world.ns(VERSIONED), doc! { "_id": 1, "phone": "5", "age": "7", "name": "A B" });
    world.behind(insert(users.clone(), vec![stored.clone()])).await;
    let raw = async |id: i32| {
        let op = ReadOp::Find(testing::find(users.clone(), doc! { "_id": id }));
        testing::rows(&*world.opened.backend, &mut Session::default(), op).await.unwrap().pop().unwrap()
    };

    // What is done in a transaction that is given up is not done, the way to the newest version included.
    let mut session = world.begin().await;
    let count = update(users.clone(), doc! { "phone.number": "5" }, doc! { "$inc": { "age": 1 } }, &[]);
    assert_eq!(world.write_at(&mut session, &count).await.unwrap().n, 1);
    assert_eq!(world.find_at(&mut session, VERSIONED, doc! { "age": 8 }).await.len(), 1);
    session.transaction.take().unwrap().abort();
    assert_eq!(raw(1).await, stored);
    let mut session = world.begin().await;
    world.write_at(&mut session, &count).await.unwrap();
    world.commit(&mut session).await.unwrap();
    assert_eq!(raw(1).await.get_i32("age").unwrap(), 8);

    // A statement that is sent again is done once.
    world.behind(insert(users.clone(), vec![doc! { "_id": 2, "age": "1" }])).await;
    let count = update(users.clone(), doc! { "_id": 2 }, doc! { "$inc": { "age": 1 } }, &[]);
    // A server remembers sessions longer than a test runs.
    let (mut id, now) = ([0; 16], std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap());
    id.copy_from_slice(&now.as_nanos().to_be_bytes());
    let session = || Session { id: Some(id), retry: Some(1), ..Session::default() };
    for _ in 0..2 {
        assert_eq!(world.write_at(&mut session(), &count).await.unwrap().n, 1);
    }
    assert_eq!(raw(2).await.get_i32("age").unwrap(), 2);

    // What one statement does, the next is about; one that fails ends them.
    world.behind(insert(users.clone(), vec![doc! { "_id": 3, "age": "1", "name": "C D" }])).await;
    let statements = vec![
        testing::statement(doc! { "_id": 3 }, doc! { "$set": { "x": 1 } }, &[]),
        testing::statement(doc! { "x": 1 }, doc! { "$set": { "first": "E" } }, &[]),
        testing::statement(doc! { "first": "E" }, doc! { "$inc": { "last": 1 } }, &[]),
        testing::statement(doc! { "first": "E" }, doc! { "$set": { "x": 2 } }, &[]),
    ];
    let written = world.write(testing::updates(users.clone(), statements, true)).await.unwrap();
    let failed: Vec<(usize, i32)> =
        written.errors.iter().map(|failed| (failed.index, failed.error.code().number())).collect();
    assert_eq!((written.n, failed), (2, vec![(2, 14)]));
    let three = world.one(VERSIONED, 3).await;
    assert_eq!((three.get_str("first").unwrap(), three.get_i32("x").unwrap()), ("E", 1));

    // An update on a path that no version changes leaves the document as it is stored.
    world.behind(insert(users.clone(), vec![doc! { "_id": 4, "name": "G H" }])).await;
    world.did(update(users.clone(), doc! { "_id": 4 }, doc! { "$set": { "x": 1 } }, &[])).await;
    assert_eq!(raw(4).await, doc! { "_id": 4, "name": "G H", "x": 1 });
    // One that changes nothing counts as none, though the document is brought up.
    let written = world.did(update(users.clone(), doc! { "_id": 4 }, doc! { "$set": { "first": "G" } }, &[])).await;
    assert_eq!((written.n, written.modified), (1, 0));
    assert_eq!(raw(4).await.get_i32("v").unwrap(), 4);

    // The number goes with the document's shape.
    let refused = world.refused(update(users.clone(), doc! { "_id": 4 }, doc! { "$set": { "v": 1 } }, &[])).await;
    assert_eq!(refused.0, 66);
    world
        .did(insert(users.clone(), vec![doc! { "_id": 5, "name": "I J", "v": 2 }, doc! { "_id": 6, "first": "K" }]))
        .await;
    assert_eq!(raw(5).await.get_str("first").unwrap(), "I");
    assert_eq!((raw(5).await.get_i32("v").unwrap(), raw(6).await.get_i32("v").unwrap()), (4, 4));
    world.drop_database().await;
}
