//! Documents are accepted exactly when the declaration says so: by the validator, and by a reference that is written from the text of
//! the contract. Violations name kind and field; filters that contradict the declaration are pointed out.

use crate::declare::from_yaml;
use crate::rule::Constraint;
use bson::{Bson, Document, doc};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Doc, Env};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

fn constraint(block: &str) -> Arc<dyn Constraint> {
    let block: String = block.lines().map(|line| format!("      {line}\n")).collect();
    let text = format!("database: shop\ncollections:\n  products:\n    polymorphic:\n{block}");
    let checked = from_yaml("pleach.yaml", &text);
    let rules = checked.declaration.unwrap_or_else(|| panic!("{text}{:?}", checked.findings)).rules;
    rules[0].constraint().unwrap().clone()
}

const PRODUCTS: &str = "discriminator: type
common:
  sold: { required: [title], schema: { properties: { price: { bsonType: number, minimum: 0 } } } }
kinds:
  book: { inherits: sold, required: [isbn], indexes: [{ key: { isbn: 1 }, unique: true }] }
  electronics: { inherits: sold, required: [brand, size.volts] }
  voucher: { schema: { additionalProperties: false, properties: { amount: { bsonType: int } } } }
  gift: {}";

fn accepts(constraint: &dyn Constraint, document: &Document, kept: &[Path]) -> bool {
    let validator = Filter::parse(&constraint.validator(kept), &mut Names::new()).unwrap();
    validator.matches(&Doc::from(document), &Env::fixed()).unwrap()
}

/// What the declaration above says, in plain code.
fn is_allowed(document: &Document, accepts_unknown: bool) -> bool {
    let Some(kind) = document.get("type").and_then(Bson::as_str) else { return false };
    let price = match document.get("price") {
        None => true,
        Some(Bson::Int32(price)) => *price >= 0,
        Some(Bson::Double(price)) => *price >= 0.0,
        Some(_) => false,
    };
    let has = |name: &str| document.contains_key(name);
    match kind {
        "book" => has("title") && has("isbn") && price,
        "electronics" => {
            let has_volts =
                document.get("size").and_then(Bson::as_document).is_some_and(|size| size.contains_key("volts"));
            has("title") && has("brand") && has_volts && price
        }
        "voucher" => {
            let known = ["_id", "_pleach", "type", "amount"];
            document.keys().all(|name| known.contains(&&**name))
                && matches!(document.get("amount"), None | Some(Bson::Int32(_)))
        }
        "gift" => true,
        _ => accepts_unknown,
    }
}

fn random(rng: &mut StdRng) -> Document {
    let mut document = doc! { "_id": 1 };
    let kinds: [Bson; 9] = [
        "book".into(),
        "electronics".into(),
        "voucher".into(),
        "gift".into(),
        "car".into(),
        5.into(),
        Bson::Null,
        vec![Bson::from("book")].into(),
        "book".into(),
    ];
    if rng.random_bool(0.9) {
        document.insert("type", kinds.choose(rng).unwrap().clone());
    }
    let values: [Bson; 6] = ["x".into(), 5.into(), (-5).into(), 2.5.into(), Bson::Null, doc! { "volts": 5 }.into()];
    for name in ["title", "isbn", "brand", "price", "amount", "size", "note"] {
        if rng.random_bool(0.55) {
            document.insert(name, values.choose(rng).unwrap().clone());
        }
    }
    document
}

#[test]
fn random_documents_are_accepted_exactly_when_the_reference_accepts_them() {
    let reject = constraint(PRODUCTS);
    let accept = constraint(&format!("{PRODUCTS}\nunknown: accept"));
    let mut rng = StdRng::seed_from_u64(36);
    let (mut allowed, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let document = random(&mut rng);
        for (constraint, accepts_unknown) in [(&reject, false), (&accept, true)] {
            let expected = is_allowed(&document, accepts_unknown);
            assert_eq!(accepts(&**constraint, &document, &[]), expected, "{accepts_unknown} {document}");
            let violations = constraint.violations(&Doc::from(&document), &[], &Env::fixed()).unwrap();
            assert_eq!(violations.is_empty(), expected, "{document}: {violations:?}");
            if expected { allowed += 1 } else { refused += 1 }
        }
    }
    assert!(allowed > 500 && refused > 500, "{allowed} {refused}");
}

