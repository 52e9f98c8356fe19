//! Odd data: nothing fails, nothing is invented.

use crate::testing::{Fixture, date};
use crate::{Cancel, Options, Severity};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, CollectionOptions};

#[tokio::test]
async fn empty_and_single_and_odd_documents_give_nothing() {
    let mut wide = Document::new();
    (0..20_000).for_each(|n| drop(wide.insert(format!("k{n}"), n)));
    wide.insert("_id", 1);
    let nested = doc! { "_id": 1, "a": [[1, [2, { "b": [] }]], { "c": [[]] }], "": 1, "x": { "": { "y": 1 } } };
    let fixture = Fixture::new().with("one", [doc! { "_id": 1 }]).await;
    let fixture = fixture.with("wide", [wide]).await.with("nested", [nested]).await;
    let mixed = (0..50).map(|n| doc! { "_id": match n % 4 { 0 => Bson::Int32(n), 1 => Bson::String(format!("s{n}")), 2 => doc! { "n": n }.into(), _ => date(n.into()).into() } });
    let fixture = fixture.with("mixed", mixed).await;
    let empty = AdminOp::Create { ns: fixture.world.ns("empty"), options: CollectionOptions::default() };
    fixture.world.front.admin(&mut Session::default(), &fixture.world.context(), empty).await.unwrap();
    let report = fixture.report().await;
    assert_eq!(report.looked_at.collections, 5);
    assert_eq!((report.looked_at.documents, report.looked_at.sampled), (53, 53));
    assert_eq!(report.severity().filter(|severity| *severity > Severity::Note), None, "{:#?}", report.findings);
    assert!(report.looked_at.unseen.is_empty(), "{:?}", report.looked_at.unseen);
}

#[tokio::test]
async fn documents_of_16_mb_are_seen_through_few_of_them() {
    let huge = (0..4).map(|id| doc! { "_id": id, "text": "x".repeat(15 << 20) });
    let fixture = Fixture::new().with("huge", huge).await;
    let report = fixture.report().await;
    assert_eq!((report.looked_at.sampled, report.findings.len()), (4, 0), "{:#?}", report.findings);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_answer_whatever_the_ids_are() {
    type Make = fn(i32) -> Bson;
    let ids: [Make; 4] = [
        |n| Bson::Int32(n),
        |n| Bson::String(format!("user-{n:05}")),
        |n| doc! { "a": n }.into(),
        |n| if n == 2_999 { Bson::Int64(1 << 50) } else { Bson::Int32(n) },
    ];
    for id in ids {
        let documents = (0..3_000).map(|n| doc! { "_id": id(n), "n": n });
        let fixture = Fixture::new().with("many", documents).await;
        let options = |seed| Options { sample: 500, seed, ..Options::default() };
        let reader_options = options(1);
        let sampled = async |seed| {
            let context = fixture.world.context();
            let reader = crate::reader::Reader::new(&fixture.world.front, context, &reader_options);
            let statistics = crate::statistics::Statistics::of(&reader, &fixture.world.ns("many")).await.unwrap();
            let mut places = Vec::new();
            crate::sample::each(&reader, &fixture.world.ns("many"), &statistics, 500, seed, &mut |doc| {
                places.push(Document::try_from(&doc).unwrap().get_i32("n").unwrap());
            })
            .await
            .unwrap();
            places
        };
        let (first, again, other) = (sampled(1).await, sampled(1).await, sampled(2).await);
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert!((250..=550).contains(&first.len()), "{}", first.len());
        assert!(first.iter().any(|n| *n < 600) && first.iter().any(|n| *n > 2_400), "spread over the range: {first:?}");
    }
}

#[tokio::test]
async fn when_told_to_stop_it_reports_what_it_saw() {
    let fixture = Fixture::new().with("many", (0..100).map(|n| doc! { "_id": n })).await;
    let cancel = Cancel::default();
    cancel.set();
    let report = fixture.report_with(&Options { cancel, ..Options::default() }).await;
    assert!(report.looked_at.interrupted && report.findings.is_empty());
    let json = Document::try_from(&report.to_document()).unwrap();
    assert!(json.get_document("looked_at").unwrap().get_bool("interrupted").unwrap());
    assert!(report.to_text("--data x").contains("stopped before its end"));
}

#[tokio::test]
async fn views_and_what_rules_keep_are_not_reported() {
    let reviews = |n: i64| (0..150 + n).map(|n| doc! { "date": date(n), "text": "x" }.into()).collect::<Vec<Bson>>();
    let fixture = Fixture::new().with("products", (0..60).map(|n| doc! { "_id": n, "reviews": reviews(n) })).await;
    let view = AdminOp::CreateView {
        ns: fixture.world.ns("shown"),
        on: "products".to_owned(),
        pipeline: document::Array::empty(),
    };
    fixture.world.front.admin(&mut Session::default(), &fixture.world.context(), view).await.unwrap();
    let report = fixture.report().await;
    assert_eq!(report.looked_at.collections, 1);
    assert!(report.findings.iter().any(|finding| finding.symptom == "unbounded_array"));
}
