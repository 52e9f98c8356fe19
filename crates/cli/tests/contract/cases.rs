//! What every backend promises (`document::backend`), one function per promise.

use crate::words::{Place, abort, commit, compile, context, docs, is_transient, new_session, parse};
use bson::{Bson, Document, doc};
use document::backend::{FenceKey, Mode, Session};
use document::op::{AdminOp, Capture, Count, Distinct, Modify, ReadOp};
use document::value::Path;
use document::{Code, Doc};
use std::pin::Pin;

type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The name of a promise and its proof.
pub(crate) type Case = (&'static str, for<'a> fn(&'a Place) -> Running<'a>);

pub(crate) const CASES: &[Case] = &[
    ("a missing collection reads as empty", |place| Box::pin(missing_is_empty(place))),
    ("an insert makes what it needs and completes _id", |place| Box::pin(insert_makes(place))),
    ("an ordered insert keeps what was before the failure", |place| Box::pin(ordered(place))),
    ("an unordered insert goes on", |place| Box::pin(unordered(place))),
    ("an update counts, and shows before and after", |place| Box::pin(update_shows(place))),
    ("an upsert shows what it made", |place| Box::pin(upsert_shows(place))),
    ("a delete shows what was", |place| Box::pin(delete_shows(place))),
    ("captured paths are whole fields, and only those", |place| Box::pin(captured_paths(place))),
    ("findAndModify gives the document, projected", |place| Box::pin(find_and_modify(place))),
    ("a cursor gives batches", |place| Box::pin(batches(place))),
    ("a transaction sees itself, others see its commit", |place| Box::pin(transaction_commits(place))),
    ("an aborted transaction leaves nothing", |place| Box::pin(transaction_aborts(place))),
    ("a transaction reads one moment", |place| Box::pin(transaction_reads_one_moment(place))),
    ("the first updater wins", |place| Box::pin(first_updater_wins(place))),
    ("a duplicate key in a transaction ends it", |place| Box::pin(duplicate_ends_transaction(place))),
    ("shared fences do not meet", |place| Box::pin(shared_fences(place))),
    ("an exclusive fence meets every other, in every order", |place| Box::pin(exclusive_fences(place))),
    ("a retried write has one effect", |place| Box::pin(retried(place))),
    ("a retry record lives and dies with its transaction", |place| Box::pin(retried_in_transaction(place))),
    ("several writes in order stop at the first failure", |place| Box::pin(write_all(place))),
    ("collections and indexes come and go", |place| Box::pin(admin(place))),
];

async fn missing_is_empty(place: &Place) {
    let mut session = Session::default();
    assert_eq!(place.find(&mut session, doc! {}).await, Vec::<Document>::new());
    let count = ReadOp::Count(Count { ns: place.ns.clone(), filter: parse(doc! {}), skip: 0, limit: None, hint: None });
    let rows = place.rows(&mut session, count, 10).await.unwrap().concat();
    assert_eq!(number(rows[0].get("n")), Some(0));
    let distinct =
        ReadOp::Distinct(Distinct { ns: place.ns.clone(), key: Path::new("a"), filter: parse(doc! {}), hint: None });
    let rows = place.rows(&mut session, distinct, 10).await.unwrap().concat();
    assert_eq!(rows[0].get_array("values").unwrap().len(), 0);
}

async fn insert_makes(place: &Place) {
    let written = place.must(place.insert(vec![doc! { "a": 1 }, doc! { "b": 2, "_id": 5 }], true)).await;
    assert_eq!((written.n, written.changes.len()), (2, 2));
    assert!(written.changes.iter().all(|change| change.before.is_none() && change.after.is_some()));
    let rows = place.find(&mut Session::default(), doc! {}).await;
    assert!(rows.contains(&doc! { "_id": 5, "b": 2 }), "{rows:?}");
    assert!(rows.iter().all(|row| row.keys().next().is_some_and(|name| name == "_id")));
}

async fn ordered(place: &Place) {
    let op = place.insert(vec![doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": 2 }], true);
    let written = place.run(&mut Session::default(), &op).await.unwrap();
    assert_eq!(written.n, 1);
    assert_eq!(errors(&written), [(1, Code::DuplicateKey)]);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await.len(), 1);
}

async fn unordered(place: &Place) {
    let op = place.insert(vec![doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 2 }], false);
    let written = place.run(&mut Session::default(), &op).await.unwrap();
    assert_eq!(written.n, 2);
    assert_eq!(errors(&written), [(1, Code::DuplicateKey), (3, Code::DuplicateKey)]);
}

async fn update_shows(place: &Place) {
    place.must(place.insert(docs(0..9), true)).await;
    let written = place.must(place.update(doc! { "a": 1 }, doc! { "$inc": { "b": 1 } }, true, false)).await;
    assert_eq!((written.n, written.modified, written.changes.len()), (3, 3, 3));
    let change = written.changes.iter().find(|change| Bson::from_id(&change.id) == Bson::Int32(4)).unwrap();
    assert_eq!(plain(change.before.as_ref()), Some(doc! { "_id": 4, "a": 1 }));
    assert_eq!(plain(change.after.as_ref()), Some(doc! { "_id": 4, "a": 1, "b": 1 }));
    let written = place.must(place.update(doc! { "_id": 4 }, doc! { "$set": { "b": 1 } }, false, false)).await;
    assert_eq!((written.n, written.modified), (1, 0));
}

async fn upsert_shows(place: &Place) {
    let written = place.must(place.update(doc! { "_id": 7 }, doc! { "$set": { "x": 1 } }, false, true)).await;
    assert_eq!((written.n, written.modified, written.upserted.len()), (1, 0, 1));
    assert_eq!(written.changes.len(), 1);
    assert!(written.changes[0].before.is_none());
    assert_eq!(plain(written.changes[0].after.as_ref()), Some(doc! { "_id": 7, "x": 1 }));
}

async fn delete_shows(place: &Place) {
    place.must(place.insert(docs(0..6), true)).await;
    let written = place.must(place.delete(doc! { "a": 0 }, true)).await;
    assert_eq!((written.n, written.changes.len()), (2, 2));
    assert!(written.changes.iter().all(|change| change.before.is_some() && change.after.is_none()));
    assert_eq!(place.must(place.delete(doc! { "a": 1 }, false)).await.n, 1);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await.len(), 3);
}

