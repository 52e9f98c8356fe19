//! `profile`, `system.profile`, `top`, `$collStats` and `$indexStats` on the embedded store: what operations cost is told as MongoDB tells it.

use crate::doors::{At, Door};
use crate::serving::{Serving, pleach};
use bson::{Document, doc};

fn door(name: &str) -> Door {
    let door = At::Embedded.door(name);
    let documents: Vec<Document> = (0..10).map(|at| doc! { "_id": at, "k": at % 3 }).collect();
    door.must(doc! { "insert": "a", "documents": documents });
    door
}

fn entries(door: &Door) -> Vec<Document> {
    door.rows(doc! { "find": "system.profile" })
}

#[test]
fn level_2_keeps_every_operation() {
    let door = door("level2");
    assert_eq!(door.must(doc! { "profile": 2 }).get_i32("was").unwrap(), 0);
    door.must(doc! { "find": "a", "filter": { "k": 1 }, "limit": 2 });
    door.must(doc! { "find": "a", "filter": { "_id": 1 } });
    door.must(doc! { "update": "a", "updates": [{ "q": { "k": 2 }, "u": { "$inc": { "x": 1 } }, "multi": true }] });
    door.must(doc! { "delete": "a", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] });
    door.must(doc! { "insert": "a", "documents": [{ "_id": 77 }] });
    door.must(doc! { "count": "a", "query": { "k": 1 } });
    door.ask(doc! { "find": "a", "filter": { "$nope": 1 } });
    let all = entries(&door);
    let ops: Vec<&str> = all.iter().map(|entry| entry.get_str("op").unwrap()).collect();
    assert_eq!(ops, ["query", "query", "update", "remove", "insert", "command", "query"]);
    let (find, by_id, update, remove, insert, failed) = (&all[0], &all[1], &all[2], &all[3], &all[4], &all[6]);
    assert_eq!(find.get_str("ns").unwrap(), &*format!("{}.a", door.db));
    assert_eq!((find.get_i32("keysExamined").unwrap(), find.get_i32("docsExamined").unwrap()), (0, 5));
    assert_eq!((find.get_i32("nreturned").unwrap(), find.get_str("planSummary").unwrap()), (2, "COLLSCAN"));
    assert_eq!(find.get_document("command").unwrap().get_document("filter").unwrap(), &doc! { "k": 1 });
    assert_eq!((by_id.get_i32("keysExamined").unwrap(), by_id.get_i32("docsExamined").unwrap()), (1, 1));
    assert_eq!(by_id.get_str("planSummary").unwrap(), "IDHACK");
    assert_eq!((update.get_i32("nMatched").unwrap(), update.get_i32("nModified").unwrap()), (3, 3));
    assert_eq!(update.get_document("command").unwrap().get_document("q").unwrap(), &doc! { "k": 2 });
    assert_eq!((remove.get_i32("ndeleted").unwrap(), insert.get_i32("ninserted").unwrap()), (1, 1));
    assert_eq!(insert.get_document("command").unwrap().get_array("documents").unwrap().len(), 1);
    assert_eq!((failed.get_i32("errCode").unwrap(), failed.get_str("errName").unwrap()), (2, "BadValue"));
    // It is a collection: sorted, projected, counted, grouped, listed, dropped.
    let last = door.rows(
        doc! { "find": "system.profile", "sort": { "$natural": -1 }, "limit": 1, "projection": { "op": 1, "ns": 1 } },
    );
    assert_eq!(last[0].keys().collect::<Vec<_>>(), ["op", "ns"]);
    assert!(door.must(doc! { "count": "system.profile", "query": { "op": "query" } }).get_i32("n").unwrap() >= 3);
    let grouped = doc! { "aggregate": "system.profile", "cursor": {}, "pipeline": [{ "$group": { "_id": "$op" } }, { "$count": "n" }] };
    assert!(door.rows(grouped)[0].get_i32("n").unwrap() >= 4);
    let refused = door.ask(doc! { "drop": "system.profile" });
    assert_eq!(refused.get_str("errmsg").unwrap(), "turn off profiling before dropping system.profile collection");
    door.must(doc! { "profile": 0 });
    door.must(doc! { "drop": "system.profile" });
    assert_eq!(entries(&door), []);
    door.finish();
}

