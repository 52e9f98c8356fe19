//! Reads of documents of several versions that go their own ways: pages in the order of a moved path, indexes of both shapes, views of
//! clients, `$graphLookup`, `$text`, collations. A collection that holds the same documents in the newest version says what is right.

use crate::versions::{MODEL, Pair, VERSIONED, aggregate, normal, rule, unordered};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Count, Distinct, Explained, Find, Modify, Namespace, ReadOp, Verbosity, WriteOp};
use document::pipeline::sort_spec;
use document::value::Path;
use document::{Array, Doc, Env, Value};
use patterns::rule::State;
use patterns::rule::lens::steps::{Convert, Nest, Rename, Split, Wrap};
use patterns::rule::lens::{Lens, Migrate, VersionSteps};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use testing::{Opened, World, delete, filter, find_and_modify, insert, update};

/// Steps that keep what they move, and some that do not.
fn lens() -> Arc<Lens> {
    let path = Path::new;
    let steps: Vec<VersionSteps> = vec![
        vec![Arc::new(Nest { from: path("phone"), into: path("phone.number"), with: Vec::new() })],
        vec![
            Arc::new(Rename { from: path("mail"), to: path("email") }),
            Arc::new(Convert { path: path("age"), from: "string", to: "int" }),
            Arc::new(Split { from: path("name"), into: vec![path("first"), path("last")], on: " ".to_owned() }),
            Arc::new(Wrap { path: path("nick") }),
        ],
    ];
    Arc::new(Lens::new("v", steps, Migrate::default()).unwrap())
}

/// As some client has written it.
fn stored(id: i32, random: &mut StdRng) -> Document {
    let version = random.random_range(1..=3);
    let mut doc = doc! { "_id": id, "x": id % 4, "boss": id / 2, "note": format!("word{} common", id % 5) };
    let number = format!("{:02}", random.random_range(0..30));
    if random.random_bool(0.9) {
        doc.insert("phone", if version == 1 { Bson::from(number) } else { doc! { "number": number }.into() });
    }
    let letter = char::from(b'a' + random.random_range(0..6));
    let text = if random.random_bool(0.5) { letter.to_string() } else { letter.to_uppercase().to_string() };
    // Now and then an old document has the new name already.
    let is_odd = random.random_bool(0.2);
    if random.random_bool(0.9) {
        doc.insert(if version == 3 || is_odd { "email" } else { "mail" }, &text);
    }
    match version {
        3 => doc.extend(doc! { "age": id, "first": text, "last": "L", "nick": ["n", "m"], "v": 3 }),
        version => doc.extend(doc! { "age": id.to_string(), "name": format!("{text} L"), "nick": "n", "v": version }),
    }
    doc
}

async fn admin(world: &World, op: AdminOp) {
    world.inner().admin(&mut Session::default(), &world.context(), op).await.unwrap();
}

fn stages(stages: Vec<Document>) -> Array<'static> {
    match Value::from(Bson::from(stages)) {
        Value::Array(stages) => stages,
        other => panic!("{other:?}"),
    }
}

/// Both collections, with indexes on the paths of every version.
async fn pair(opened: &Opened, documents: i32) -> Pair {
    let db = format!("versions_reads_{}_{}", std::process::id(), testing::next());
    testing::prepare(&*opened.backend, &db).await;
    let lens = lens();
    let world = World::on(opened.clone(), &db);
    world.layer.set_rules(vec![(Arc::new(rule(&db, &lens)), State::On)]).unwrap();
    let mut random = StdRng::seed_from_u64(7);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for id in 0..documents {
        let doc = stored(id, &mut random);
        let newest = lens.up(&Doc::from(doc.clone()), &Env::fixed()).unwrap();
        new.push(newest.map_or(doc.clone(), |newest| Document::try_from(&newest).unwrap()));
        old.push(doc);
    }
    world.behind(insert(world.ns(VERSIONED), old)).await;
    world.behind(insert(world.ns(MODEL), new)).await;
    for collection in [VERSIONED, MODEL] {
        let index = |keys: Document| {
            let name = keys.keys().cloned().collect::<Vec<_>>().join("_");
            Doc::from(doc! { "key": keys, "name": name })
        };
        let indexes = vec![
            index(doc! { "v": 1 }),
            index(doc! { "phone": 1 }),
            index(doc! { "phone.number": 1 }),
            index(doc! { "mail": 1 }),
            index(doc! { "email": 1 }),
            index(doc! { "age": 1 }),
            index(doc! { "nick": 1 }),
            Doc::from(doc! { "key": { "note": "text" }, "name": "words" }),
        ];
        admin(&world, AdminOp::CreateIndexes { ns: world.ns(collection), indexes }).await;
    }
    Pair { world, done: Vec::new() }
}