async fn captured_paths(place: &Place) {
    place.must(place.insert(vec![doc! { "_id": 1, "a": { "x": 1, "y": 2 }, "b": 1, "c": 1 }], true)).await;
    let capture = Capture::Paths(vec![Path::new("a.x"), Path::new("d")]);
    let op = place.update(doc! { "_id": 1 }, doc! { "$set": { "b": 2, "d": 3 } }, false, false);
    let written = place.backend.write(&mut Session::default(), &context(), &op, &capture).await.unwrap();
    assert_eq!(written.changes.len(), 1);
    let kept = |doc: Option<Document>| {
        let mut doc = doc.unwrap();
        doc.remove("_id");
        doc
    };
    assert_eq!(kept(plain(written.changes[0].before.as_ref())), doc! { "a": { "x": 1, "y": 2 } });
    assert_eq!(kept(plain(written.changes[0].after.as_ref())), doc! { "a": { "x": 1, "y": 2 }, "d": 3 });
}

async fn find_and_modify(place: &Place) {
    place.must(place.insert(docs(0..3), true)).await;
    let change =
        |return_new| Modify::Update { update: compile(doc! { "$inc": { "n": 1 } }), upsert: false, return_new };
    let written = place.must(place.modify(doc! { "_id": 1 }, change(false), None)).await;
    assert_eq!(plain(written.document.as_ref()), Some(doc! { "_id": 1, "a": 1 }));
    assert_eq!(written.changes.len(), 1);
    let written = place.must(place.modify(doc! { "_id": 1 }, change(true), Some(doc! { "n": 1, "_id": 0 }))).await;
    assert_eq!(plain(written.document.as_ref()), Some(doc! { "n": 2 }));
    let written = place.must(place.modify(doc! { "_id": 2 }, Modify::Remove, None)).await;
    assert_eq!(plain(written.document.as_ref()), Some(doc! { "_id": 2, "a": 2 }));
    assert!(written.changes[0].after.is_none());
    assert!(place.must(place.modify(doc! { "_id": 9 }, Modify::Remove, None)).await.document.is_none());
}

