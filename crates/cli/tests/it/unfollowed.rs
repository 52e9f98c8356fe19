//! An audit that has followed no reference says so instead of "every derived value is what it should be".

use crate::audits::{Place, about, fits, wire};
use crate::doors::{At, at_each_door};
use crate::shop::text;
use bson::{doc, oid::ObjectId};
use serde_json::json;

at_each_door!(rules_that_are_not_applied_could_not_be_checked, a_rule_in_force_waits_for_what_may_still_come,);

fn copy(by: &str) -> String {
    format!(
        "collections: {{ orders: {{ extended_reference: {{ customer: {{ from: customers, by: {by}, fields: [name] }} }} }} }}\n"
    )
}

const COUNT: &str = "collections: { customers: { computed: { n: { count: orders, by: customerId } } } }\n";

/// Orders whose references are strings; customers have ObjectIds.
fn fill(place: &Place) {
    let id = |number: u8| ObjectId::from_bytes([number; 12]);
    let customer = |number: u8| doc! { "_id": id(number), "name": "c", "n": 0 };
    place.must(doc! { "insert": "customers", "documents": [customer(1), customer(2)] });
    let order = |number: i32| doc! { "_id": number, "customerId": id(1).to_hex() };
    place.must(doc! { "insert": "orders", "documents": (0..3).map(order).collect::<Vec<_>>() });
}

fn rules_that_are_not_applied_could_not_be_checked(at: At) {
    let place = Place::new(at, "unfollowed");
    fill(&place);
    for (rules, note, words) in [
        (
            copy("custmerId"),
            "no_field",
            "no document of `orders` has the field `custmerId` (did you mean `customerId`?)",
        ),
        (copy("zzz"), "no_field", "no document of `orders` has the field `zzz`"),
        (copy("customerId"), "dangling", "orders.customerId holds strings such as"),
        (COUNT.to_owned(), "dangling", "values of different types never match"),
    ] {
        place.declare(&rules);
        let (code, report) = place.json(&["audit"]);
        assert_eq!((code, &report["outcome"]), (Some(2), &json!("impossible")), "{rules}: {report}");
        assert_eq!(about(&report["rules"][0]), [note]);
        let said = report["rules"][0]["notes"][0]["text"].as_str().unwrap();
        assert!(said.contains(words), "{said}");
        assert_eq!(report["next"][0]["action"], "correct_names", "{report}");
        let told = place.declared(&["audit"]);
        let (_, out, _) = text(&told);
        assert!(!out.contains("what it should be") && !out.contains("pleach apply"), "{out}");
        fits(out);
        let report = wire(&place, "audit", doc! {});
        assert_eq!(report.get_str("outcome").unwrap(), "impossible", "{report}");
    }
    // One of them leads somewhere: the others are as they are.
    place.must(doc! { "insert": "orders", "documents": [{ "_id": 9, "customerId": 7, "customer": { "name": "c7" } }] });
    place.must(doc! { "insert": "customers", "documents": [{ "_id": 7, "name": "c7", "n": 1 }] });
    for rules in [copy("customerId"), COUNT.to_owned()] {
        place.declare(&rules);
        assert_eq!(place.json(&["audit"]).0, Some(0), "{rules}");
    }
}

fn a_rule_in_force_waits_for_what_may_still_come(at: At) {
    let place = Place::new(at, "unfollowed-applied");
    place.must(doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 7 }] });
    place.must(doc! { "insert": "customers", "documents": [{ "_id": 8, "name": "c8" }] });
    place.declare(&copy("customerId"));
    assert_eq!(place.json(&["audit"]).0, Some(2));
    assert_eq!(text(&place.declared(&["apply"])).0, Some(0));
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, about(&report["rules"][0])), (Some(0), vec!["dangling"]), "{report}");
    let told = place.declared(&["audit"]);
    let (_, out, _) = text(&told);
    assert!(out.contains("the only reference in orders.customerId") && out.contains("see the notes"), "{out}");
    // Strings never become numbers.
    place.must(doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "customerId": "8" } } }] });
    let (code, report) = place.json(&["audit"]);
    assert_eq!((code, about(&report["rules"][0])), (Some(2), vec!["dangling"]), "{report}");
}
