//! Documents of several kinds in one collection, at both doors: what is refused and how it is said, beside the user's own validator and
//! other rules, on documents from before, and what the tools print about it.

use crate::audits::Place;
use crate::doors::{At, Door, at_each_door};
use crate::shop::{Shop, text};
use bson::{Bson, Document, doc};
use serde_json::Value;

at_each_door!(
    documents_are_what_their_kind_asks_for,
    details_name_kind_and_field,
    the_users_validator_stays_beside_it,
    documents_from_before_are_listed_and_left,
    other_rules_keep_their_fields,
    a_kinds_index_serves_filters_that_name_it,
    a_changed_declaration_is_a_difference,
    kinds_are_inferred,
    a_unique_index_that_cannot_be_made_stops_apply,
    a_text_index_searches_all_kinds_and_goes_with_the_rule,
);

fn products() -> Document {
    doc! { "products": { "polymorphic": {
        "discriminator": "type",
        "kinds": {
            "book": { "required": ["title", "isbn"], "indexes": [{ "key": { "isbn": 1 }, "unique": true }] },
            "electronics": { "required": ["title", "brand"], "indexes": [{ "key": { "brand": 1 } }] },
            "clothing": { "required": ["title", "size"], "schema": { "properties": { "size": { "enum": ["S", "M"] } } } },
        },
        "indexes": [{ "key": { "price": 1 } }],
    } } }
}

fn book(id: i32) -> Document {
    doc! { "_id": id, "type": "book", "title": format!("t{id}"), "isbn": format!("i{id}") }
}

/// The code of the first write error; 0 if the write went through.
fn code(reply: &Document) -> i32 {
    let error = reply.get_array("writeErrors").ok().and_then(|errors| errors.first()).and_then(Bson::as_document);
    error.map_or(0, |error| error.get_i32("code").unwrap())
}

fn insert(door: &Door, document: Document) -> i32 {
    code(&door.ask(doc! { "insert": "products", "documents": [document] }))
}

fn update(door: &Door, id: i32, change: Document) -> i32 {
    code(&door.ask(doc! { "update": "products", "updates": [{ "q": { "_id": id }, "u": change }] }))
}

fn documents_are_what_their_kind_asks_for(at: At) {
    let door = at.door("kinds");
    door.apply(products());
    for (document, expected) in [
        (book(1), 0),
        (doc! { "_id": 2, "type": "electronics", "title": "a", "brand": "b", "isbn": "i1" }, 0),
        (doc! { "_id": 3, "type": "clothing", "title": "a", "size": "M", "more": 1 }, 0),
        (doc! { "_id": 4, "type": "book", "title": "a", "isbn": "i1" }, 11000),
        (doc! { "_id": 4, "type": "book", "title": "a" }, 121),
        (doc! { "_id": 4, "title": "a" }, 121),
        (doc! { "_id": 4, "type": "car", "title": "a" }, 121),
        (doc! { "_id": 4, "type": ["book"], "title": "a", "isbn": "x" }, 121),
        (doc! { "_id": 4, "type": null, "title": "a" }, 121),
        (doc! { "_id": 4, "type": "clothing", "title": "a", "size": "XL" }, 121),
    ] {
        assert_eq!(insert(&door, document.clone()), expected, "{document}");
    }
    for (id, change, expected) in [
        (1, doc! { "$unset": { "isbn": 1 } }, 121),
        (1, doc! { "$set": { "type": "electronics" } }, 121),
        (1, doc! { "title": "replaced" }, 121),
        (1, doc! { "type": "clothing", "title": "replaced", "size": "S" }, 0),
        (2, doc! { "$set": { "type": "book", "isbn": "i9" }, "$unset": { "brand": 1 } }, 0),
        (3, doc! { "$set": { "size": "XL" } }, 121),
        (3, doc! { "$set": { "note": "x" } }, 0),
    ] {
        assert_eq!(update(&door, id, change.clone()), expected, "{id} {change}");
    }
    let upsert = doc! { "update": "products", "updates": [{ "q": { "_id": 9 }, "u": { "$set": { "type": "book" } }, "upsert": true }] };
    assert_eq!(code(&door.ask(upsert)), 121);
    let modify = doc! { "findAndModify": "products", "query": { "_id": 3 }, "update": { "$unset": { "title": 1 } } };
    assert_eq!(door.ask(modify).get_i32("code").ok(), Some(121));
    // Other kinds.
    let mut open = products();
    open.get_document_mut("products").unwrap().get_document_mut("polymorphic").unwrap().insert("unknown", "accept");
    door.apply(open);
    assert_eq!(insert(&door, doc! { "_id": 10, "type": "car" }), 0);
    assert_eq!(insert(&door, doc! { "_id": 11, "type": 5 }), 121);
    assert_eq!(insert(&door, doc! { "_id": 11 }), 121);
    door.finish();
}

