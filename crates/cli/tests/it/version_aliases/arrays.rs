//! Clients of an older version and an array that overflows: their conditions and updates are about all its items, under the name that
//! the array has in their version (SEMANTICS R18, R19, R34).

use super::{Older, ids};
use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};

at_each_door!(conditions_of_older_clients_see_all_items, updates_of_older_clients_are_about_all_items,);

/// One name of the array for all versions, and another for the first.
const NAMES: [(&str, &str); 2] = [("same", "followers"), ("renamed", "fans")];

/// A document with items in the overflow, and one without.
fn door(at: At, name: &str, first: &str) -> Door {
    let door = at.door(&format!("older_{name}"));
    let mut steps = vec![
        doc! { "nest": { "phone": { "into": "phone.number", "with": { "phone.code": "+1" } } } },
        doc! { "rename": { "mail": "email" } },
    ];
    if first != "followers" {
        steps.push(doc! { "rename": { first: "followers" } });
    }
    door.apply(doc! { "users": {
        "versions": { "field": "v", "migrate": { "background": false }, "steps": steps },
        "outlier": { "followers": { "keep": 2, "overflow": "more", "owner": "u", "item": "f" } },
    } });
    fill(&door, first);
    door
}

fn fill(door: &Door, first: &str) {
    door.must(doc! { "delete": "users", "deletes": [{ "q": {}, "limit": 0 }] });
    Older::of(door, "1").must(doc! { "insert": "users", "documents": [
        { "_id": 1, "phone": "1", "mail": "z", first: [1, 2, 3, 4] },
        { "_id": 2, "phone": "2", "mail": "a", first: [1] },
    ] });
}

/// All items of the first document.
fn items(door: &Door) -> Vec<i32> {
    let find = doc! { "find": "users.followers", "filter": { "u": 1 }, "sort": { "index": 1 } };
    door.rows(find).iter().map(|row| row.get_i32("f").unwrap()).collect()
}

fn conditions_of_older_clients_see_all_items(at: At) {
    for (name, array) in NAMES {
        let door = door(at, name, array);
        let mut older = Older::of(&door, "1");
        let rows: Vec<(Document, &[i32])> = vec![
            (doc! { array: 4 }, &[1]),
            (doc! { array: 4, "phone": "1" }, &[1]),
            (doc! { array: 4, "phone": "2" }, &[]),
            (doc! { "$or": [{ array: 4 }, { "phone": "2" }] }, &[1, 2]),
            (doc! { "$nor": [{ array: 4 }, { "phone": "7" }] }, &[2]),
            (doc! { array: { "$ne": 4 }, "mail": { "$exists": true } }, &[2]),
            (doc! { array: { "$nin": [4, 9] } }, &[2]),
            (doc! { array: { "$size": 4 }, "phone": { "$in": ["1", "2"] } }, &[1]),
            (doc! { array: { "$all": [1, 4] } }, &[1]),
            (doc! { array: { "$elemMatch": { "$gt": 2, "$lt": 4 } }, "phone": "1" }, &[1]),
            (doc! { array: { "$exists": true } }, &[1, 2]),
        ];
        for (filter, expected) in rows {
            assert_eq!(ids(&older.find(filter.clone())), expected, "{filter}");
            let reply = older.must(doc! { "count": "users", "query": filter.clone() });
            assert_eq!(reply.get_i32("n").unwrap() as usize, expected.len(), "count of {filter}");
            let stages = [
                doc! { "$match": filter.clone() },
                doc! { "$sort": { "phone": 1 } },
                doc! { "$project": { "phone": 1 } },
            ];
            let found = older.rows(doc! { "aggregate": "users", "pipeline": stages.to_vec(), "cursor": {} });
            assert_eq!(ids(&found), expected, "pipeline with {filter}");
            let reply = older.must(doc! { "distinct": "users", "key": "phone", "query": filter.clone() });
            assert_eq!(reply.get_array("values").unwrap().len(), expected.len(), "distinct of {filter}");
        }
        let stages = vec![
            doc! { "$match": { array: 4, "phone": "1", "$expr": { "$eq": ["$phone", "$$wanted"] } } },
            doc! { "$project": { "wanted": "$$wanted" } },
        ];
        let with_let = doc! { "aggregate": "users", "pipeline": stages, "cursor": {}, "let": { "wanted": "1" } };
        assert_eq!(older.rows(with_let), [doc! { "_id": 1, "wanted": "1" }]);
        let by_mail = doc! { "find": "users", "filter": { array: 1 }, "sort": { "mail": 1 } };
        assert_eq!(ids(&older.rows(by_mail)), [2, 1]);
        // What no condition names is not deleted, and what one names is.
        let delete = |q: Document| doc! { "delete": "users", "deletes": [{ "q": q, "limit": 0 }] };
        let reply = older.must(delete(doc! { "$nor": [{ array: 4 }, { "phone": "2" }] }));
        assert_eq!(reply.get_i32("n").unwrap(), 0, "{reply}");
        let update =
            doc! { "q": { "$or": [{ array: 4 }, { "phone": "2" }] }, "u": { "$set": { "seen": 1 } }, "multi": true };
        let reply = older.must(doc! { "update": "users", "updates": [update] });
        assert_eq!(reply.get_i32("nModified").unwrap(), 2, "{reply}");
        let reply = older.must(delete(doc! { array: 4, "phone": "1" }));
        assert_eq!(reply.get_i32("n").unwrap(), 1, "{reply}");
        assert_eq!(items(&door), [] as [i32; 0]);
        door.finish();
    }
}

