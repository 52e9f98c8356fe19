//! Which indexes serve, and what is made beside them.

use crate::life::indexes::*;
use bson::doc;

fn needs(unique: bool) -> Needed {
    Needed::new(&Namespace::new("shop", "reviews"), vec!["a".into()], unique)
}

#[test]
fn an_index_that_is_there_serves_if_it_leads_with_the_paths() {
    let (plain, unique) = (needs(false), needs(true));
    for (index, serves, serves_unique) in [
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
        assert_eq!((plain.is_served_by(&index), unique.is_served_by(&index)), (serves, serves_unique), "{shown}");
    }
}

#[test]
fn what_is_made_leaves_documents_without_the_field_or_with_null_alone() {
    let spec = bson::Document::try_from(&needs(true).spec()).unwrap();
    let partial = spec.get_document("partialFilterExpression").unwrap().get_document("a").unwrap();
    let types = partial.get_array("$type").unwrap();
    assert!(types.contains(&"string".into()) && !types.contains(&"null".into()), "{spec}");
    assert!(needs(true).is_served_by(&needs(true).spec()));
    assert_eq!(needs(false).spec(), Doc::from(doc! { "key": { "a": 1 }, "name": "a_1" }));
}

#[test]
fn a_partial_index_by_type_serves_if_no_reference_is_left_out() {
    let all = |numbers: &[bson::Bson]| {
        let others = TYPES.iter().filter(|(name, _)| !NUMBERS.contains(name)).map(|(name, _)| (*name).into());
        let types: Vec<bson::Bson> = others.chain(numbers.iter().cloned()).collect();
        let partial = doc! { "a": { "$type": types } };
        Doc::from(doc! { "key": { "a": 1 }, "name": "own", "unique": true, "partialFilterExpression": partial })
    };
    assert!(needs(true).is_served_by(&all(&["number".into()])));
    assert!(needs(true).is_served_by(&all(&[1.into(), 16.into(), 18.0.into(), "decimal".into()])));
    assert!(!needs(true).is_served_by(&all(&["int".into(), "double".into()])));
}

#[test]
fn an_index_of_the_same_name_keeps_it() {
    let made = |unique: bool, there: bson::Document| -> Vec<(String, bool)> {
        let made = unserved(needs(unique), vec![Doc::from(there)]);
        made.into_iter().map(|needed| (needed.name, needed.unique)).collect()
    };
    let named = |name: &str, unique: bool| (name.to_owned(), unique);
    let plain = doc! { "key": { "a": 1 }, "name": "a_1" };
    assert_eq!(made(true, plain.clone()), [named("a_1_pleach", true)], "the plain one finds");
    assert_eq!(made(false, plain), []);
    let other = doc! { "key": { "b": 1 }, "name": "b_1" };
    assert_eq!(made(true, other), [named("a_1", true), named("a_1_pleach", false)]);
    let sparse = doc! { "key": { "a": 1 }, "name": "own", "sparse": true, "unique": true };
    assert_eq!(made(true, sparse), []);
    let ours = bson::Document::try_from(&needs(true).spec()).unwrap();
    assert_eq!(made(true, ours), [named("a_1_pleach", false)], "it finds nothing");
    let typed = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true, "partialFilterExpression": { "a": { "$type": "string" } } };
    assert_eq!(made(true, typed), [named("a_1_pleach", true), named("a_1_pleach_2", false)]);
}