/// The details of a refused insert, the same at both doors.
fn details_name_kind_and_field(at: At) {
    let door = at.door("details");
    door.apply(products());
    let of = |document: Document| {
        let reply = door.ask(doc! { "insert": "products", "documents": [document] });
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        assert_eq!(error.get_str("errmsg").unwrap(), "Document failed validation");
        let info = error.get_document("errInfo").unwrap().clone();
        assert_eq!(info.get_i32("failingDocumentId").unwrap(), 1);
        info.get_document("details").unwrap().clone()
    };
    // A server repeats titles and descriptions of schemas beside their places.
    let and = |index: i32, inner: Document| {
        let mut clause = doc! { "index": index };
        let about = ["title", "description"].map(|name| (name, inner.get(name).cloned()));
        about.into_iter().for_each(|(name, text)| _ = text.map(|text| clause.insert(name, text)));
        clause.insert("details", inner);
        doc! { "operatorName": "$and", "clausesNotSatisfied": [clause] }
    };
    let needs = "products.polymorphic: a document whose type is book has title, isbn";
    let missing = and(
        0,
        and(
            1,
            doc! {
                "operatorName": "$or",
                "clausesNotSatisfied": [
                    { "index": 0, "details": {
                        "operatorName": "$ne", "specifiedAs": { "type": { "$ne": "book" } },
                        "reason": "comparison succeeded", "consideredValue": "book",
                    } },
                    { "index": 1, "title": "book", "description": needs, "details": {
                        "operatorName": "$jsonSchema", "title": "book", "description": needs,
                        "schemaRulesNotSatisfied": [{
                            "operatorName": "required",
                            "specifiedAs": { "required": ["title", "isbn"] },
                            "missingProperties": ["isbn"],
                        }],
                    } },
                ],
            },
        ),
    );
    assert_eq!(of(doc! { "_id": 1, "type": "book", "title": "a" }), missing);
    let unknown = and(
        0,
        and(
            0,
            doc! {
                "operatorName": "$jsonSchema",
                "title": "products.polymorphic",
                "description": "`type` says which kind of document it is",
                "schemaRulesNotSatisfied": [{
                    "operatorName": "properties",
                    "propertiesNotSatisfied": [{
                        "propertyName": "type",
                        "description": "the kind of the document: one of book, electronics, clothing",
                        "details": [{
                            "operatorName": "enum",
                            "specifiedAs": { "enum": ["book", "electronics", "clothing"] },
                            "reason": "value was not found in enum",
                            "consideredValue": "car",
                        }],
                    }],
                }],
            },
        ),
    );
    assert_eq!(of(doc! { "_id": 1, "type": "car" }), unknown);
    door.finish();
}

fn options(door: &Door) -> Document {
    let listed = door.rows(doc! { "listCollections": 1, "filter": { "name": "products" } });
    listed[0].get_document("options").unwrap().clone()
}