async fn batches(place: &Place) {
    place.must(place.insert(docs(0..25), true)).await;
    let batches = place.rows(&mut Session::default(), ReadOp::Find(place.find_op(doc! {})), 10).await.unwrap();
    let sizes: Vec<usize> = batches.iter().map(Vec::len).filter(|size| *size > 0).collect();
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!(batches.concat(), docs(0..25));
}

async fn transaction_commits(place: &Place) {
    place.must(place.insert(docs(0..1), true)).await;
    let (mut session, mut other) = (place.begin().await, Session::default());
    place.run(&mut session, &place.insert(docs(1..3), true)).await.unwrap();
    place.run(&mut session, &place.update(doc! { "_id": 0 }, doc! { "$set": { "t": 1 } }, false, false)).await.unwrap();
    assert_eq!(place.find(&mut session, doc! {}).await.len(), 3);
    assert_eq!(place.find(&mut other, doc! {}).await, docs(0..1));
    commit(&mut session).await.unwrap();
    assert_eq!(place.find(&mut other, doc! {}).await.len(), 3);
}

async fn transaction_aborts(place: &Place) {
    place.must(place.insert(docs(0..2), true)).await;
    let mut session = place.begin().await;
    place.run(&mut session, &place.delete(doc! {}, true)).await.unwrap();
    assert_eq!(place.find(&mut session, doc! {}).await.len(), 0);
    abort(&mut session);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await.len(), 2);
    // Dropping one aborts it too, and what it wrote is free again. A server may take a moment to learn of an abort.
    let update = place.update(doc! { "_id": 0 }, doc! { "$set": { "t": 1 } }, false, false);
    loop {
        let mut session = place.begin().await;
        match place.run(&mut session, &update).await {
            Err(error) if is_transient(&error) => tokio::task::yield_now().await,
            written => break drop((written.unwrap(), session)),
        }
    }
    place.must(place.update(doc! { "_id": 0 }, doc! { "$set": { "t": 2 } }, false, false)).await;
    assert_eq!(place.find(&mut Session::default(), doc! { "t": 2 }).await.len(), 1);
}

async fn transaction_reads_one_moment(place: &Place) {
    place.must(place.insert(docs(0..2), true)).await;
    let mut session = place.begin().await;
    assert_eq!(place.find(&mut session, doc! {}).await.len(), 2);
    place.must(place.insert(docs(2..4), true)).await;
    assert_eq!(place.find(&mut session, doc! {}).await.len(), 2);
    abort(&mut session);
}

async fn first_updater_wins(place: &Place) {
    place.must(place.insert(docs(0..2), true)).await;
    let change = |n: i32| place.update(doc! { "_id": 0 }, doc! { "$set": { "t": n } }, false, false);
    let (mut first, mut second) = (place.begin().await, place.begin().await);
    place.find(&mut second, doc! {}).await;
    place.run(&mut first, &change(1)).await.unwrap();
    let error = place.run(&mut second, &change(2)).await.unwrap_err();
    assert!(is_transient(&error), "{error:?}");
    commit(&mut first).await.unwrap();
    assert_eq!(place.find(&mut Session::default(), doc! { "t": 1 }).await.len(), 1);
    // Newer than the snapshot is a conflict as well.
    let mut third = place.begin().await;
    place.find(&mut third, doc! {}).await;
    place.must(change(3)).await;
    let error = place.run(&mut third, &change(4)).await.unwrap_err();
    assert!(is_transient(&error), "{error:?}");
}

