//! Reads of collections with rules in front of a real MongoDB (SEMANTICS R24): they pass untouched, with any read concern and
//! preference, and what a real server alone can do works on them.

use crate::mongod::until;
use crate::serving::Serving;
use crate::upstream::{database, lasting, rows, session};
use bson::{Bson, Document, doc};
use judge::client::Client;

/// Posts with counts and a copy, likes in two languages.
fn fill(client: &mut Client, db: &str) {
    let rules = doc! { "posts": { "computed": { "likeCount": { "count": "likes", "by": "postId" } } },
    "likes": { "extended_reference": { "post": { "from": "posts", "by": "postId", "fields": ["title"] } } } };
    let declaration = doc! { "database": db, "collections": rules };
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": db }).unwrap();
    let posts: Vec<Document> = (0..5).map(|id| doc! { "_id": id, "title": format!("T{id}") }).collect();
    client.must(&doc! { "insert": "posts", "documents": posts, "$db": db }).unwrap();
    let like =
        |id: i32| doc! { "_id": id, "postId": id % 5, "by": if id % 2 == 0 { "Ärger" } else { "argon" }, "n": id };
    let likes: Vec<Document> = (0..40).map(like).collect();
    client.must(&doc! { "insert": "likes", "documents": likes, "$db": db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn reads_of_collections_with_rules_pass_untouched() {
    let uri = judge::real::uri().unwrap();
    let db = database("reads");
    let proxy = Serving::upstream(&uri, &[]);
    let (mut through, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    fill(&mut through, &db);
    let secondary = doc! { "mode": "secondaryPreferred", "tags": [{}] };
    let joined = doc! { "$lookup": { "from": "likes", "localField": "_id", "foreignField": "postId", "as": "likes" } };
    let german = doc! { "locale": "de", "strength": 1 };
    for command in [
        doc! { "find": "posts", "filter": { "likeCount": 8 }, "sort": { "_id": -1 } },
        doc! { "find": "posts", "filter": { "likeCount": { "$gt": 3 } }, "readConcern": { "level": "majority" } },
        doc! { "find": "posts", "readConcern": { "level": "linearizable" }, "maxTimeMS": 5000 },
        doc! { "find": "posts", "readConcern": { "level": "available" }, "$readPreference": { "mode": "primary" } },
        doc! { "find": "likes", "filter": { "by": "arger" }, "collation": &german, "$readPreference": &secondary },
        // Only a real server runs it.
        doc! { "find": "likes", "filter": { "$where": "this.n % 7 == 0" }, "projection": { "post": 1 } },
        doc! { "aggregate": "posts", "pipeline": [joined], "cursor": {}, "$readPreference": &secondary },
        doc! { "aggregate": "likes", "pipeline": [{ "$sort": { "by": 1, "_id": 1 } }, { "$limit": 3 }], "cursor": {}, "collation": &german },
        doc! { "aggregate": "likes", "pipeline": [{ "$group": { "_id": "$post.title", "n": { "$sum": 1 } } }, { "$sort": { "_id": 1 } }], "cursor": {}, "readConcern": { "level": "majority" } },
        doc! { "aggregate": "posts", "pipeline": [{ "$noSuchStage": 1 }], "cursor": {} },
        doc! { "count": "likes", "query": { "post.title": "T1" }, "collation": &german, "$readPreference": &secondary },
        doc! { "distinct": "likes", "key": "by", "collation": &german },
        doc! { "listIndexes": "posts" },
        doc! { "find": "pleach.catalog", "projection": { "state": 1 } },
    ] {
        let mut command = command;
        command.insert("$db", &db);
        let (ours, theirs) = (through.command(&command).unwrap(), direct.command(&command).unwrap());
        assert_eq!(lasting(ours.document), lasting(theirs.document), "{command}");
    }
    // In a snapshot of its own, a batch at a time: the cursor is the real server's.
    let mut snapshot =
        doc! { "find": "likes", "sort": { "_id": 1 }, "batchSize": 10, "readConcern": { "level": "snapshot" } };
    snapshot.extend(doc! { "lsid": session(41), "$db": &db });
    let mut reply = through.must(&snapshot).unwrap();
    let mut seen = rows(&reply, "firstBatch");
    through.must(&doc! { "delete": "likes", "deletes": [{ "q": {}, "limit": 0 }], "$db": &db }).unwrap();
    while let id @ 1.. = reply.get_document("cursor").unwrap().get_i64("id").unwrap().unsigned_abs() {
        let more = doc! { "getMore": id.cast_signed(), "collection": "likes", "lsid": session(41), "$db": &db };
        reply = through.must(&more).unwrap();
        seen.extend(rows(&reply, "nextBatch"));
    }
    assert_eq!(seen.len(), 40);
    until("the counts are those of no likes", || {
        let posts = rows(&through.must(&doc! { "find": "posts", "$db": &db }).unwrap(), "firstBatch");
        posts.iter().all(|post| post.as_document().unwrap().get("likeCount") == Some(&Bson::Int32(0)))
    });
    through.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
