//! What is added stands where a person would put it, and nothing else changes.

use super::{Declared, extend};
use crate::declare::{Severity, from_yaml};
use proptest::prelude::*;

const RATING: &str = "database: shop\ncollections:\n  products:\n    computed:\n      avgRating: { avg: rating, from: reviews, by: productId }\n";

fn added(text: &str, addition: &str) -> String {
    let extended =
        extend("pleach.yaml", text, addition, Declared::Refuse).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let errors: Vec<_> = from_yaml("pleach.yaml", &extended.text)
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{}", extended.text);
    extended.text
}

fn refused(text: &str, addition: &str) -> String {
    match extend("pleach.yaml", text, addition, Declared::Refuse) {
        Ok(extended) => panic!("taken:\n{}", extended.text),
        Err(error) => format!("{} | {}", error.message(), error.hint().unwrap_or_default()),
    }
}

#[test]
fn a_rule_comes_beneath_its_neighbours() {
    let text = "\
# Ours. Ask Ada before you change it.
database: shop   # the only one

collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }   # on every page
      # followers: not yet
    # end of products

  # Orders come last.
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
";
    let wanted = text.replace(
        "      # followers: not yet\n",
        "      # followers: not yet\n      avgRating: { avg: rating, from: reviews, by: productId }\n",
    );
    assert_eq!(added(text, RATING), wanted);
}

#[test]
fn what_is_missing_above_a_rule_comes_with_it() {
    let text = "database: shop\ncollections:\n  orders:\n    extended_reference:\n      customer: { from: customers, by: customerId, fields: [name] }\n";
    let collection = "  products:\n    computed:\n      avgRating: { avg: rating, from: reviews, by: productId }\n";
    assert_eq!(added(text, RATING), format!("{text}{collection}"));
    let pattern = "\
database: shop
collections:
  orders:
    computed:
      # all lines
      total: { sum: amount, from: lines, by: orderId }
";
    assert_eq!(
        added(text, pattern),
        format!("{text}    computed:\n      # all lines\n      total: {{ sum: amount, from: lines, by: orderId }}\n")
    );
    for nothing in ["", "# Nothing yet.\n", "# Nothing yet."] {
        let gap = if nothing.ends_with('.') { "\n" } else { "" };
        assert_eq!(added(nothing, RATING), format!("{nothing}{gap}{RATING}"));
    }
    assert_eq!(added("database: shop\n", RATING), RATING);
    assert_eq!(added("database: shop\ncollections:\n", RATING), RATING);
}

#[test]
fn several_rules_come_each_to_their_place() {
    let text = "database: shop\ncollections:\n  products:\n    computed:\n      reviewCount: { count: reviews, by: productId }\n";
    let addition = "\
database: shop
collections:
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
  products:
    computed:
      avgRating: { avg: rating, from: reviews, by: productId }
    subset:
      recentReviews:
        from: reviews
        by: productId
        sort: { date: -1 }
        keep: 5
        fields: [text, date]
";
    let extended = extend("pleach.yaml", text, addition, Declared::Refuse).unwrap();
    let (head, rest) = addition.split_once("  orders:\n").unwrap();
    let (order, products) = rest.split_once("  products:\n    computed:\n").unwrap();
    let first = "      reviewCount: { count: reviews, by: productId }\n";
    let wanted = format!("{head}  products:\n    computed:\n{first}{products}  orders:\n{order}");
    assert_eq!(extended.text, wanted);
    let mut rules = extended.rules;
    rules.sort();
    assert_eq!(rules, ["orders.customer", "products.avgRating", "products.recentReviews"]);
}

