//! Few huge documents among many ordinary ones, and collections that have none.

use crate::Severity;
use crate::testing::{Fixture, date, evidence};
use bson::{Bson, Document, doc};

const SYMPTOM: &str = "few_huge_documents";

/// `huge` of a thousand users have very many followers.
fn users(huge: i32, followers: i32) -> impl Iterator<Item = Document> {
    (0..1_000).map(move |id| {
        let number = if id % 1_000 < huge { followers } else { id % 20 };
        doc! { "_id": id, "name": format!("u{id}"), "followers": (0..number).map(Bson::Int32).collect::<Vec<_>>() }
    })
}

#[tokio::test]
async fn few_of_very_many_overflow() {
    let fixture = Fixture::new().with("users", users(3, 2_000)).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("users", "followers", "outlier"));
    assert_eq!(finding.severity, Severity::Act, "2,000 against 18 is past tenfold");
    let evidence = evidence(&finding);
    assert_eq!((evidence.get_i32("over").unwrap(), evidence.get_i32("max").unwrap()), (3, 2_000));
    assert_eq!(evidence.get_array("examples").unwrap().len(), 3);
    let declaration = finding.declaration.as_deref().unwrap();
    assert!(declaration.contains("outlier:") && declaration.contains("users_followers_overflow"), "{declaration}");
}

#[tokio::test]
async fn a_hundredth_and_more_are_no_outliers() {
    let items = |n: i64| (0..n).map(|n| doc! { "n": n, "date": date(n) }.into()).collect::<Vec<Bson>>();
    let posts = (0..300).map(|id| doc! { "_id": id, "comments": items(if id % 20 == 0 { 1_200 } else { 3 }) });
    let fixture = Fixture::new().with("posts", posts).await.with("users", users(30, 2_000)).await;
    fixture.assert_none(SYMPTOM).await;
    let found = fixture.found("unbounded_array").await;
    let places: Vec<&str> = found.iter().map(|finding| &*finding.collection).collect();
    assert_eq!(places, ["posts"], "arrays of plain values are outliers or nothing");
}

#[tokio::test]
async fn the_few_are_found_though_the_sample_misses_them() {
    let fixture = Fixture::new().with("users", users(2, 3_000)).await;
    let options = crate::Options { sample: 50, seed: 3, ..crate::Options::default() };
    let report = fixture.report_with(&options).await;
    assert!(report.looked_at.sampled <= 60, "{:?}", report.looked_at);
    let finding = report.findings.iter().find(|finding| finding.symptom == SYMPTOM).unwrap();
    assert_eq!(evidence(finding).get_i32("over").unwrap(), 2);
}

#[tokio::test]
async fn a_large_document_without_a_long_array_is_a_note() {
    let documents = (0..200).map(|id| doc! { "_id": id, "text": "x".repeat(if id == 7 { 100_000 } else { 50 }) });
    let finding = Fixture::new().with("pages", documents).await.one(SYMPTOM).await;
    assert_eq!((finding.severity, finding.declaration.as_deref()), (Severity::Note, None));
    assert_eq!(evidence(&finding).get_array("examples").unwrap(), &vec![Bson::Int32(7)]);
}

#[tokio::test]
async fn arrays_that_are_alike_are_none() {
    Fixture::new().with("users", users(0, 0)).await.assert_none(SYMPTOM).await;
}
