//! What `apply` refuses without a word of the user.

use super::{COPY, Door, orders};
use crate::doors::{At, at_each_door};
use crate::shop::Shop;
use bson::{Bson, doc};

at_each_door!(
    what_would_remove_or_mostly_change_values_needs_a_word,
    a_changed_rule_is_made_anew_unless_copies_would_go_for_good,
    nothing_is_kept_on_what_changes_unseen,
    a_name_that_is_almost_there_is_refused,
    an_empty_database_is_no_typo,
    a_validator_in_the_way_is_found_and_the_printed_command_helps,
    a_validator_that_only_warns_is_not_in_the_way,
    ids_are_not_thrown_away_without_a_word,
    an_index_that_cannot_be_made_leaves_nothing_behind,
    only_what_is_in_the_way_is_taken_off_a_validator_and_said,
    a_validator_that_refuses_what_comes_later_is_found,
);

fn what_would_remove_or_mostly_change_values_needs_a_word(at: At) {
    let door = Door::new(at, "overwrites");
    orders(&door);
    // No order has the field, and no other has a name like it.
    let gone = COPY.replace("by: customerId", "by: zzz");
    door.declare(&gone);
    door.refused(&["apply"], &["`customer` would disappear from 7 of the 7 documents that have it", "--overwrite"]);
    let (_, out, _) = door.told(&["plan"]);
    assert!(out.contains("7 removed") && out.contains("needs --overwrite"), "{out}");
    // More than half would change.
    door.declare("{ orders: { computed: { customer: { expr: { $add: [$_id, 1] } } } } }");
    door.refused(&["apply"], &["`customer` would change in 7 of the 7 documents that have it", "--overwrite"]);
    let (code, _, said) = door.told(&["apply", "--overwrite"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(door.all("orders")[4].as_document().unwrap().get("customer"), Some(&Bson::Int32(5)));
}

fn a_changed_rule_is_made_anew_unless_copies_would_go_for_good(at: At) {
    let door = Door::new(at, "changed");
    orders(&door);
    door.declare(COPY);
    assert_eq!(door.told(&["apply"]).0, Some(0));
    // Every copy changes, and each can be made again.
    door.declare(&COPY.replace("[name]", "{ called: name }"));
    assert_eq!(door.told(&["apply"]).0, Some(0));
    door.must(doc! { "delete": "customers", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] });
    door.declare(&COPY.replace("[name]", "{ called: name }, when_deleted: unset"));
    door.refused(&["apply"], &["`customer` would disappear from 3 of the 9 documents", "--overwrite"]);
    assert_eq!(door.told(&["apply", "--overwrite"]).0, Some(0));
}

fn nothing_is_kept_on_what_changes_unseen(at: At) {
    let door = Door::new(at, "unfit");
    orders(&door);
    let refused = |words: &[&str]| {
        let (code, _, said) = door.told(&["apply", "--overwrite"]);
        assert_eq!(code, Some(2), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{said}"));
    };
    door.must(doc! { "create": "clients", "viewOn": "customers", "pipeline": [] });
    door.declare(&COPY.replace("from: customers", "from: clients"));
    // A real MongoDB may say so first, when its indexes are looked at.
    refused(&["clients", "is a view"]);
    door.declare("{ clients: { computed: { double: { expr: { $multiply: [$_id, 2] } } } } }");
    refused(&["clients", "is a view"]);
    if door.uri.is_none() {
        return;
    }
    door.must(doc! { "create": "log", "capped": true, "size": 10_000 });
    door.insert("log", vec![doc! { "_id": 1, "customerId": 1 }]);
    door.declare("{ customers: { computed: { n: { count: log, by: customerId } } } }");
    refused(&["`log` is capped", "ordinary collection"]);
}

fn a_name_that_is_almost_there_is_refused(at: At) {
    let door = Door::new(at, "typos");
    orders(&door);
    for (wrong, right, words) in [
        ("from: customerz", "from: customers", ["there is no collection `customerz`", "did you mean `customers`?"]),
        (
            "by: custmerId",
            "by: customerId",
            ["no document of `orders` has the field `custmerId`", "did you mean `customerId`?"],
        ),
        ("fields: [nam]", "fields: [name]", ["no document of `customers` has the field `nam`", "did you mean `name`?"]),
    ] {
        door.declare(&COPY.replace(right, wrong));
        door.refused(&["apply", "--overwrite"], &[words[0], words[1], "--create-missing"]);
        let (_, plan) = door.json(&["plan"]);
        assert_eq!(plan["rules"][0]["refused"][0]["flag"], "create_missing", "{plan:#}");
    }
    // It is meant: the collection comes later.
    door.declare(&COPY.replace("customer:", "buyer:").replace("from: customers", "from: customerz"));
    let (code, _, said) = door.told(&["apply", "--create-missing"]);
    assert_eq!(code, Some(0), "{said}");
}

fn an_empty_database_is_no_typo(at: At) {
    let door = Door::new(at, "empty");
    door.declare(COPY);
    let (code, _, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
}

fn a_validator_in_the_way_is_found_and_the_printed_command_helps(at: At) {
    let door = Door::new(at, "validators");
    let schema = doc! { "$jsonSchema": {
        "required": ["price"], "properties": { "_id": {}, "price": { "bsonType": "int" } }, "additionalProperties": false,
    } };
    door.must(doc! { "create": "orders", "validator": schema });
    door.insert("orders", vec![doc! { "_id": 1, "price": 4 }]);
    door.insert("lines", vec![doc! { "_id": 1, "orderId": 1, "amount": 2 }]);
    door.declare("{ orders: { computed: { total: { sum: amount, from: lines, by: orderId } } } }");
    let (_, plan) = door.json(&["plan"]);
    let command = plan["rules"][0]["refused"][0]["command"].clone();
    assert_eq!(command["collMod"], "orders", "{plan:#}");
    door.refused(
        &["apply", "--overwrite"],
        &["the validator of orders would refuse", "db.runCommand({ collMod: \"orders\""],
    );
    let command: Bson = command.try_into().unwrap();
    door.must(command.as_document().unwrap().clone());
    let (code, _, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
    // Clients go on, through Pleach and by the same validator.
    door.insert("orders", vec![doc! { "_id": 2, "price": 5 }]);
    door.must(doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "price": 6 } } }] });
    let refused = door
        .client()
        .command(&doc! { "insert": "orders", "documents": [{ "_id": 3, "price": 1, "x": 1 }], "$db": &door.db });
    assert!(refused.unwrap().document.get_array("writeErrors").is_ok());
}

