//! The indexes that a rule needs: what is there is used, what is made is removed with the rule.

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};
use judge::client::Client;

at_each_door!(
    documents_without_the_field_are_left_alone,
    an_index_that_serves_is_used_and_stays,
    an_index_that_another_rule_needs_stays,
    a_unique_index_of_some_values_is_not_relied_on,
    rules_that_need_the_same_path_share_what_finds,
);

fn rule() -> Document {
    doc! { "orders": { "extended_reference": {
        "product": { "from": "products", "by": "sku", "match": "sku", "fields": ["name"] },
    } } }
}

/// The rule keeps copies of sources that are found by an optional field.
fn is_kept(door: &Door, client: &mut Client) {
    door.insert(client, "products", vec![doc! { "_id": "new", "sku": "new", "name": "a" }]);
    door.insert(client, "orders", vec![doc! { "_id": "new", "sku": "new" }]);
    door.run(
        client,
        doc! { "update": "products", "updates": [{ "q": { "_id": "new" }, "u": { "$set": { "name": "b" } } }] },
    );
    let orders = door.all("orders");
    assert_eq!(orders.last().unwrap().get_document("product").ok(), Some(&doc! { "name": "b" }), "{}", door.at.name());
    let twice = doc! { "insert": "products", "documents": [{ "sku": "new" }], "$db": &door.db };
    let refused = client.command(&twice).unwrap().document;
    assert_eq!(refused.get_array("writeErrors").unwrap().len(), 1, "{refused}");
    for collection in ["products", "orders"] {
        door.run(client, doc! { "delete": collection, "deletes": [{ "q": { "_id": "new" }, "limit": 1 }] });
    }
}

/// Drops the rule; returns the indexes that it says to leave.
fn drop_rule(door: &Door, client: &mut Client) -> Vec<String> {
    let answer = door.run(client, doc! { "pleach": "drop", "rule": "orders.product" });
    let names = answer.get_array("left_indexes").cloned().unwrap_or_default();
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn documents_without_the_field_are_left_alone(at: At) {
    let door = at.door("optional");
    let mut client = door.client();
    door.insert(&mut client, "products", vec![doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3, "sku": "x" }]);
    let applied = door.applied(&mut client, rule());
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    assert_eq!(door.indexes(&mut client, "products"), ["sku_1", "sku_1_pleach"], "{}", door.at.name());
    door.insert(&mut client, "products", vec![doc! { "_id": 4 }]);
    // Null comes later, and more than once.
    let nulls = vec![doc! { "_id": "null", "sku": null }, doc! { "_id": "null again", "sku": null }];
    door.insert(&mut client, "products", nulls);
    is_kept(&door, &mut client);
    door.run(
        &mut client,
        doc! { "delete": "products", "deletes": [{ "q": { "_id": { "$regex": "null" } }, "limit": 0 }] },
    );
    assert!(drop_rule(&door, &mut client).is_empty());
    assert_eq!(door.indexes(&mut client, "products"), [""; 0], "{}", door.at.name());
    assert_eq!(door.indexes(&mut client, "orders"), [""; 0], "{}", door.at.name());

    // Null is no reference either.
    door.insert(&mut client, "products", vec![doc! { "_id": 5, "sku": null }, doc! { "_id": 6, "sku": null }]);
    let applied = door.applied(&mut client, rule());
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    assert_eq!(door.indexes(&mut client, "products"), ["sku_1", "sku_1_pleach"], "{}", door.at.name());
    is_kept(&door, &mut client);
    assert!(drop_rule(&door, &mut client).is_empty());
    assert_eq!(door.indexes(&mut client, "products"), [""; 0], "{}", door.at.name());

    // Values that are there twice are an answer, and nothing is left of the attempt.
    door.insert(&mut client, "products", vec![doc! { "_id": 7, "sku": "x" }]);
    let refused = door.applied(&mut client, rule());
    assert_eq!(refused.get_i32("code").ok(), Some(11_000), "{refused}");
    assert!(refused.get_str("errmsg").unwrap().contains("{ sku: \"x\" }"), "{refused}");
    assert_eq!(door.indexes(&mut client, "products"), [""; 0], "{}", door.at.name());
    let ours = door.listed(&mut client, doc! { "name": { "$regex": "^pleach" } });
    assert!(ours.is_empty(), "{}: {ours:?}", door.at.name());
    door.finish();
}

