//! Numbers of a parent's children that are computed again and again, in each form in which clients ask for them.

use crate::testing::{Fixture, evidence, slow};
use crate::{Finding, Severity};
use bson::{Bson, Document, doc};

const SYMPTOM: &str = "repeated_aggregation";

/// 20 products, 3,000 reviews: 150 each.
async fn shop() -> Fixture {
    let products = (0..20).map(|n| doc! { "_id": format!("product {n}"), "title": format!("t{n}") });
    let reviews = (0..3_000).map(|n| {
        doc! { "_id": n, "productId": format!("product {}", n % 20), "rating": n % 5, "text": format!("text {n}"),
        "state": if n % 3 == 0 { "public" } else { "draft" } }
    });
    Fixture::new().with("products", products).await.with("reviews", reviews).await
}

fn run(at: i64, command: Document, returned: i64) -> String {
    slow(
        at * 500,
        "conn1",
        "reviews",
        command,
        doc! { "docsExamined": 150, "keysExamined": 150, "nreturned": returned },
    )
}

fn grouped(at: i64, group: Document) -> String {
    let pipeline = vec![doc! { "$match": { "productId": format!("product {}", at % 20) } }, doc! { "$group": group }];
    run(at, doc! { "aggregate": "reviews", "pipeline": pipeline, "cursor": {} }, 1)
}

/// As drivers' `countDocuments` sends it.
fn count_documents(at: i64) -> String {
    grouped(at, doc! { "_id": 1, "n": { "$sum": 1 } })
}

fn insert(at: i64) -> String {
    let figures = doc! { "ninserted": 1 };
    slow(at * 500, "conn2", "reviews", doc! { "insert": "reviews", "ordered": true }, figures)
}

async fn one(fixture: Fixture) -> Finding {
    fixture.one(SYMPTOM).await
}

async fn declared(fixture: Fixture) -> String {
    let finding = one(fixture).await;
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    finding.declaration.unwrap()
}

#[tokio::test]
async fn count_documents_by_the_key_of_a_parent_is_found() {
    let finding = one(shop().await.logged((0..150).map(count_documents))).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("products", "reviews.productId", "computed"));
    assert_eq!(finding.severity, Severity::Warn, "{finding:#?}");
    let figures = evidence(&finding);
    assert_eq!((figures.get_i32("runs").unwrap(), figures.get_i32("examined").unwrap()), (150, 22_500));
    assert_eq!(finding.shown.len(), 3);
    let declaration = finding.declaration.unwrap();
    assert!(declaration.contains("reviewCount: { count: reviews, by: productId }"), "{declaration}");
}

#[tokio::test]
async fn each_way_to_ask_is_found() {
    let count =
        |at: i64| run(at, doc! { "count": "reviews", "query": { "productId": format!("product {}", at % 20) } }, 0);
    assert!(declared(shop().await.logged((0..150).map(count))).await.contains("{ count: reviews, by: productId }"));

    let group =
        doc! { "_id": "$productId", "stars": { "$avg": "$rating" }, "n": { "$sum": 1 }, "best": { "$max": "$rating" } };
    let declaration = declared(shop().await.logged((0..150).map(|at| grouped(at, group.clone())))).await;
    for rule in [
        "stars: { avg: rating, from: reviews, by: productId }",
        "best: { max: rating, from: reviews, by: productId }",
        "reviewCount: { count: reviews, by: productId }",
    ] {
        assert!(declaration.contains(rule), "{declaration}");
    }

    let stage = |at: i64| {
        let pipeline =
            vec![doc! { "$match": { "productId": format!("product {}", at % 20) } }, doc! { "$count": "many" }];
        run(at, doc! { "aggregate": "reviews", "pipeline": pipeline, "cursor": {} }, 1)
    };
    assert!(declared(shop().await.logged((0..150).map(stage))).await.contains("{ count: reviews, by: productId }"));

    // Of all parents at once.
    let all = |at: i64| {
        let group = doc! { "_id": "$productId", "total": { "$sum": "$rating" } };
        let command = doc! { "aggregate": "reviews", "pipeline": [{ "$group": group }], "cursor": {} };
        slow(at * 500, "conn1", "reviews", command, doc! { "docsExamined": 3_000, "nreturned": 20 })
    };
    assert!(
        declared(shop().await.logged((0..150).map(all)))
            .await
            .contains("sumRating: { sum: rating, from: reviews, by: productId }")
    );

    // From the parent, with a $lookup of which only the number is taken.
    let from_parent = |at: i64| {
        let stage = doc! { "from": "reviews", "localField": "_id", "foreignField": "productId", "as": "reviews" };
        let number = doc! { "reviews": 0, "numberOfReviews": { "$size": "$reviews" } };
        let pipeline = vec![
            doc! { "$match": { "_id": format!("product {}", at % 20) } },
            doc! { "$lookup": stage },
            doc! { "$addFields": { "numberOfReviews": { "$size": "$reviews" } } },
            doc! { "$project": number },
        ];
        let command = doc! { "aggregate": "products", "pipeline": Bson::from(pipeline), "cursor": {} };
        slow(at * 500, "conn1", "products", command, doc! { "docsExamined": 151, "nreturned": 1 })
    };
    let declaration = declared(shop().await.logged((0..150).map(from_parent))).await;
    assert!(declaration.contains("numberOfReviews: { count: reviews, by: productId }"), "{declaration}");
}

