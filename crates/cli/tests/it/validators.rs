//! A client cannot set a validator that refuses what a rule in force writes: `create` and `collMod` are refused at both doors with the
//! way out, and change nothing. Any other validator is set as ever.

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};

at_each_door!(a_validator_against_a_rule_in_force_is_refused,);

fn closed(properties: Document) -> Document {
    doc! { "$jsonSchema": { "properties": properties, "additionalProperties": false } }
}

fn of_orders(more: Document) -> Document {
    let mut properties = doc! { "_id": {}, "customerId": {} };
    properties.extend(more);
    closed(properties)
}

fn rules(door: &Door) {
    door.apply(doc! {
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
        "totals": { "computed": { "n": { "count": "events", "by": "totalId" } } },
    });
    door.must(doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "a" }] });
    door.must(doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 1 }] });
}

#[track_caller]
fn refused(door: &Door, command: Document, words: &[&str]) {
    let reply = door.ask(command.clone());
    assert_eq!(reply.get_i32("code").ok(), Some(96), "{command}: {reply}");
    let told = reply.to_string();
    words.iter().for_each(|word| assert!(told.contains(word), "{command}: {word}: {told}"));
}

fn a_validator_against_a_rule_in_force_is_refused(at: At) {
    let door = at.door("validators");
    rules(&door);
    let change = |validator: Document| doc! { "collMod": "orders", "validator": validator };
    let words =
        ["orders.customer", "the validator of orders would refuse what it writes", "pleach drop orders.customer"];
    refused(&door, change(of_orders(doc! {})), &words);
    refused(&door, change(of_orders(doc! { "customer": { "bsonType": "string" } })), &words);
    refused(&door, change(doc! { "customer": { "$exists": false } }), &words[1..]);
    // Nothing has changed.
    let listed = door.rows(doc! { "listCollections": 1, "filter": { "name": "orders" } });
    assert_eq!(listed[0].get_document("options").unwrap(), &doc! {});
    door.must(doc! { "insert": "orders", "documents": [{ "_id": 2, "customerId": 1, "note": "open" }] });
    door.must(doc! { "delete": "orders", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] });

    // One that only warns is set; that it refuses from now on is not.
    let mut warns = change(of_orders(doc! {}));
    warns.insert("validationAction", "warn");
    door.must(warns);
    refused(&door, doc! { "collMod": "orders", "validationAction": "error" }, &words);
    door.must(doc! { "collMod": "orders", "validator": {}, "validationAction": "error" });

    // What the hint says works, and refuses what it should.
    door.must(change(of_orders(doc! { "customer": { "bsonType": "object" } })));
    door.must(doc! { "insert": "orders", "documents": [{ "_id": 3, "customerId": 1 }] });
    let other = door.ask(doc! { "insert": "orders", "documents": [{ "_id": 4, "note": 1 }] });
    assert!(other.contains_key("writeErrors"), "{other}");
    assert_eq!(door.all("orders")[1].get_document("customer").unwrap().get_str("name").ok(), Some("a"));

    // A collection that comes after its rule.
    let create = |validator: Document| doc! { "create": "totals", "validator": validator };
    refused(&door, create(closed(doc! { "_id": {} })), &["totals.n", "pleach drop totals.n"]);
    refused(&door, create(doc! { "n": { "$type": "string" } }), &["totals.n"]);
    assert!(door.rows(doc! { "listCollections": 1, "filter": { "name": "totals" } }).is_empty());
    door.must(create(closed(doc! { "_id": {}, "n": { "bsonType": "number" }, "_pleach": {} })));
    door.must(doc! { "insert": "totals", "documents": [{ "_id": 1 }] });

    // What no rule writes to.
    door.must(doc! { "collMod": "customers", "validator": closed(doc! { "_id": {}, "name": {} }) });
    door.must(doc! { "create": "others", "validator": closed(doc! { "_id": {} }) });
    door.must(doc! { "pleach": "drop", "rule": "orders.customer" });
    door.must(change(of_orders(doc! {})));
    door.finish();
}
