//! Declarations and what becomes of them, as rows.

use crate::declare::*;
use crate::rule::{ClientWrites, Fetch, Rule, WhenChanged, WhenDeleted};
use document::DocWriter;
use document::Value;

/// The whole contract's patterns that are there.
const SHOP: &str = "\
database: shop
collections:
  posts:
    extended_reference:
      author:
        from: users
        by: authorId
        fields: [name, avatar]
        when_changed: refresh
        when_deleted: keep
    computed:
      likeCount: { count: likes, by: postId }
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, match: email, fields: { name: name, city: address.city }, when_changed: keep, when_deleted: cascade }
      items.product: { from: products, by: items.productId, fields: [title], when_deleted: reject, client_writes: refuse }
      tags: { from: tags, by: tagIds, each: true, fields: [label], when_deleted: unset, lag: 500ms }
  products:
    computed:
      avgRating: { avg: rating, from: reviews, by: productId }
      totalRevenue: { sum: amount, from: sales, by: productId, where: { status: paid } }
      margin: { expr: { $subtract: [$price, $cost] } }
      followers: { count: follows, by: productId, lag: 5s, client_writes: ignore }
  sensor_data:
    bucket:
      into: sensor_hours
      time: ts
      by: [sensorId]
      every: hour
      at_most: 60
      unit: { minute: m }
      reading_id: time
      stats: { temp: [min, max, avg] }
  events:
    bucket:
      time: date
      by: [{ field: key, as: hex }]
      every: quarter
      slot: day
      sum: { approved: a, noFunds: n, pending: p, rejected: r }
      layout: field_names
      bucket_id: packed
  visits:
    bucket: { time: at, by: [site], every: day, slot: { field: country, keys: \"^[A-Z]{2}$\", at_most: 250 }, sum: [views] }
  ticks:
    bucket: { time: at, by: [], every: year }
";

fn rules(yaml: &str) -> Vec<Rule> {
    let checked = from_yaml("pleach.yaml", yaml);
    assert!(checked.severity() <= Some(Severity::Note), "{yaml}{:?}", checked.findings);
    checked.declaration.expect("no findings, so a declaration").rules
}

#[test]
fn rules_of_the_contract() {
    let rules = rules(SHOP);
    let names: Vec<&str> = rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(
        names,
        [
            "posts.author",
            "posts.likeCount",
            "orders.customer",
            "orders.items.product",
            "orders.tags",
            "products.avgRating",
            "products.totalRevenue",
            "products.margin",
            "products.followers",
            "sensor_data.bucket",
            "events.bucket",
            "visits.bucket",
            "ticks.bucket"
        ]
    );
    let rule = |name: &str| rules.iter().find(|rule| &*rule.name == name).expect(name);
    let link = |name: &str| rule(name).link().expect(name);
    let author = link("posts.author");
    assert_eq!((author.local.path.dotted(), author.foreign.to_string()), ("authorId".to_owned(), "_id".to_owned()));
    assert_eq!(author.source.to_string(), "shop.users");
    let customer = link("orders.customer");
    assert_eq!((customer.when_changed, customer.when_deleted), (WhenChanged::Keep, WhenDeleted::Cascade));
    assert_eq!(customer.foreign.to_string(), "email");
    let copied = rule("orders.customer").kept_field().expect("a field").query(&[], Fetch::Rows).expect("a query");
    assert!(format!("{copied:?}").contains("address.city"), "{copied:?}");
    assert!(link("orders.tags").local.each && !link("orders.items.product").local.each);
    assert_eq!(link("orders.tags").lag.map(|lag| lag.as_millis()), Some(500));
    let revenue = link("products.totalRevenue");
    assert_eq!(rule("products.totalRevenue").described(), "sum of amount from sales by productId");
    assert_eq!((revenue.local.path.dotted(), revenue.foreign.to_string()), ("_id".to_owned(), "productId".to_owned()));
    assert!(revenue.filter.is_some());
    let margin = rule("products.margin").kept_field().expect("a field");
    assert!(margin.link().is_none());
    assert_eq!(margin.reads().host.iter().map(|path| path.dotted()).collect::<Vec<_>>(), ["cost", "price"]);
    let writes: Vec<ClientWrites> =
        rules.iter().map(|rule| rule.client_writes).filter(|it| *it != ClientWrites::Override).collect();
    assert_eq!(writes, [ClientWrites::Refuse, ClientWrites::Ignore]);
}

#[test]
fn a_rule_comes_back_from_the_catalog() {
    for rule in rules(SHOP) {
        let again = from_catalog(&rule.declaration).expect("normal form");
        assert_eq!(format!("{rule:?}"), format!("{again:?}"));
    }
}

#[test]
fn bson_says_the_same() {
    let rules = rules(SHOP);
    let mut writer = DocWriter::new();
    writer.append("database", &Value::string("shop"));
    writer.start_document("collections").start_document("posts").start_document("computed").start_document("likeCount");
    writer.append("count", &Value::string("likes")).append("by", &Value::string("postId"));
    writer.end().end().end().end();
    let doc = writer.finish();
    let declaration = from_bson(&doc, None).into_result().expect("valid");
    let [rule] = declaration.rules.as_slice() else { panic!("{declaration:?}") };
    assert_eq!(rule.declaration.as_bytes(), rules[1].declaration.as_bytes());
    assert!(from_bson(&doc, Some("other")).into_result().unwrap_err().message().contains("runs on `other`"));

    let mut wrong = DocWriter::new();
    wrong.start_document("collections").start_document("posts").start_document("computed").start_document("likeCount");
    wrong.append("coutn", &Value::string("likes")).append("by", &Value::string("postId"));
    wrong.end().end().end().end();
    let checked = from_bson(&wrong.finish(), Some("shop"));
    let fields: Vec<&str> = checked.findings.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["collections.posts.computed.likeCount.coutn", "collections.posts.computed.likeCount"]);
    assert!(checked.findings.iter().all(|finding| finding.spot.is_none()));
}

#[test]
fn byte_order_marks_and_windows_lines_change_nothing() {
    let plain = rules(SHOP);
    for text in [format!("\u{feff}{SHOP}"), SHOP.replace('\n', "\r\n")] {
        let same = rules(&text);
        assert!(plain.iter().zip(&same).all(|(a, b)| a.declaration.as_bytes() == b.declaration.as_bytes()));
    }
}

#[test]
fn rules_stand_after_what_they_are_made_from() {
    let names = |yaml: &str| rules(yaml).iter().map(|rule| rule.name.to_string()).collect::<Vec<_>>().join(" ");
    let chain = "database: shop\ncollections:
  posts: { extended_reference: { author: { from: users, by: uid, fields: [name, team], lag: 5s } } }
  users: { extended_reference: { team: { from: teams, by: tid, fields: [name, size], lag: 5s } } }
  teams: { computed: { twice: { expr: { $add: [$size, $size] } }, size: { sum: n, from: parts, by: t } } }\n";
    assert_eq!(names(chain), "teams.size users.team posts.author teams.twice");
}

#[test]
fn what_changed_between_two_declarations() {
    let base = "{ from: users, by: uid, fields: [name], when_changed: refresh }";
    let rule = |block: &str| {
        rules(&format!("database: shop\ncollections: {{ posts: {{ extended_reference: {{ u: {block} }} }} }}\n"))
    };
    for (block, expected) in [
        (base, ""),
        ("{ fields: { name: name }, by: uid, from: users, match: _id, when_deleted: keep }", ""),
        ("{ from: users, by: uid, fields: [name], when_deleted: reject }", "Rebuild"),
        ("{ from: users, by: uid, fields: [name], lag: 5s, client_writes: ignore }", "Policy"),
        ("{ from: users, by: uid, fields: [name], when_changed: keep }", "Policy"),
        ("{ from: users, by: uid, fields: [name, avatar] }", "Rebuild"),
        ("{ from: people, by: uid, fields: [name] }", "Rebuild"),
        ("{ from: users, by: uid, match: handle, fields: [name] }", "Rebuild"),
    ] {
        let (old, new) = (rule(base), rule(block));
        let told = |old: &[Rule], new: &[Rule]| match diff(old, new).as_slice() {
            [] => String::new(),
            [RuleDifference::Changed { change, .. }] => format!("{change:?}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(told(&old, &new), expected, "{block}");
        // Copies that were frozen are stale once they are not; those of gone sources may stay where they were unset before.
        let back = match block {
            block if block.contains("when_changed: keep") => "Rebuild",
            block if block.contains("when_deleted: reject") => "Policy",
            _ => expected,
        };
        assert_eq!(told(&new, &old), back, "{block}");
        assert!(matches!(diff(&[], &new).as_slice(), [RuleDifference::Added(_)]));
        assert!(matches!(diff(&old, &[]).as_slice(), [RuleDifference::Removed(_)]));
    }
}

#[test]
fn rules_declared_apart_are_held_together() {
    let of = |yaml: &str| rules(&format!("database: shop\ncollections: {yaml}\n"));
    let author = of("{ posts: { extended_reference: { author: { from: users, by: uid, fields: [name, best] } } } }");
    for (other, expected) in [
        ("{ posts: { computed: { likes: { count: likes, by: p } } } }", ""),
        ("{ posts: { computed: { author.n: { count: likes, by: p } } } }", "keep one field"),
        ("{ users: { computed: { posts: { count: posts, by: author.id } } } }", "links by a field"),
        (
            "{ users: { extended_reference: { best: { from: posts, by: bid, fields: [author] } } } }",
            "made from each other",
        ),
    ] {
        let told = compatible(&[author.clone(), of(other)].concat()).err().map(|error| error.message().to_owned());
        match told {
            None => assert_eq!(expected, "", "{other}"),
            Some(message) => assert!(!expected.is_empty() && message.contains(expected), "{other}: {message}"),
        }
    }
}

/// `line:column severity message | hint`, one per finding.
fn found(yaml: &str) -> String {
    let told = |finding: &Finding| {
        let place = finding.spot.map(|spot| format!("{}:{} ", spot.line, spot.column)).unwrap_or_default();
        let hint = finding.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{place}{} {}{hint}", finding.severity.name(), finding.message)
    };
    let checked = from_yaml("pleach.yaml", yaml);
    let errors = checked.findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(checked.declaration.is_none(), errors, "a declaration exactly if there is no error: {yaml}");
    checked.findings.iter().map(told).collect::<Vec<_>>().join("\n")
}

/// `findings.txt` holds declarations and what is found in each: `====`, the file, `----`, the findings.
#[test]
fn findings_of_the_cases() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/declare/findings.txt");
    let cases = std::fs::read_to_string(path).expect("the cases");
    let (about, cases) = cases.split_once("====\n").expect("a case");
    let mut now = about.to_owned();
    for case in cases.split("====\n") {
        let (yaml, _) = case.split_once("----\n").expect(case);
        now.push_str(&format!("====\n{yaml}----\n{}\n", found(yaml)));
    }
    if std::env::var_os("PLEACH_GENERATE").is_some() {
        std::fs::write(path, &now).expect("written");
    }
    let kept = std::fs::read_to_string(path).expect("the cases");
    for (line, (kept, now)) in kept.lines().zip(now.lines()).enumerate() {
        assert_eq!(kept, now, "findings.txt:{}; if the new text is right, write it with `just gen`", line + 1);
    }
    assert_eq!(kept.len(), now.len());
}

#[test]
fn buckets_of_the_contract() {
    use crate::shapes::bucket::*;
    let rules = rules(SHOP);
    let bucket = |name: &str| {
        let rule = rules.iter().find(|rule| &*rule.name == name).expect(name);
        Bucket::clone(rule.bucket().expect(name))
    };
    let sensors = bucket("sensor_data.bucket");
    assert_eq!(sensors.into.to_string(), "shop.sensor_hours");
    let stats = vec![("temp".into(), vec![Stat::Min, Stat::Max, Stat::Avg])];
    let unit = Unit { size: Grain::Minute, name: "m".into() };
    let readings = Readings { at_most: 60, unit, inexact: Inexact::Reject, reading_id: ReadingId::Time, stats };
    assert_eq!((sensors.every, sensors.body), (Period::Hour, Body::Readings(readings)));
    let events = bucket("events.bucket");
    assert_eq!((&*events.into.collection, events.packed), ("events_buckets", true));
    assert_eq!(events.by, [Series { field: "key".into(), hex: true }]);
    let sums = [("approved", "a"), ("noFunds", "n"), ("pending", "p"), ("rejected", "r")];
    let sums = sums.map(|(logical, short)| (logical.into(), short.into())).to_vec();
    assert_eq!(events.body, Body::Slots(Slots { slot: Slot::Time(Grain::Day), sums, layout: Layout::FieldNames }));
    let visits = bucket("visits.bucket");
    let slot =
        Slot::Field { field: "country".into(), keys: Grammar::new("^[A-Z]{2}$").expect("a regex"), at_most: 250 };
    let sums = vec![("views".into(), "views".into())];
    assert_eq!(visits.body, Body::Slots(Slots { slot, sums, layout: Layout::Array }));
    let ticks = bucket("ticks.bucket");
    let Body::Readings(Readings { at_most: 1_000, unit, reading_id: ReadingId::Stored, .. }) = &ticks.body else {
        panic!("{ticks:?}")
    };
    assert_eq!((ticks.by.len(), unit.size, &*unit.name), (0, Grain::Millisecond, "t"));
}

#[test]
fn what_changed_between_two_buckets() {
    let rule = |block: &str| rules(&format!("database: shop\ncollections: {{ s: {{ bucket: {block} }} }}\n"));
    let base = rule("{ time: t, by: [k], every: hour }");
    for (block, expected) in [
        ("{ every: hour, by: [k], time: t, at_most: 1000, unit: { ms: t }, into: s_buckets }", None),
        ("{ time: t, by: [k], every: hour, at_most: 2000 }", Some(RuleChange::Policy)),
        ("{ time: t, by: [k], every: hour, inexact: truncate }", Some(RuleChange::Policy)),
        ("{ time: t, by: [k], every: hour, at_most: 10 }", Some(RuleChange::Rebuild)),
        ("{ time: t, by: [k], every: day }", Some(RuleChange::Rebuild)),
        ("{ time: t, by: [k], every: hour, into: other }", Some(RuleChange::Rebuild)),
        ("{ time: t, by: [k], every: hour, stats: { v: [max] } }", Some(RuleChange::Rebuild)),
        ("{ time: t, by: [k], every: hour, slot: minute, sum: [v] }", Some(RuleChange::Rebuild)),
    ] {
        let new = rule(block);
        let told = match diff(&base, &new).as_slice() {
            [] => None,
            [RuleDifference::Changed { change, .. }] => Some(*change),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected, "{block}");
    }
}

#[test]
fn a_bucket_declared_apart_stays_apart() {
    let of = |yaml: &str| rules(&format!("database: shop\ncollections: {yaml}\n"));
    let bucket = of("{ sensors: { bucket: { time: t, by: [k], every: hour } } }");
    for (other, fits) in [
        ("{ posts: { computed: { likes: { count: likes, by: p } } } }", true),
        ("{ posts: { computed: { n: { count: sensors, by: p } } } }", true),
        ("{ posts: { computed: { n: { max: v, from: sensors, by: k } } } }", true),
        ("{ posts: { computed: { n: { max: v, from: sensors, by: p } } } }", false),
        ("{ posts: { computed: { n: { distinct: v, from: sensors, by: { k: $k, p: $p } } } } }", false),
        ("{ posts: { computed: { n: { last: v, from: sensors, by: { k: $k }, sort: { t: 1, v: 1 } } } } }", true),
        ("{ posts: { computed: { n: { first: v, from: sensors, by: k, sort: { v: 1 } } } } }", false),
        ("{ posts: { subset: { n: { from: sensors, by: k, sort: { t: -1 }, keep: 2 } } } }", true),
        ("{ posts: { subset: { n: { from: sensors, by: p, sort: { t: -1 }, keep: 2 } } } }", false),
        ("{ sensors: { computed: { n: { count: likes, by: p } } } }", false),
        ("{ posts: { computed: { n: { count: sensors_buckets, by: p } } } }", false),
        ("{ other: { bucket: { time: t, by: [k], every: hour, into: sensors_buckets } } }", false),
        ("{ other: { bucket: { time: t, by: [k], every: hour, into: sensors } } }", false),
    ] {
        assert_eq!(compatible(&[bucket.clone(), of(other)].concat()).is_ok(), fits, "{other}");
        assert_eq!(compatible(&[of(other), bucket.clone()].concat()).is_ok(), fits, "{other}");
    }
}

/// What a client reads who sent a declaration: each error with its place, and neither an empty list nor two colons in a row.
#[test]
fn errors_are_one_sentence_for_a_client() {
    for (text, expected) in [
        ("5", "the declaration has errors: "),
        (
            "database: shop\ncollections:\n  a: { computed: { n: { count: b, byy: c } } }\n",
            "unknown key `byy` (at collections.a.computed.n.byy)",
        ),
    ] {
        let error = from_yaml("pleach.yaml", text).into_result().unwrap_err();
        let message = error.message();
        assert!(message.contains(expected) && message.len() > "the declaration has errors: ".len(), "{message}");
        assert!(!message.contains(": :") && !message.contains("::") && !message.ends_with(": "), "{message}");
    }
}

#[test]
fn files_of_one_database_are_checked_together() {
    let part = |file, text| Part { file, content: DeclarationText::Yaml(text) };
    let orders =
        "database: shop\ncollections: { orders: { computed: { total: { sum: price, from: lines, by: orderId } } } }\n";
    let again = "database: shop\ncollections:\n  orders: { computed: { total: { count: lines, by: orderId } } }\n";
    let others = "database: hr\ncollections: { people: { computed: { n: { count: tasks, by: who } } } }\n";
    let products = "database: shop\ncollections: { products: { computed: { n: { count: lines, by: productId } } } }\n";
    let groups = from_parts(&[part("a.yaml", orders), part("c.yaml", others), part("b.yaml", products)], None);
    let found: Vec<(Vec<usize>, usize)> = groups
        .iter()
        .map(|group| (group.parts.clone(), group.checked.declaration.as_ref().unwrap().rules.len()))
        .collect();
    assert_eq!(found, [(vec![0, 2], 2), (vec![1], 1)]);
    let groups = from_parts(&[part("a.yaml", orders), part("b.yaml", again)], None);
    let [group] = groups.as_slice() else { panic!("{groups:?}") };
    assert!(group.checked.declaration.is_none());
    let errors: Vec<_> = group.checked.findings.iter().filter(|it| it.severity == Severity::Error).collect();
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((error.file.as_deref(), error.spot.unwrap().line), (Some("b.yaml"), 3));
    assert!(error.message.contains("in line 2 of a.yaml"), "{}", error.message);
}
