//! Relations by containment: found where they beat chance, and only there.

use super::*;
use crate::testing::Fixture;
use crate::{LookedAt, Unwatched, traffic};
use bson::oid::ObjectId;
use bson::{Bson, Document, doc};
use document::backend::Backend;

/// `from.path -> to.key, found of checked`, with so many documents sampled.
async fn found(fixture: &Fixture, sample: u64) -> Vec<String> {
    let options = Options { sample, ..Options::default() };
    let backend: &dyn Backend = &fixture.world.front;
    let reader = Reader::new(backend, fixture.world.context(), &options);
    let traffic = traffic::Traffic::default();
    let mut looked_at = LookedAt::default();
    let survey = crate::survey::Survey::of(&reader, "shop", &options, &traffic, &mut looked_at, &Unwatched);
    let survey = survey.await.unwrap();
    let shown = |it: &Relation| format!("{}.{} -> {}.{}", it.from, it.path, it.to, it.key);
    survey.relations.iter().map(shown).collect()
}

fn oid(n: u32) -> ObjectId {
    let mut bytes = [7; 12];
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn uuid(n: u32) -> Bson {
    let mut bytes = vec![9; 16];
    bytes[..4].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
    Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes })
}

#[tokio::test]
async fn references_of_all_kinds_of_ids_are_found_wherever_they_are() {
    let fixture = Fixture::new()
        .with("authors", (0..100).map(|n| doc! { "_id": oid(n), "name": format!("author {n}") }))
        .await
        .with("tags", (0..40_u32).map(|n| doc! { "_id": format!("tag-{n}") }))
        .await
        .with("shops", (0..60).map(|n| doc! { "_id": uuid(n), "n": n }))
        .await
        .with("items", (0..200_i32).map(|n| doc! { "_id": n * 1_000 + 7, "price": n }))
        .await
        .with(
            "posts",
            (0..300_u32).map(|n| {
                let lines: Vec<Document> =
                    (0..3).map(|k| doc! { "what": i64::from((n + k) % 200) * 1_000 + 7, "pieces": k + 1 }).collect();
                doc! { "_id": oid(100_000 + n), "writer": oid(n % 100), "labels": [format!("tag-{}", n % 40), format!("tag-{}", n % 7)],
                    "at": { "shop": uuid(n % 60) }, "lines": lines, "before": if n > 0 { Bson::ObjectId(oid(100_000 + n / 2)) } else { Bson::Null } }
            }),
        )
        .await;
    let expected = [
        "posts.at.shop -> shops._id",
        "posts.before -> posts._id",
        "posts.labels -> tags._id",
        "posts.lines.what -> items._id",
        "posts.writer -> authors._id",
    ];
    assert_eq!(found(&fixture, 0).await, expected);
    assert_eq!(found(&fixture, 50).await, expected, "values that the sample does not show are looked up");
}

#[tokio::test]
async fn a_unique_field_is_referred_to_and_its_copies_are_no_references() {
    let fixture = Fixture::new()
        .with(
            "users",
            (0..80).map(|n| doc! { "_id": oid(n), "mail": format!("u{n}@example.org"), "name": format!("user {n}") }),
        )
        .await
        .with(
            "logins",
            (0..200_u32).map(|n| doc! { "_id": oid(1_000 + n), "mail": format!("u{}@example.org", n % 80) }),
        )
        .await
        .with(
            "orders",
            (0..200_u32).map(
                |n| doc! { "_id": oid(5_000 + n), "user": oid(n % 80), "mail": format!("u{}@example.org", n % 80) },
            ),
        )
        .await;
    assert_eq!(found(&fixture, 0).await, ["logins.mail -> users.mail", "orders.user -> users._id"]);
}

#[tokio::test]
async fn what_any_numbers_do_is_no_reference() {
    let fixture = Fixture::new()
        .with("shops", (1..=100).map(|n| doc! { "_id": n, "floors": n % 4 }))
        .await
        .with("countries", (0..5).map(|n| doc! { "_id": format!("C{n}") }))
        .await
        .with(
            "sales",
            (0..500).map(|n| {
                doc! { "_id": oid(n as u32), "number": n, "quantity": n % 9 + 1, "stars": n % 5 + 1, "flag": n % 2, "zero": 0, "age": n % 60 + 18,
                    "amount": f64::from(n) * 1.25 + 0.1, "shop": (n * 37) % 100 + 1 }
            }),
        )
        .await;
    assert_eq!(found(&fixture, 0).await, ["sales.shop -> shops._id"]);
}

#[tokio::test]
async fn dangling_references_are_counted() {
    let fixture = Fixture::new()
        .with("users", (0..100).map(|n| doc! { "_id": oid(n) }))
        .await
        .with(
            "orders",
            (0..400_u32).map(
                |n| doc! { "_id": oid(9_000 + n), "user": if n % 4 == 0 { oid(50_000 + n) } else { oid(n % 100) } },
            ),
        )
        .await
        .with(
            "strangers",
            (0..400_u32).map(
                |n| doc! { "_id": oid(20_000 + n), "user": if n % 4 > 0 { oid(70_000 + n) } else { oid(n % 100) } },
            ),
        )
        .await;
    let options = Options::default();
    let backend: &dyn Backend = &fixture.world.front;
    let reader = Reader::new(backend, fixture.world.context(), &options);
    let traffic = traffic::Traffic::default();
    let mut looked_at = LookedAt::default();
    let survey = crate::survey::Survey::of(&reader, "shop", &options, &traffic, &mut looked_at, &Unwatched);
    let relations = survey.await.unwrap().relations;
    assert_eq!(relations.len(), 1, "{relations:?}");
    assert_eq!((relations[0].checked, relations[0].found), (400, 300));
    assert!((relations[0].dangling() - 0.25).abs() < 1e-9);
}
