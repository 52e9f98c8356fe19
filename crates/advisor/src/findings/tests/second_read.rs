//! References that reads follow: by `$lookup`, one by one on a connection, and several at once; and what speaks against a copy.

use crate::testing::{Fixture, evidence, id_of_age, slow};
use crate::{Finding, Severity};
use bson::oid::ObjectId;
use bson::{Document, doc};

const SYMPTOM: &str = "second_read";

fn customer_id(n: i64) -> ObjectId {
    id_of_age(500 - n % 100, (n % 100) as u32)
}

fn customer(n: i64, name: &str) -> Document {
    doc! { "_id": customer_id(n), "name": format!("{name} {n}"), "tier": if n % 2 == 0 { "gold" } else { "none" }, "notes": "x".repeat(900) }
}

/// 100 customers, 600 orders of about 300 bytes.
async fn shop(name: &str) -> Fixture {
    let name = name.to_owned();
    let orders = (0..600).map(|n| {
        doc! { "_id": n, "customerId": customer_id(n * 37), "placed": bson::DateTime::from_millis(n), "text": "y".repeat(240) }
    });
    Fixture::new().with("customers", (0..100).map(move |n| customer(n, &name))).await.with("orders", orders).await
}

fn lookup(at: i64) -> String {
    let stage = doc! { "from": "customers", "localField": "customerId", "foreignField": "_id", "as": "customer" };
    let pipeline = vec![
        doc! { "$match": { "_id": at } },
        doc! { "$lookup": stage },
        doc! { "$project": { "customer.name": 1, "placed": 1 } },
    ];
    let command = doc! { "aggregate": "orders", "pipeline": pipeline, "cursor": {} };
    slow(at * 1_000, "conn1", "orders", command, doc! { "docsExamined": 2, "keysExamined": 2, "nreturned": 1 })
}

fn read(at: i64, connection: &str, collection: &str, filter: Document, projection: Document) -> String {
    let command = doc! { "find": collection, "filter": filter, "projection": projection };
    slow(at, connection, collection, command, doc! { "docsExamined": 1, "nreturned": 1 })
}

/// Orders that are read alone.
fn alone(from: i64, count: i64) -> impl Iterator<Item = String> {
    (from..from + count).map(|n| read(n * 1_000, "conn9", "orders", doc! { "_id": n }, doc! {}))
}

fn update(at: i64, changed: &str) -> String {
    let command =
        doc! { "q": { "_id": customer_id(at) }, "u": { "$set": { changed: "new" } }, "multi": false, "upsert": false };
    slow(at * 1_000, "conn2", "customers", command, doc! { "type": "update", "nMatched": 1, "nModified": 1 })
}

async fn one(fixture: Fixture) -> Finding {
    fixture.one(SYMPTOM).await
}

#[tokio::test]
async fn a_lookup_in_much_of_the_reads_is_found_with_the_fields_that_are_used() {
    let finding = one(shop("Ada").await.logged((0..60).map(lookup).chain(alone(100, 140)))).await;
    assert_eq!(
        (&*finding.collection, &*finding.field, finding.pattern),
        ("orders", "customerId", "extended_reference")
    );
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    let figures = evidence(&finding);
    assert_eq!((figures.get_i32("followed").unwrap(), figures.get_i32("reads").unwrap()), (60, 200));
    let declaration = finding.declaration.unwrap();
    assert!(declaration.contains("customer: { from: customers, by: customerId, fields: [name] }"), "{declaration}");
    assert_eq!(finding.shown.len(), 3);
}

#[tokio::test]
async fn a_lookup_with_a_pipeline_of_its_own_is_the_same() {
    let line = |at: i64| {
        let inner = vec![
            doc! { "$match": { "$expr": { "$eq": ["$_id", "$$c"] } } },
            doc! { "$project": { "name": 1, "tier": 1, "_id": 0 } },
        ];
        let stage = doc! { "from": "customers", "let": { "c": "$customerId" }, "pipeline": inner, "as": "customer" };
        let command = doc! { "aggregate": "orders", "pipeline": [{ "$lookup": stage }], "cursor": {} };
        slow(at * 1_000, "conn1", "orders", command, doc! { "docsExamined": 2, "nreturned": 1 })
    };
    let declaration = one(shop("Ada").await.logged((0..30).map(line))).await.declaration.unwrap();
    assert!(declaration.contains("fields: [name, tier]"), "{declaration}");
}

#[tokio::test]
async fn below_a_fifth_it_is_a_note_and_far_below_nothing() {
    let finding = one(shop("Ada").await.logged((0..30).map(lookup).chain(alone(100, 300)))).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
    let few = shop("Ada").await.logged((0..4).map(lookup).chain(alone(100, 300)));
    assert_eq!(few.found(SYMPTOM).await.len(), 0);
}