#[test]
fn indentation_and_line_ends_are_the_files() {
    let text = "database: shop\r\ncollections:\r\n    products:\r\n        computed:\r\n            reviewCount:\r\n                count: reviews\r\n                by: productId";
    let addition = "database: shop\ncollections:\n  products:\n    subset:\n      last:\n        from: reviews\n        by: productId\n        sort: { date: -1 }\n        keep: 5\n";
    let lines = "\r\n        subset:\r\n            last:\r\n                from: reviews\r\n                by: productId\r\n                sort: { date: -1 }\r\n                keep: 5";
    assert_eq!(added(text, addition), format!("{text}{lines}"));
    let text = "database: shop\ncollections:\n products:\n   computed:\n           reviewCount: { count: reviews, by: productId }\n\n\n...\n";
    let rule = "           avgRating: { avg: rating, from: reviews, by: productId }\n";
    assert_eq!(added(text, RATING), text.replace("\n\n\n", &format!("\n{rule}\n\n")));
}

#[test]
fn braces_stay_braces() {
    let text = "database: shop\ncollections: { products: { computed: { reviewCount: { count: reviews, by: productId } } } } # all\n";
    assert_eq!(
        added(text, RATING),
        text.replace(
            "productId } } } }",
            "productId }, avgRating: { avg: rating, from: reviews, by: productId } } } }"
        )
    );
    let text = "database: shop\ncollections:\n  products:\n    computed: {}\n";
    assert_eq!(added(text, RATING), text.replace("{}", "{ avgRating: { avg: rating, from: reviews, by: productId } }"));
    let text = "database: shop\ncollections:\n  products:\n    computed: {\n      a: { count: reviews, by: productId }, # first\n      b: { count: likes, by: productId },   # last\n    }\n";
    let nested = "database: shop\ncollections:\n  products:\n    computed:\n      paid:\n        sum: amount\n        from: sales\n        by: productId\n        where: { note: 'a, {b}', \"x: y\": [1, \"#2\"] }\n";
    let told = added(text, nested);
    assert!(told.contains("b: { count: likes, by: productId }, paid: { sum: amount, from: sales, by: productId, where: { note: \"a, {b}\", \"x: y\": [1, \"#2\"] } },   # last"), "{told}");
}

#[test]
fn what_is_there_already_is_said() {
    let told = refused(RATING, RATING);
    assert!(told.starts_with("pleach.yaml declares `products.avgRating` already, line 5 |"), "{told}");
    let bucket = "database: shop\ncollections:\n  events:\n    bucket: { time: date, by: [key] }\n";
    assert!(refused(bucket, bucket).starts_with("pleach.yaml declares `events.bucket` already, line 4"));
    let other = RATING.replace("shop", "store");
    let told = refused(&other, RATING);
    assert!(told.starts_with("pleach.yaml is for the database `store`, the rule for `shop`"), "{told}");
}

#[test]
fn what_is_no_declaration_is_refused() {
    for (text, why) in [
        ("database: shop\ncollections:\n\tproducts:\n", "not YAML"),
        ("database: shop\ncollections: &all\n  products: {}\n", "an anchor in line"),
        ("- a\n- b\n", "is no declaration"),
        ("database: shop\ncollections: 7\n", "`collections` in pleach.yaml, line 2 is a number, not a map"),
        ("database: shop\ncollections:\n  products:\n    computed: ~\n", "is empty, not a map"),
    ] {
        let told = refused(text, RATING);
        assert!(told.contains(why), "{told}");
    }
    // A key in the long form: a line beneath it would belong to something else.
    let told =
        refused("? database\n: shop\n? collections\n: ? orders\n  : computed:\n      a: { count: x, by: y }\n", RATING);
    assert!(told.contains("cannot add to safely"), "{told}");
}

#[test]
fn a_change_replaces_values_and_adds_keys() {
    let text = "\
database: study
collections:
  events:
    # The quarters.
    bucket:
      time: date
      by: [{ field: key, as: hex }]
      every: quarter  # not month
      slot: day
      sum: { approved: a }
      layout: array   # for now
";
    let change = "database: study\ncollections:\n  events:\n    bucket: { layout: field_names, every: month, bucket_id: packed }\n";
    let changed = extend("pleach.yaml", text, change, Declared::Change).unwrap();
    let wanted = text
        .replace("quarter  #", "month  #")
        .replace("layout: array   # for now\n", "layout: field_names   # for now\n      bucket_id: packed\n");
    assert_eq!((changed.text, changed.rules), (wanted, vec!["events.bucket".to_owned()]));
}

