//! What clients of an older version read.

use super::{Older, filled, ids, sorted};
use crate::doors::{At, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(
    documents_are_shown_in_their_version,
    every_read_knows_the_version,
    cursors_go_on_under_the_name,
    expressions_are_sent_as_they_are,
);

fn documents_are_shown_in_their_version(at: At) {
    let door = filled(at, "older_shown");
    let mut first = Older::of(&door, "1");
    let shown = |id: i32, name: &str, nick: &str, active: bool| {
        let (phone, mail) = (id.to_string(), format!("{nick}@x"));
        doc! { "_id": id, "active": active, "mail": mail, "name": name, "nick": nick, "phone": phone, "v": 1 }
    };
    let all = vec![shown(1, "Ada L", "a", true), shown(2, "Bob M", "b", true), shown(3, "Cyd N", "c", false)];
    assert_eq!(first.find(doc! {}), all);
    let mut second = Older::of(&door, "2");
    let phones: Vec<Bson> = second.find(doc! {}).iter().map(|row| row.get("phone").unwrap().clone()).collect();
    let phone = |number: &str, code: &str| Bson::from(doc! { "number": number, "countryCode": code });
    let of = |phone: &Bson| Bson::from(sorted(phone.as_document().unwrap().clone()));
    let expected = [phone("1", "+1"), phone("2", "+44"), phone("3", "+49")];
    assert_eq!(phones.iter().map(of).collect::<Vec<_>>(), expected.iter().map(of).collect::<Vec<_>>());
    // The newest version is the database.
    let mut third = Older::of(&door, "3");
    assert_eq!(third.find(doc! {}), first.newest(doc! {}));
    door.finish();
}

fn every_read_knows_the_version(at: At) {
    let door = filled(at, "older_reads");
    let mut client = door.client();
    door.insert(
        &mut client,
        "posts",
        vec![doc! { "_id": 1, "by": "a@x", "body": "hello" }, doc! { "_id": 2, "by": "c@x", "body": "bye" }],
    );
    door.insert(&mut client, "notes", vec![doc! { "_id": 1, "of": 3 }]);
    let mut older = Older::of(&door, "1");
    for (filter, expected) in [
        (doc! { "phone": "2" }, vec![2]),
        (doc! { "phone": { "$gte": "2" } }, vec![2, 3]),
        (doc! { "phone": { "$ne": "2" } }, vec![1, 3]),
        (doc! { "name": "Cyd N" }, vec![3]),
        (doc! { "name": { "$regex": "^[AB]" } }, vec![1, 2]),
        (doc! { "mail": { "$in": ["a@x", "c@x"] } }, vec![1, 3]),
        (doc! { "nick": "d" }, vec![]),
        (doc! { "nick": "c" }, vec![3]),
        (doc! { "v": 1 }, vec![1, 2, 3]),
        (doc! { "v": 3 }, vec![]),
        (doc! { "email": { "$exists": true } }, vec![]),
        (doc! { "$expr": { "$eq": ["$phone", "3"] } }, vec![3]),
        (doc! { "active": false, "phone": "3" }, vec![3]),
        (doc! { "$or": [{ "phone": "1" }, { "_id": 3 }] }, vec![1, 3]),
    ] {
        assert_eq!(ids(&older.find(filter.clone())), expected, "{filter}");
        let count = older.must(doc! { "count": "users", "query": filter.clone() });
        assert_eq!(count.get_i32("n").unwrap(), i32::try_from(expected.len()).unwrap(), "{filter}");
        let matched = older.rows(doc! { "aggregate": "users", "pipeline": [{ "$match": filter.clone() }, { "$sort": { "_id": 1 } }], "cursor": {} });
        assert_eq!(ids(&matched), expected, "{filter}");
    }
    let sorted = older.rows(doc! { "find": "users", "sort": { "name": -1 }, "skip": 1, "limit": 1, "projection": { "name": 1, "phone": 1 } });
    assert_eq!(sorted, [doc! { "_id": 2, "name": "Bob M", "phone": "2" }]);
    let some = older.rows(doc! { "find": "users", "filter": { "phone": { "$gt": "0" } }, "sort": { "_id": 1 }, "skip": 1, "limit": 1, "projection": { "phone": 1 } });
    assert_eq!(some, [doc! { "_id": 2, "phone": "2" }]);
    let distinct = older.must(doc! { "distinct": "users", "key": "phone" });
    assert_eq!(distinct.get_array("values").unwrap(), &["1", "2", "3"].map(Bson::from).to_vec());
    let grouped = older.rows(doc! { "aggregate": "users", "pipeline": [
    { "$group": { "_id": { "$substrCP": ["$mail", 1, 2] }, "n": { "$sum": 1 }, "phones": { "$push": "$phone" } } },
    { "$set": { "phones": { "$size": "$phones" } } } ], "cursor": {} });
    assert_eq!(grouped, [doc! { "_id": "@x", "n": 3, "phones": 3 }]);
    // What is joined is of the same version.
    let joined = older.rows(doc! { "aggregate": "posts", "pipeline": [
    { "$lookup": { "from": "users", "localField": "by", "foreignField": "mail", "as": "who" } },
    { "$project": { "text": 1, "who.phone": 1 } }, { "$sort": { "_id": 1 } } ], "cursor": {} });
    assert_eq!(
        joined,
        [
            doc! { "_id": 1, "text": "hello", "who": [{ "phone": "1" }] },
            doc! { "_id": 2, "text": "bye", "who": [{ "phone": "3" }] },
        ]
    );
    let joined = older.rows(doc! { "aggregate": "notes", "pipeline": [
        { "$lookup": { "from": "users", "localField": "of", "foreignField": "_id", "as": "who", "pipeline": [{ "$project": { "name": 1 } }] } },
        { "$unionWith": { "coll": "users", "pipeline": [{ "$match": { "phone": "2" } }, { "$project": { "mail": 1 } }] } },
        { "$facet": { "all": [{ "$sort": { "_id": 1 } }] } } ], "cursor": {} });
    let all = [doc! { "_id": 1, "of": 3, "who": [{ "_id": 3, "name": "Cyd N" }] }, doc! { "_id": 2, "mail": "b@x" }];
    assert_eq!(joined, [doc! { "all": all.map(Bson::from).to_vec() }]);
    let explained =
        older.must(doc! { "explain": { "find": "users", "filter": { "phone": "2" } }, "verbosity": "queryPlanner" });
    assert!(explained.contains_key("queryPlanner") || explained.contains_key("stages"), "{explained}");
    // Results are merged as documents of the version.
    older.must(doc! { "aggregate": "notes", "pipeline": [{ "$replaceWith": { "_id": 9, "phone": "9", "name": "Eve P" } }, { "$merge": { "into": "users" } }], "cursor": {} });
    assert_eq!(older.newest(doc! { "_id": 9 })[0].get_str("first").ok(), Some("Eve"));
    door.finish();
}

fn cursors_go_on_under_the_name(at: At) {
    let door = filled(at, "older_cursors");
    let mut older = Older::of(&door, "1");
    let documents: Vec<Document> =
        (100..400).map(|id| doc! { "_id": id, "phone": format!("p{id}"), "name": "X Y" }).collect();
    older.must(doc! { "insert": "users", "documents": documents });
    for first in [
        doc! { "find": "users", "filter": { "name": "X Y" }, "sort": { "_id": 1 }, "batchSize": 7 },
        doc! { "find": "users", "filter": { "name": "X Y" }, "sort": { "phone": 1 }, "batchSize": 7 },
        doc! { "aggregate": "users", "pipeline": [{ "$match": { "name": "X Y" } }, { "$sort": { "phone": 1 } }], "cursor": { "batchSize": 7 } },
    ] {
        let reply = older.must(first);
        let mut cursor = reply.get_document("cursor").unwrap().clone();
        assert_eq!(cursor.get_str("ns").unwrap(), format!("{}.users", older.db));
        let mut all: Vec<Bson> = cursor.get_array("firstBatch").unwrap().clone();
        while cursor.get_i64("id").unwrap() != 0 {
            let reply =
                older.must(doc! { "getMore": cursor.get_i64("id").unwrap(), "collection": "users", "batchSize": 50 });
            cursor = reply.get_document("cursor").unwrap().clone();
            all.extend(cursor.get_array("nextBatch").unwrap().clone());
        }
        let phones: Vec<String> =
            all.iter().map(|row| row.as_document().unwrap().get_str("phone").unwrap().to_owned()).collect();
        assert_eq!(phones, (100..400).map(|id| format!("p{id}")).collect::<Vec<_>>());
    }
    let reply = older.must(doc! { "find": "users", "batchSize": 1 });
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let killed = older.must(doc! { "killCursors": "users", "cursors": [id] });
    assert_eq!(killed.get_array("cursorsKilled").unwrap(), &vec![Bson::from(id)]);
    door.finish();
}

/// A filter that is made of parts of a client's says the same wherever it is evaluated.
fn expressions_are_sent_as_they_are(at: At) {
    let door = filled(at, "older_expressions");
    for (filter, expected) in [
        (doc! { "$nor": [{ "$expr": { "$eq": ["$email", "a@x"] } }] }, vec![2, 3]),
        (doc! { "$nor": [{ "$expr": { "$eq": ["$missing", 1] } }] }, vec![1, 2, 3]),
        (doc! { "$or": [{ "$expr": { "$eq": ["$email", "c@x"] } }, { "phone.number": "1" }] }, vec![1, 3]),
        (doc! { "phone.number": { "$gt": "1" }, "$expr": { "$ne": ["$first", "Cyd"] } }, vec![2]),
    ] {
        let found = door.rows(doc! { "find": "users", "filter": filter.clone(), "sort": { "_id": 1 } });
        assert_eq!(ids(&found), expected, "{filter}");
        let counted = door.must(doc! { "count": "users", "query": filter.clone() });
        assert_eq!(counted.get_i32("n").unwrap() as usize, expected.len(), "{filter}");
    }
    let mut older = Older::of(&door, "1");
    assert_eq!(ids(&older.find(doc! { "$nor": [{ "$expr": { "$eq": ["$mail", "a@x"] } }] })), [2, 3]);
    door.finish();
}
