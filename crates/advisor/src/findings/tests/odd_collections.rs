//! Odd collections: names that are data, names with dots and dollars, ids of all types, buckets of Pleach. Nothing fails, memory is bounded.

use crate::testing::{DAY, Fixture, NOW, date};
use crate::{Options, Severity};
use bson::{Bson, DateTime, Document, doc};
use testing::insert;

fn strong(report: &crate::Report) -> Vec<String> {
    let findings = report.findings.iter().filter(|finding| finding.severity > Severity::Note);
    findings.map(|finding| format!("{} {}.{}", finding.symptom, finding.collection, finding.field)).collect()
}

/// A hundred thousand names in one document, and other names in each.
#[tokio::test]
async fn names_that_are_data_take_no_memory() {
    let wide = |id: i32, names: i32| {
        let mut wide = doc! { "_id": id };
        (0..names).for_each(|n| drop(wide.insert(format!("user-{id}-{n}"), n)));
        wide
    };
    let inside = |id: i32| doc! { "_id": id, "by": wide(id, 2_000) };
    let fixture = Fixture::new().with("wide", [wide(1, 100_000), wide(2, 100_000)]).await;
    let fixture = fixture.with("inside", (0..40).map(inside)).await;
    let report = fixture.report().await;
    assert_eq!(report.looked_at.sampled, 42);
    assert!(strong(&report).is_empty(), "{:#?}", report.findings);
    let collection = fixture.world.ns("wide");
    let mut shape = crate::shape::Shape::default();
    for doc in fixture.world.all(&collection.collection).await {
        shape.add(&document::Doc::from(doc));
    }
    assert!(shape.paths.len() <= 1_500, "{}", shape.paths.len());
}

/// What is found is found by any name, and what is printed can be read back.
#[tokio::test]
async fn names_with_dots_dollars_and_letters_of_any_script() {
    let odd = (0..300).map(|n| {
        let items: Vec<Bson> =
            (0..150).map(|k| doc! { "when: at": date(k), "№": k, "wer?": "x", "a.b": 1, "$c": 2 }.into()).collect();
        doc! { "_id": n, "größe {x}": n, "日本.語": items.clone(), "$top": 1, "": 2, "- yes": items }
    });
    let fixture = Fixture::new().with("ünï - #code", odd).await;
    let report = fixture.report().await;
    let found = strong(&report);
    assert!(found.contains(&"unbounded_array ünï - #code.- yes".to_owned()), "{found:?}");
    for finding in &report.findings {
        let Some(text) = &finding.declaration else { continue };
        let checked = patterns::declare::from_yaml("proposed", text);
        assert!(checked.declaration.is_some(), "{text}\n{:?}", checked.findings);
    }
}

#[tokio::test]
async fn ids_of_all_types_in_one_collection() {
    let id = |n: i64| -> Bson {
        match n % 7 {
            0 => Bson::Int64(n),
            1 => format!("text {n}").into(),
            2 => doc! { "a": n, "b": "x" }.into(),
            3 => date(n).into(),
            4 => Bson::Double(n as f64 + 0.5),
            5 => crate::testing::id_of_age(n, 7).into(),
            _ => Bson::Binary(bson::Binary {
                subtype: bson::spec::BinarySubtype::Uuid,
                bytes: vec![n.to_le_bytes()[0]; 16].into_iter().chain(n.to_le_bytes()).take(16).collect(),
            }),
        }
    };
    let mut known = std::collections::HashSet::new();
    let documents: Vec<Document> = (0..3_000)
        .map(|n| doc! { "_id": id(n), "n": n })
        .filter(|doc| known.insert(doc.get("_id").unwrap().to_string()))
        .collect();
    let number = documents.len() as u64;
    let fixture = Fixture::new().with("mixed", documents).await;
    let options = |seed| Options { sample: 400, seed, ..Options::default() };
    let (first, again) = (fixture.report_with(&options(5)).await, fixture.report_with(&options(5)).await);
    assert_eq!(first.looked_at.documents, number);
    assert!((200..=450).contains(&first.looked_at.sampled), "{:?}", first.looked_at);
    assert_eq!(format!("{:?}", first.findings), format!("{:?}", again.findings));
    assert!(strong(&first).is_empty(), "{:#?}", first.findings);
}

/// What a bucket rule stores is no symptom.
#[tokio::test]
async fn buckets_of_pleach() {
    let reading =
        |n: i64| doc! { "_id": n, "sensorId": n % 3, "ts": DateTime::from_millis(NOW - 5 * DAY + n * 60_000), "v": n };
    let living = testing::Living::of(Fixture::new().world);
    living.set_rules("  readings: { bucket: { time: ts, by: [sensorId], every: hour } }").await;
    living.rest().await;
    for batch in 0..2 {
        living.did(insert(living.ns("readings"), (batch * 1_000..(batch + 1) * 1_000).map(reading).collect())).await;
    }
    let fixture = Fixture::of(living.world);
    assert!(strong(&fixture.report().await).is_empty(), "{:#?}", fixture.report().await.findings);
}
