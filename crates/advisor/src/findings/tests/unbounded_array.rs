//! Arrays that grow without bound, and arrays that stay short.

use crate::Severity;
use crate::testing::{Fixture, date, evidence, id_of_age};
use bson::{Bson, Document, doc};

const SYMPTOM: &str = "unbounded_array";

fn reviews(number: i64) -> Vec<Bson> {
    (0..number).map(|n| doc! { "user": format!("u{n}"), "rating": n % 5, "date": date(n) }.into()).collect()
}

fn products(lengths: impl Fn(i64) -> i64) -> impl Iterator<Item = Document> {
    (0..300).map(
        move |n| doc! { "_id": id_of_age(300 - n, n as u32), "name": format!("p{n}"), "reviews": reviews(lengths(n)) },
    )
}

#[tokio::test]
async fn an_array_that_grows_becomes_a_window_and_nothing_is_lost() {
    let fixture = Fixture::new().with("products", products(|n| 300 - n)).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("products", "reviews", "subset"));
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    assert_eq!(finding.shown.len(), 3);
    let declaration = finding.declaration.as_deref().unwrap();
    assert!(declaration.contains("lift: reviews") && declaration.contains("sort: { date: -1 }"), "{declaration}");
    let evidence = evidence(&finding);
    assert!(evidence.get_f64("oldest").unwrap() > evidence.get_f64("newest").unwrap() * 2.0, "{evidence}");
    assert_eq!(evidence.get_array("examples").unwrap().len(), 5);
}

#[tokio::test]
async fn ten_times_the_limit_is_act() {
    let fixture = Fixture::new().with("products", products(|n| 900 + n)).await;
    assert_eq!(fixture.one(SYMPTOM).await.severity, Severity::Act);
}

#[tokio::test]
async fn short_arrays_and_plain_values_are_none() {
    let plain = (0..200).map(|n| doc! { "_id": n, "tags": (0..500).map(Bson::Int32).collect::<Vec<_>>() });
    let fixture = Fixture::new().with("products", products(|n| n % 20)).await.with("plain", plain).await;
    assert_eq!(fixture.found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn an_array_that_something_bounds_is_a_note() {
    let fixture = Fixture::new().with("products", products(|n| if n % 3 == 0 { 50 + n / 3 } else { 200 })).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.verdict.starts_with("not worth it here, because"), "{}", finding.verdict);
}

#[tokio::test]
async fn items_without_an_order_are_a_note_without_a_declaration() {
    let bare = |n: i64| (0..n).map(|n| doc! { "text": format!("t{n}") }.into()).collect::<Vec<Bson>>();
    let fixture = Fixture::new().with("posts", (0..300).map(|n| doc! { "_id": n, "notes": bare(200 + n) })).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!((finding.severity, finding.declaration), (Severity::Note, None));
}
