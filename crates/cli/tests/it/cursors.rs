//! Cursors that are opened here and cursors of a MongoDB behind, side by side: none is taken for the other.

use crate::doors::{At, at_each_door};
use bson::{Document, doc};

at_each_door!(each_cursor_is_read_and_closed_where_it_is,);

/// The reserved top byte makes them negative.
fn is_own(id: i64) -> bool {
    id.to_be_bytes()[0] == 0xB5
}

fn each_cursor_is_read_and_closed_where_it_is(at: At) {
    let door = at.door("cursors");
    door.apply(doc! { "readings": { "bucket": { "time": "ts", "by": ["s"], "every": "hour", "at_most": 3 } } });
    let reading = |n: i64| doc! { "_id": n, "s": n % 7, "ts": bson::DateTime::from_millis(n * 60_000) };
    let documents: Vec<Document> = (0..300).map(reading).collect();
    door.must(doc! { "insert": "readings", "documents": &documents });
    door.must(doc! { "insert": "plain", "documents": documents });
    let open = |collection: &str| {
        let reply = door.must(doc! { "find": collection, "batchSize": 5 });
        reply.get_document("cursor").unwrap().get_i64("id").unwrap()
    };
    let more = |collection: &str, id: i64| door.ask(doc! { "getMore": id, "collection": collection, "batchSize": 5 });
    let (planned, passed) = (open("readings"), open("plain"));
    assert!(is_own(planned), "{planned}");
    assert_eq!(is_own(passed), !door.is_real(), "{passed}");
    for (collection, id) in [("readings", planned), ("plain", passed)] {
        let reply = more(collection, id);
        let batch = reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap();
        assert_eq!(batch.len(), 5, "{reply}");
    }
    // One list for both, and for some that nobody has: one with our byte, one without.
    let unknown = [i64::from_be_bytes([0xB5, 0, 0, 0, 0, 0, 0, 1]), 7];
    let reply = door.must(doc! { "killCursors": "plain", "cursors": [planned, passed, unknown[0], unknown[1]] });
    let listed = |name: &str| {
        let mut ids: Vec<i64> = reply.get_array(name).unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    let mut both = vec![planned, passed];
    both.sort_unstable();
    assert_eq!((listed("cursorsKilled"), listed("cursorsNotFound")), (both, unknown.to_vec()), "{reply}");
    for (collection, id) in [("readings", planned), ("plain", passed), ("plain", unknown[0]), ("plain", unknown[1])] {
        assert_eq!(more(collection, id).get_i32("code").ok(), Some(43), "{collection} {id}");
    }
    door.finish();
}
