//! Sessions that ask for an order of things: what a client was told by a forwarded command holds for a planned one, too.

use crate::serving::Serving;
use crate::upstream::{database, rows, session};
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;

fn declare(client: &mut Client, db: &str) {
    let bucket = doc! { "time": "ts", "by": ["s"], "every": "day" };
    let declaration = doc! { "database": db, "collections": { "readings": { "bucket": bucket } } };
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": db }).unwrap();
}

fn reading(number: i32) -> Document {
    doc! { "_id": number, "s": 1, "ts": DateTime::from_millis(i64::from(number)) }
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn sessions_that_ask_for_an_order_get_it() {
    let uri = judge::real::uri().unwrap();
    let (proxy, db) = (Serving::upstream(&uri, &[]), database("causal"));
    let mut client = proxy.client();
    declare(&mut client, &db);
    a_planned_read_comes_after_a_forwarded_write(&mut client, &db);
    reads_of_a_snapshot_session_are_of_one_moment(&mut client, &db);
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

fn a_planned_read_comes_after_a_forwarded_write(client: &mut Client, db: &str) {
    for number in 0..5 {
        client.must(&doc! { "insert": "readings", "documents": [reading(number)], "$db": db }).unwrap();
        let insert = doc! { "insert": "plain", "documents": [{ "_id": number }], "lsid": session(7), "$db": db };
        let told = client.must(&insert).unwrap();
        let find = doc! {
            "find": "readings", "lsid": session(7), "$db": db,
            "readConcern": { "afterClusterTime": told.get("operationTime").unwrap() },
            "$clusterTime": told.get("$clusterTime").unwrap(),
        };
        assert_eq!(rows(&client.must(&find).unwrap(), "firstBatch").len(), usize::try_from(number).unwrap() + 1);
    }
}

fn reads_of_a_snapshot_session_are_of_one_moment(client: &mut Client, db: &str) {
    let read = |mut command: Document, at: Option<&Bson>| {
        let mut concern = doc! { "level": "snapshot" };
        concern.extend(at.map(|at| ("atClusterTime".to_owned(), at.clone())));
        command.extend(doc! { "lsid": session(8), "readConcern": concern, "$db": db });
        command
    };
    let first = client.must(&read(doc! { "find": "readings" }, None)).unwrap();
    let at = first.get_document("cursor").unwrap().get("atClusterTime").unwrap().clone();
    client.must(&doc! { "insert": "readings", "documents": [reading(99)], "$db": db }).unwrap();
    let again = client.must(&read(doc! { "find": "readings" }, Some(&at))).unwrap();
    assert_eq!(rows(&again, "firstBatch").len(), 5);
    let counted = read(doc! { "aggregate": "readings", "pipeline": [{ "$count": "n" }], "cursor": {} }, Some(&at));
    assert_eq!(rows(&client.must(&counted).unwrap(), "firstBatch"), [Bson::from(doc! { "n": 5 })]);
    let distinct = client.must(&read(doc! { "distinct": "readings", "key": "_id" }, Some(&at))).unwrap();
    assert_eq!(distinct.get_array("values").unwrap().len(), 5);
    assert_eq!(distinct.get("atClusterTime"), Some(&at));
}