pub(crate) async fn all(opened: &Opened) {
    let pair = pair(opened, 60).await;
    pages(&pair).await;
    views(&pair).await;
    graphs(&pair).await;
    searches(&pair).await;
    refusals(&pair).await;
    pair.world.drop_database().await;
    // A planner that has little to read reads it all.
    let many = self::pair(opened, 3_000).await;
    indexes(&many).await;
    many.world.drop_database().await;
}

fn find(ns: Namespace, query: &Document, sort: &Document, skip: u64, limit: Option<u64>) -> Find {
    let sort = (!sort.is_empty()).then(|| sort_spec::parse(&Doc::from(sort.clone())).unwrap());
    Find { sort, skip, limit, ..Find::matching(ns, filter(query.clone())) }
}

async fn pages(pair: &Pair) {
    for sort in [
        doc! { "phone.number": 1, "_id": 1 },
        doc! { "phone.number": -1, "_id": 1 },
        doc! { "email": 1, "_id": -1 },
        doc! { "x": 1, "email": -1, "_id": 1 },
        doc! { "age": 1, "_id": 1 },
        doc! { "email": 1, "phone.number": 1, "_id": 1 },
        doc! { "nick": 1, "_id": 1 },
    ] {
        for query in [
            doc! {},
            doc! { "x": { "$ne": 1 } },
            doc! { "email": { "$gt": "C" } },
            doc! { "email": { "$exists": false } },
            doc! { "$or": [{ "email": "a" }, { "x": 2 }] },
            doc! { "$nor": [{ "email": null }, { "x": 0 }] },
            doc! { "phone.number": { "$gte": "05", "$lt": "20" } },
            doc! { "age": { "$lt": 40 } },
        ] {
            for (skip, limit) in [(0, Some(5)), (4, Some(7)), (0, Some(500)), (3, None)] {
                pair.same_order(&format!("find {query} {sort} {skip} {limit:?}"), |ns| {
                    ReadOp::Find(find(ns, &query, &sort, skip, limit))
                })
                .await;
            }
        }
    }
}

async fn explained(pair: &Pair, op: ReadOp) -> Document {
    let (mut session, context) = (Session::default(), pair.world.context());
    let told = pair.world.layer.explain(&mut session, &context, Explained::Read(op), Verbosity::QueryPlanner).await;
    Document::try_from(&told.unwrap()).unwrap()
}

/// The plan that is taken, without those that are not.
fn plans(told: &Document) -> String {
    let mut told = told.clone();
    fn without_rejected(value: &mut Bson) {
        match value {
            Bson::Document(doc) => {
                doc.remove("rejectedPlans");
                doc.iter_mut().for_each(|(_, value)| without_rejected(value));
            }
            Bson::Array(items) => items.iter_mut().for_each(without_rejected),
            _ => {}
        }
    }
    let mut whole = Bson::from(std::mem::take(&mut told));
    without_rejected(&mut whole);
    whole.to_string()
}

