//! Children for which the key of a roll-up fails, is null or is an array count nowhere (SEMANTICS R35): `check` says so before, `plan`,
//! `audit` and `status` say how many there are. And what `check` says of windows: which of them ask at each insert, and how many they show.

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, DateTime, Document, doc};

at_each_door!(children_without_a_key_are_counted, check_says_what_a_window_costs);

fn findings(door: &Door, collections: Document) -> Vec<(String, String)> {
    let declaration = doc! { "database": &door.db, "collections": collections };
    let reply = door.ask(doc! { "pleach": "check", "declaration": declaration });
    let found = reply.get_array("findings").unwrap().iter().map(|finding| finding.as_document().unwrap());
    let text = |finding: &Document, name: &str| finding.get_str(name).unwrap().to_owned();
    found.map(|finding| (text(finding, "severity"), text(finding, "message"))).collect()
}

fn children_without_a_key_are_counted(at: At) {
    let door = at.door("unkeyed");
    let by = doc! { "$dateTrunc": { "date": "$at", "unit": "month" } };
    let rules = doc! { "months": { "computed": {
        "revenue": { "sum": "amount", "from": "sales", "by": by.clone(), "create": true },
        "best": { "max": "amount", "from": "sales", "by": by, "create": true },
    } } };
    let notes = findings(&door, rules.clone());
    assert_eq!(notes.iter().filter(|(_, text)| text.contains("counts nowhere")).count(), 2, "{notes:?}");
    let date = DateTime::from_millis(5);
    let without = vec![
        doc! { "_id": 1, "at": "yesterday", "amount": 100 },
        doc! { "_id": 2, "amount": 100 },
        doc! { "_id": 3, "at": Bson::Null, "amount": 100 },
        doc! { "_id": 4, "at": [date], "amount": 100 },
    ];
    door.must(doc! { "insert": "sales", "documents": without });
    door.must(doc! { "insert": "sales", "documents": [{ "_id": 5, "at": date, "amount": 7 }] });
    let notes = findings(&door, rules.clone());
    let counted = |(severity, text): &&(String, String)| {
        severity == "note" && text.starts_with("4 documents of sales have no key")
    };
    assert_eq!(notes.iter().filter(counted).count(), 2, "{notes:?}");
    let declaration = doc! { "database": &door.db, "collections": rules.clone() };
    let plan = door.must(doc! { "pleach": "plan", "declaration": declaration }).to_string();
    assert!(plan.contains("4 documents of sales have no key and count nowhere"), "{plan}");
    door.apply(rules);
    let counted = |wanted: i64| {
        let status = door.must(doc! { "pleach": "status" });
        let rules = status.get_array("rules").unwrap().iter().map(|rule| rule.as_document().unwrap());
        assert!(rules.into_iter().all(|rule| rule.get_i64("unkeyed").ok() == Some(wanted)), "{status}");
        let audit = door.must(doc! { "pleach": "audit" });
        assert_eq!(audit.get_i64("drifted").ok(), Some(0), "{audit}");
        assert!(audit.to_string().contains(&format!("{wanted} documents of sales have no key")), "{audit}");
    };
    counted(4);
    // Written later: the write goes through, and it is counted.
    door.must(doc! { "insert": "sales", "documents": [{ "_id": 6, "at": true, "amount": 100 }] });
    counted(5);
    let fixed = doc! { "q": { "_id": 1 }, "u": { "$set": { "at": date } } };
    door.must(doc! { "update": "sales", "updates": [fixed] });
    counted(4);
    let mut months = door.all("months");
    months[0].remove("_pleach");
    assert_eq!(months, [doc! { "_id": DateTime::from_millis(0), "revenue": 107, "best": 100 }]);
    door.finish();
}

fn check_says_what_a_window_costs(at: At) {
    let door = at.door("costs");
    let window = |fields: &[&str], keep: i32| {
        let window =
            doc! { "from": "reviews", "by": "productId", "sort": { "at": -1 }, "keep": keep, "fields": fields };
        doc! { "products": { "subset": { "recent": window } } }
    };
    assert_eq!(findings(&door, window(&["at", "text"], 3)), []);
    let notes = findings(&door, window(&["text"], 3));
    assert!(
        notes.len() == 1 && notes[0].0 == "note" && notes[0].1.contains("each new child costs a look"),
        "{notes:?}"
    );
    let errors = findings(&door, window(&["at"], 1_001));
    assert!(errors.len() == 1 && errors[0].0 == "error" && errors[0].1.contains("from 1 to 1000"), "{errors:?}");
    // And so it is: one reads its children, the other none.
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    for (fields, reads) in [(&["at", "text"][..], 0), (&["text"], 1)] {
        door.apply(window(fields, 3));
        let insert = doc! { "insert": "reviews", "documents": [{ "productId": 1, "at": 5, "text": "fine" }] };
        let told = door.must(doc! { "pleach": "explain", "command": insert });
        let steps = told.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap());
        let of_children = steps.filter(|step| {
            step.get_str("kind").unwrap() == "read" && step.get_str("namespace").unwrap().ends_with(".reviews")
        });
        assert_eq!(of_children.count(), reads, "{fields:?}: {told}");
        door.must(doc! { "pleach": "drop", "rule": "products.recent", "with_data": true });
    }
    door.finish();
}