fn the_users_validator_stays_beside_it(at: At) {
    let door = at.door("beside");
    let own = doc! { "price": { "$gte": 0 } };
    door.must(doc! { "create": "products", "validator": own.clone(), "validationLevel": "moderate" });
    door.apply(products());
    let whole = options(&door);
    let parts = whole.get_document("validator").unwrap().get_array("$and").unwrap().clone();
    assert_eq!((parts.len(), parts[0].as_document().unwrap()), (2, &own), "{whole}");
    assert_eq!(insert(&door, book(1)), 121, "no price");
    let mut priced = book(1);
    priced.insert("price", 5);
    assert_eq!(insert(&door, priced), 0);
    // A client changes its own part.
    let other = doc! { "title": { "$type": "string" } };
    door.must(doc! { "collMod": "products", "validator": other.clone() });
    assert_eq!(insert(&door, book(2)), 0);
    assert_eq!(insert(&door, doc! { "_id": 3, "type": "book", "title": 5, "isbn": "x" }), 121);
    assert_eq!(insert(&door, doc! { "_id": 3, "type": "book", "title": "a" }), 121);
    door.must(doc! { "pleach": "drop", "rule": "products.polymorphic" });
    let back = options(&door);
    assert_eq!(
        (back.get_document("validator").unwrap(), back.get_str("validationLevel").ok()),
        (&other, Some("moderate"))
    );
    assert_eq!(insert(&door, doc! { "_id": 3, "title": "a" }), 0);
    assert!(door.indexes(&mut door.client(), "products").is_empty());
    door.finish();
}

fn documents_from_before_are_listed_and_left(at: At) {
    let door = at.door("kinds_before");
    door.must(doc! { "insert": "products", "documents": [
        { "_id": 1, "type": "book", "title": "a", "isbn": "1" }, { "_id": 2, "type": "book", "title": "a" },
        { "_id": 3, "title": "a" }, { "_id": 4, "type": "car" },
    ] });
    door.must(doc! { "insert": "reviews", "documents": [{ "_id": 1, "productId": 2 }] });
    let kinds = "polymorphic: { discriminator: type, kinds: { book: { required: [title, isbn] } } }";
    let count = "computed: { reviewCount: { count: reviews, by: productId } }";
    let declaration = format!("database: {}\ncollections:\n  products:\n    {kinds}\n    {count}\n", door.db);
    let shop = Shop::new(&format!("kinds-before-{}", at.name()), &declaration);
    let run = |words: &[&str]| shop.command(words).args(["--server", &door.uri()]).output().unwrap();
    let plan = run(&["plan"]);
    assert!(text(&plan).1.contains("checks documents from now on: 4 documents, 3 break it"), "{plan:?}");
    let applied = run(&["apply"]);
    assert_eq!(text(&applied).0, Some(0), "{applied:?}");
    let audit = run(&["audit", "--db", &door.db, "--json"]);
    assert_eq!(text(&audit).0, Some(1), "{audit:?}");
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    let told: Vec<(i64, &str, &str, &str)> = audit["drift"]
        .as_array()
        .unwrap()
        .iter()
        .map(|drift| {
            assert_eq!(drift["rule"], "products.polymorphic");
            let text = |name: &str| drift[name].as_str().unwrap_or("-");
            (drift["_id"].as_i64().unwrap(), text("kind"), text("field"), text("problem"))
        })
        .collect();
    let expected = [
        (2, "book", "isbn", "is missing"),
        (3, "-", "type", "is missing"),
        (4, "car", "type", "is no kind: the kinds are book"),
    ];
    assert_eq!(told, expected, "{audit}");
    let shown = run(&["audit", "--db", &door.db]);
    assert!(text(&shown).1.contains("isbn") && text(&shown).1.contains("by hand"), "{shown:?}");
    let before = door.all("products");
    let repaired = run(&["repair", "--db", &door.db, "--json"]);
    assert_eq!(text(&repaired).0, Some(1), "{repaired:?}");
    assert_eq!(door.all("products"), before, "left as they were");
    // Rules go on with such documents, and what makes one valid passes.
    door.must(doc! { "insert": "reviews", "documents": [{ "_id": 2, "productId": 2 }, { "_id": 3, "productId": 3 }] });
    let products = door.all("products");
    let counted = |at: usize| products[at].get_i32("reviewCount").ok();
    assert_eq!((counted(1), counted(2)), (Some(2), Some(1)), "{products:?}");
    assert_eq!(update(&door, 2, doc! { "$set": { "note": 1 } }), 0, "as invalid as before");
    assert_eq!(update(&door, 2, doc! { "$set": { "isbn": "2" } }), 0);
    assert_eq!(update(&door, 2, doc! { "$unset": { "isbn": 1 } }), 121, "it was valid");
    // Where the user's own validator is strict, it stays so, and `plan` says what that means.
    door.must(doc! { "pleach": "drop", "rule": "products.polymorphic" });
    door.must(doc! { "collMod": "products", "validator": { "title": { "$ne": 5 } } });
    let plan = run(&["plan"]);
    assert!(text(&plan).1.contains("is strict"), "{plan:?}");
    door.finish();
}

