//! Counters that are kept by hand: found, with the wrong ones counted, and what is no counter.

use crate::Severity;
use crate::testing::{Fixture, date, evidence, id_of_age};
use bson::{Document, doc};

const SYMPTOM: &str = "counter_by_hand";

/// So many reviews of a product, uneven.
fn number(product: i64) -> i64 {
    (product * 7) % 23
}

fn paid(product: i64, n: i64) -> bool {
    (product + n * n) % 3 == 0
}

fn reviews(products: i64) -> impl Iterator<Item = Document> {
    let of = |product: i64| (0..number(product)).map(move |n| (product, n));
    (0..products).flat_map(of).map(|(product, n)| {
        let status = if paid(product, n) { "paid" } else { "open" };
        doc! { "_id": id_of_age(1, (product * 100 + n) as u32), "productId": product * 1_000, "rating": n % 5 + 1, "amount": product % 13 + n * 3 + 1,
            "status": status, "date": date(n) }
    })
}

fn total(product: i64) -> i64 {
    (0..number(product)).map(|n| product % 13 + n * 3 + 1).sum()
}

fn product(n: i64) -> Document {
    doc! { "_id": n * 1_000, "name": format!("p{n}"), "reviewCount": number(n) }
}

async fn shop(products: impl Iterator<Item = Document>, number: i64) -> Fixture {
    Fixture::new().with("products", products).await.with("reviews", reviews(number)).await
}

#[tokio::test]
async fn a_right_counter_is_a_note_and_a_wrong_one_is_counted() {
    let fixture = shop((0..300).map(product), 300).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!((&*finding.collection, &*finding.field, finding.pattern), ("products", "reviewCount", "computed"));
    assert_eq!((finding.severity, evidence(&finding).get_i32("wrong").unwrap()), (Severity::Note, 0));

    let drifted = (0..300).map(|n| match n % 60 {
        7 => doc! { "_id": n * 1_000, "name": format!("p{n}"), "reviewCount": number(n) + 2 },
        _ => product(n),
    });
    let fixture = shop(drifted, 300).await;
    let finding = fixture.one(SYMPTOM).await;
    let figures = evidence(&finding);
    assert_eq!(
        (finding.severity, figures.get_i32("wrong").unwrap(), figures.get_i32("checked").unwrap()),
        (Severity::Act, 5, 300)
    );
    let examples: Vec<i64> = figures.get_array("examples").unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
    assert_eq!(examples, [7_000, 67_000, 127_000, 187_000, 247_000]);
    let declaration = finding.declaration.unwrap();
    assert!(declaration.contains("reviewCount: { count: reviews, by: productId }"), "{declaration}");
}

#[tokio::test]
async fn more_than_a_tenth_is_urgent() {
    let fixture = shop(
        (0..300).map(|n| {
            if n % 8 == 3 {
                doc! { "_id": n * 1_000, "reviewCount": number(n) + 1 }
            } else {
                product(n)
            }
        }),
        300,
    )
    .await;
    assert_eq!(fixture.one(SYMPTOM).await.severity, Severity::Urgent);
}

#[tokio::test]
async fn sums_averages_and_filters_are_found() {
    let products = (0..200).map(|n| {
        let mut doc = doc! { "_id": n * 1_000, "stats": { "total": total(n) }, "paid": (0..number(n)).filter(|k| paid(n, *k)).count() as i64 };
        if number(n) > 0 {
            doc.insert("mean", (total(n) as f64 / number(n) as f64 * 100.0).round() / 100.0);
        }
        doc
    });
    let found = shop(products, 200).await.found(SYMPTOM).await;
    let shown: Vec<(&str, &str)> = found
        .iter()
        .map(|it| (&*it.field, it.declaration.as_deref().unwrap().lines().last().unwrap().trim()))
        .collect();
    let expected = [
        ("mean", "mean: { avg: amount, from: reviews, by: productId }"),
        ("paid", "paid: { count: reviews, by: productId, where: { status: paid } }"),
        ("stats.total", "stats.total: { sum: amount, from: reviews, by: productId }"),
    ];
    let mut shown = shown;
    shown.sort_unstable();
    assert_eq!(shown, expected);
    assert!(found.iter().all(|it| it.severity == Severity::Note));
}

#[tokio::test]
async fn what_any_numbers_do_is_none() {
    // Zeros, flags, small integers, running numbers and only children.
    let products = (0..300)
        .map(|n| doc! { "_id": n * 1_000, "discount": 0, "active": n % 9 != 0, "level": n % 3, "number": n, "one": 1 });
    let fixture = shop(products, 300)
        .await
        .with("labels", (0..300).map(|n| doc! { "_id": n, "productId": n * 1_000, "weight": 1 }))
        .await;
    assert_eq!(fixture.found(SYMPTOM).await.len(), 0);
}

#[tokio::test]
async fn a_self_reference_has_counters_too() {
    let parent = |n: i64| if n < 40 { None } else { Some((n * n / 3) % 40) };
    let replies = |n: i64| (40..600).filter(|child| parent(*child) == Some(n)).count() as i64;
    let comments = (0..600).map(|n| {
        let mut doc = doc! { "_id": id_of_age(600 - n, n as u32), "replies": if n < 40 { replies(n) } else { 0 } };
        if let Some(parent) = parent(n) {
            doc.insert("parent", id_of_age(600 - parent, parent as u32));
        }
        doc
    });
    let fixture = Fixture::new().with("comments", comments).await;
    let finding = fixture.one(SYMPTOM).await;
    assert_eq!((&*finding.field, evidence(&finding).get_i32("wrong").unwrap()), ("replies", 0));
}

#[tokio::test]
async fn a_list_of_references_counts_for_each() {
    let has = |n: i64, tag: i64| n % (tag + 2) == 0;
    let tags_of = |n: i64| (0..60).filter(|tag| has(n, *tag)).map(|tag| format!("tag{tag}")).collect::<Vec<_>>();
    let posts = (0..300).map(|n| doc! { "_id": n, "tags": tags_of(n) });
    let uses = |tag: i64| (0..300).filter(|n| has(*n, tag)).count() as i64;
    let tags = (0..60).map(|n| doc! { "_id": format!("tag{n}"), "posts": uses(n) });
    let finding = Fixture::new().with("posts", posts).await.with("tags", tags).await.one(SYMPTOM).await;
    assert!(finding.declaration.unwrap().contains("posts: { count: posts, by: tags, each: true }"));
}
