//! Many small documents with a time and a series, and collections that only look so.

use crate::Severity;
use crate::testing::{Fixture, NOW, date, evidence};
use bson::{DateTime, Document, doc};

const SYMPTOM: &str = "many_small_documents";

/// Readings of ten sensors, one every so many minutes.
fn readings(number: i64, minutes: i64) -> impl Iterator<Item = Document> {
    (0..number).map(move |n| {
        let at = DateTime::from_millis(NOW - (number - n) / 10 * minutes * 60_000);
        doc! { "sensorId": n % 10, "ts": at, "temp": 20.0 + (n % 7) as f64, "humid": n % 100 }
    })
}

#[tokio::test]
async fn readings_of_a_sensor_go_into_buckets() {
    let finding = Fixture::new().with("sensor_data", readings(8_000, 2)).await.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("sensor_data", "ts", "bucket"));
    assert!(finding.severity >= Severity::Warn, "{finding:#?}");
    let declaration = finding.declaration.as_deref().unwrap();
    assert!(declaration.contains("by: [sensorId]") && declaration.contains("every: hour"), "{declaration}");
    let a_day = evidence(&finding).get_f64("per_series_and_day").unwrap();
    assert!((600.0..900.0).contains(&a_day), "{a_day}");
    let native = finding.against.iter().any(|reason| reason.reason.contains("own time series"));
    assert!(native, "{:?}", finding.against);
}

#[tokio::test]
async fn events_whose_numbers_add_up_are_slots() {
    let key = |n: i64| format!("{:064x}", n % 20);
    let events = (0..4_000)
        .map(|n| doc! { "key": key(n), "date": date(n % 180), if n % 3 == 0 { "approved" } else { "pending" }: 1 });
    let finding = Fixture::new().with("events", events).await.one(SYMPTOM).await;
    let declaration = finding.declaration.as_deref().unwrap();
    for part in ["every: quarter", "slot: day", "layout: field_names", "as: hex", "sum: [approved, pending]"] {
        assert!(declaration.contains(part), "{part} in {declaration}");
    }
    assert!(finding.severity >= Severity::Warn);
}

#[tokio::test]
async fn few_a_day_are_none() {
    let orders = (0..3_000).map(|n| doc! { "customerId": format!("c{}", n % 300), "date": date(n % 365), "note": "x" });
    let fixture = Fixture::new().with("orders", orders).await.with("sensor_data", readings(8_000, 600)).await;
    fixture.assert_none(SYMPTOM).await;
}

#[tokio::test]
async fn large_documents_and_those_without_a_series_are_none() {
    let large = readings(2_000, 1).map(|mut doc| {
        doc.insert("body", "x".repeat(2_000));
        doc
    });
    let bare = (0..2_000).map(|n| doc! { "at": date(n / 500), "text": format!("entry {n}") });
    Fixture::new().with("large", large).await.with("bare", bare).await.assert_none(SYMPTOM).await;
}