/// A filter on a moved path, and a page in its order, are found by the indexes of both shapes.
async fn indexes(pair: &Pair) {
    let users = || pair.world.ns(VERSIONED);
    let note = |told: &Document| {
        let notes = told.get_document("pleach").unwrap().get_array("notes").cloned().unwrap_or_default();
        notes.first().and_then(|note| note.as_str().map(str::to_owned))
    };
    for (query, used) in [
        (doc! { "phone.number": "07" }, ["\"phone\"", "\"phone.number\""]),
        (doc! { "email": "a" }, ["\"mail\"", "\"email\""]),
        (doc! { "nick": "m" }, ["\"nick\"", "\"nick\""]),
    ] {
        let told = explained(pair, ReadOp::Find(Find::matching(users(), filter(query.clone())))).await;
        let plan = plans(&told);
        assert!(plan.contains("IXSCAN") && !plan.contains("COLLSCAN"), "{query}: {plan}");
        for index in used {
            assert!(plan.contains(index), "{query} by {index}: {plan}");
        }
        assert_eq!(note(&told), None, "{query}");
    }
    for query in [doc! { "age": 5 }, doc! { "first": "a" }] {
        let told = explained(pair, ReadOp::Find(Find::matching(users(), filter(query.clone())))).await;
        assert_eq!(note(&told).as_deref(), Some("not indexed until migrated"), "{query}");
    }
    let page = find(users(), &doc! {}, &doc! { "email": 1 }, 0, Some(3));
    let told = explained(pair, ReadOp::Find(page)).await;
    let steps = told.get_document("pleach").unwrap().get_array("steps").unwrap();
    // Two older versions, each with something under the old name, null or nothing, and the newest.
    assert_eq!(steps.len(), 7, "{told}");
    let limits = steps.iter().map(|step| step.as_document().unwrap().get_document("command").unwrap().get_i64("limit"));
    assert!(limits.into_iter().all(|limit| matches!(limit, Ok(3))), "{told}");
    assert!(!plans(&told).contains("COLLSCAN"), "{told}");
    // Old documents that lack the old name are found by that and put in order; all others come in the order of an index.
    for told in [steps[0].as_document().unwrap(), steps[3].as_document().unwrap(), &told] {
        let plan = plans(told.get_document("queryPlanner").unwrap());
        assert!(plan.contains("IXSCAN") && !plan.contains("\"SORT\""), "{plan}");
    }
}

/// A view sees what its collection shows, and so does a view of a view, and who joins one.
async fn views(pair: &Pair) {
    let world = &pair.world;
    for (of, suffix) in [(VERSIONED, "v"), (MODEL, "m")] {
        let some = vec![
            doc! { "$match": { "email": { "$gt": "B" } } },
            doc! { "$project": { "phone": 1, "email": 1, "age": 1 } },
        ];
        let view = |name: &str, on: String, pipeline: Vec<Document>| AdminOp::CreateView {
            ns: world.ns(name),
            on,
            pipeline: stages(pipeline),
        };
        admin(world, view(&format!("some_{suffix}"), of.to_owned(), some)).await;
        let younger = vec![doc! { "$match": { "age": { "$lt": 30 } } }];
        admin(world, view(&format!("younger_{suffix}"), format!("some_{suffix}"), younger)).await;
        let joined =
            vec![doc! { "$lookup": { "from": of, "localField": "number", "foreignField": "phone.number", "as": "u" } }];
        admin(world, view(&format!("joined_{suffix}"), "orders".to_owned(), joined)).await;
    }
    world
        .behind(insert(
            world.ns("orders"),
            (0..20).map(|id| doc! { "_id": id, "number": format!("{id:02}") }).collect(),
        ))
        .await;
    // Views that others have made are known a moment later.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let rows = async |op: ReadOp| world.read(&mut Session::default(), op).await.unwrap();
    for view in ["some", "younger", "joined"] {
        let named = |suffix: &str| world.ns(&format!("{view}_{suffix}"));
        for query in [doc! {}, doc! { "phone.number": { "$gt": "10" } }, doc! { "age": { "$gt": 5 } }] {
            let found = async |suffix| {
                unordered(rows(ReadOp::Find(Find::matching(named(suffix), filter(query.clone())))).await)
            };
            assert_eq!(found("v").await, found("m").await, "{view} {query}");
            let count =
                |ns| ReadOp::Count(Count { ns, filter: filter(query.clone()), skip: 0, limit: None, hint: None });
            let counted = async |suffix| {
                let row = rows(count(named(suffix))).await.remove(0);
                row.get_i64("n").or_else(|_| row.get_i32("n").map(i64::from)).unwrap()
            };
            assert_eq!(counted("v").await, counted("m").await, "{view} {query}");
        }
        let group = vec![doc! { "$group": { "_id": "$email", "n": { "$sum": 1 } } }];
        let grouped = async |suffix| unordered(rows(aggregate(named(suffix), group.clone())).await);
        assert_eq!(grouped("v").await, grouped("m").await, "{view}");
        for by in ["_id", "phone.number"] {
            let joins = async |suffix| {
                let from = format!("{view}_{suffix}");
                let lookup =
                    doc! { "$lookup": { "from": from, "localField": "number", "foreignField": by, "as": "u" } };
                let mut rows = rows(aggregate(world.ns("orders"), vec![lookup])).await;
                rows.iter_mut().for_each(sort_found);
                unordered(rows)
            };
            assert_eq!(joins("v").await, joins("m").await, "{view} by {by}");
        }
    }
    let shown = rows(ReadOp::Find(Find::matching(world.ns("some_v"), filter(doc! {})))).await;
    assert!(shown.iter().all(|row| row.contains_key("email") && !row.contains_key("mail")), "{shown:?}");
    assert!(shown.len() > 10);
}

