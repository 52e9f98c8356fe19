//! The hand-written code that each kind of rule is printed as.

use crate::fields::testing::{copy, filter, key};
use crate::fields::{Expression, ExpressionField, Tally, testing};
use crate::print::{Language, code};
use crate::rule::{Field, Rule, WhenDeleted};
use bson::{bson, doc};
use document::Value;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use std::sync::Arc;

fn tally(field: &str, tally: Tally, condition: Option<bson::Document>) -> Arc<Rule> {
    testing::rule(testing::tally(field, tally, |link| link.filter = condition.and_then(filter)))
}

fn margin() -> Arc<Rule> {
    let source = Value::from(bson!({ "$subtract": ["$price", "$cost"] }));
    let set = Value::from(bson!([{ "$set": { "margin": { "$subtract": ["$price", "$cost"] } } }]));
    let Value::Array(set) = set else { unreachable!() };
    let set = Pipeline::parse_update(&set, &mut Names::new()).unwrap();
    let expression = Expression { source, set, reads: vec![Path::new("price"), Path::new("cost")] };
    let target = testing::tally("margin", Tally::Count, |_| {}).target().clone();
    testing::rule(Arc::new(ExpressionField::new(target, expression).unwrap()))
}

fn rules() -> Vec<Arc<Rule>> {
    let fields = [("name", "name"), ("city", "address.city")];
    let author = copy("author", key("authorId", false), &fields, |link| link.when_deleted = WhenDeleted::Unset);
    vec![
        tally("reviewCount", Tally::Count, None),
        tally("paid", Tally::Sum(Path::new("amount")), Some(doc! { "status": "paid" })),
        tally("avgRating", Tally::Avg(Path::new("rating")), None),
        margin(),
        testing::rule(Arc::new(author)),
        testing::rule(Arc::new(copy("items.who", key("items.userId", false), &[("name", "name")], |_| {}))),
    ]
}

