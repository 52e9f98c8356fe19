//! Which `_id`s are lost when a collection comes into buckets that make `_id` from series and time.

use super::refusal::{Need, Refusal};
use super::{Outlook, grouped};
use crate::life::records::{At, aggregate};
use crate::life::{catalog, shape};
use crate::mql::{call, call_with, field, object};
use crate::shape::bucket::{Body, Bucket, ReadingId};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};

/// Counts the documents whose `_id` is not what the bucket would make of it.
pub(super) async fn look(at: &mut At<'_>, outlook: &mut Outlook) -> Result<()> {
    let rule = outlook.rule.clone();
    let Some(bucket) = shape::bucket_of(&rule) else { return Ok(()) };
    let Some(declared) = drops_ids(bucket) else { return Ok(()) };
    let differs = |name: &str| call_with("$ne", [field(&format!("_id.{name}")), field(name)]);
    let mut names = vec![bucket.time.to_string()];
    names.extend(bucket.by.iter().map(|series| series.field.to_string()));
    let any = call_with("$or", names.iter().map(|name| differs(name)));
    let stages: Array<'static> =
        [call("$match", object([("$expr", any)])), call("$count", Value::from("n"))].into_iter().collect();
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let rows = at.all(aggregate(&rule.host, pipeline)).await?;
    let lost = rows.first().map_or(0, |row| u64::try_from(catalog::long(row.get("n"))).unwrap_or(0));
    outlook.ids_lost = Some(lost);
    if lost > 0 {
        let (name, number, ns) = (&rule.name, grouped(lost), &rule.host.collection);
        let reason = format!("rule {name}: the `_id` of {number} documents of {ns} would be lost, {declared}");
        outlook.refusals.push(Refusal { need: Need::Overwrite, reason });
    }
    Ok(())
}

/// Why the `_id` that documents have is dropped, and what keeps it. `None` if they keep it.
fn drops_ids(bucket: &Bucket) -> Option<&'static str> {
    match &bucket.body {
        Body::Readings(readings) => (readings.reading_id == ReadingId::Time)
            .then_some("for `reading_id: time` makes it from series and time (`reading_id: stored` keeps it)"),
        Body::Slots(_) => Some("for a `slot` adds documents up (buckets without `slot` keep each one)"),
    }
}