/// What a join finds has no order.
fn sort_found(row: &mut Document) {
    if let Some(Bson::Array(found)) = row.get_mut("u") {
        found.sort_by_key(|found| normal(found).to_string());
    }
}

async fn graphs(pair: &Pair) {
    let world = &pair.world;
    for (to, depth, on_changed) in [("boss", true, false), ("boss", false, false), ("email", true, true)] {
        let from = |collection: &str| {
            let mut spec = doc! {
                "from": collection, "startWith": if to == "boss" { "$_id" } else { "$number" },
                "connectFromField": if to == "boss" { "_id" } else { "email" }, "connectToField": to, "as": "u", "maxDepth": 1,
                "restrictSearchWithMatch": { "_id": { "$gt": 0 } },
            };
            if depth {
                spec.insert("depthField", "deep");
            }
            vec![doc! { "$set": { "number": "a" } }, doc! { "$graphLookup": spec }]
        };
        let rows = async |collection: &str| {
            let rows = world.read(&mut Session::default(), aggregate(world.ns("orders"), from(collection))).await;
            rows.map(|mut rows| {
                rows.iter_mut().for_each(sort_found);
                unordered(rows)
            })
        };
        let (versioned, model) = (rows(VERSIONED).await, rows(MODEL).await.unwrap());
        if on_changed && !world.inner().facts().runs_our_code {
            let refused = versioned.unwrap_err();
            assert_eq!(refused.code().number(), 238, "{refused}");
            continue;
        }
        assert!(model.iter().any(|row| row.contains("email")), "{model:?}");
        assert_eq!(versioned.unwrap(), model, "to {to}");
    }
}

/// A search is one of stored documents; what it finds is seen in the newest version.
async fn searches(pair: &Pair) {
    let search = || doc! { "$text": { "$search": "word3" } };
    pair.same("$text", |ns| ReadOp::Find(Find::matching(ns, filter(search())))).await;
    let mut with = search();
    with.insert("x", doc! { "$gt": 0 });
    pair.same("$text and x", |ns| ReadOp::Find(Find::matching(ns, filter(with.clone())))).await;
    let count = |ns| ReadOp::Count(Count { ns, filter: filter(search()), skip: 0, limit: None, hint: None });
    pair.same("count $text", count).await;
    let stages = vec![
        doc! { "$match": search() },
        doc! { "$match": { "email": { "$gt": "B" } } },
        doc! { "$set": { "score": { "$meta": "textScore" } } },
    ];
    pair.same("aggregate $text", |ns| aggregate(ns, stages.clone())).await;
}