fn other_rules_keep_their_fields(at: At) {
    let door = at.door("stacked_kinds");
    let mut rules = products();
    rules.get_document_mut("products").unwrap().get_document_mut("polymorphic").unwrap().insert(
        "kinds",
        doc! {
            "book": { "required": ["title"], "schema": { "additionalProperties": false, "properties": { "authorId": {}, "price": {} } } },
            "gift": {},
        },
    );
    let collection = rules.get_document_mut("products").unwrap();
    collection.insert("computed", doc! { "avgRating": { "avg": "rating", "from": "reviews", "by": "productId" } });
    collection
        .insert("extended_reference", doc! { "author": { "from": "authors", "by": "authorId", "fields": ["name"] } });
    let alone = doc! { "products": { "polymorphic": collection.get_document("polymorphic").unwrap().clone() } };
    door.apply(alone);
    door.must(doc! { "insert": "products", "documents": [{ "_id": 0, "type": "book", "title": "early" }] });
    door.apply(rules.clone());
    let mut window = rules;
    window.get_document_mut("products").unwrap().insert(
        "subset",
        doc! { "last": { "from": "reviews", "by": "productId", "sort": { "_id": -1 }, "keep": 1, "fields": ["rating"] } },
    );
    door.apply(window);
    door.must(doc! { "insert": "authors", "documents": [{ "_id": 7, "name": "Jane" }] });
    assert_eq!(insert(&door, doc! { "_id": 1, "type": "book", "title": "Emma", "authorId": 7, "price": 5 }), 0);
    assert_eq!(insert(&door, doc! { "_id": 2, "type": "book", "title": "Emma", "other": 1 }), 121);
    door.must(doc! { "insert": "reviews", "documents": [{ "_id": 1, "productId": 1, "rating": 4 }] });
    door.must(doc! { "update": "authors", "updates": [{ "q": { "_id": 7 }, "u": { "$set": { "name": "J. A." } } }] });
    let found = door.rows(doc! { "find": "products", "filter": { "_id": 1 } });
    assert_eq!(found[0].get_f64("avgRating").unwrap(), 4.0);
    assert_eq!(found[0].get_document("author").unwrap(), &doc! { "name": "J. A." });
    assert_eq!(found[0].get_array("last").unwrap(), &vec![Bson::from(doc! { "rating": 4 })]);
    let audit = door.must(doc! { "pleach": "audit" });
    assert_eq!(audit.get_str("outcome").unwrap(), "right", "{audit}");
    // A field that is dropped stays as an ordinary one, and documents stay valid.
    door.must(doc! { "pleach": "drop", "rule": "products.avgRating" });
    assert_eq!(update(&door, 1, doc! { "$set": { "price": 6 } }), 0);
    let bucketed = doc! { "products": {
        "polymorphic": { "discriminator": "type", "kinds": { "a": {} } },
        "bucket": { "time": "at", "by": ["s"], "every": "day" },
    } };
    let reply = door.applied(&mut door.client(), bucketed).to_string();
    assert!(reply.contains("no rule can say what it must be like"), "{reply}");
    door.finish();
}