/// Texts of declarations as people write them: some collections with some rules, in lines or braces, with comments.
fn texts() -> impl Strategy<Value = String> {
    let rule = (0..4_usize, any::<bool>(), 0..4_usize);
    let collection = (0..3_usize, prop::collection::vec(rule, 1..4), 0..4_usize);
    let layout = (1..5_usize, any::<bool>(), any::<bool>(), any::<bool>());
    (prop::collection::vec(collection, 0..3), layout).prop_map(|(collections, (step, returns, open, braces))| {
        let mut text = String::from("# head\ndatabase: shop # here\n\ncollections:");
        let pad = |depth: usize| " ".repeat(depth * step);
        let comment = |number: usize, depth: usize| match number {
            1 => format!("\n{}# note\n", pad(depth)),
            2 => "\n# far left\n".to_owned(),
            3 => "\n\n".to_owned(),
            _ => "\n".to_owned(),
        };
        text.push_str(if collections.is_empty() { " {}\n" } else { "\n" });
        let mut seen = Vec::new();
        for (name, rules, remark) in collections {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let name = ["orders", "products", "users"][name];
            let mut fields: Vec<String> = Vec::new();
            for (number, in_braces, remark) in rules {
                let field = format!("f{number}");
                if fields.iter().any(|known| known.contains(&field)) {
                    continue;
                }
                let rule = match in_braces || braces {
                    true => format!("{field}: {{ count: likes, by: k{number} }}"),
                    false => format!("{field}:\n{}count: likes\n{}by: k{number}", pad(4), pad(4)),
                };
                fields.push(if braces { rule } else { format!("{}{rule}{}", pad(3), comment(remark, 3)) });
            }
            let body = match braces {
                true => format!(" {{ {} }}{}", fields.join(", "), comment(remark, 2)),
                false => format!("\n{}{}", fields.concat(), comment(remark, 2).trim_start_matches('\n')),
            };
            text.push_str(&format!("{}{name}:\n{}computed:{body}", pad(1), pad(2)));
        }
        let text = if open { text.trim_end().to_owned() } else { text };
        if returns { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    /// The old lines are all there in their order, the new text says what both say, and `check` takes it.
    #[test]
    fn nothing_is_lost(text in texts(), host in 0..4_usize, pattern in 0..3_usize) {
        let host = ["orders", "products", "users", "posts"][host];
        let addition = match pattern {
            0 => format!("database: shop\ncollections:\n  {host}:\n    computed:\n      total:\n        # all of it\n        sum: amount\n        from: sales\n        by: owner\n"),
            1 => format!("database: shop\ncollections:\n  {host}:\n    extended_reference:\n      owner: {{ from: people, by: ownerId, fields: [name] }}\n"),
            _ => format!("database: shop\ncollections:\n  {host}:\n    versions:\n      field: v\n      steps:\n        - {{ rename: {{ a: b }} }}\n"),
        };
        let new = added(&text, &addition);
        let mut lines = new.lines();
        let has_braces = text.contains("{}") || text.contains("computed: {");
        for line in text.lines() {
            let is_it = |new: &str| new == line || (has_braces && line.split("}").next().is_some_and(|head| new.starts_with(head)));
            prop_assert!(lines.any(is_it), "{line:?} of\n{text}\nis not in\n{new}");
        }
        let (old, new) = (from_yaml("a", &text), from_yaml("a", &new));
        let names = |checked: crate::declare::Checked| -> Vec<String> {
            let mut names: Vec<String> = checked.declaration.map_or_else(Vec::new, |it| it.rules.iter().map(|rule| rule.name.to_string()).collect());
            names.sort();
            names
        };
        let rule = format!("{host}.{}", ["total", "owner", "versions"][pattern]);
        let mut wanted = names(old);
        wanted.push(rule);
        wanted.sort();
        prop_assert_eq!(names(new), wanted);
    }
}