fn a_validator_that_only_warns_is_not_in_the_way(at: At) {
    let door = Door::new(at, "warnings");
    let schema = doc! { "$jsonSchema": { "properties": { "_id": {} }, "additionalProperties": false } };
    door.must(doc! { "create": "orders", "validator": schema, "validationAction": "warn" });
    door.declare("{ orders: { computed: { n: { count: lines, by: orderId } } } }");
    let (code, _, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
}

fn ids_are_not_thrown_away_without_a_word(at: At) {
    let door = Door::new(at, "ids");
    let date = |minute: i64| bson::DateTime::from_millis(minute * 60_000);
    door.insert("orders", (0..5).map(|n| doc! { "_id": n, "s": "a", "ts": date(n), "v": n }).collect());
    door.declare("{ orders: { bucket: { time: ts, by: [s], every: hour, reading_id: time } } }");
    let (_, plan) = door.json(&["plan"]);
    assert_eq!(plan["rules"][0]["ids_lost"], 5, "{plan:#}");
    door.refused(
        &["apply"],
        &["the `_id` of 5 documents of orders would be lost", "`reading_id: stored` keeps it", "--overwrite"],
    );
    let output = door.shop.command(&["check"]).output().unwrap();
    let (code, out, _) = crate::shop::text(&output);
    assert_eq!(code, Some(0));
    assert!(out.contains("note") && out.contains("reading_id: stored"), "{out}");
    door.declare("{ orders: { bucket: { time: ts, by: [s], every: hour } } }");
    let (code, _, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(door.all("orders").len(), 5);
}

fn an_index_that_cannot_be_made_leaves_nothing_behind(at: At) {
    let door = Door::new(at, "duplicates");
    door.insert("customers", vec![doc! { "_id": 1, "mail": "a" }, doc! { "_id": 2, "mail": "a" }]);
    door.insert("orders", vec![doc! { "_id": 1, "mail": "a" }]);
    let rule = "customer: { from: customers, by: mail, match: mail, fields: [_id] }";
    door.declare(&format!("{{ orders: {{ extended_reference: {{ {rule} }} }} }}"));
    door.refused(&["apply"], &["needs a unique index on mail"]);
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_refused_apply_does_not_even_write_a_lease() {
    let mongod = crate::mongod::Mongod::start(&["--replSet", "rs"]);
    let uri = format!("mongodb://{}/?replicaSet=rs", mongod.address());
    crate::mongod::initiate(&[&mongod]);
    let door = Door { shop: Shop::new("refused-up", ""), server: None, uri: Some(uri), db: "shop".to_owned() };
    orders(&door);
    door.declare(&COPY.replace("by: customerId", "by: zzz"));
    door.refused(&["apply"], &["--overwrite"]);
    let ours = doc! { "listCollections": 1, "filter": { "name": { "$regex": "^pleach" } }, "$db": "admin" };
    let found = door.client().must(&ours).unwrap();
    assert!(found.get_document("cursor").unwrap().get_array("firstBatch").unwrap().is_empty(), "{found}");
    assert_eq!(door.told(&["apply", "--overwrite"]).0, Some(0));
}

/// The command that `plan` prints for a validator that is in the way, run; what the reason says is lost by it.
fn allowed(door: &Door) -> String {
    let (_, plan) = door.json(&["plan"]);
    let refused =
        plan["rules"].as_array().unwrap().iter().find_map(|rule| rule["refused"].as_array()?.first().cloned());
    let refused = refused.unwrap_or_else(|| panic!("{plan:#}"));
    door.refused(&["apply", "--overwrite"], &["the validator of orders would refuse"]);
    let command: Bson = refused["command"].clone().try_into().unwrap();
    door.must(command.as_document().unwrap().clone());
    refused["reason"].as_str().unwrap().to_owned()
}

/// The validator of the orders now.
fn validator(door: &Door) -> bson::Document {
    let found = door.must(doc! { "listCollections": 1, "filter": { "name": "orders" } });
    let first =
        found.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].as_document().unwrap().clone();
    first.get_document("options").unwrap().get_document("validator").unwrap().clone()
}

fn only_what_is_in_the_way_is_taken_off_a_validator_and_said(at: At) {
    let price = || doc! { "price": { "bsonType": "int" } };
    let door = Door::new(at, "relaxed");
    door.insert("customers", vec![doc! { "_id": 7, "name": "Ada" }]);
    door.declare(COPY);
    for (before, after, words) in [
        (
            doc! { "$jsonSchema": { "properties": price(), "maxProperties": 3 } },
            doc! { "$jsonSchema": { "properties": price() } },
            "`maxProperties: 3`",
        ),
        (
            doc! { "$jsonSchema": { "properties": price(), "not": { "required": ["customer"] } } },
            doc! { "$jsonSchema": { "properties": price() } },
            "`not: { required: [\"customer\"] }`",
        ),
        (
            doc! { "$or": [{ "customer": { "$exists": false } }], "price": { "$gt": 0 } },
            doc! { "price": { "$gt": 0 } },
            "`$or: [{ customer: { $exists: false } }]`",
        ),
        (
            doc! { "$jsonSchema": { "properties": { "customer": { "bsonType": "object", "properties": { "name": { "bsonType": "string", "maxLength": 2 } } } } } },
            doc! { "$jsonSchema": { "properties": { "customer": { "bsonType": "object", "properties": { "name": { "bsonType": "string" } } } } } },
            "`customer.name.maxLength: 2`",
        ),
        (
            doc! { "$jsonSchema": { "required": ["price", "customer"] } },
            doc! { "$jsonSchema": { "required": ["price"] } },
            "`required: [\"customer\"]`",
        ),
    ] {
        door.must(doc! { "create": "orders" });
        door.insert("orders", vec![doc! { "_id": 1, "price": 4, "customerId": 7 }]);
        door.must(doc! { "collMod": "orders", "validator": before.clone() });
        if before.to_string().contains("\"required\": [\"price\", \"customer\"]") {
            // Nothing is in the way of the documents that are there.
            let whole = doc! { "$set": { "customer": { "name": "Ada" } } };
            door.must(doc! { "update": "orders", "updates": [{ "q": {}, "u": whole }] });
        }
        let reason = allowed(&door);
        assert!(reason.contains(words), "{reason}");
        assert_eq!(validator(&door), after);
        let (code, _, said) = door.told(&["apply"]);
        assert_eq!(code, Some(0), "{said}");
        door.must(doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "price": 5 } } }] });
        assert_eq!(door.told(&["drop", "orders.customer", "--db", &door.db]).0, Some(0));
        door.must(doc! { "drop": "orders" });
    }
}