fn a_kinds_index_serves_filters_that_name_it(at: At) {
    let door = at.door("kind_index");
    door.apply(products());
    door.insert(&mut door.client(), "products", (0..50).map(book).collect());
    let explain = |filter: Document| {
        door.must(doc! { "explain": { "find": "products", "filter": filter }, "verbosity": "queryPlanner" })
    };
    for (filter, index) in [
        (doc! { "type": "book", "isbn": "i1" }, Some("isbn_1")),
        (doc! { "$and": [{ "isbn": "i1" }, { "type": "book" }] }, Some("isbn_1")),
        (doc! { "type": { "$in": ["book"] }, "isbn": "i1" }, Some("isbn_1")),
        (doc! { "type": "electronics", "brand": "x" }, Some("brand_1")),
        (doc! { "price": 5 }, Some("price_1")),
        (doc! { "type": "book", "price": 5 }, Some("price_1")),
        (doc! { "isbn": "i1" }, None),
        (doc! { "type": { "$in": ["book", "clothing"] }, "isbn": "i1" }, None),
    ] {
        let plan = explain(filter.clone());
        let winning = plan.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap().to_string();
        match index {
            Some(index) => assert!(winning.contains(index), "{filter}: {winning}"),
            None => assert!(winning.contains("COLLSCAN"), "{filter}: {winning}"),
        }
        assert!(!plan.contains_key("pleach"), "{plan}");
    }
    let notes = explain(doc! { "type": "book", "brand": "x" });
    let notes = notes.get_document("pleach").unwrap().get_array("notes").unwrap().clone();
    assert!(notes[0].as_str().unwrap().contains("`brand`, a field of electronics only"), "{notes:?}");
    let command = doc! { "pleach": "explain", "command": { "count": "products", "query": { "type": "bok" } } };
    let notes = door.must(command);
    assert!(notes.get_array("notes").unwrap()[0].as_str().unwrap().contains("no kind is called bok"), "{notes}");
    door.finish();
}

fn a_changed_declaration_is_a_difference(at: At) {
    let door = at.door("changed_kinds");
    door.apply(products());
    door.must(doc! { "insert": "products", "documents": [book(1)] });
    let change = |kinds: Document| {
        doc! { "products": { "polymorphic": { "discriminator": "type", "kinds": kinds } } }
    };
    let declared =
        change(doc! { "book": { "required": ["title", "pages"], "indexes": [{ "key": { "pages": 1 } }] }, "song": {} });
    let declaration = doc! { "database": &door.db, "collections": declared.clone() };
    let plan =
        door.client().command(&doc! { "pleach": "plan", "declaration": declaration, "$db": "admin" }).unwrap().document;
    let kinds: Vec<&str> = plan
        .get_array("steps")
        .unwrap()
        .iter()
        .map(|step| step.as_document().unwrap().get_str("kind").unwrap())
        .collect();
    assert_eq!(kinds, ["index", "validator"], "{plan}");
    let shown = plan.to_string();
    assert!(shown.contains("pages") && !shown.contains("isbn"), "the old part goes: {shown}");
    assert_eq!(plan.get_array("rules").unwrap()[0].as_document().unwrap().get_i64("breaking").unwrap(), 1);
    door.apply(declared);
    assert_eq!(door.indexes(&mut door.client(), "products"), ["pages_1"]);
    assert_eq!(insert(&door, doc! { "_id": 2, "type": "song" }), 0);
    assert_eq!(insert(&door, doc! { "_id": 3, "type": "clothing", "title": "a", "size": "M" }), 121);
    assert_eq!(insert(&door, doc! { "_id": 3, "type": "book", "title": "a", "isbn": "x" }), 121);
    // Dropped by a client, it is constrained again.
    door.must(doc! { "drop": "products" });
    assert_eq!(insert(&door, doc! { "_id": 1 }), 121);
    door.must(doc! { "pleach": "drop", "rule": "products.polymorphic", "with_data": true });
    assert_eq!(insert(&door, doc! { "_id": 1 }), 0);
    assert!(options(&door).get_document("validator").map_or(true, Document::is_empty));
    door.finish();
}