#[test]
fn an_entry_says_what_was_written_and_what_opened_a_cursor() {
    let door = door("written");
    door.must(doc! { "profile": 2 });
    let mut client = door.client();
    let opened = door.run(&mut client, doc! { "find": "a", "filter": { "k": { "$gte": 0 } }, "batchSize": 2 });
    let cursor = opened.get_document("cursor").unwrap().get_i64("id").unwrap();
    for _ in 0..2 {
        door.run(&mut client, doc! { "getMore": cursor, "collection": "a", "batchSize": 2 });
    }
    door.run(&mut client, doc! { "findAndModify": "a", "query": { "_id": 1 }, "update": { "$set": { "x": 1 } } });
    door.run(&mut client, doc! { "findAndModify": "a", "query": { "_id": 2 }, "remove": true });
    door.run(
        &mut client,
        doc! { "findAndModify": "a", "query": { "_id": 99 }, "update": { "$set": { "x": 1 } }, "upsert": true },
    );
    door.ask(doc! { "insert": "a", "documents": [{ "_id": 500 }, { "_id": 1 }, { "_id": 501 }] });
    let all = entries(&door);
    let figures = |at: usize| -> Vec<(String, i32)> {
        let names = ["ninserted", "nMatched", "nModified", "nUpserted", "ndeleted"];
        names.iter().filter_map(|name| Some(((*name).to_owned(), all[at].get_i32(name).ok()?))).collect()
    };
    let named = |figures: &[(&str, i32)]| -> Vec<(String, i32)> {
        figures.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    for more in &all[1..3] {
        let original = more.get_document("originatingCommand").unwrap();
        assert_eq!(original.get_document("filter").unwrap(), &doc! { "k": { "$gte": 0 } });
    }
    assert_eq!(figures(3), named(&[("nMatched", 1), ("nModified", 1), ("nUpserted", 0)]));
    assert_eq!(figures(4), named(&[("ndeleted", 1)]));
    assert_eq!(figures(5), named(&[("nMatched", 0), ("nModified", 0), ("nUpserted", 1)]));
    assert_eq!(figures(6), named(&[("ninserted", 1)]));
    door.finish();
}

#[test]
fn level_1_keeps_what_is_slow_or_what_a_filter_says() {
    let door = door("level1");
    door.must(doc! { "profile": 1, "slowms": 60_000 });
    door.must(doc! { "find": "a" });
    assert_eq!(entries(&door), []);
    door.must(doc! { "profile": 1, "slowms": 0, "sampleRate": 0.0 });
    door.must(doc! { "find": "a" });
    assert_eq!(entries(&door), []);
    door.must(doc! { "profile": 1, "slowms": 60_000, "sampleRate": 1.0, "filter": { "docsExamined": { "$gte": 10 } } });
    door.must(doc! { "find": "a", "filter": { "_id": 1 } });
    door.must(doc! { "find": "a", "filter": { "k": 1 } });
    let kept = entries(&door);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].get_document("command").unwrap().get_document("filter").unwrap(), &doc! { "k": 1 });
    door.finish();
}

#[test]
fn slow_operations_are_logged_without_their_values() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = pleach();
    command.args(["serve", "--port", "0", "--log", "info"]).stderr(file.reopen().unwrap());
    let serving = Serving::of(&mut command);
    let ask = |command: Document| serving.client().must(&command).unwrap();
    ask(doc! { "insert": "a", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "slow" });
    ask(doc! { "profile": 0, "slowms": 0, "$db": "slow" });
    ask(doc! { "find": "a", "filter": { "name": "a secret" }, "$db": "slow" });
    ask(doc! { "profile": 0, "slowms": 60_000, "$db": "slow" });
    ask(doc! { "find": "a", "filter": { "another": 1 }, "$db": "slow" });
    serving.stop();
    let log = std::fs::read_to_string(file.path()).unwrap();
    let line = log.lines().find(|line| line.contains("slow operation") && line.contains("name $eq")).expect(&log);
    assert!(line.contains("COLLSCAN") && line.contains("documents_examined=2"), "{line}");
    assert!(!log.contains("a secret") && !log.contains("another $eq"), "{log}");
}

#[test]
fn each_collection_has_its_times() {
    let door = door("times");
    door.must(doc! { "find": "a", "batchSize": 4 });
    door.must(doc! { "count": "a" });
    door.must(doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "x": 1 } } }] });
    let stats =
        &door.rows(doc! { "aggregate": "a", "cursor": {}, "pipeline": [{ "$collStats": { "latencyStats": {} } }] })[0];
    let of = |kind: &str| stats.get_document("latencyStats").unwrap().get_document(kind).unwrap().clone();
    assert_eq!((of("reads").get_i64("ops").unwrap(), of("writes").get_i64("ops").unwrap()), (2, 2));
    assert!(of("writes").get_i64("latency").unwrap() > 0);
    let top = door.client().must(&doc! { "top": 1, "$db": "admin" }).unwrap();
    let own = top.get_document("totals").unwrap().get_document(format!("{}.a", door.db)).unwrap();
    let count = |kind: &str| own.get_document(kind).unwrap().get_i64("count").unwrap();
    assert_eq!((count("queries"), count("insert"), count("update"), count("writeLock")), (1, 1, 1, 2));
    door.finish();
}

#[test]
fn each_index_has_its_uses() {
    let door = door("uses");
    door.must(doc! { "createIndexes": "a", "indexes": [{ "key": { "k": 1 }, "name": "k_1" }] });
    for k in 0..3 {
        door.must(doc! { "find": "a", "filter": { "k": k } });
    }
    door.must(doc! { "find": "a", "filter": { "_id": 1 } });
    door.must(doc! { "delete": "a", "deletes": [{ "q": { "k": 9 }, "limit": 0 }] });
    let stats = door
        .rows(doc! { "aggregate": "a", "cursor": {}, "pipeline": [{ "$indexStats": {} }, { "$sort": { "name": 1 } }] });
    let uses = |at: usize| {
        let accesses = stats[at].get_document("accesses").unwrap();
        assert!(accesses.get_datetime("since").unwrap().timestamp_millis() > 1_600_000_000_000);
        (stats[at].get_str("name").unwrap().to_owned(), accesses.get_i64("ops").unwrap())
    };
    assert_eq!((uses(0), uses(1)), (("_id_".into(), 1), ("k_1".into(), 4)));
    door.finish();
}
