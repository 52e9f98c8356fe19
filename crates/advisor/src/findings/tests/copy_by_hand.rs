//! Copies that are kept by hand: found, with the wrong ones counted, and what is no copy.

use crate::Severity;
use crate::testing::{Fixture, date, evidence, id_of_age};
use bson::{Document, doc};

const SYMPTOM: &str = "copy_by_hand";

fn customer(n: i64) -> Document {
    doc! { "_id": id_of_age(900 - n, n as u32), "name": format!("Customer {n}"), "tier": if n % 2 == 0 { "gold" } else { "none" },
    "address": { "city": format!("city {}", n % 70) }, "country": "DE" }
}

fn customer_id(n: i64) -> bson::oid::ObjectId {
    id_of_age(900 - n, n as u32)
}

/// Order `n` is of this customer.
fn of(n: i64) -> i64 {
    (n * 37) % 100
}

async fn shop(order: impl Fn(i64) -> Document) -> Fixture {
    let orders = (0..600).map(|n| {
        let mut doc = doc! { "_id": n, "customerId": customer_id(of(n)), "country": "DE", "total": n * 3 };
        doc.extend(order(n));
        doc
    });
    Fixture::new().with("customers", (0..100).map(customer)).await.with("orders", orders).await
}

fn nested(n: i64) -> Document {
    doc! { "customer": { "name": format!("Customer {}", of(n)), "tier": if of(n) % 2 == 0 { "gold" } else { "none" } } }
}

#[tokio::test]
async fn a_right_copy_is_a_note_and_wrong_ones_are_counted() {
    let finding = shop(nested).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.severity), ("orders", "customer", Severity::Note));
    assert!(
        finding.declaration.unwrap().contains("customer: { from: customers, by: customerId, fields: [name, tier] }")
    );

    let stale = |n: i64| {
        if n % 50 == 7 {
            doc! { "customer": { "name": "before", "tier": "gold" } }
        } else {
            nested(n)
        }
    };
    let finding = shop(stale).await.one(SYMPTOM).await;
    let figures = evidence(&finding);
    assert_eq!(
        (finding.severity, figures.get_i32("checked").unwrap(), figures.get_i32("wrong").unwrap()),
        (Severity::Act, 600, 12)
    );
    assert_eq!(figures.get_array("examples").unwrap().len(), 5);

    let many = |n: i64| {
        if n % 5 == 0 {
            doc! { "customer": { "name": "before", "tier": "gold" } }
        } else {
            nested(n)
        }
    };
    assert_eq!(shop(many).await.one(SYMPTOM).await.severity, Severity::Urgent);
}

#[tokio::test]
async fn flat_copies_are_one_rule_with_their_names() {
    let flat = |n: i64| doc! { "customerName": format!("Customer {}", of(n)), "town": format!("city {}", of(n) % 70) };
    let mut found = shop(flat).await.found(SYMPTOM).await;
    found.sort_by(|left, right| left.field.cmp(&right.field));
    assert_eq!(found.iter().map(|it| &*it.field).collect::<Vec<_>>(), ["customerName", "town"]);
    for finding in found {
        let declaration = finding.declaration.unwrap();
        let expected =
            "customer: { from: customers, by: customerId, fields: { customerName: name, town: address.city } }";
        assert!(declaration.contains(expected), "{declaration}");
    }
}

#[tokio::test]
async fn copies_in_arrays_are_beside_their_references() {
    let lines = |n: i64| {
        let line = |k: i64| doc! { "who": customer_id(of(n + k)), "info": { "name": format!("Customer {}", of(n + k)) }, "pieces": k };
        doc! { "lines": [line(0), line(1), line(5)] }
    };
    let finding = shop(lines).await.one(SYMPTOM).await;
    assert_eq!((&*finding.field, evidence(&finding).get_i32("checked").unwrap()), ("lines.info", 1_800));
    assert!(finding.declaration.unwrap().contains("lines.info: { from: customers, by: lines.who, fields: [name] }"));

    let lists = |n: i64| {
        let who = [of(n), of(n + 1)];
        doc! { "with": who.map(customer_id).to_vec(), "names": who.map(|n| doc! { "name": format!("Customer {n}") }).to_vec() }
    };
    let finding = shop(lists).await.one(SYMPTOM).await;
    assert!(finding.declaration.unwrap().contains("names: { from: customers, by: with, fields: [name], each: true }"));
}

#[tokio::test]
async fn a_reference_in_its_copy_stays_and_the_rule_stands_beside_it() {
    let inside = |n: i64| doc! { "buyer": { "_id": customer_id(of(n)), "name": format!("Customer {}", of(n)), "note": format!("{n}") } };
    let orders = (0..400).map(|n| {
        let mut doc = doc! { "_id": n };
        doc.extend(inside(n));
        doc
    });
    let fixture = Fixture::new().with("customers", (0..100).map(customer)).await.with("orders", orders).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!(&*finding.field, "buyer");
    let declaration = finding.declaration.unwrap();
    assert!(declaration.contains("buyerCopy: { from: customers, by: buyer._id, fields: [name] }"), "{declaration}");
    assert_eq!(finding.against.len(), 1);
}

#[tokio::test]
async fn copies_that_are_older_than_the_change_of_their_source_look_frozen() {
    // Every third customer was renamed on day 100 before now; orders were written over 300 days.
    let renamed = |n: i64| n % 3 == 0;
    let customers = (0..100).map(|n| {
        let mut doc = customer(n);
        doc.insert("name", if renamed(n) { format!("New {n}") } else { format!("Customer {n}") });
        doc.insert("updatedAt", if renamed(n) { date(100) } else { date(800) });
        doc
    });
    let orders = (0..600).map(|n| {
        let is_old = n / 2 > 100 && renamed(of(n));
        let name = if is_old || !renamed(of(n)) { format!("Customer {}", of(n)) } else { format!("New {}", of(n)) };
        doc! { "_id": n, "customerId": customer_id(of(n)), "placed": date(n / 2), "customer": { "name": name } }
    });
    let fixture = Fixture::new().with("customers", customers).await.with("orders", orders).await;
    let finding = fixture.one(SYMPTOM).await;
    let figures = evidence(&finding);
    assert!(figures.get_i32("wrong").unwrap() > 60, "{figures}");
    assert_eq!((finding.severity, figures.get_bool("frozen").unwrap()), (Severity::Note, true), "{finding:#?}");
    assert!(finding.declaration.unwrap().contains("when_changed: keep"));
}

#[tokio::test]
async fn what_any_values_do_is_none() {
    let chance =
        |n: i64| doc! { "state": if n % 2 == 0 { "gold" } else { "none" }, "flag": true, "zero": 0, "small": n % 3 };
    let found = shop(chance).await.found(SYMPTOM).await;
    assert!(found.is_empty(), "{found:#?}");
}
