//! A text index under transactions, concurrent writers, background builds, pauses of cursors and reopening.

use super::harness::*;
use bson::{Document, doc};
use document::backend::Session;
use document::op::{AdminOp, Namespace, ReadOp};
use std::sync::Arc;

fn search(text: &str) -> Document {
    doc! { "$text": { "$search": text } }
}

fn ids(found: &[Document]) -> Vec<i32> {
    let mut ids: Vec<i32> = found.iter().map(|doc| doc.get_i32("_id").unwrap()).collect();
    ids.sort_unstable();
    ids
}

async fn texts(bench: &Bench) {
    bench.index(doc! { "t": "text" }, "t_text").await;
    let texts = [(1, "red apple"), (2, "green apples"), (3, "red pear")];
    bench.did(insert(texts.iter().map(|(id, text)| doc! { "_id": id, "t": text }).collect())).await;
}

#[test]
fn a_transaction_finds_its_own_texts_and_others_find_them_when_it_commits() {
    let bench = Bench::new();
    run(async {
        texts(&bench).await;
        let mut session = bench.begin().await;
        let change = update_op(doc! { "_id": 3 }, doc! { "$set": { "t": "red plum" } }, false, false);
        bench.write_at(&mut session, &change).await.unwrap();
        bench.write_at(&mut session, &delete_op(search("green"), true)).await.unwrap();
        bench.write_at(&mut session, &insert(vec![doc! { "_id": 4, "t": "apple plums" }])).await.unwrap();
        let inside = |text: &str| search(text);
        assert_eq!(ids(&bench.find_at(&mut session, inside("apple")).await.unwrap()), [1, 4]);
        assert_eq!(ids(&bench.find_at(&mut session, inside("plum")).await.unwrap()), [3, 4]);
        assert_eq!(ids(&bench.find_at(&mut session, inside("pear")).await.unwrap()), [0; 0]);
        assert_eq!(ids(&bench.find(search("apple")).await), [1, 2]);
        assert_eq!(ids(&bench.find(search("pear plum")).await), [3]);
        bench.commit(&mut session).await.unwrap();
        assert_eq!(ids(&bench.find(search("apple")).await), [1, 4]);
        assert_eq!(ids(&bench.find(search("plum")).await), [3, 4]);
        assert_eq!(ids(&bench.find(search("pear")).await), [0; 0]);
    });
}

#[test]
fn an_aborted_transaction_leaves_no_entries() {
    let bench = Bench::new();
    run(async {
        texts(&bench).await;
        let mut session = bench.begin().await;
        bench.write_at(&mut session, &insert(vec![doc! { "_id": 4, "t": "apple" }])).await.unwrap();
        bench.write_at(&mut session, &delete_op(search("apple"), true)).await.unwrap();
        session.transaction.take().unwrap().abort();
        assert_eq!(ids(&bench.find(search("apple")).await), [1, 2]);
        valid(&bench).await;
    });
}

/// What `validate` says of the collection: every entry belongs to a document, every document has its entries.
async fn valid(bench: &Bench) {
    let told = bench.admin(AdminOp::Validate { ns: ns(), full: true }).await.unwrap();
    assert!(told[0].get_bool("valid").unwrap(), "{told:?}");
}

#[test]
fn entries_are_there_after_opening_and_after_a_rename() {
    let bench = Bench::new();
    run(texts(&bench));
    let bench = bench.reopen();
    run(async {
        assert_eq!(ids(&bench.find(search("apples -green")).await), [1]);
        let to = Namespace::new("db", "d");
        bench.admin(AdminOp::Rename { from: ns(), to: to.clone(), drop_target: false }).await.unwrap();
        let found = bench.read(&mut Session::default(), ReadOp::Find(testing::find(to, search("pear"))), 10).await;
        assert_eq!(ids(&found.unwrap()), [3]);
    });
}

#[test]
fn a_large_collection_is_indexed_while_others_write() {
    let bench = Arc::new(Bench::new());
    run(async {
        let text = |id: i32| format!("word{} common {}", id % 10, if id % 2 == 0 { "even" } else { "odd" });
        for part in 0..3 {
            let documents = (part * 1_000..(part + 1) * 1_000).map(|id| doc! { "_id": id, "t": text(id) });
            bench.did(insert(documents.collect())).await;
        }
        let writer = {
            let bench = bench.clone();
            tokio::spawn(async move {
                for id in 3_000..3_100 {
                    bench.did(insert(vec![doc! { "_id": id, "t": text(id) }])).await;
                    let change = doc! { "$set": { "t": "changed" } };
                    bench.did(update_op(doc! { "_id": id - 3_000 }, change, false, false)).await;
                }
            })
        };
        bench.index(doc! { "t": "text" }, "t_text").await;
        writer.await.unwrap();
        assert_eq!(bench.find(search("changed")).await.len(), 100);
        assert_eq!(bench.find(search("common")).await.len(), 3_000);
        assert_eq!(bench.find(search("word3 -odd")).await.len(), 0);
        assert_eq!(bench.find(search("word3 -even")).await.len(), 300);
        valid(&bench).await;
    });
}

#[test]
fn a_cursor_that_paused_gives_no_document_that_has_changed_meanwhile() {
    let bench = Bench::new();
    run(async {
        texts(&bench).await;
        bench.did(insert((10..40).map(|id| doc! { "_id": id, "t": "apple juice juice" }).collect())).await;
        let mut op = find_op(search("apple juice"));
        op.sort = Some(document::op::SortSpec { keys: vec![document::op::SortKey::by_score()] });
        let mut session = Session::default();
        let mut cursor =
            document::backend::Backend::read(&bench.engine, &mut session, &context(), ReadOp::Find(op)).await.unwrap();
        let limit = document::backend::BatchLimit { documents: 5, bytes: 1 << 20 };
        let first = cursor.next(&mut session, &context(), limit).await.unwrap();
        assert_eq!(first.documents.len(), 5);
        bench.did(update_op(doc! { "_id": { "$gte": 10 } }, doc! { "$set": { "t": "milk" } }, true, false)).await;
        bench.did(delete_op(doc! { "_id": 2 }, false)).await;
        let limit = document::backend::BatchLimit { documents: 100, bytes: 1 << 20 };
        let rest = cursor.next(&mut session, &context(), limit).await.unwrap();
        let rest: Vec<Document> = rest.documents.iter().map(|doc| Document::try_from(doc).unwrap()).collect();
        assert_eq!(ids(&rest), [1]);
    });
}

#[test]
fn two_writers_that_search_change_a_document_once() {
    let bench = Arc::new(Bench::new());
    run(async {
        texts(&bench).await;
        let change = || update_op(search("apple"), doc! { "$set": { "t": "peach" }, "$inc": { "n": 1 } }, true, false);
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let bench = bench.clone();
                tokio::spawn(async move { bench.did(change()).await.modified })
            })
            .collect();
        let mut modified = 0;
        for writer in writers {
            modified += writer.await.unwrap();
        }
        assert_eq!(modified, 2);
        assert!(bench.find(search("peach")).await.iter().all(|doc| doc.get_i32("n").unwrap() == 1));
        valid(&bench).await;
    });
}
