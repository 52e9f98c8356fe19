//! Documents of an older shape, and fields that are optional.

use crate::Severity;
use crate::testing::{Fixture, evidence, id_of_age};
use bson::{Document, doc};

const SYMPTOM: &str = "old_shapes";

/// Users, the oldest `old` of 400 as `first` makes them.
fn users(old: i64, first: impl Fn(i64) -> Document, then: impl Fn(i64) -> Document) -> impl Iterator<Item = Document> {
    (0..400).map(move |n| {
        let mut doc = doc! { "_id": id_of_age(400 - n, n as u32), "name": format!("user {n}") };
        doc.extend(if n < old { first(n) } else { then(n) });
        doc
    })
}

#[tokio::test]
async fn a_field_that_was_nested_is_an_old_shape() {
    let old = |n| doc! { "phone": format!("555-{n}") };
    let new = |n| doc! { "phone": { "number": format!("555-{n}"), "countryCode": "+1" } };
    let finding = Fixture::new().with("users", users(120, old, new)).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("users", "phone", "versions"));
    assert_eq!(finding.severity, Severity::Warn);
    let evidence = evidence(&finding);
    assert_eq!((evidence.get_i32("older").unwrap(), evidence.get_bool("in_order_of_time").unwrap()), (120, true));
    let declaration = finding.declaration.as_deref().unwrap();
    assert!(declaration.contains("versions:") && declaration.contains("phone"), "{declaration}");
}

#[tokio::test]
async fn a_renamed_field_is_an_old_shape_called_by_its_old_name() {
    let old = |n| doc! { "mail": format!("a{n}@example.com") };
    let new = |n| doc! { "email": format!("a{n}@example.com") };
    let finding = Fixture::new().with("users", users(40, old, new)).await.one(SYMPTOM).await;
    assert_eq!((&*finding.field, finding.severity), ("mail", Severity::Warn), "{finding:#?}");
}

#[tokio::test]
async fn text_among_numbers_without_order_is_a_note() {
    let mixed = |n: i64| {
        if n % 10 == 0 {
            doc! { "zip": format!("{n}") }
        } else {
            doc! { "zip": n }
        }
    };
    let finding = Fixture::new().with("users", users(0, mixed, mixed)).await.one(SYMPTOM).await;
    assert_eq!((finding.severity, finding.declaration), (Severity::Note, None));
    assert!(finding.verdict.starts_with("not worth it here, because"), "{}", finding.verdict);
}

#[tokio::test]
async fn optional_fields_states_and_types_of_numbers_are_none() {
    let optional = |n: i64| {
        if n % 3 == 0 {
            doc! { "nick": "x" }
        } else {
            doc! {}
        }
    };
    let state = |n: i64| {
        if n < 390 {
            doc! { "shippedAt": n }
        } else {
            doc! {}
        }
    };
    let numbers = |n: i64| {
        if n < 200 {
            doc! { "n": n }
        } else {
            doc! { "n": n as f64 }
        }
    };
    let nulls = |n: i64| {
        if n < 200 {
            doc! { "n": bson::Bson::Null }
        } else {
            doc! { "n": n }
        }
    };
    let fixture = Fixture::new().with("optional", users(0, optional, optional)).await;
    let fixture = fixture.with("state", users(0, state, state)).await.with("numbers", users(0, numbers, numbers)).await;
    let found = fixture.with("nulls", users(0, nulls, nulls)).await.found(SYMPTOM).await;
    assert!(found.is_empty(), "{found:#?}");
}