#[tokio::test]
async fn a_condition_that_is_the_same_each_time_is_a_part_of_the_rule() {
    let public = |at: i64| {
        let filter = doc! { "productId": format!("product {}", at % 20), "state": "public" };
        run(at, doc! { "count": "reviews", "query": filter }, 0)
    };
    let declaration = declared(shop().await.logged((0..150).map(public))).await;
    let rule = "reviewCountPublic: { count: reviews, by: productId, where: { state: public } }";
    assert!(declaration.contains(rule), "{declaration}");
    // One that is another each time cannot be kept.
    let any = |at: i64| {
        let filter = doc! { "productId": format!("product {}", at % 20), "rating": at % 5 };
        run(at, doc! { "count": "reviews", "query": filter }, 0)
    };
    assert_eq!(shop().await.logged((0..150).map(any)).found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn ten_times_both_thresholds_is_act() {
    let large = |at: i64| {
        let filter = doc! { "productId": format!("product {}", at % 20) };
        slow(at * 50, "conn1", "reviews", doc! { "count": "reviews", "query": filter }, doc! { "keysExamined": 1_500 })
    };
    let finding = one(shop().await.logged((0..1_200).map(large))).await;
    assert_eq!(finding.severity, Severity::Act, "{finding:#?}");
}

#[tokio::test]
async fn few_runs_small_families_and_other_keys_are_none() {
    assert_eq!(shop().await.logged((0..100).map(count_documents)).found(SYMPTOM).await.len(), 0);
    let small = |at: i64| {
        let filter = doc! { "productId": format!("product {}", at % 20) };
        slow(at, "conn1", "reviews", doc! { "count": "reviews", "query": filter }, doc! { "docsExamined": 8 })
    };
    assert_eq!(shop().await.logged((0..150).map(small)).found(SYMPTOM).await.len(), 0);
    let by_rating = |at: i64| run(at, doc! { "count": "reviews", "query": { "rating": at % 5 } }, 0);
    assert_eq!(shop().await.logged((0..150).map(by_rating)).found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn between_the_thresholds_it_is_a_note() {
    let borderline = |at: i64| {
        let filter = doc! { "productId": format!("product {}", at % 20) };
        slow(at, "conn1", "reviews", doc! { "count": "reviews", "query": filter }, doc! { "docsExamined": 90 })
    };
    let finding = one(shop().await.logged((0..150).map(borderline))).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
}

#[tokio::test]
async fn children_that_are_written_more_often_than_the_number_is_read_speak_against_it() {
    let busy = shop().await.logged((0..150).map(count_documents).chain((0..200).map(insert)));
    let finding = one(busy).await;
    assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
    assert!(finding.declaration.unwrap().contains("lag: 5s"));
    let calm = shop().await.logged((0..150).map(count_documents).chain((0..50).map(insert)));
    assert_eq!(one(calm).await.severity, Severity::Warn);
}