/// Over 100 an hour is enough, however many other reads there are; but only where ten minutes were seen.
#[tokio::test]
async fn many_an_hour_are_a_symptom_too() {
    let others = |step: i64| (0..2_000).map(move |n| read(n * step, "conn9", "orders", doc! { "_id": n }, doc! {}));
    let long = shop("Ada").await.logged((0..120).map(lookup).chain(others(900)));
    let finding = one(long).await;
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    assert!(evidence(&finding).get_f64("an_hour").unwrap() > 200.0);
    let short = shop("Ada").await.logged((0..120).map(|n| lookup(n / 2)).chain(others(20)));
    let finding = one(short).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
    assert!(!evidence(&finding).contains_key("an_hour"));
}

#[tokio::test]
async fn reads_by_ids_that_the_read_before_gave_are_found_in_a_log() {
    // One by one, and several at once as populate does: order n refers to customer n * 37.
    let lines = (0..40).flat_map(|n| {
        let (at, connection) = (n * 10_000, format!("conn{}", n % 3));
        let ids = vec![customer_id((n + 1) * 37), customer_id((n + 2) * 37)];
        [
            read(at, &connection, "orders", doc! { "_id": n }, doc! {}),
            read(at + 20, &connection, "customers", doc! { "_id": customer_id(n * 37) }, doc! { "name": 1, "tier": 1 }),
            read(at + 5_100, &connection, "orders", doc! { "_id": { "$gt": n, "$lte": n + 2 } }, doc! {}),
            read(at + 5_150, &connection, "customers", doc! { "_id": { "$in": ids } }, doc! { "name": 1, "tier": 1 }),
        ]
    });
    let finding = one(shop("Ada").await.logged(lines)).await;
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    let figures = evidence(&finding);
    assert_eq!((figures.get_i32("followed").unwrap(), figures.get_i32("reads").unwrap()), (80, 80));
    assert!(finding.declaration.unwrap().contains("fields: [name, tier]"));
}

