//! `repair --once` asks before it writes, as `apply` does: a misspelt name takes no value away.

use crate::audits::{Place, wire};
use crate::doors::{At, at_each_door};
use crate::shop::text;
use bson::doc;

at_each_door!(what_apply_would_refuse_is_not_repaired_once, who_says_so_goes_on,);

/// Four orders with a copy of their customer, and two customers with the number of their orders.
fn fill(place: &Place) {
    let customer = |id: i32| doc! { "_id": id, "name": format!("c{id}"), "orders": 2 };
    place.must(doc! { "insert": "customers", "documents": [customer(0), customer(1)] });
    let order = |id: i32| doc! { "_id": id, "customerId": id % 2, "customer": { "name": format!("c{}", id % 2) } };
    place.must(doc! { "insert": "orders", "documents": (0..4).map(order).collect::<Vec<_>>() });
}

fn copy(by: &str) -> String {
    format!(
        "collections: {{ orders: {{ extended_reference: {{ customer: {{ from: customers, by: {by}, fields: [name] }} }} }} }}\n"
    )
}

fn count(source: &str, by: &str) -> String {
    format!("collections: {{ customers: {{ computed: {{ orders: {{ count: {source}, by: {by} }} }} }} }}\n")
}

fn what_apply_would_refuse_is_not_repaired_once(at: At) {
    let place = Place::new(at, "once-refused");
    fill(&place);
    let before = (place.all("orders"), place.all("customers"), place.collections());
    for (rules, flags, words) in [
        (copy("custmerId"), &[][..], &["did you mean `customerId`?", "--create-missing", "--overwrite"][..]),
        (copy("custmerId"), &["--create-missing"], &["`customer` would disappear from 4", "--overwrite"]),
        (copy("zzz"), &[], &["`customer` would disappear from 4", "--overwrite"]),
        (count("orders", "custmerId"), &[], &["`orders` would change in 2", "--overwrite"]),
        (count("orderz", "customerId"), &["--overwrite"], &["did you mean `orders`?", "--create-missing"]),
        // No name is near, and still: every count would be 0.
        (
            count("purchases", "customerId"),
            &["--overwrite"],
            &["there is no collection `purchases`", "--create-missing"],
        ),
    ] {
        place.declare(&rules);
        let told = place.declared(&[&["repair", "--once"], flags].concat());
        let (code, out, said) = text(&told);
        assert_eq!((code, out), (Some(2), ""), "{rules}: {told:?}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
        assert!(said.contains("nothing was repaired") && said.contains("hint: "), "{said}");
        assert_eq!(before, (place.all("orders"), place.all("customers"), place.collections()));
    }
    let refused = wire(&place, "repair", doc! { "once": true, "overwrite": true });
    assert_eq!(refused.get_i32("code").unwrap(), 96, "{refused}");
    assert!(refused.get_str("errmsg").unwrap().contains("create_missing: true"), "{refused}");
    assert_eq!(before, (place.all("orders"), place.all("customers"), place.collections()));
    // The flags are for that: alone they would be without an effect.
    let refused = wire(&place, "repair", doc! { "overwrite": true });
    assert_eq!(refused.get_i32("code").unwrap(), 2, "{refused}");
    assert!(refused.get_str("errmsg").unwrap().contains("once"), "{refused}");
    assert_eq!(place.declared(&["repair", "--overwrite"]).status.code(), Some(2));
}

fn who_says_so_goes_on(at: At) {
    let place = Place::new(at, "once-meant");
    fill(&place);
    place.declare(&count("purchases", "customerId"));
    let told = place.declared(&["repair", "--once", "--overwrite", "--create-missing"]);
    assert!(text(&told).1.contains("2 values repaired"), "{told:?}");
    assert_eq!(place.all("customers")[0].as_document().unwrap().get_i32("orders").unwrap(), 0);
    place.declare(&count("orders", "customerId"));
    let told = wire(&place, "repair", doc! { "once": true, "overwrite": true });
    assert_eq!(told.get_str("outcome").unwrap(), "right", "{told}");
    assert_eq!(place.all("customers")[0].as_document().unwrap().get_i32("orders").unwrap(), 2);
    // Of a few wrong values nobody is asked.
    place.must(doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "customer": { "name": "x" } } } }] });
    place.declare(&copy("customerId"));
    let told = place.declared(&["repair", "--once"]);
    assert_eq!(text(&told).0, Some(0), "{told:?}");
}
