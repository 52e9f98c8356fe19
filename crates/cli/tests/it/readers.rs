//! A client that is between two batches when its collection is brought into buckets, and back, reads on to the end.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{DateTime, Document, doc};
use judge::client::Client;
use std::time::Duration;

const READINGS: usize = 300;

fn reads_on(serving: &Serving, db: &str) {
    let mut client = serving.client();
    let reading = |n: usize| doc! { "s": 1, "ts": DateTime::from_millis(i64::try_from(n).unwrap() * 60_000) };
    let readings: Vec<Document> = (0..READINGS).map(reading).collect();
    client.must(&doc! { "insert": "readings", "documents": readings, "$db": db }).unwrap();
    let bucket = doc! { "time": "ts", "by": ["s"], "every": "hour" };
    let declaration = doc! { "database": db, "collections": { "readings": { "bucket": bucket } } };
    beside(&mut client, serving.client(), db, doc! { "pleach": "apply", "declaration": declaration, "$db": db });
    beside(&mut client, serving.client(), db, doc! { "pleach": "drop", "rule": "readings.bucket", "$db": db });
    client.must(&doc! { "dropDatabase": 1, "$db": db }).unwrap();
}

/// Reads the first batch, then the others while the collection changes its form.
fn beside(client: &mut Client, mut other: Client, db: &str, change: Document) {
    let first = client.must(&doc! { "find": "readings", "batchSize": 100, "$db": db }).unwrap();
    let mut found = rows(&first, "firstBatch").len();
    let mut cursor = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let changing = std::thread::spawn(move || other.must(&change).map(drop));
    while cursor != 0 {
        std::thread::sleep(Duration::from_millis(300));
        let next = doc! { "getMore": cursor, "collection": "readings", "batchSize": 100, "$db": db };
        let next = client.must(&next).unwrap();
        found += rows(&next, "nextBatch").len();
        cursor = next.get_document("cursor").unwrap().get_i64("id").unwrap();
    }
    assert_eq!(found, READINGS);
    changing.join().unwrap().unwrap();
    let counted = client.must(&doc! { "count": "readings", "query": { "s": 1 }, "$db": db }).unwrap();
    assert_eq!(counted.get_i32("n").unwrap(), i32::try_from(READINGS).unwrap());
}

#[test]
fn on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    reads_on(&Serving::start(&["--data", folder.path().to_str().unwrap()]), "reads");
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn in_front_of_a_real_mongodb() {
    let uri = judge::real::uri().unwrap();
    reads_on(&Serving::upstream(&uri, &[]), &database("readers"));
}