fn a_validator_that_refuses_what_comes_later_is_found(at: At) {
    let door = Door::new(at, "later");
    for (rule, before, after) in [
        (
            "{ n: { count: lines, by: orderId } }",
            doc! { "bsonType": "int", "minimum": 0, "maximum": 10 },
            doc! { "bsonType": "int", "minimum": 0 },
        ),
        (
            "{ n: { avg: amount, from: lines, by: orderId } }",
            doc! { "bsonType": ["double", "int", "null"], "minimum": 1, "maximum": 5 },
            doc! { "bsonType": ["double", "int", "null", "number"], "minimum": 1, "maximum": 5 },
        ),
    ] {
        let schema = |own: bson::Document| doc! { "$jsonSchema": { "properties": { "n": own } } };
        door.must(doc! { "create": "orders", "validator": schema(before) });
        door.insert("orders", vec![doc! { "_id": 1 }]);
        door.declare(&format!("{{ orders: {{ computed: {rule} }} }}"));
        allowed(&door);
        assert_eq!(validator(&door), schema(after));
        assert_eq!(door.told(&["apply"]).0, Some(0));
        assert_eq!(door.told(&["drop", "orders.n", "--db", &door.db]).0, Some(0));
        door.must(doc! { "drop": "orders" });
    }
}
