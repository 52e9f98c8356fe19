//! Batches, who may ask for the next one, and how cursors end.

use crate::client::{Client, Running};
use bson::{Document, doc};
use pleach_server::Options;
use std::time::Duration;

fn fill(client: &mut Client, count: i32) {
    let documents: Vec<Document> = (0..count).map(|id| doc! {"_id": id}).collect();
    client.run(doc! {"insert": "c", "documents": documents});
}

fn cursor(reply: &Document) -> (i64, usize) {
    let cursor = reply.get_document("cursor").unwrap_or_else(|_| panic!("{reply}"));
    let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch")).unwrap();
    (cursor.get_i64("id").unwrap(), batch.len())
}

#[test]
fn batches_are_as_large_as_asked() {
    let server = Running::start();
    let mut client = server.connect();
    fill(&mut client, 250);
    let (id, first) = cursor(&client.run(doc! {"find": "c"}));
    assert!(id != 0 && first == 101);
    assert_eq!(cursor(&client.run(doc! {"getMore": id, "collection": "c", "batchSize": 100})), (id, 100));
    assert_eq!(cursor(&client.run(doc! {"getMore": id, "collection": "c"})), (0, 49));
    assert_eq!(client.code(doc! {"getMore": id, "collection": "c"}), 43);
    let rows = [
        (doc! {"find": "c", "batchSize": 0}, (true, 0)),
        (doc! {"find": "c", "batchSize": 250}, (true, 250)),
        (doc! {"find": "c", "batchSize": 251}, (false, 250)),
        (doc! {"find": "c", "batchSize": 10, "singleBatch": true}, (false, 10)),
        (doc! {"find": "c", "batchSize": 10, "limit": 10}, (false, 10)),
    ];
    for (command, (open, count)) in rows {
        let (id, rows) = cursor(&client.run(command.clone()));
        assert_eq!((id != 0, rows), (open, count), "{command}");
    }
}

#[test]
fn a_batch_ends_at_16_megabytes() {
    let server = Running::start();
    let mut client = server.connect();
    for id in 0..5 {
        client.run(doc! {"insert": "c", "documents": [{"_id": id, "a": "x".repeat(7 << 20)}]});
    }
    let (id, first) = cursor(&client.run(doc! {"find": "c"}));
    assert_eq!(first, 2);
    assert_eq!(cursor(&client.run(doc! {"getMore": id, "collection": "c"})), (id, 2));
    assert_eq!(cursor(&client.run(doc! {"getMore": id, "collection": "c"})), (0, 1));
}

#[test]
fn a_cursor_belongs_to_its_collection_and_session() {
    let server = Running::start();
    let mut client = server.connect();
    fill(&mut client, 10);
    let session = |byte: u8| doc! {"id": bson::Uuid::from_bytes([byte; 16])};
    let (plain, _) = cursor(&client.run(doc! {"find": "c", "batchSize": 1}));
    let (owned, _) = cursor(&client.run(doc! {"find": "c", "batchSize": 1, "lsid": session(1)}));
    let rows = [
        (doc! {"getMore": plain, "collection": "other"}, 13),
        (doc! {"getMore": plain, "collection": "c", "lsid": session(1)}, 50736),
        (doc! {"getMore": owned, "collection": "c"}, 50737),
        (doc! {"getMore": owned, "collection": "c", "lsid": session(2)}, 50738),
        (doc! {"getMore": plain.wrapping_add(1), "collection": "c"}, 43),
        (doc! {"getMore": 5, "collection": "c"}, 14),
    ];
    for (command, code) in rows {
        assert_eq!(client.code(command.clone()), code, "{command}");
    }
    assert_eq!(cursor(&client.run(doc! {"getMore": owned, "collection": "c", "lsid": session(1)})), (0, 9));
    let killed = client.run(doc! {"killCursors": "c", "cursors": [plain, owned]});
    assert_eq!(
        killed,
        doc! {"cursorsKilled": [plain], "cursorsNotFound": [owned], "cursorsAlive": [], "cursorsUnknown": [], "ok": 1.0}
    );
}

#[test]
fn cursors_end_with_their_session_and_after_a_while() {
    let server = Running::with(Options { cursor_timeout: Duration::from_millis(10), ..Options::default() });
    let mut client = server.connect();
    fill(&mut client, 10);
    let session = doc! {"id": bson::Uuid::from_bytes([7; 16])};
    let lasting = doc! {"find": "c", "batchSize": 1, "noCursorTimeout": true, "lsid": session.clone()};
    let (lasting, _) = cursor(&client.run(lasting));
    let (short, _) = cursor(&client.run(doc! {"find": "c", "batchSize": 1}));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(client.code(doc! {"getMore": short, "collection": "c"}), 43);
    let more = doc! {"getMore": lasting, "collection": "c", "batchSize": 1, "lsid": session.clone()};
    assert_eq!(cursor(&client.run(more.clone())), (lasting, 1));
    client.run(doc! {"endSessions": [session]});
    assert_eq!(client.code(more), 43);
}

#[test]
fn lists_come_in_batches_too() {
    let server = Running::start();
    let mut client = server.connect();
    for name in ["a", "b", "c"] {
        client.run(doc! {"insert": name, "documents": [{"_id": 1}]});
    }
    let (id, first) = cursor(&client.run(doc! {"listCollections": 1, "cursor": {"batchSize": 2}}));
    assert!(id != 0 && first == 2);
    assert_eq!(cursor(&client.run(doc! {"getMore": id, "collection": "$cmd.listCollections"})), (0, 1));
    assert_eq!(cursor(&client.run(doc! {"listCollections": 1})), (0, 3));
}
