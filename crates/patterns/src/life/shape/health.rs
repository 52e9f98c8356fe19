//! How well a shape's buckets are filled: for people who chose period and size.

use crate::life::records::{At, aggregate};
use crate::life::{Entry, catalog, plan};
use crate::mql;
use crate::shape::Form;
use crate::shape::bucket::{Body, Bucket, Layout, Slot};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, DocWriter, Result, Value};

/// With more buckets than these, figures are those of so many of them.
const LOOKED_AT: i64 = 10_000;

/// `{ buckets, readings, fill, splits, sparse }`; with `sampled` where only some buckets were looked at.
pub(crate) async fn health(at: &mut At<'_>, entry: &Entry) -> Result<Option<Doc<'static>>> {
    let side = entry.sides.iter().find_map(|side| match &side.form {
        Form::Bucket(bucket) => Some((&side.stored, bucket)),
        Form::Plain => None,
    });
    let Some((stored, bucket)) = side else { return Ok(None) };
    let buckets = plan::documents(at, stored).await?;
    let sampled = (buckets > LOOKED_AT).then_some(LOOKED_AT);
    let pipeline = Pipeline::parse(&figures(bucket, sampled), &mut Names::new())?;
    let rows = at.all(aggregate(stored, pipeline)).await?;
    let of = |name: &str| rows.first().map_or(0, |row| catalog::long(row.get(name)));
    let looked_at = of("buckets");
    let whole = |figure: i64| match sampled {
        Some(_) if looked_at > 0 => scaled(figure, buckets, looked_at),
        _ => figure,
    };
    let mut health = DocWriter::new();
    health.append("buckets", &Value::Int64(if sampled.is_some() { buckets } else { looked_at }));
    health.append("readings", &Value::Int64(whole(of("readings"))));
    health.append("fill", &Value::Double(share(of("readings"), looked_at.saturating_mul(capacity(bucket)))));
    health.append("splits", &Value::Int64(whole(of("splits")))).append("sparse", &Value::Int64(whole(of("sparse"))));
    if sampled.is_some() {
        health.append("sampled", &Value::Int64(looked_at));
    }
    Ok(Some(health.finish()))
}

fn figures(bucket: &Bucket, sampled: Option<i64>) -> Array<'static> {
    let held = match &bucket.body {
        Body::Readings(_) => mql::field("count"),
        Body::Slots(slots) => match slots.layout {
            Layout::Array => mql::call("$size", mql::field("items")),
            Layout::FieldNames => mql::call("$size", mql::call("$objectToArray", mql::field("items"))),
        },
    };
    let one_if = |condition: Value<'_>| mql::call("$sum", mql::cond(condition, Value::Int32(1), Value::Int32(0)));
    let few = (capacity(bucket) / 10).max(2);
    let sparse = mql::call_with("$lt", [mql::field("held"), Value::Int64(few)]);
    let split = mql::call_with("$gt", [mql::field("_id.n"), Value::Int32(0)]);
    let group = mql::object([
        ("_id", Value::Null),
        ("buckets", mql::call("$sum", Value::Int32(1))),
        ("readings", mql::call("$sum", mql::field("held"))),
        ("splits", one_if(split)),
        ("sparse", one_if(sparse)),
    ]);
    let sample = sampled.map(|size| mql::call("$sample", mql::object([("size", Value::Int64(size))])));
    let project = mql::call("$project", mql::object([("held", held)]));
    sample.into_iter().chain([project, mql::call("$group", group)]).collect()
}

/// How many readings or slots a bucket can hold.
fn capacity(bucket: &Bucket) -> i64 {
    match &bucket.body {
        Body::Readings(readings) => i64::from(readings.at_most),
        Body::Slots(slots) => match &slots.slot {
            Slot::Field { at_most, .. } => i64::from(*at_most),
            Slot::Time(grain) => i64::try_from(bucket.every.units(*grain)).unwrap_or(i64::MAX),
        },
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "an estimate for people")]
fn scaled(figure: i64, all: i64, looked_at: i64) -> i64 {
    (figure as f64 * all as f64 / looked_at as f64).round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1e3).round() / 1e3 }
}
