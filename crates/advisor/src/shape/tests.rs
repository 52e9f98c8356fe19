//! What is known of the paths of a collection's documents.

use super::*;
use bson::{Document, doc};

fn shape(documents: impl IntoIterator<Item = Document>) -> Shape {
    let mut shape = Shape::default();
    documents.into_iter().for_each(|doc| shape.add(&Doc::from(doc)));
    shape
}

#[test]
fn paths_types_lengths_and_values_are_counted() {
    let shape = shape([
        doc! { "_id": 1, "kind": "a", "items": [{ "n": 1 }, { "n": 2 }], "deep": { "x": 1.5 } },
        doc! { "_id": 2, "kind": "b", "items": [], "deep": "text" },
        doc! { "_id": 3, "kind": "a", "items": [[1], 2] },
    ]);
    let facts = |path: &str| shape.path(path).unwrap();
    assert_eq!(
        (shape.documents, facts("deep").documents, facts("items.n").documents, facts("items.n").values),
        (3, 2, 1, 2)
    );
    assert_eq!(facts("deep").types, [("object", 1), ("string", 1)]);
    assert_eq!((facts("items").lengths.max, facts("items").lengths.sum), (2, 4));
    assert_eq!(facts("items").items, [("object", 2), ("array", 1), ("int", 1)]);
    assert!(facts("items.n").in_array && !facts("deep.x").in_array && !facts("items").has_documents());
    assert_eq!(
        facts("kind").distinct.few(2).map(|values| values.iter().map(|(_, count)| *count).collect()),
        Some(vec![2, 1])
    );
    assert_eq!(shape.below("deep").map(PathFacts::name).collect::<Vec<_>>(), ["x"]);
}

#[test]
fn data_as_names_is_one_path() {
    let mut wide = Document::new();
    (0..100_000).for_each(|n| drop(wide.insert(format!("user{n}"), doc! { "seen": n })));
    let shape = shape([doc! { "_id": 1, "by": wide }]);
    assert!(shape.paths.len() < 500, "{}", shape.paths.len());
    assert!(shape.has_data_as_names("by") && !shape.has_data_as_names(""));
    assert_eq!(shape.path("by.*").unwrap().values, 100_000 - MOST_NAMES as u64);
    assert_eq!(shape.path("by.*").unwrap().documents, 1);
}

#[test]
fn many_values_are_counted_up_to_a_bound() {
    let shape = shape((0..50_000).map(|n| doc! { "_id": n, "name": format!("{n} {}", "x".repeat(300)) }));
    assert!(shape.path("_id").unwrap().distinct.is_many);
    assert_eq!(shape.path("name").unwrap().distinct.counted.len(), 0);
    assert_eq!(shape.path("_id").unwrap().distinct.few(64), None);
    assert_eq!((shape.sizes.count, shape.path("_id").unwrap().numbers), (50_000, Some((0.0, 49_999.0))));
}

#[test]
fn spreads_have_percentiles_also_of_very_many() {
    let mut spread = Spread::default();
    (0..1_000_000).for_each(|n| spread.add(n));
    assert!(spread.percentile(95).abs_diff(950_000) < 100 && spread.max == 999_999, "{}", spread.percentile(95));
    assert!((spread.above(900_000) - 0.1).abs() < 0.001);
    let mut small = Spread::default();
    [5, 1, 3].into_iter().for_each(|n| small.add(n));
    assert_eq!((small.percentile(50), small.percentile(95), small.percentile(0)), (3, 5, 1));
    assert_eq!(Spread::default().percentile(95), 0);
}