#[test]
fn violations_name_kind_and_field() {
    let products = constraint(PRODUCTS);
    for (document, expected) in [
        (doc! {}, vec!["type: is missing"]),
        (doc! { "type": "car" }, vec!["type: is no kind: the kinds are book, electronics, voucher, gift"]),
        (doc! { "type": 5 }, vec!["type: is not text"]),
        (doc! { "type": "book", "title": "a" }, vec!["isbn: is missing"]),
        (
            doc! { "type": "book", "price": -1 },
            vec!["title: is missing", "isbn: is missing", "price: minimum: comparison failed"],
        ),
        (doc! { "type": "electronics", "title": "a", "brand": "b", "size": {} }, vec!["size.volts: is missing"]),
        (doc! { "type": "voucher", "note": 1 }, vec!["note: is not declared"]),
    ] {
        let found = products.violations(&Doc::from(&document), &[], &Env::fixed()).unwrap();
        let mut found: Vec<String> =
            found.iter().map(|violation| format!("{}: {}", violation.field, violation.problem)).collect();
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{document}");
    }
}

#[test]
fn closed_schemas_allow_what_rules_keep() {
    let products = constraint(PRODUCTS);
    let voucher = doc! { "_id": 1, "type": "voucher", "amount": 5, "stats": { "n": 1 }, "_pleach": {} };
    assert!(!accepts(&*products, &voucher, &[]));
    assert!(accepts(&*products, &voucher, &[Path::new("stats.n")]));
    let nested = constraint(
        "discriminator: meta.type\nkinds:\n  a: { schema: { additionalProperties: false, properties: { stats: { additionalProperties: false } } } }",
    );
    let document = doc! { "meta": { "type": "a" }, "stats": { "n": 1 } };
    assert!(!accepts(&*nested, &document, &[]));
    assert!(accepts(&*nested, &document, &[Path::new("stats.n")]));
    assert!(!accepts(&*nested, &doc! { "meta": { "type": "b" } }, &[]));
    assert!(!accepts(&*nested, &doc! { "meta": [{ "type": "a" }] }, &[]));
}

#[test]
fn each_kind_has_its_own_partial_indexes() {
    let needs = constraint(
        "discriminator: type\nindexes: [{ key: { price: 1 } }]\ntext: { title: 10, description: 1 }\ncommon:\n  coded: { indexes: [{ key: { code: 1 }, unique: true }] }\nkinds:\n  a: { inherits: coded }\n  b: { inherits: [coded] }",
    )
    .needs();
    let specs: Vec<Document> = needs.indexes.iter().map(|need| Document::try_from(&need.spec("n")).unwrap()).collect();
    assert_eq!(
        specs,
        [
            doc! { "key": { "price": 1 }, "name": "n" },
            doc! { "key": { "code": 1 }, "name": "n", "unique": true, "partialFilterExpression": { "type": "a" } },
            doc! { "key": { "code": 1 }, "name": "n", "unique": true, "partialFilterExpression": { "type": "b" } },
            doc! { "key": { "title": "text", "description": "text" }, "name": "n", "weights": { "title": 10, "description": 1 } },
        ]
    );
    assert_eq!(needs.indexes[3].name(), "title_text_description_text");
}

#[test]
fn filters_that_contradict_the_declaration_are_pointed_out() {
    let (products, open) = (constraint(PRODUCTS), constraint(&format!("{PRODUCTS}\nunknown: accept")));
    for (filter, word) in [
        (doc! { "type": "book", "brand": "x" }, Some("`brand`, a field of electronics only")),
        (
            doc! { "$and": [{ "type": { "$in": ["book", "voucher"] } }, { "size.volts": { "$gt": 5 } }] },
            Some("`size.volts`"),
        ),
        (doc! { "type": "book", "$and": [{ "type": "gift" }] }, Some("finds nothing")),
        (doc! { "type": "bok" }, Some("no kind is called bok")),
        (doc! { "type": "book", "isbn": "x" }, None),
        (doc! { "type": "book", "price": 5 }, None),
        (doc! { "type": "book", "colour": "red" }, None),
        (doc! { "type": "book", "brand": { "$exists": false } }, None),
        (doc! { "type": "book", "brand": null }, None),
        (doc! { "type": "book", "brand": { "$ne": "x" } }, None),
        (doc! { "type": { "$in": ["book", "electronics"] }, "brand": "x" }, None),
        (doc! { "$or": [{ "type": "book" }, { "brand": "x" }] }, None),
        (doc! { "brand": "x" }, None),
    ] {
        let parsed = Filter::parse(&Doc::from(&filter), &mut Names::new()).unwrap();
        let notes = products.notes(&parsed);
        match word {
            Some(word) => assert!(notes.len() == 1 && notes[0].contains(word), "{filter}: {notes:?}"),
            None => assert!(notes.is_empty(), "{filter}: {notes:?}"),
        }
    }
    let other = Filter::parse(&Doc::from(&doc! { "type": "bok", "brand": 1 }), &mut Names::new()).unwrap();
    assert!(open.notes(&other).is_empty(), "other kinds are accepted");
}