#[tokio::test]
async fn reads_of_two_collections_that_have_nothing_to_do_with_each_other_are_none() {
    // The customer that is read then is not the one of the order.
    let unrelated = (0..60).flat_map(|n| {
        let other = doc! { "_id": customer_id(n * 37 + 1) };
        [
            read(n * 1_000, "conn1", "orders", doc! { "_id": n }, doc! {}),
            read(n * 1_000 + 5, "conn1", "customers", other, doc! {}),
        ]
    });
    assert_eq!(shop("Ada").await.logged(unrelated).found(SYMPTOM).await.len(), 0);
    // On two connections, and long after.
    let apart = (0..60).flat_map(|n| {
        let own = || doc! { "_id": customer_id(n * 37) };
        [
            read(n * 20_000, "conn1", "orders", doc! { "_id": n }, doc! {}),
            read(n * 20_000 + 5, "conn2", "customers", own(), doc! {}),
            read(n * 20_000 + 9_000, "conn1", "customers", own(), doc! {}),
        ]
    });
    assert_eq!(shop("Ada").await.logged(apart).found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn a_source_that_changes_often_speaks_against_it() {
    let busy = shop("Ada").await.logged((0..60).map(lookup).chain((0..20).map(|n| update(n, "name"))));
    let finding = one(busy).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
    assert!(finding.verdict.starts_with("not worth it here, because"), "{}", finding.verdict);
    assert!(finding.declaration.unwrap().contains("lag: 5s"));
    // Other fields, and few changes, do not matter.
    let other = shop("Ada").await.logged((0..60).map(lookup).chain((0..20).map(|n| update(n, "notes"))));
    assert_eq!(one(other).await.severity, Severity::Warn);
    let seldom = shop("Ada").await.logged((0..60).map(lookup).chain((0..5).map(|n| update(n, "name"))));
    assert_eq!(one(seldom).await.severity, Severity::Warn);
}

#[tokio::test]
async fn a_large_copy_speaks_against_it() {
    let large = shop(&"A".repeat(120)).await.logged((0..60).map(lookup));
    let finding = one(large).await;
    assert_eq!((finding.severity, finding.against.len()), (Severity::Note, 1), "{finding:#?}");
}

/// Which fields are used nobody knows: those that fit are proposed, and if the documents are far too large, nothing is.
#[tokio::test]
async fn of_whole_documents_those_fields_that_fit_are_proposed() {
    let fixture = async |notes: usize| {
        let customers = (0..100).map(|n| {
            doc! { "_id": customer_id(n), "name": format!("Ada {n}"), "notes": "x".repeat(notes), "tier": "gold" }
        });
        let orders = (0..600).map(|n| doc! { "_id": n, "customerId": customer_id(n * 37), "text": "y".repeat(240) });
        let whole = (0..60).flat_map(|n| {
            let own = doc! { "_id": customer_id(n * 37) };
            [
                read(n * 1_000, "conn1", "orders", doc! { "_id": n }, doc! {}),
                read(n * 1_000 + 5, "conn1", "customers", own, doc! {}),
            ]
        });
        let fixture = Fixture::new().with("customers", customers).await.with("orders", orders).await;
        one(fixture.logged(whole)).await
    };
    let some = fixture(400).await;
    assert_eq!((some.severity, some.against.len()), (Severity::Warn, 1), "{some:#?}");
    assert!(some.declaration.unwrap().contains("fields: [name, tier]"));
    assert_eq!(fixture(2).await.declaration.unwrap().matches("fields: [name, notes, tier]").count(), 1);
    let large = fixture(1_500).await;
    assert_eq!((large.severity, large.against.len()), (Severity::Note, 2), "{large:#?}");
}

#[tokio::test]
async fn references_that_lead_nowhere_speak_against_it() {
    let orders = (0..600).map(|n| {
        let id = if n % 5 == 0 { customer_id(n) } else { id_of_age(1_000, n as u32 + 5_000) };
        doc! { "_id": n, "customerId": id, "text": "y".repeat(240) }
    });
    let fixture =
        Fixture::new().with("customers", (0..100).map(|n| customer(n, "Ada"))).await.with("orders", orders).await;
    let finding = one(fixture.logged((0..60).map(lookup))).await;
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.verdict.contains("lead to no document"), "{}", finding.verdict);
}

#[tokio::test]
async fn what_pleach_reads_itself_is_not_counted() {
    let own = (0..60).map(|at| {
        let line = lookup(at);
        line.replace("\"attr\":{", "\"attr\":{\"appName\":\"pleach\",")
    });
    assert_eq!(shop("Ada").await.logged(own).found(SYMPTOM).await.len(), 0);
}

/// Ids in the items of an array, a list of plain ids, and a key that is unique.
#[tokio::test]
async fn references_stand_in_arrays_and_lead_to_other_keys() {
    let products =
        (0..50).map(|n| doc! { "_id": format!("product {n}"), "title": format!("Title {n}"), "text": "x".repeat(300) });
    let item = |n: i64| doc! { "productId": format!("product {}", n % 50), "pieces": n, "note": "z".repeat(90) };
    let orders = (0..400).map(move |n| {
        let mail = format!("c{}@example.org", n % 80);
        doc! { "_id": n, "items": [item(n), item(n * 7)], "mail": mail, "text": "y".repeat(300) }
    });
    let customers =
        (0..80).map(|n| doc! { "_id": n + 7_000, "email": format!("c{n}@example.org"), "name": format!("Ada {n}") });
    let fixture = Fixture::new().with("products", products).await.with("orders", orders).await;
    let fixture = fixture.with("customers", customers).await;
    let unique = document::op::AdminOp::CreateIndexes {
        ns: fixture.world.ns("customers"),
        indexes: vec![document::Doc::from(doc! { "key": { "email": 1 }, "name": "email_1", "unique": true })],
    };
    let mut session = document::backend::Session::default();
    let context = fixture.world.context();
    document::backend::Backend::admin(&fixture.world.front, &mut session, &context, unique).await.unwrap();
    let populated = (0..30).flat_map(|n| {
        let ids = vec![format!("product {}", n % 50), format!("product {}", n * 7 % 50)];
        [
            read(n * 6_000, "conn1", "orders", doc! { "_id": n }, doc! {}),
            read(n * 6_000 + 3, "conn1", "products", doc! { "_id": { "$in": ids } }, doc! { "title": 1 }),
        ]
    });
    let by_mail = (0..30).map(|n| {
        let stage = doc! { "from": "customers", "localField": "mail", "foreignField": "email", "as": "c",
        "pipeline": [{ "$project": { "name": 1 } }] };
        let command = doc! { "aggregate": "orders", "pipeline": [{ "$lookup": stage }], "cursor": {} };
        slow(n * 6_000, "conn2", "orders", command, doc! { "docsExamined": 2, "nreturned": 1 })
    });
    let mut found = fixture.logged(populated.chain(by_mail)).found(SYMPTOM).await;
    found.sort_by(|one, other| one.field.cmp(&other.field));
    let said: Vec<(&str, Severity)> = found.iter().map(|finding| (&*finding.field, finding.severity)).collect();
    assert_eq!(said, [("items.productId", Severity::Warn), ("mail", Severity::Warn)], "{found:#?}");
    let declared = |at: usize| found[at].declaration.clone().unwrap();
    let items = "items.product: { from: products, by: items.productId, fields: [title] }";
    assert!(declared(0).contains(items), "{}", declared(0));
    let mail = "{ from: customers, by: mail, match: email, fields: [name] }";
    assert!(declared(1).contains(mail), "{}", declared(1));
}