async fn refusals(pair: &Pair) {
    let users = || pair.world.ns(VERSIONED);
    let refused = async |op: ReadOp| {
        let error = pair.world.read(&mut Session::default(), op).await.unwrap_err();
        (error.code().number(), error.message().to_owned())
    };
    let keys = |keys: Document| Some(document::op::Hint::Keys(Doc::from(keys)));
    let bounds = Some(Doc::from(doc! { "phone.number": "1" }));
    let find = Find { min: bounds, hint: keys(doc! { "phone.number": 1 }), ..Find::matching(users(), filter(doc! {})) };
    let (code, message) = refused(ReadOp::Find(find)).await;
    assert!(code == 238 && message.contains("'min'"), "{message}");
    let find = Find { return_key: true, ..Find::matching(users(), filter(doc! { "x": 1 })) };
    assert_eq!(refused(ReadOp::Find(find)).await.0, 238);
    let text = doc! { "$text": { "$search": "word3" }, "email": "a" };
    assert_eq!(refused(ReadOp::Find(Find::matching(users(), filter(text)))).await.0, 238);
    // An index on a path that no version changes may be bounded.
    let find = Find {
        min: Some(Doc::from(doc! { "_id": 50 })),
        hint: keys(doc! { "_id": 1 }),
        ..Find::matching(users(), filter(doc! {}))
    };
    let rows = pair.world.read(&mut Session::default(), ReadOp::Find(find)).await.unwrap();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| matches!(row.get_i32("v"), Ok(3))), "{rows:?}");
}

/// Text that differs in case only is the same, for reads and writes, in old documents and new ones.
pub(crate) async fn collated(opened: &Opened) {
    let mut pair = pair(opened, 40).await;
    let loosely = || Some(Doc::from(doc! { "locale": "en", "strength": 2 }));
    let collated = |query: Document| filter(query).collated(loosely());
    for query in [doc! { "email": "B" }, doc! { "email": { "$gte": "b" }, "x": { "$lt": 3 } }, doc! { "x": 1 }] {
        for sort in [doc! { "email": 1, "_id": 1 }, doc! { "_id": 1 }, doc! { "first": -1, "_id": 1 }] {
            let sort = sort_spec::parse(&Doc::from(sort)).unwrap();
            pair.same_order(&format!("find {query} {sort:?}"), |ns| {
                ReadOp::Find(Find {
                    sort: Some(sort.clone()),
                    limit: Some(9),
                    ..Find::matching(ns, collated(query.clone()))
                })
            })
            .await;
        }
        pair.same(&format!("count {query}"), |ns| {
            ReadOp::Count(Count { ns, filter: collated(query.clone()), skip: 0, limit: None, hint: None })
        })
        .await;
    }
    for key in ["email", "nick", "phone.number"] {
        let distinct =
            |ns| ReadOp::Distinct(Distinct { ns, key: Path::new(key), filter: collated(doc! {}), hint: None });
        let (versioned, model) = pair.read(key, distinct).await;
        let values = |rows: Vec<Document>| {
            let values = rows[0].get_array("values").unwrap().iter().map(|value| value.to_string().to_lowercase());
            let mut values: Vec<String> = values.collect();
            values.sort();
            values
        };
        assert_eq!(values(versioned), values(model), "{key}");
    }
    let group = vec![doc! { "$group": { "_id": "$email", "n": { "$sum": 1 } } }, doc! { "$project": { "_id": 0 } }];
    pair.same("group", |ns| match aggregate(ns, group.clone()) {
        ReadOp::Aggregate(op) => ReadOp::Aggregate(document::op::Aggregate { collation: loosely(), ..op }),
        op => op,
    })
    .await;
    let with = |op: WriteOp| match op {
        WriteOp::Update(mut op) => {
            op.statements.iter_mut().for_each(|one| one.filter.collation = loosely());
            WriteOp::Update(op)
        }
        WriteOp::Delete(mut op) => {
            op.statements.iter_mut().for_each(|one| one.filter.collation = loosely());
            WriteOp::Delete(op)
        }
        other => other,
    };
    let set = doc! { "$set": { "seen": true } };
    pair.both("update many".into(), |ns| with(update(ns, doc! { "email": "B" }, set.clone(), &["multi"]))).await;
    pair.both("delete many".into(), |ns| with(delete(ns, doc! { "email": "C" }, true))).await;
    let modify = |ns| {
        let action = Modify::Update { update: testing::change(set.clone()), upsert: false, return_new: true };
        let mut modify = find_and_modify(ns, doc! { "email": "D" }, action);
        modify.filter.collation = loosely();
        modify.sort = Some(sort_spec::parse(&Doc::from(doc! { "_id": 1 })).unwrap());
        WriteOp::FindAndModify(Box::new(modify))
    };
    pair.both("modify".into(), modify).await;
    pair.same("all", |ns| ReadOp::Find(Find::matching(ns, filter(doc! {})))).await;
    pair.world.drop_database().await;
}