fn updates_of_older_clients_are_about_all_items(at: At) {
    for (name, array) in NAMES {
        let door = door(at, &format!("{name}_items"), array);
        let mut older = Older::of(&door, "1");
        let of = |operator: &str, argument: bson::Bson| doc! { operator: { array: argument } };
        let with_phone = |mut update: Document| {
            let set = update.get_document("$set").cloned().unwrap_or_default();
            update.insert("$set", doc! { "phone": "9" }.into_iter().chain(set).collect::<Document>());
            update
        };
        let rows: Vec<(Document, Vec<Document>, &[i32])> = vec![
            (of("$push", 5.into()), vec![], &[1, 2, 3, 4, 5]),
            (of("$push", bson::bson!({ "$each": [5, 6] })), vec![], &[1, 2, 3, 4, 5, 6]),
            (of("$addToSet", 4.into()), vec![], &[1, 2, 3, 4]),
            (of("$pull", bson::bson!({ "$in": [1, 4] })), vec![], &[2, 3]),
            (of("$pop", 1.into()), vec![], &[1, 2, 3]),
            (of("$set", bson::bson!([9, 8, 7])), vec![], &[9, 8, 7]),
            (doc! { "$set": { format!("{array}.$[e]"): 9 } }, vec![doc! { "e": { "$gte": 3 } }], &[1, 2, 9, 9]),
            (doc! { "$inc": { format!("{array}.$[]"): 10 } }, vec![], &[11, 12, 13, 14]),
        ];
        for (update, filters, expected) in rows {
            for (update, phone) in [(update.clone(), "1"), (with_phone(update), "9")] {
                fill(&door, array);
                let one = doc! { "q": { "_id": 1, "phone": "1", array: 3 }, "u": update.clone(), "arrayFilters": filters.clone() };
                older.must(doc! { "update": "users", "updates": [one] });
                assert_eq!(items(&door), expected, "{update}");
                let now = older.find(doc! { "_id": 1 }).remove(0);
                assert_eq!(now.get_str("phone").unwrap(), phone, "{update}");
                assert_eq!(now.get_i32("followersCount").unwrap() as usize, expected.len(), "{update}");
                assert_eq!(now.get_array(array).unwrap().len(), 2, "{now}");
                assert_eq!(now.contains_key("followers"), array == "followers", "{now}");
            }
        }
        // One that is not there yet is pushed once.
        fill(&door, array);
        for item in [4, 5, 5] {
            let modify = doc! { "findAndModify": "users", "query": { "phone": "1", array: { "$ne": item } }, "update": { "$push": { array: item } }, "new": true };
            older.must(modify);
        }
        assert_eq!(items(&door), [1, 2, 3, 4, 5]);
        let audit = door.client().command(&doc! { "pleach": "audit", "$db": &door.db }).unwrap().document;
        assert_eq!(
            audit.get_i32("drifted").ok().or(audit.get_i64("drifted").ok().map(|n| n as i32)),
            Some(0),
            "{audit}"
        );
        door.finish();
    }
}
