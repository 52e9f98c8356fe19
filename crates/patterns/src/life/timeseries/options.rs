//! What the `timeseries` option means: which rule, and when its buckets expire.

use crate::execute::access::Access;
use crate::life::expiry;
use crate::mql;
use crate::rule::Rule;
use crate::shapes::bucket::{Bucket, Period};
use document::op::{AdminOp, Namespace};
use document::value::order;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// As many readings as MongoDB puts into a bucket.
const AT_MOST: i32 = 1_000;

/// The rule that `create` means.
pub(super) fn rule(ns: &Namespace, options: &Doc<'static>) -> Result<Rule> {
    let Some(Value::Document(series)) = options.get("timeseries") else {
        return Err(Error::bad_value("'timeseries' must be a document"));
    };
    let text = |name: &str| series.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let every = match text("granularity").as_deref() {
        Some("minutes") => "day",
        Some("hours") => "month",
        _ => "hour",
    };
    let mut declaration = DocWriter::new();
    declaration.append("database", &Value::from(&*ns.db)).start_document("collections");
    declaration.start_document(&ns.collection).start_document("bucket");
    declaration.append("time", &Value::string(text("timeField").unwrap_or_default()));
    declaration.append("by", &Value::Array(text("metaField").into_iter().map(Value::string).collect()));
    declaration.append("every", &Value::from(every)).append("at_most", &Value::Int32(AT_MOST));
    // A reading has no other field of that name, whatever it measures.
    declaration.start_document("unit").append("ms", &Value::string(text("timeField").unwrap_or_default())).end();
    declaration.end().end().end();
    crate::declare::from_catalog(&declaration.finish())
        .map_err(|error| Error::new(Code::InvalidOptions, format!("{ns}: {}", error.message())))
}

/// The option as `listCollections` shows it, with another granularity, which tells the span too.
pub(super) fn with_granularity(options: &Doc<'static>, granularity: &str) -> Doc<'static> {
    let mut changed = DocWriter::new();
    for (name, value) in options.iter() {
        match (name.as_str(), &value) {
            ("timeseries", Value::Document(series)) => {
                changed.start_document("timeseries");
                for (name, value) in series.iter() {
                    match name.as_str() {
                        "granularity" => changed.append("granularity", &Value::from(granularity)),
                        "bucketMaxSpanSeconds" => changed.append("bucketMaxSpanSeconds", &span(granularity)),
                        other => changed.append(other, &value),
                    };
                }
                changed.end();
            }
            (other, _) => {
                changed.append(other, &value);
            }
        }
    }
    changed.finish()
}

fn span(granularity: &str) -> Value<'static> {
    Value::Int32(match granularity {
        "minutes" => 86_400,
        "hours" => 2_592_000,
        _ => 3_600,
    })
}

/// The options with another expiry, or none.
pub(super) fn with_expiry(options: &Doc<'static>, after: Option<i64>) -> Doc<'static> {
    let others = options.iter().filter(|(name, _)| name.as_str() != "expireAfterSeconds");
    let mut changed = DocWriter::new();
    changed.append("expireAfterSeconds", &after.map_or(Value::Missing, Value::Int64));
    for (name, value) in others {
        changed.append(name.as_str(), &value);
    }
    changed.finish()
}

/// Buckets go when all of their readings have expired: by an index on the period's start, which is that much earlier. One that
/// clients have made on the time is that very index.
pub(in crate::life) async fn ensure_expiry(at: &mut Access<'_>, bucket: &Bucket, options: &Doc<'static>) -> Result<()> {
    let Some(after) = options.get("expireAfterSeconds").as_ref().and_then(expiry::seconds) else { return Ok(()) };
    let after = Value::Int64(after.saturating_add(longest(bucket.every)).min(i64::from(i32::MAX)));
    let period = bucket.every.name();
    let key = mql::document([(period, Value::Int32(1))]);
    let ns = bucket.into.clone();
    let op = match expiry_index(at, bucket).await? {
        Some(name) => {
            let index = mql::object([("name", Value::string(name)), ("expireAfterSeconds", after)]);
            AdminOp::CollMod { ns, change: mql::document([("index", index)]) }
        }
        None => {
            let name = Value::string(format!("{period}_1"));
            let index = mql::document([("key", Value::Document(key)), ("name", name), ("expireAfterSeconds", after)]);
            AdminOp::CreateIndexes { ns, indexes: vec![index] }
        }
    };
    at.backend.admin(at.session, at.context, op).await.map(drop)
}

/// The name of the index on the period's start alone, if it is there.
pub(super) async fn expiry_index(at: &mut Access<'_>, bucket: &Bucket) -> Result<Option<String>> {
    let key = mql::document([(bucket.every.name(), Value::Int32(1))]);
    let indexes = expiry::indexes(at, &bucket.into).await?;
    let of = |index: &Doc<'static>| {
        let same =
            matches!(index.get("key"), Some(Value::Document(there)) if order::compare_documents(&there, &key).is_eq());
        let whole = !index.contains("partialFilterExpression") && !index.contains("sparse");
        let name = index.get("name")?.as_str()?.to_owned();
        (same && whole).then_some(name)
    };
    Ok(indexes.iter().find_map(of))
}

/// How many seconds the longest period of its kind has.
fn longest(every: Period) -> i64 {
    const DAY: i64 = 86_400;
    match every {
        Period::Minute => 60,
        Period::Hour => 3_600,
        Period::Day => DAY,
        Period::Month => 31 * DAY,
        Period::Quarter => 92 * DAY,
        Period::Year => 366 * DAY,
    }
}