fn an_index_that_serves_is_used_and_stays(at: At) {
    let partial = |filter: Document| doc! { "key": { "sku": 1 }, "name": "sku_1", "unique": true, "partialFilterExpression": filter };
    let door = at.door("serves");
    let mut client = door.client();
    door.insert(&mut client, "products", vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
    for (own, serves, after_apply, after_drop) in [
        (doc! { "key": { "sku": 1 }, "name": "own", "unique": true, "sparse": true }, true, vec!["own"], "own"),
        (partial(doc! { "sku": { "$exists": true } }), true, vec!["sku_1"], "sku_1"),
        // It keeps texts apart, and a reference may be something else; it finds none either.
        (
            partial(doc! { "sku": { "$type": "string" } }),
            false,
            vec!["sku_1", "sku_1_pleach", "sku_1_pleach_2"],
            "sku_1",
        ),
        // Of the name that ours would have, and of no use.
        (doc! { "key": { "sku": 1 }, "name": "sku_1" }, false, vec!["sku_1", "sku_1_pleach"], "sku_1"),
        (
            doc! { "key": { "other": 1 }, "name": "sku_1" },
            false,
            vec!["sku_1", "sku_1_pleach", "sku_1_pleach_2"],
            "sku_1",
        ),
    ] {
        door.run(&mut client, doc! { "createIndexes": "products", "indexes": [own.clone()] });
        let applied = door.applied(&mut client, rule());
        assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{own}: {applied}");
        assert_eq!(door.indexes(&mut client, "products"), after_apply, "{} {own}", door.at.name());
        is_kept(&door, &mut client);
        let left = drop_rule(&door, &mut client);
        assert_eq!(left, if serves { vec![format!("products.{after_drop}")] } else { Vec::new() }, "{own}");
        assert_eq!(door.indexes(&mut client, "products"), [after_drop], "{} {own}", door.at.name());
        door.run(&mut client, doc! { "dropIndexes": "products", "index": "*" });
    }
    door.finish();
}

fn an_index_that_another_rule_needs_stays(at: At) {
    let door = at.door("shared");
    let mut client = door.client();
    let applied = door.applied(
        &mut client,
        doc! { "a": { "computed": {
            "n": { "count": "b", "by": "aId" }, "s": { "sum": "x", "from": "b", "by": "aId" },
        } } },
    );
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    door.run(&mut client, doc! { "pleach": "drop", "rule": "a.n" });
    assert_eq!(door.indexes(&mut client, "b"), ["aId_1"], "{}", door.at.name());
    // Dropped and made anew by the client, it is the client's own.
    door.run(&mut client, doc! { "dropIndexes": "b", "index": "aId_1" });
    door.run(&mut client, doc! { "createIndexes": "b", "indexes": [{ "key": { "aId": 1 }, "name": "aId_1" }] });
    door.run(&mut client, doc! { "pleach": "drop", "rule": "a.s" });
    assert_eq!(door.indexes(&mut client, "b"), ["aId_1"], "{}", door.at.name());
    door.finish();
}

fn a_unique_index_of_some_values_is_not_relied_on(at: At) {
    let door = at.door("some-values");
    let mut client = door.client();
    let texts = doc! { "sku": { "$type": "string" } };
    let own = doc! { "key": { "sku": 1 }, "name": "texts", "unique": true, "partialFilterExpression": texts };
    door.run(&mut client, doc! { "createIndexes": "products", "indexes": [own] });
    door.insert(&mut client, "products", vec![doc! { "_id": 1, "sku": 5 }, doc! { "_id": 2, "sku": 5 }]);
    door.insert(&mut client, "orders", vec![doc! { "_id": 1, "sku": 5 }]);
    let refused = door.applied(&mut client, rule());
    assert!(refused.get_str("errmsg").unwrap().contains("{ sku: 5 }"), "{}: {refused}", door.at.name());
    door.run(&mut client, doc! { "delete": "products", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] });
    let applied = door.applied(&mut client, rule());
    let note = applied.get_array("rules").unwrap()[0].as_document().unwrap().get_array("notes").unwrap()[0].clone();
    assert!(note.as_str().unwrap().contains("the unique index `texts` of `products` leaves values"), "{applied}");
    let twice = doc! { "insert": "products", "documents": [{ "sku": 5 }], "$db": &door.db };
    assert!(client.command(&twice).unwrap().document.contains_key("writeErrors"), "{}", door.at.name());
    drop_rule(&door, &mut client);
    assert_eq!(door.indexes(&mut client, "products"), ["texts"], "{}", door.at.name());
    door.finish();
}

fn rules_that_need_the_same_path_share_what_finds(at: At) {
    let counted = doc! { "stock": { "count": "products", "by": "sku" } };
    let door = at.door("same-path");
    let mut client = door.client();
    let mut rules = rule();
    rules.insert("shelves", doc! { "computed": counted.clone() });
    let applied = door.applied(&mut client, rules);
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{}: {applied}", door.at.name());
    assert_eq!(door.indexes(&mut client, "products"), ["sku_1", "sku_1_pleach"], "{}", door.at.name());
    is_kept(&door, &mut client);
    drop_rule(&door, &mut client);
    assert_eq!(door.indexes(&mut client, "products"), ["sku_1_pleach"], "{}", door.at.name());
    door.finish();
}