/// Buckets of every kind: readings with and without figures, slots in both layouts, packed.
const BUCKETS: &str = "\
database: shop
collections:
  sensor_data:
    bucket: { into: sensor_hours, time: ts, by: [sensorId], every: hour, at_most: 3, unit: { minute: m }, reading_id: time, stats: { temp: [min, max, avg, last, count] } }
  ticks:
    bucket: { time: at, by: [{ field: key, as: hex }, line], every: month, at_most: 2 }
  events:
    bucket: { time: date, by: [{ field: key, as: hex }], every: quarter, slot: day, sum: { approved: a, noFunds: n }, layout: field_names, bucket_id: packed }
  visits:
    bucket: { time: at, by: [site], every: day, slot: { field: country, keys: \"^[A-Z]{2}$\", at_most: 250 }, sum: [views], layout: field_names }
  calls:
    bucket: { time: at, by: [line], every: year, slot: month, sum: { seconds: s } }
";

fn buckets() -> Vec<Arc<Rule>> {
    let declared = crate::declare::from_yaml("pleach.yaml", BUCKETS).into_result().unwrap();
    declared.rules.into_iter().map(Arc::new).collect()
}

const VERSIONS: &str = "\
database: shop
collections:
  users:
    versions:
      field: v
      steps:
        - { nest: { phone: { into: phone.number, with: { phone.code: \"+1\" } } } }
        - { rename: { mail: email } }
";

const OUTLIERS: &str = "\
database: shop
collections:
  users:
    outlier:
      followers: { keep: 500, overflow: follower_overflow, owner: userId, item: followerId, flag: hasOverflow, count: followerCount }
      blocked: { keep: 9, keep_bytes: 2000, overflow: blocks, flag: moreBlocked, unique: true }
";

fn outliers() -> Vec<Arc<Rule>> {
    let declared = crate::declare::from_yaml("pleach.yaml", OUTLIERS).into_result().unwrap();
    declared.rules.into_iter().map(Arc::new).collect()
}

#[test]
fn arrays_that_overflow_have_functions_of_their_own() {
    for (language, words) in [
        (Language::Mongosh, ["function pushUsersFollowers(_id, items) {", "  createUsersFollowers();", "bsonsize("]),
        (
            Language::Node,
            ["async function pushUsersFollowers(_id, items) {", "pageUsersFollowers,", "BSON.calculateObjectSize("],
        ),
        (Language::Python, ["def push_users_followers(_id, items):", "    create_users_followers()", "len(encode("]),
    ] {
        let text = code(&outliers(), language).unwrap();
        for word in words.into_iter().chain(["follower_overflow", "$unionWith", "users.followers", "userId_1_index_1"])
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        // Where bytes are the limit no guard can say whether there is room.
        assert_eq!(text.matches("$lte").count(), 1, "{text}");
        assert!(text.contains("is there twice"), "{text}");
    }
}

fn versions() -> Vec<Arc<Rule>> {
    let declared = crate::declare::from_yaml("pleach.yaml", VERSIONS).into_result().unwrap();
    declared.rules.into_iter().map(Arc::new).collect()
}

#[test]
fn versions_are_migrated_by_one_update_each() {
    for (language, update, read) in [
        (Language::Mongosh, "  database.getCollection(\"users\").updateMany(", "function findNewestUsers(filter = {})"),
        (
            Language::Node,
            "  await database.collection(\"users\").updateMany(",
            "async function findNewestUsers(filter = {})",
        ),
        (Language::Python, "    db[\"users\"].update_many(", "def find_newest_users(filter=None)"),
    ] {
        let text = code(&versions(), language).unwrap();
        assert_eq!(text.matches(update).count(), 2, "{text}");
        assert!(text.contains(read), "{text}");
        assert!(text.contains("users.versions: documents of 3 versions"), "{text}");
    }
}

#[test]
fn every_rule_is_there_in_every_language() {
    for (name, language) in Language::ALL {
        assert_eq!(Language::named(name), Some(language));
        let rules = [rules(), buckets(), outliers(), versions()].concat();
        let text = code(&rules, language).unwrap();
        for rule in rules {
            assert!(text.contains(&format!("{}: {}", rule.name, rule.described())), "{name} {}", rule.name);
        }
        assert!(text.contains("No code is written for it: its copies are in arrays."));
        for bracket in ["()", "[]", "{}"] {
            let [open, close] = [0, 1].map(|at| text.matches(&bracket[at..=at]).count());
            assert_eq!(open, close, "{name}: {bracket}");
        }
        assert!(!text.contains(['‹', '›']), "{name}: a word of a template is missing");
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

const KEYS: &str = "\
database: shop
collections:
  months:
    computed:
      revenue: { sum: amount, from: sales, by: { $dateTrunc: { date: $date, unit: month } }, create: true }
      sales: { count: sales, by: { $dateTrunc: { date: $date, unit: month } }, create: true }
  tags:
    computed:
      posts: { count: posts, by: tags, each: true }
";

#[test]
fn computed_keys_are_read_with_the_child() {
    let rules: Vec<Arc<Rule>> =
        crate::declare::from_yaml("pleach.yaml", KEYS).into_result().unwrap().rules.into_iter().map(Arc::new).collect();
    let text = code(&rules, Language::Python).unwrap();
    let expected = r#"
def keep_months_sales(session, before, after):
    for key in keys_of(before, "months_sales") + keys_of(after, "months_sales"):
        host = db["months"].find_one({"_id": key}, session=session)
        if host is None and rows_months_sales(session, key):
            db["months"].insert_one({"_id": key}, session=session)
            fill_months_revenue(session, {"_id": key})
            fill_months_sales(session, {"_id": key})
        if host:
            fill_months_sales(session, host)
            remove_empty(session, db["months"], key, {"_id", "_pleach", "revenue", "sales"})
"#;
    assert!(text.contains(expected), "{text}");
    // Both rules' keys, computed by the database.
    assert!(text.contains("def find_sales(session, filter):"), "{text}");
    assert_eq!(text.matches("before = find_sales(session, filter)").count(), 2, "{text}");
    // A host that is there anyway is neither made nor removed.
    assert!(!text.contains("db[\"tags\"].insert_one({"), "{text}");
    let text = code(&rules, Language::Node).unwrap();
    let expected = r#"
async function keepTagsPosts(session, before, after) {
  for (const key of [...keysOf(before, "tags_posts"), ...keysOf(after, "tags_posts")]) {
    const host = await collection("tags").findOne({ "_id": key }, { session });
    if (host) await fillTagsPosts(session, host);
  }
}
"#;
    assert!(text.contains(expected), "{text}");
    assert!(!code(&rules, Language::Mongosh).unwrap().contains("await"));
}

#[test]
fn a_bucket_reads_as_written_by_hand() {
    let text = code(&buckets(), Language::Python).unwrap();
    assert!(text.contains(r#"db["sensor_hours"].create_index({"sensorId": 1, "hour": 1})"#), "{text}");
    assert!(text.contains(r#"db.create_collection("events_buckets", validator={"#), "{text}");
    let expected = r#"
def insert_events(reading):
    own = {"_id": id_events(reading, reading["date"])}
    beside = {}
    slot = reading["date"].strftime("%m%d")
    added = {short: reading[name] for name, short in SUMS_EVENTS.items() if name in reading}
    inc = {f"items.{slot}.{short}": more for short, more in added.items()}
    return db["events_buckets"].update_one({**own, **beside}, {"$inc": inc}, upsert=True)


def report_events(series, start, end):
    stages = [
        {"$match": {"_id": {"$gte": id_events(series, start), "$lte": id_events(series, end)}}},
        *VIEW_EVENTS,
        {"$match": {"date": {"$gte": start, "$lt": end}}},
        {"$group": {"_id": None, "approved": {"$sum": "$approved"}, "noFunds": {"$sum": "$noFunds"}}},
    ]
    return list(db["events_buckets"].aggregate(stages))
"#;
    assert!(text.contains(expected), "{text}");
    let expected = r#"
def move_events():
    db["events"].rename("events_plain")
    create_events()
    db["events_plain"].aggregate(GATHER_EVENTS, allowDiskUse=True)
    db["events_plain"].drop()
"#;
    assert!(text.contains(expected), "{text}");
    let text = code(&buckets(), Language::Node).unwrap();
    let expected = r#"
async function insertTicks(reading) {
  const start = startTicks(reading["at"]);
  const offset = reading["at"] - start;
  const element = { "t": offset, _id: reading._id ?? new ObjectId(), ...omit(reading, ["key", "line", "at", "_id"]) };
  const update = { $inc: { count: 1 }, $push: { readings: element } };
  const bucket = { ...hexed(pick(reading, ["key", "line"]), ["key"]), "month": start };
  for (let n = 0; ; n++) {
    const _id = { ...bucket, n };
    try {
      const filter = { _id, ...bucket, count: { $lt: 2 } };
      const done = await collection("ticks_buckets").updateOne(filter, update, { upsert: true });
      return done;
    } catch (error) {
      if (error.code !== 11000) throw error;
      // Full, unless another writer made it at the same moment.
      const there = await collection("ticks_buckets").findOne({ _id });
      if (!there || there.count < 2) n--;
    }
  }
}
"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn an_array_is_lifted_by_a_function_of_its_own() {
    let text = "database: shop\ncollections:\n  products:\n    subset:\n      recent: { from: reviews, by: ref.product, sort: { date: -1 }, keep: 2, lift: reviews }\n";
    let rules = crate::declare::from_yaml("pleach.yaml", text).into_result().unwrap().rules;
    let rules: Vec<Arc<Rule>> = rules.into_iter().map(Arc::new).collect();
    let node = code(&rules, Language::Node).unwrap();
    assert!(node.contains("async function liftProductsRecent() {"), "{node}");
    assert!(node.contains("({ ...item, \"ref\": { ...at(item, \"ref\"), \"product\": key } })"), "{node}");
    assert!(node.contains("deleteReviews, liftProductsRecent };"), "{node}");
    let python = code(&rules, Language::Python).unwrap();
    assert!(python.contains("def lift_products_recent():"), "{python}");
    assert!(python.contains("{**item, \"ref\": {**(at(item, \"ref\") or {}), \"product\": key}}"), "{python}");
    assert!(code(&rules, Language::Mongosh).unwrap().contains("function liftProductsRecent() {"));
}

#[test]
fn the_indexes_are_those_that_apply_makes() {
    let declaration = "\
database: shop
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      best: { max: stats.rating, from: reviews, by: productId }
      sold: { count: sales, by: sku, match: sku }
    subset:
      recent: { from: reviews, by: productId, sort: { at: -1 }, keep: 3 }
      shown: { from: reviews, by: productId, sort: { at: -1 }, keep: 3, where: { status: shown } }
";
    let declared = crate::declare::from_yaml("pleach.yaml", declaration).into_result().unwrap();
    let rules: Vec<Arc<Rule>> = declared.rules.into_iter().map(Arc::new).collect();
    let made = |language: Language, word: &str| -> Vec<String> {
        let text = code(&rules, language).unwrap();
        text.lines().filter(|line| line.contains(word)).map(|line| line.trim().to_owned()).collect()
    };
    let python = made(Language::Python, ".create_index(");
    // The one on `productId` alone is the beginning of another; a reference is found by a plain index beside the unique one.
    assert_eq!(python.len(), 8, "{python:#?}");
    for wanted in [
        r#"db["reviews"].create_index({"productId": 1, "stats.rating": 1}, name="productId_1_stats.rating_1")"#,
        r#"db["reviews"].create_index({"productId": 1, "at": -1, "_id": 1}, name="productId_1_at_-1__id_1")"#,
        r#"db["reviews"].create_index({"productId": 1, "at": -1, "_id": 1}, name="productId_1_at_-1__id_1_2", partialFilterExpression={"status": "shown"})"#,
        r#"db["sales"].create_index({"sku": 1}, name="sku_1")"#,
        r#"db["products"].create_index({"sku": 1}, name="sku_1_2")"#,
    ] {
        assert!(python.iter().any(|line| line == wanted), "{wanted}\n{python:#?}");
    }
    let mongosh = made(Language::Mongosh, ".createIndex(");
    assert_eq!(mongosh.len(), 8, "{mongosh:#?}");
    let unique = mongosh.iter().filter(|line| line.contains("unique: true") && line.contains("$type"));
    assert_eq!(unique.count(), 1, "{mongosh:#?}");
}

/// The commands that a person would run once, and nothing that runs with a write.
#[test]
fn constraints_are_a_validator_and_indexes() {
    let text = "database: shop\ncollections:\n  products:\n    polymorphic:\n      discriminator: type\n      kinds: { book: { required: [isbn], indexes: [{ key: { isbn: 1 }, unique: true }] }, film: { indexes: [{ key: { isbn: 1 } }] } }";
    let rules: Vec<Arc<Rule>> =
        crate::declare::from_yaml("pleach.yaml", text).declaration.unwrap().rules.into_iter().map(Arc::new).collect();
    for (language, words) in [
        (Language::Mongosh, ["constrainProducts();", "database.runCommand({", "collMod: \"products\""]),
        (Language::Node, ["await constrainProducts();", "await database.command({", "createIndexes: \"products\""]),
        (Language::Python, ["    constrain_products()", "db.command({", "\"collMod\": \"products\""]),
    ] {
        let code = code(&rules, language).unwrap();
        for word in words.into_iter().chain(["isbn_1_2", "partialFilterExpression", "moderate"]) {
            assert!(code.contains(word), "{word}: {code}");
        }
        assert!(!code.contains("insertProducts") && !code.contains("insert_products"), "{code}");
    }
}
