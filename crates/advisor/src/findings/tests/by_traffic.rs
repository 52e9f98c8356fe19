//! What traffic says against findings that rest on the data.

use crate::testing::{Fixture, NOW, date, id_of_age, slow};
use crate::{Finding, Severity};
use bson::{Bson, DateTime, Document, doc};

fn finds(collection: &'static str, number: i64, filter: impl Fn(i64) -> Document, projection: Document) -> Vec<String> {
    let line = |n: i64| {
        let command = doc! { "find": collection, "filter": filter(n), "projection": projection.clone() };
        slow(n * 100, "conn1", collection, command, doc! { "docsExamined": 1, "nreturned": 1 })
    };
    (0..number).map(line).collect()
}

fn outweighed(finding: &Finding) -> bool {
    finding.severity == Severity::Note && finding.verdict.starts_with("not worth it here, because")
}

#[tokio::test]
async fn readings_that_are_looked_up_by_id_all_the_time_stay_single() {
    let readings = || {
        (0..6_000).map(|n| {
            let at = DateTime::from_millis(NOW - (6_000 - n) / 10 * 120_000);
            doc! { "_id": n, "sensorId": n % 10, "ts": at, "temp": 20.0 + (n % 7) as f64, "humid": n % 100 }
        })
    };
    let by_id = finds("sensor_data", 60, |n| doc! { "_id": n }, doc! {});
    let by_range =
        |number| finds("sensor_data", number, |n| doc! { "sensorId": n, "ts": { "$gte": date(1) } }, doc! {});
    let often = Fixture::new().with("sensor_data", readings()).await.logged(by_id.clone()).logged(by_range(40));
    assert!(outweighed(&often.one("many_small_documents").await));
    let seldom = Fixture::new().with("sensor_data", readings()).await.logged(by_id).logged(by_range(400));
    assert!(seldom.one("many_small_documents").await.severity >= Severity::Warn);
}

#[tokio::test]
async fn an_array_that_is_wanted_whole_each_time_stays() {
    let reviews = |number: i64| -> Vec<Bson> {
        (0..number).map(|n| doc! { "user": format!("u{n}"), "rating": n % 5, "date": date(n) }.into()).collect()
    };
    let products = || {
        (0..200).map(move |n| {
            doc! { "_id": id_of_age(300 - n, n as u32), "name": format!("p{n}"), "reviews": reviews(300 - n) }
        })
    };
    let read = |projection: Document| finds("products", 40, |n| doc! { "name": format!("p{n}") }, projection);
    let fixture = async |lines: Vec<String>| {
        let fixture = Fixture::new().with("products", products()).await.logged(lines);
        fixture.one("unbounded_array").await
    };
    assert!(outweighed(&fixture(read(doc! { "reviews": 1 })).await));
    // Who names no fields may not need it; that is said, and no more.
    let whole = fixture(read(doc! {})).await;
    assert_eq!((whole.severity, whole.against.len()), (Severity::Warn, 1), "{whole:#?}");
    for projection in [doc! { "name": 1 }, doc! { "reviews": { "$slice": -10 } }, doc! { "reviews": 0 }] {
        let part = fixture(read(projection)).await;
        assert_eq!((part.severity, part.against.len()), (Severity::Warn, 0), "{part:#?}");
    }
}

#[tokio::test]
async fn kinds_that_are_searched_together_belong_together() {
    let mixed = || {
        (0..100).map(|n| match n % 2 {
            0 => doc! { "_id": n, "type": "invoice", "amount": n, "due": 1 },
            _ => doc! { "_id": n, "type": "picture", "width": n, "height": 1 },
        })
    };
    let by_kind = finds("things", 5, |_| doc! { "type": "invoice" }, doc! {});
    let fixture = Fixture::new().with("things", mixed()).await.logged(by_kind);
    assert!(outweighed(&fixture.one("several_kinds").await));
    let together = finds("things", 5, |n| doc! { "due": n }, doc! {});
    let fixture = Fixture::new().with("things", mixed()).await.logged(together);
    assert_eq!(fixture.one("several_kinds").await.severity, Severity::Warn);
}

#[tokio::test]
async fn a_copy_whose_source_changes_often_is_kept_with_lag() {
    let fixture = async |updates: i64| {
        let customers = (0..50).map(|n| doc! { "_id": id_of_age(900, n as u32), "name": format!("Customer {n}") });
        let orders = (0..400).map(|n| {
            doc! { "_id": n, "customerId": id_of_age(900, (n * 37 % 50) as u32), "customer": { "name": format!("Customer {}", n * 37 % 50) } }
        });
        let update = |n: i64| {
            let command = doc! { "q": { "_id": n }, "u": { "$set": { "name": "x" } }, "multi": false, "upsert": false };
            slow(n * 100, "conn2", "customers", command, doc! { "type": "update", "nMatched": 1 })
        };
        let fixture = Fixture::new().with("customers", customers).await.with("orders", orders).await;
        let read = fixture.logged(finds("orders", 100, |n| doc! { "_id": n }, doc! {}));
        read.logged((0..updates).map(update)).one("copy_by_hand").await
    };
    let (often, seldom) = (fixture(30).await, fixture(5).await);
    assert!(often.declaration.unwrap().contains("fields: [name], lag: 5s"));
    assert_eq!((often.against.len(), seldom.against.len()), (1, 0));
    assert!(!seldom.declaration.unwrap().contains("lag"));
}
