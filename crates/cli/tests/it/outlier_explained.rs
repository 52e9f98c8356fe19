//! What `explain` says of arrays that overflow, at both doors: one statement for a push with room, a transaction past it, the question to
//! the overflow in front of a filter, and a page of all items that reads no more than the page.

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(pushes_filters_and_pages_are_explained);

fn explained(door: &Door, command: Document) -> Document {
    door.must(doc! { "pleach": "explain", "command": command })
}

fn steps(plan: &Document) -> Vec<Document> {
    plan.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap().clone()).collect()
}

fn push(id: i32) -> Document {
    doc! { "update": "users", "updates": [{ "q": { "_id": id }, "u": { "$push": { "followers": 99 } } }] }
}

/// All documents that some stage of an executed plan has looked at in one collection, at most.
fn examined(value: &Bson) -> i64 {
    match value {
        Bson::Document(document) => {
            let own = document.get("totalDocsExamined").or_else(|| document.get("docsExamined"));
            let own = own.and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from))).unwrap_or_default();
            document.values().map(examined).max().unwrap_or_default().max(own)
        }
        Bson::Array(values) => values.iter().map(examined).max().unwrap_or_default(),
        _ => 0,
    }
}

fn pushes_filters_and_pages_are_explained(at: At) {
    let door = at.door("outlier_explained");
    door.apply(doc! { "users": { "outlier": { "followers": {
        "keep": 5, "overflow": "more", "owner": "userId", "item": "followerId", "flag": "hasMore", "count": "n",
    } } }, "others": { "versions": { "field": "v", "steps": [{ "rename": { "a": "b" } }] } } });
    let users = vec![
        doc! { "_id": 1, "followers": [1, 2] },
        doc! { "_id": 2, "followers": (0..400).collect::<Vec<i32>>() },
        doc! { "_id": 3, "followers": (300..700).collect::<Vec<i32>>() },
    ];
    door.insert(&mut door.client(), "users", users);
    let before = (door.all("users"), door.all("more").len());

    let room = explained(&door, push(1));
    let writes = |plan: &Document| -> Vec<(String, String)> {
        let text = |step: &Document, name: &str| step.get_str(name).unwrap_or_default().to_owned();
        let is_write = |step: &&Document| ["write", "derived"].contains(&step.get_str("kind").unwrap());
        steps(plan).iter().filter(is_write).map(|step| (text(step, "kind"), text(step, "namespace"))).collect()
    };
    let users = format!("{}.users", door.db);
    assert_eq!(writes(&room), [("write".to_owned(), users.clone())], "{room}");
    let text = room.to_string();
    assert!(text.contains("hasMore") && text.contains("$lte") && text.contains("$inc"), "guarded: {room}");

    let past = explained(&door, push(2));
    let own = || ("write".to_owned(), users.clone());
    // The guard finds no room first.
    let expected = [own(), ("derived".to_owned(), format!("{}.more", door.db)), own()];
    assert_eq!(writes(&past), expected, "{past}");
    assert!(past.to_string().contains("users.followers"), "the rule is named: {past}");
    assert_eq!((door.all("users"), door.all("more").len()), before, "nothing was run");

    let filter = doc! { "find": "users", "filter": { "followers": 350 } };
    let plan = steps(&explained(&door, filter.clone()));
    assert_eq!(plan.len(), 2, "{plan:?}");
    assert_eq!(plan[0].get_str("namespace").unwrap(), format!("{}.more", door.db), "{plan:?}");
    assert!(plan[0].to_string().contains("followerId") && plan[0].to_string().contains("$group"), "{plan:?}");
    assert!(plan[1].to_string().contains("the owners that step 1 finds"), "{plan:?}");
    let answer = door.must(doc! { "explain": filter, "verbosity": "queryPlanner" });
    assert_eq!(steps(answer.get_document("pleach").unwrap()).len(), 2, "{answer}");
    assert!(answer.get_document("queryPlanner").unwrap().to_string().contains('3'), "the owners are in it: {answer}");
    // What another condition asks for needs nothing of the overflow.
    let plain = door.must(doc! { "explain": { "find": "users", "filter": { "n": 2 } }, "verbosity": "queryPlanner" });
    assert!(!plain.contains_key("pleach"), "{plain}");

    let page = doc! { "find": "users.followers", "filter": { "userId": 2, "index": { "$gte": 100 } }, "sort": { "index": 1 }, "limit": 10 };
    let rows = door.rows(page.clone());
    let indexes: Vec<i32> = rows.iter().map(|row| row.get_i32("index").unwrap()).collect();
    assert_eq!(indexes, (100..110).collect::<Vec<_>>());
    let told = door.must(doc! { "explain": page, "verbosity": "executionStats" });
    assert!(examined(&Bson::Document(told.clone())) <= 20, "{told}");
}