fn kinds_are_inferred(at: At) {
    let place = Place::new(at, "kinds-inferred");
    let electronics = |id: i32| doc! { "_id": id, "type": "electronics", "title": "r", "volts": if id % 2 == 0 { Bson::from(5) } else { Bson::from(2.5) } };
    place.must(doc! { "insert": "products", "documents": (0..20).map(book).collect::<Vec<_>>() });
    place.must(doc! { "insert": "products", "documents": (20..40).map(electronics).collect::<Vec<_>>() });
    place.must(doc! { "insert": "products", "documents": [{ "_id": 99, "title": "from before" }] });
    let infer = |collection: &str, more: &[&str]| {
        let db = place.db.clone();
        let mut words = vec!["check", "--infer", "--db", &db, "--collection", collection];
        words.extend(more);
        place.run(&words)
    };
    let proposed = infer("products", &[]);
    let (status, yaml, _) = text(&proposed);
    assert_eq!(status, Some(0), "{proposed:?}");
    assert!(yaml.contains("discriminator: type") && yaml.contains("required: [isbn, title]"), "{yaml}");
    assert!(yaml.contains("volts: { bsonType: number }") && yaml.contains("# 1 of 41 documents"), "{yaml}");
    place.shop.declare(yaml);
    let checked = place.shop.run(&["check", "--declare", "pleach.yaml"]);
    assert_eq!(text(&checked).0, Some(0), "{checked:?}");
    let answer: Value = serde_json::from_slice(&infer("products", &["--json"]).stdout).unwrap();
    assert_eq!((answer["discriminator"].as_str(), answer["breaking"].as_i64()), (Some("type"), Some(1)), "{answer}");
    place.must(doc! { "insert": "plain", "documents": [{ "_id": 1, "a": "x" }, { "_id": 2, "a": "x" }] });
    assert_eq!(infer("plain", &[]).status.code(), Some(1));
    assert_eq!(infer("nothing", &[]).status.code(), Some(2));
    // A kind that is only in the middle of a collection is found too.
    for part in 0..6 {
        let kind = |id: i32| match part {
            2 | 3 => doc! { "_id": id, "type": "toy", "age": 3 },
            _ if id % 2 == 0 => doc! { "_id": id, "type": "book", "isbn": "x" },
            _ => doc! { "_id": id, "type": "disc", "label": "x" },
        };
        let documents: Vec<Document> = (part * 1_000..(part + 1) * 1_000).map(kind).collect();
        place.must(doc! { "insert": "aged", "documents": documents });
    }
    let aged = infer("aged", &[]);
    assert!(text(&aged).1.contains("toy"), "{aged:?}");
}

fn a_unique_index_that_cannot_be_made_stops_apply(at: At) {
    let door = at.door("two_books");
    door.must(doc! { "insert": "products", "documents": [
        { "_id": 1, "type": "book", "title": "a", "isbn": "x" }, { "_id": 2, "type": "book", "title": "b", "isbn": "x" },
    ] });
    let reply = door.applied(&mut door.client(), products());
    let told = reply.to_string();
    assert!(told.contains("needs a unique index on isbn") && told.contains("leave out `unique`"), "{told}");
    assert!(door.indexes(&mut door.client(), "products").is_empty());
    assert_eq!(insert(&door, doc! { "_id": 3 }), 0, "nothing is constrained");
    door.finish();
}

