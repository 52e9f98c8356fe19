//! The hand-written code that each kind of rule is printed as.

use super::{Language, code};
use crate::link::testing::{change_link, copy, key, tally};
use crate::rule::{Expression, Rule, Tally, Upkeep, WhenDeleted};
use bson::{bson, doc};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Value};
use std::sync::Arc;

fn margin() -> Arc<Rule> {
    let mut rule = (*tally("margin", Tally::Count, None)).clone();
    let source = Value::from(bson!({ "$subtract": ["$price", "$cost"] }));
    let set = Value::from(bson!([{ "$set": { "margin": { "$subtract": ["$price", "$cost"] } } }]));
    let Value::Array(set) = set else { unreachable!() };
    let set: Array<'static> = set;
    rule.upkeep = Upkeep::Expression(Expression {
        source,
        set: Pipeline::parse_update(&set, &mut Names::new()).unwrap(),
        reads: vec![Path::new("price"), Path::new("cost")],
    });
    Arc::new(rule)
}

fn rules() -> Vec<Arc<Rule>> {
    let mut author = copy("author", key("authorId", false), &[("name", "name"), ("city", "address.city")]);
    change_link(&mut author, |link| link.when_deleted = WhenDeleted::Unset);
    vec![
        tally("reviewCount", Tally::Count, None),
        tally("paid", Tally::Sum(Path::new("amount")), Some(doc! { "status": "paid" })),
        tally("avgRating", Tally::Avg(Path::new("rating")), None),
        margin(),
        Arc::new(author),
        Arc::new(copy("items.who", key("items.userId", false), &[("name", "name")])),
    ]
}

#[test]
fn every_rule_is_there_in_every_language() {
    for (name, language) in Language::ALL {
        assert_eq!(Language::named(name), Some(language));
        let text = code(&rules(), language).unwrap();
        for rule in rules() {
            assert!(text.contains(&format!("{}: {}", rule.name, rule.described())), "{name} {}", rule.name);
        }
        assert!(text.contains("No code is written for it: its copies are in arrays."));
        for bracket in ["()", "[]", "{}"] {
            let [open, close] = [0, 1].map(|at| text.matches(&bracket[at..=at]).count());
            assert_eq!(open, close, "{name}: {bracket}");
        }
    }
    assert_eq!(Language::named("cobol"), None);
}

#[test]
fn literals_keep_their_types() {
    let filter = doc! {
        "a": 5_i64, "b": 2.0, "c": true, "d": null, "e": "x\"y", "f": bson::oid::ObjectId::from_bytes([1; 12]),
        "g": bson::DateTime::from_millis(5), "h": f64::INFINITY, "i": { "$regex": "^a" },
    };
    for (language, expected) in [
        (Language::Mongosh, "{ a: NumberLong(\"5\"), b: Double(2.0), c: true, d: null, e: \"x\\\"y\","),
        (Language::Node, "{ a: Long.fromString(\"5\"), b: new Double(2.0), c: true, d: null, e: \"x\\\"y\","),
        (Language::Python, "{\"a\": Int64(5), \"b\": 2.0, \"c\": True, \"d\": None, \"e\": \"x\\\"y\","),
    ] {
        let text = code(&[tally("n", Tally::Count, Some(filter.clone()))], language).unwrap();
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.replace("{ \"a\"", "{\"a\"").contains(expected), "{joined}");
    }
}

#[test]
fn a_count_reads_as_written_by_hand() {
    let text = code(&[tally("reviewCount", Tally::Count, None)], Language::Python).unwrap();
    let expected = r#"
# products.reviewCount: count of reviews by productId
def keep_products_review_count(session, before, after):
    for child, step in ((before, -1), (after, 1)):
        key = at(child, "productId")
        if links(key):
            db["products"].update_one({"_id": key}, {"$inc": {"reviewCount": step}}, session=session)
"#;
    assert!(text.contains(expected), "{text}");
    let text = code(&[tally("reviewCount", Tally::Count, None)], Language::Mongosh).unwrap();
    let expected = r#"
function keepProductsReviewCount(session, before, after) {
  for (const [child, step] of [[before, -1], [after, 1]]) {
    const key = at(child, "productId");
    if (links(key)) collection("products").updateOne({ "_id": key }, { $inc: { "reviewCount": step } });
  }
}
"#;
    assert!(text.contains(expected), "{text}");
}