async fn duplicate_ends_transaction(place: &Place) {
    place.must(place.insert(docs(0..1), true)).await;
    let mut session = place.begin().await;
    place.run(&mut session, &place.insert(docs(5..6), true)).await.unwrap();
    let written = place.run(&mut session, &place.insert(docs(0..1), true)).await;
    let failed = written.map_or_else(|error| error.code(), |written| written.errors[0].error.code());
    assert_eq!(failed, Code::DuplicateKey);
    assert!(place.run(&mut session, &place.insert(docs(6..7), true)).await.is_err());
    drop(session);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await, docs(0..1));
}

fn fence_key(place: &Place, name: &str) -> FenceKey {
    FenceKey::new(&place.ns.db, format!("{}/{name}", place.ns.collection))
}

async fn shared_fences(place: &Place) {
    testing::prepare(&*place.backend, &place.ns.db).await;
    let key = fence_key(place, "shared");
    // On a real MongoDB two may take the same slot by chance, which is a transient conflict and nothing worse.
    for attempt in 0.. {
        let (mut first, mut second) = (place.begin().await, place.begin().await);
        place.backend.fences(&mut first, &[(key.clone(), Mode::Shared)]).await.unwrap();
        let taken = place.backend.fences(&mut second, &[(key.clone(), Mode::Shared)]).await;
        let met = match taken {
            Ok(()) => commit(&mut second).await.err(),
            Err(error) => Some(error),
        };
        commit(&mut first).await.unwrap();
        match met {
            None => return,
            Some(error) => assert!(is_transient(&error) && attempt < 10, "{error:?}"),
        }
    }
}

async fn exclusive_fences(place: &Place) {
    testing::prepare(&*place.backend, &place.ns.db).await;
    for (at, modes) in
        [(Mode::Exclusive, Mode::Shared), (Mode::Shared, Mode::Exclusive), (Mode::Exclusive, Mode::Exclusive)]
            .into_iter()
            .enumerate()
    {
        for first_commits_between in [false, true] {
            let key = fence_key(place, &format!("{at}{first_commits_between}"));
            let (mut first, mut second) = (place.begin().await, place.begin().await);
            // Both have their snapshot.
            place.find(&mut first, doc! {}).await;
            place.find(&mut second, doc! {}).await;
            place.backend.fences(&mut first, &[(key.clone(), modes.0)]).await.unwrap();
            let mut failed = None;
            if first_commits_between {
                commit(&mut first).await.unwrap();
            }
            match place.backend.fences(&mut second, &[(key.clone(), modes.1)]).await {
                Err(error) => failed = Some(error),
                Ok(()) => failed = failed.or(commit(&mut second).await.err()),
            }
            if !first_commits_between {
                failed = failed.or(commit(&mut first).await.err());
            }
            let error = failed.unwrap_or_else(|| panic!("{modes:?}, {first_commits_between}: both committed"));
            assert!(is_transient(&error), "{error:?}");
            // A later transaction meets nobody.
            let mut third = place.begin().await;
            place.backend.fences(&mut third, &[(key.clone(), Mode::Exclusive)]).await.unwrap();
            commit(&mut third).await.unwrap();
        }
    }
}

async fn retried(place: &Place) {
    place.must(place.insert(docs(0..1), true)).await;
    let mut session = Session { id: Some(new_session()), retry: Some(1), ..Session::default() };
    let change = place.update(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }, false, false);
    for _ in 0..3 {
        let written = place.run(&mut session, &change).await.unwrap();
        assert_eq!((written.n, written.modified), (1, 1));
    }
    session.retry = Some(2);
    place.run(&mut session, &change).await.unwrap();
    assert_eq!(place.find(&mut Session::default(), doc! {}).await[0].get_i32("n").unwrap(), 2);
}

