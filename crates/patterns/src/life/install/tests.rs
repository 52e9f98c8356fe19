//! Which indexes serve, and what is made beside them.

use crate::life::install::indexes::{NUMBERS, PlannedIndex, serves, unserved};
use crate::rule::IndexNeed;
use crate::rule::needs::{Direction, REFERENCE_TYPES};
use bson::doc;
use document::Doc;
use document::op::Namespace;
use document::value::Path;

fn needs(unique: bool) -> IndexNeed {
    let ns = Namespace::new("shop", "reviews");
    match unique {
        true => IndexNeed::referenced(&ns, Path::new("a")),
        false => IndexNeed::lookup(&ns, [Path::new("a")]),
    }
}

fn spec(unique: bool) -> Doc<'static> {
    PlannedIndex::new(needs(unique)).spec()
}

#[test]
fn an_index_that_is_there_serves_if_it_leads_with_the_paths() {
    let (plain, unique) = (needs(false), needs(true));
    for (index, is_served, is_kept_unique) in [
        (doc! { "key": { "a": 1 } }, true, false),
        (doc! { "key": { "a": -1, "b": 1 } }, true, false),
        (doc! { "key": { "a": 1 }, "unique": true }, true, true),
        (doc! { "key": { "a": 1, "b": 1 }, "unique": true }, true, false),
        (doc! { "key": { "b": 1, "a": 1 } }, false, false),
        (doc! { "key": { "a": "hashed" } }, false, false),
        (doc! { "key": { "a": 1 }, "sparse": true }, false, false),
        (doc! { "key": { "a": 1 }, "sparse": true, "unique": true }, false, true),
        (doc! { "key": { "a": 1 }, "partialFilterExpression": { "b": 1 }, "unique": true }, false, false),
        (doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$gt": 5 } }, "unique": true }, false, false),
        (
            doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$exists": true } }, "unique": true },
            false,
            true,
        ),
        (
            doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$type": "string" } }, "unique": true },
            false,
            false,
        ),
        (doc! { "key": { "a": 1 }, "collation": { "locale": "de" }, "unique": true }, false, false),
    ] {
        let shown = index.to_string();
        let index = Doc::from(index);
        assert_eq!((serves(&plain, &index), serves(&unique, &index)), (is_served, is_kept_unique), "{shown}");
    }
}

#[test]
fn what_is_made_leaves_documents_without_the_field_or_with_null_alone() {
    let made = bson::Document::try_from(&spec(true)).unwrap();
    let partial = made.get_document("partialFilterExpression").unwrap().get_document("a").unwrap();
    let types = partial.get_array("$type").unwrap();
    assert!(types.contains(&"string".into()) && !types.contains(&"null".into()), "{made}");
    assert!(serves(&needs(true), &spec(true)));
    assert_eq!(spec(false), Doc::from(doc! { "key": { "a": 1 }, "name": "a_1" }));
}

#[test]
fn a_partial_index_by_type_serves_if_no_reference_is_left_out() {
    let all = |numbers: &[bson::Bson]| {
        let others = REFERENCE_TYPES.iter().filter(|(name, _)| !NUMBERS.contains(name)).map(|(name, _)| (*name).into());
        let types: Vec<bson::Bson> = others.chain(numbers.iter().cloned()).collect();
        let partial = doc! { "a": { "$type": types } };
        Doc::from(doc! { "key": { "a": 1 }, "name": "own", "unique": true, "partialFilterExpression": partial })
    };
    assert!(serves(&needs(true), &all(&["number".into()])));
    assert!(serves(&needs(true), &all(&[1.into(), 16.into(), 18.0.into(), "decimal".into()])));
    assert!(!serves(&needs(true), &all(&["int".into(), "double".into()])));
}

#[test]
fn an_index_of_the_same_name_keeps_it() {
    let made = |unique: bool, there: bson::Document| -> Vec<(String, bool)> {
        let made = unserved(needs(unique), vec![Doc::from(there)]);
        made.into_iter().map(|planned| (planned.name, planned.need.unique)).collect()
    };
    let named = |name: &str, unique: bool| (name.to_owned(), unique);
    let plain = doc! { "key": { "a": 1 }, "name": "a_1" };
    assert_eq!(made(true, plain.clone()), [named("a_1_pleach", true)], "the plain one finds");
    assert_eq!(made(false, plain), []);
    let other = doc! { "key": { "b": 1 }, "name": "b_1" };
    assert_eq!(made(true, other), [named("a_1", true), named("a_1_pleach", false)]);
    let sparse = doc! { "key": { "a": 1 }, "name": "own", "sparse": true, "unique": true };
    assert_eq!(made(true, sparse), []);
    let ours = bson::Document::try_from(&spec(true)).unwrap();
    assert_eq!(made(true, ours), [named("a_1_pleach", false)], "it finds nothing");
    let typed = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true, "partialFilterExpression": { "a": { "$type": "string" } } };
    assert_eq!(made(true, typed), [named("a_1_pleach", true), named("a_1_pleach_2", false)]);
}

