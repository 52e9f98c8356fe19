//! Array elements that repeat a bounded discriminator, and ones whose discriminator has no bound.

use crate::Severity;
use crate::testing::{Fixture, date, evidence};
use bson::{Bson, Document, doc};

const SYMPTOM: &str = "repeated_discriminator";

/// Quarters of users, with the days on which something happened.
fn quarters() -> impl Iterator<Item = Document> {
    (0..200).map(|n| {
        let days = (0..11).map(|day| doc! { "date": date(90 * (n % 4) + day * 8), "a": 10, "f": day }.into());
        doc! { "_id": format!("{:032x}{}", n / 4, n % 4), "key": n / 4, "items": days.collect::<Vec<Bson>>() }
    })
}

#[tokio::test]
async fn days_of_a_quarter_become_names() {
    let finding = Fixture::new().with("reports", quarters()).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("reports", "items", "field_names"));
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    let declaration = finding.declaration.as_deref().unwrap();
    for part in ["layout: field_names", "slot: day", "sum: [a, f]", "by: [key]"] {
        assert!(declaration.contains(part), "{part} in {declaration}");
    }
    assert!(evidence(&finding).get_f64("elements").unwrap() > 10.0);
}

#[tokio::test]
async fn a_discriminator_without_a_bound_is_a_note() {
    let lines = |n: i64| {
        (0..5)
            .map(|line| doc! { "sku": format!("item-{}", n * 5 + line), "qty": 1, "price": 5 }.into())
            .collect::<Vec<Bson>>()
    };
    let finding =
        Fixture::new().with("orders", (0..200).map(|n| doc! { "_id": n, "lines": lines(n) })).await.one(SYMPTOM).await;
    assert_eq!((finding.severity, finding.declaration), (Severity::Note, None));
}

#[tokio::test]
async fn elements_that_hold_more_than_numbers_are_none() {
    let comments = |n: i64| {
        (0..5).map(|c| doc! { "date": date(c), "text": format!("c{n}"), "votes": c }.into()).collect::<Vec<Bson>>()
    };
    let fixture = Fixture::new().with("posts", (0..100).map(|n| doc! { "_id": n, "comments": comments(n) })).await;
    assert_eq!(fixture.found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn a_year_of_days_is_not_unbounded() {
    let days = || (0..360).map(|day| doc! { "date": date(day), "a": 1 }.into()).collect::<Vec<Bson>>();
    let fixture = Fixture::new().with("years", (0..40).map(|n| doc! { "_id": n, "key": n, "items": days() })).await;
    assert_eq!(fixture.found("unbounded_array").await.len(), 0);
    assert_eq!(fixture.found(SYMPTOM).await.len(), 1);
}