async fn retried_in_transaction(place: &Place) {
    testing::prepare(&*place.backend, &place.ns.db).await;
    place.must(place.insert(docs(0..1), true)).await;
    let id = new_session();
    let change = place.update(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }, false, false);
    let attempt = async |commits: bool| {
        let mut session = Session { id: Some(id), retry: Some(1), ..Session::default() };
        place.backend.begin(&mut session, &context()).await.unwrap();
        let written = place.run(&mut session, &change).await.unwrap();
        if commits {
            commit(&mut session).await.unwrap()
        } else {
            abort(&mut session)
        }
        assert_eq!((written.n, written.modified), (1, 1));
        written.retried.len()
    };
    assert_eq!(attempt(false).await, 0);
    assert_eq!(attempt(true).await, 0);
    assert_eq!(attempt(true).await, 1);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await[0].get_i32("n").unwrap(), 1);
}

async fn write_all(place: &Place) {
    let Some(pipelining) = place.backend.pipelining() else { return };
    place.must(place.insert(docs(0..1), true)).await;
    let ops = |documents: [i32; 3]| -> Vec<_> {
        documents.iter().map(|n| (place.insert(docs(*n..*n + 1), true), Capture::Nothing)).collect()
    };
    let mut session = place.begin().await;
    let outcomes = pipelining.write_all(&mut session, &context(), &ops([1, 2, 3])).await.unwrap();
    assert!(outcomes.len() == 3 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    commit(&mut session).await.unwrap();
    let mut session = place.begin().await;
    let outcomes = pipelining.write_all(&mut session, &context(), &ops([4, 0, 5])).await.unwrap();
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
    drop(session);
    assert_eq!(place.find(&mut Session::default(), doc! {}).await, docs(0..4));
}

async fn admin(place: &Place) {
    let (mut session, context) = (Session::default(), context());
    let ns = place.ns.clone();
    let indexes = vec![Doc::from(doc! { "key": { "a": 1 }, "name": "a_1" })];
    place.backend.admin(&mut session, &context, AdminOp::CreateIndexes { ns: ns.clone(), indexes }).await.unwrap();
    let listed = place.backend.admin(&mut session, &context, AdminOp::ListIndexes { ns: ns.clone() }).await.unwrap();
    let names: Vec<Document> = listed.iter().map(|doc| Document::try_from(doc).unwrap()).collect();
    let names: Vec<&str> = names.iter().map(|doc| doc.get_str("name").unwrap()).collect();
    assert_eq!(names, ["_id_", "a_1"]);
    let list = || AdminOp::ListCollections {
        db: ns.db.to_string(),
        filter: parse(doc! { "name": &*ns.collection }),
        name_only: true,
    };
    assert_eq!(place.backend.admin(&mut session, &context, list()).await.unwrap().len(), 1);
    place.backend.admin(&mut session, &context, AdminOp::Drop { ns: ns.clone() }).await.unwrap();
    assert_eq!(place.backend.admin(&mut session, &context, list()).await.unwrap().len(), 0);
}

fn errors(written: &document::op::Written) -> Vec<(usize, Code)> {
    written.errors.iter().map(|error| (error.index, error.error.code())).collect()
}

fn plain(doc: Option<&Doc<'static>>) -> Option<Document> {
    doc.map(|doc| Document::try_from(doc).unwrap())
}

fn number(value: Option<&Bson>) -> Option<i64> {
    value.and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()))
}

trait FromId {
    fn from_id(id: &document::Value<'static>) -> Bson;
}

impl FromId for Bson {
    fn from_id(id: &document::Value<'static>) -> Bson {
        let mut writer = document::DocWriter::new();
        writer.append("_id", id);
        Document::try_from(&writer.finish()).unwrap().remove("_id").unwrap()
    }
}