#[test]
fn an_ordered_index_is_read_forwards_or_backwards() {
    let newest = |first: Direction| IndexNeed {
        keys: vec![(Path::new("a"), first), (Path::new("at"), Direction::Descending)],
        ..needs(false)
    };
    let (found, ordered) = (newest(Direction::Any), newest(Direction::Ascending));
    for (key, finds, orders) in [
        (doc! { "a": 1, "at": -1 }, true, true),
        (doc! { "a": -1, "at": 1 }, true, true),
        (doc! { "a": 1, "at": 1 }, true, false),
        (doc! { "a": 1, "at": -1, "b": 1 }, true, true),
        (doc! { "at": -1, "a": 1 }, false, false),
    ] {
        let index = Doc::from(doc! { "key": key.clone(), "name": "own" });
        assert_eq!((serves(&found, &index), serves(&ordered, &index)), (finds, orders), "{key}");
    }
    let made = PlannedIndex::new(ordered);
    assert_eq!(made.spec(), Doc::from(doc! { "key": { "a": 1, "at": -1 }, "name": "a_1_at_-1" }));
}

#[test]
fn an_index_of_more_documents_serves_and_one_of_others_does_not() {
    let articles = || Doc::from(doc! { "kind": "article" });
    let need = IndexNeed { partial: Some(articles()), ..needs(false) };
    for (index, is_served) in [
        (doc! { "key": { "a": 1 } }, true),
        (doc! { "key": { "a": 1 }, "partialFilterExpression": { "kind": "article" } }, true),
        (doc! { "key": { "a": 1 }, "partialFilterExpression": { "kind": "book" } }, false),
        (doc! { "key": { "a": 1 }, "sparse": true }, false),
    ] {
        let shown = index.to_string();
        assert_eq!(serves(&need, &Doc::from(index)), is_served, "{shown}");
    }
    let unique = IndexNeed { unique: true, ..need };
    assert!(!serves(&unique, &Doc::from(doc! { "key": { "a": 1 } })));
    let ours = unserved(unique, Vec::new());
    assert_eq!(ours.len(), 1, "no reference leads there: nothing is made to find by");
    let spec =
        doc! { "key": { "a": 1 }, "name": "a_1", "unique": true, "partialFilterExpression": { "kind": "article" } };
    assert_eq!(ours[0].spec(), Doc::from(spec));
}

#[test]
fn only_an_index_with_the_same_expiry_expires() {
    let need = IndexNeed { expire_after: Some(60), ..needs(false) };
    for (index, is_served) in [
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": 60 }, true),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": 60.0 }, true),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": 61 }, false),
        (doc! { "key": { "a": 1 } }, false),
    ] {
        let shown = index.to_string();
        assert_eq!(serves(&need, &Doc::from(index)), is_served, "{shown}");
    }
    let spec = doc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": 60_i64 };
    assert_eq!(PlannedIndex::new(need).spec(), Doc::from(spec));
}
