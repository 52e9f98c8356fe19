//! What `plan` counts in the data, and what it says about references and names.

use super::{COPY, Door, orders};
use crate::doors::{At, at_each_door};
use bson::{Document, doc, oid::ObjectId};

at_each_door!(
    plan_counts_what_apply_then_does,
    every_kind_of_field_is_counted,
    references_of_another_type_are_told_with_an_example,
    plan_shows_what_would_be_removed,
    what_apply_does_is_what_plan_said,
);

fn plan_counts_what_apply_then_does(at: At) {
    let door = Door::new(at, "plan-counts");
    orders(&door);
    door.declare(COPY);
    let (code, plan) = door.json(&["plan"]);
    assert_eq!(code, Some(1));
    let rule = &plan["rules"][0];
    let counts = ["hosts", "has", "right", "corrected", "removed", "filled", "references", "dangling"];
    let found: Vec<i64> = counts.iter().map(|name| rule[*name].as_i64().unwrap()).collect();
    assert_eq!(found, [10, 7, 6, 1, 0, 2, 10, 1], "{plan:#}");
    assert!(plan["steps"].as_array().unwrap().len() == 2, "{plan:#}");
    let (code, out, _) = door.told(&["plan"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("orders.customer new: 10 documents: 6 right, 1 corrected, 2 filled; 1 index"), "{out}");
    assert!(out.contains("1 of 10 references in orders.customerId have no document in customers, such as 99"), "{out}");
    assert!(!out.contains("$lookup"), "{out}");
    assert!(door.told(&["plan", "--full"]).1.contains("$lookup"));
    // A dangling reference is reported, not refused.
    let (code, out, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("have no document in customers"), "{out}");
    assert!(out.contains("orders.customer: 1 corrected, 2 filled, 0 removed"), "{out}");
    assert_eq!(door.json(&["plan"]).0, Some(0));
    assert_eq!(door.json(&["audit", "--declare", "pleach.yaml"]).0, Some(0));
}

fn every_kind_of_field_is_counted(at: At) {
    let door = Door::new(at, "kinds");
    let product = |id: i32, fields: Document| {
        let mut product = doc! { "_id": id, "sku": format!("s{id}") };
        product.extend(fields);
        product
    };
    door.insert(
        "products",
        vec![
            product(1, doc! { "n": 2, "avg": 4.5, "total": 9 }),
            product(2, doc! { "n": 7, "avg": 4, "total": 0 }),
            product(3, doc! { "n": 0_i64 }),
            doc! { "_id": 4, "n": 0, "avg": 3 },
        ],
    );
    let review = |id: i32, product: i32, rating: i32| doc! { "_id": id, "pid": product, "rating": rating };
    door.insert("reviews", vec![review(1, 1, 4), review(2, 1, 5), review(3, 2, 4), review(4, 99, 1)]);
    let item = |product: i32, copy: Option<&str>| match copy {
        Some(sku) => doc! { "p": product, "product": { "sku": sku } },
        None => doc! { "p": product },
    };
    door.insert(
        "orders",
        vec![
            doc! { "_id": 1, "items": [item(1, Some("s1")), item(2, Some("s2"))] },
            doc! { "_id": 2, "items": [item(1, Some("old")), item(2, Some("s2"))] },
            doc! { "_id": 3, "items": [item(1, Some("s1")), item(2, None), item(99, None)] },
            doc! { "_id": 4, "items": [{ "product": { "sku": "orphan" } }] },
            doc! { "_id": 5 },
        ],
    );
    let counted = "n: { count: reviews, by: pid }, avg: { avg: rating, from: reviews, by: pid }";
    let others = "total: { sum: rating, from: reviews, by: pid }, name: { expr: { $toUpper: $sku } }";
    let copies = "items.product: { from: products, by: items.p, fields: [sku] }";
    door.declare(&format!(
        "{{ products: {{ computed: {{ {counted}, {others} }} }}, orders: {{ extended_reference: {{ {copies} }} }} }}"
    ));
    let (_, plan) = door.json(&["plan"]);
    for (rule, expected) in [
        // hosts, has, right, corrected, removed, filled
        ("products.n", [4, 4, 2, 2, 0, 0]),
        ("products.avg", [4, 3, 1, 2, 0, 1]),
        ("products.total", [4, 2, 1, 1, 0, 2]),
        ("products.name", [4, 0, 0, 0, 0, 4]),
        ("orders.items.product", [5, 3, 1, 1, 1, 1]),
    ] {
        let row = plan["rules"].as_array().unwrap().iter().find(|row| row["rule"] == rule).unwrap();
        let counts = ["hosts", "has", "right", "corrected", "removed", "filled"];
        let found: Vec<i64> = counts.iter().map(|name| row[*name].as_i64().unwrap()).collect();
        assert_eq!(found, expected, "{rule}: {row:#}");
        let dangling = match rule {
            "products.name" => None,
            "orders.items.product" => Some((7, 1)),
            _ => Some((4, 1)),
        };
        let found = row["references"].as_i64().zip(row["dangling"].as_i64());
        assert_eq!(found, dangling, "{rule}: {row:#}");
    }
}

fn references_of_another_type_are_told_with_an_example(at: At) {
    let door = Door::new(at, "types");
    let id = ObjectId::parse_str("65ab00000000000000000001").unwrap();
    door.insert("customers", vec![doc! { "_id": id, "name": "Ada" }]);
    door.insert("orders", vec![doc! { "_id": 1, "customerId": id.to_hex() }]);
    door.declare(COPY);
    let (_, out, _) = door.told(&["plan"]);
    assert!(
        out.contains(
            "orders.customerId holds strings such as \"65ab00000000000000000001\", customers._id holds ObjectIds"
        ),
        "{out}"
    );
    // The same of a count.
    door.declare("{ customers: { computed: { n: { count: orders, by: customerId } } } }");
    let (_, out, _) = door.told(&["plan"]);
    assert!(out.contains("the only reference in orders.customerId has no document in customers"), "{out}");
    assert!(out.contains("holds strings such as"), "{out}");
}

fn plan_shows_what_would_be_removed(at: At) {
    let door = Door::new(at, "removing");
    orders(&door);
    door.declare(COPY);
    assert_eq!(door.told(&["apply"]).0, Some(0));
    door.declare("{ orders: { computed: { double: { expr: { $multiply: [$_id, 2] } } } } }");
    let (code, out, _) = door.told(&["plan"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("gone from the declaration") && out.contains("needs --remove"), "{out}");
    let (_, plan) = door.json(&["plan", "--remove", "--with-data"]);
    let removed = plan["rules"].as_array().unwrap().iter().find(|rule| rule["work"] == "remove").unwrap();
    assert_eq!((&removed["documents"], &removed["fields"]), (&9.into(), &serde_json::json!(["customer"])), "{plan:#}");
    assert_eq!(door.all("orders").iter().filter(|row| row.as_document().unwrap().contains_key("customer")).count(), 9);
    let (code, out, said) = door.told(&["apply", "--remove", "--with-data"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("orders.customer: removed: customer taken from 9 documents"), "{out}");
    assert!(!door.all("orders").iter().any(|row| row.as_document().unwrap().contains_key("customer")));
    // The same as JSON, of one whose field stays.
    door.declare(COPY);
    let (_, applied) = door.json(&["apply", "--remove"]);
    let removed = serde_json::json!([{ "rule": "orders.double", "fields": [], "documents": 0 }]);
    assert_eq!(applied["removed"], removed, "{applied:#}");
}

fn what_apply_does_is_what_plan_said(at: At) {
    let door = Door::new(at, "plan-apply");
    let counted = "{ hosts: { computed: { n: { count: sources, by: hid } } } }";
    let listed = "{ hosts: { extended_reference: { tags: { from: sources, by: ids, each: true, fields: [name] } } } }";
    let in_items =
        "{ hosts: { extended_reference: { items.product: { from: sources, by: items.pid, fields: [name] } } } }";
    let copied = "{ hosts: { extended_reference: { customer: { from: sources, by: cid, fields: [name] } } } }";
    let ada = || doc! { "name": "Ada" };
    // corrected, removed, filled, sourceless, needs --overwrite
    let cases: Vec<(&str, Document, [i64; 4], bool)> = vec![
        (counted, doc! { "n": 0.0 }, [1, 0, 0, 0], false),
        (counted, doc! { "n": 0_i64 }, [1, 0, 0, 0], false),
        (counted, doc! { "n": 0 }, [0, 0, 0, 0], false),
        (counted, doc! { "n": 3 }, [1, 0, 0, 0], true),
        (listed, doc! { "tags": null }, [0, 1, 0, 0], true),
        (listed, doc! { "tags": [] }, [0, 1, 0, 0], true),
        (listed, doc! { "tags": [null] }, [0, 1, 0, 0], true),
        (listed, doc! { "ids": [1, 2], "tags": [ada(), null] }, [0, 0, 0, 0], false),
        (listed, doc! { "ids": [1], "tags": [] }, [0, 0, 1, 0], false),
        (in_items, doc! { "items": [{ "pid": 9, "product": [] }] }, [0, 1, 0, 0], true),
        (in_items, doc! { "items": [{ "pid": 1 }] }, [0, 0, 1, 0], false),
        (copied, doc! { "cid": [1, 2], "customer": 7 }, [0, 0, 0, 0], false),
        (copied, doc! { "cid": "1", "customer": ada() }, [0, 0, 0, 1], false),
        (copied, doc! { "cid": 1, "customer": ada() }, [0, 0, 0, 0], false),
    ];
    for (rules, host, [corrected, removed, filled, sourceless], refused) in cases {
        door.must(doc! { "dropDatabase": 1 });
        door.insert("sources", vec![doc! { "_id": 1, "hid": 99, "name": "Ada" }]);
        let mut stored = doc! { "_id": 1 };
        stored.extend(host.clone());
        door.insert("hosts", vec![stored]);
        door.declare(rules);
        let plan = door.json(&["plan"]).1;
        let rule = &plan["rules"][0];
        let found = ["corrected", "removed", "filled", "sourceless"].map(|name| rule[name].as_i64().unwrap());
        assert_eq!(found, [corrected, removed, filled, sourceless], "{host}: {plan:#}");
        let needs = |flag: &str| {
            let all = rule["refused"].as_array().cloned().unwrap_or_default();
            all.iter().any(|refusal| refusal["flag"] == flag)
        };
        assert_eq!(needs("overwrite"), refused, "{host}: {plan:#}");
        let (code, done) = door.json(&["apply", "--overwrite", "--create-missing"]);
        assert_eq!(code, Some(0), "{done:#}");
        let status = door.json(&["status"]).1;
        let is_ours = |row: &&serde_json::Value| row["database"] == *door.db;
        let seeded = &status["rules"].as_array().unwrap().iter().find(is_ours).unwrap()["seeded"];
        let found = ["corrected", "removed", "filled"].map(|name| seeded[name].as_i64().unwrap());
        assert_eq!(found, [corrected, removed, filled], "{host}: {status:#}");
        let rule = rule["rule"].as_str().unwrap();
        assert_eq!(door.told(&["drop", rule, "--with-data", "--db", &door.db]).0, Some(0));
    }
}