/// Writers go on while the rule comes and the server is killed: afterwards it is whole, and what was acknowledged is there.
#[test]
fn a_kill_while_the_rule_comes_leaves_it_whole() {
    for (round, pause) in [0, 3, 12, 40].into_iter().enumerate() {
        let declaration = "database: shop\ncollections:\n  products:\n    polymorphic: { discriminator: type, kinds: { book: { required: [isbn], indexes: [{ key: { isbn: 1 }, unique: true }] } } }\n";
        let shop = Shop::new(&format!("kinds-killed-{round}"), declaration);
        let serving = shop.serve(&[]);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let acknowledged = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut client, mut ids) = (serving.client(), Vec::new());
                for id in 0.. {
                    // Every third one is no book.
                    let document = if id % 3 == 0 {
                        doc! { "_id": id }
                    } else {
                        doc! { "_id": id, "type": "book", "isbn": id }
                    };
                    let reply = client.command(&doc! { "insert": "products", "documents": [document], "$db": "shop" });
                    match reply {
                        Ok(reply) if code(&reply.document) == 0 && reply.document.get_i32("n").ok() == Some(1) => {
                            ids.push(id)
                        }
                        Ok(_) if !stop.load(std::sync::atomic::Ordering::Relaxed) => {}
                        _ => break,
                    }
                }
                ids
            });
            let applying = scope.spawn(|| {
                let mut client = serving.client();
                let declared = Bson::from(declaration);
                let _lost = client.command(&doc! { "pleach": "apply", "declaration": declared, "$db": "admin" });
            });
            std::thread::sleep(std::time::Duration::from_millis(20 + pause));
            serving.signal("KILL");
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            applying.join().unwrap();
            writer.join().unwrap()
        });
        serving.stop();
        let serving = shop.serve(&["--declare", "pleach.yaml"]);
        let mut client = serving.client();
        let mut run = |mut command: Document| {
            command.insert("$db", "shop");
            client.command(&command).unwrap().document
        };
        for _ in 0..200 {
            let status = run(doc! { "pleach": "status" });
            let rules = status.get_array("rules").unwrap();
            if rules.iter().any(|rule| rule.as_document().unwrap().get_str("state").ok() == Some("on")) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(code(&run(doc! { "insert": "products", "documents": [{ "_id": -1 }] })), 121, "round {round}");
        let twice = doc! { "insert": "products", "documents": [{ "_id": -1, "type": "book", "isbn": -5 }, { "_id": -2, "type": "book", "isbn": -5 }] };
        assert_eq!(code(&run(twice)), 11000, "round {round}");
        let counted = |reply: &Document| reply.get_i32("n").unwrap();
        let there = counted(&run(doc! { "count": "products", "query": { "_id": { "$in": acknowledged.clone() } } }));
        assert_eq!(usize::try_from(there).unwrap(), acknowledged.len(), "round {round}");
        let audit = run(doc! { "pleach": "audit" });
        let broken = counted(&run(doc! { "count": "products", "query": { "type": { "$exists": false } } }));
        assert_eq!(audit.get_i64("drifted").unwrap(), i64::from(broken), "round {round}: {audit}");
        drop(client);
        serving.stop();
    }
}

fn a_text_index_searches_all_kinds_and_goes_with_the_rule(at: At) {
    let door = at.door("kinds_text");
    let mut rules = products();
    let block = rules.get_document_mut("products").unwrap().get_document_mut("polymorphic").unwrap();
    block.insert("text", doc! { "title": 10, "description": 1 });
    door.apply(rules.clone());
    let names = door.indexes(&mut door.client(), "products");
    assert!(names.contains(&"title_text_description_text".to_owned()), "{names:?}");
    door.apply(rules);
    assert_eq!(door.indexes(&mut door.client(), "products"), names, "it is there already");
    door.must(doc! { "insert": "products", "documents": [
        { "_id": 1, "type": "book", "title": "green tea", "isbn": "1" },
        { "_id": 2, "type": "clothing", "title": "shirt", "size": "M", "description": "green" },
        { "_id": 3, "type": "clothing", "title": "hat", "size": "M" },
    ] });
    let found = door.rows(doc! { "find": "products", "filter": { "$text": { "$search": "green" } }, "sort": { "score": { "$meta": "textScore" } } });
    let ids: Vec<i32> = found.iter().map(|row| row.get_i32("_id").unwrap()).collect();
    assert_eq!(ids, [1, 2], "a title weighs more");
    door.must(doc! { "pleach": "drop", "rule": "products.polymorphic" });
    assert!(door.indexes(&mut door.client(), "products").is_empty());
    door.finish();
}
