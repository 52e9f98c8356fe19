//! The counts of a field inside a real MongoDB: its definition runs there, and only numbers come back.

use crate::execute::access::{Access, aggregate};
use crate::life::preview::counts::Counts;
use crate::life::{catalog, install};
use crate::mql::{call, call_with, cond, field, object};
use crate::rule::field::ComparisonPipeline;
use crate::rule::{Fate, Rule};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};
use std::sync::Arc;

/// The counts; `None` if the hosts must be walked instead.
pub(super) async fn counts(at: &mut Access<'_>, rule: &Arc<Rule>) -> Result<Option<Counts>> {
    let Some(field) = rule.kept_field() else { return Ok(None) };
    let is_indexed = match field.link() {
        Some(link) => !install::missing(at, rule).await?.iter().any(|planned| *planned.ns() == link.source),
        None => true,
    };
    let Some(comparisons) = field.comparison(is_indexed)? else { return Ok(None) };
    let mut counts = Counts::default();
    for ComparisonPipeline { mut stages, hosts } in comparisons {
        stages.push(grouping(hosts));
        let stages: Array<'static> = stages.into_iter().collect();
        let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
        for row in at.all(aggregate(&rule.host, pipeline)).await? {
            let fate = match row.get("_id").as_ref().and_then(|fate| fate.as_str()) {
                Some("right") => Fate::Right,
                Some("sourceless") => Fate::Sourceless,
                Some("retyped") => Fate::Retyped,
                Some("filled") => Fate::Filled,
                Some("corrected") => Fate::Corrected,
                Some("removed") => Fate::Removed,
                _ => Fate::Absent,
            };
            counts.add(fate, u64::try_from(catalog::long(row.get("n"))).unwrap_or(0));
        }
    }
    Ok(Some(counts))
}

/// `{ $group: { _id: <fate>, n: { $sum: … } } }` over documents with `stored`, `expected` and, of copies, `sourceless`. Other types
/// inside a copy are not seen: MongoDB compares documents by value.
fn grouping(amount: Value<'static>) -> Value<'static> {
    let is_missing = |path: &str| call_with("$eq", [call("$type", field(path)), Value::from("missing")]);
    let equal = call_with("$eq", [field("stored"), field("expected")]);
    let without = cond(is_missing("expected"), Value::from("absent"), Value::from("filled"));
    let same_type = call_with("$eq", [call("$type", field("stored")), call("$type", field("expected"))]);
    let kept = cond(field("sourceless"), Value::from("sourceless"), Value::from("right"));
    let present = cond(equal, cond(same_type, kept, Value::from("retyped")), Value::from("corrected"));
    let stored = cond(is_missing("expected"), Value::from("removed"), present);
    let fate = cond(is_missing("stored"), without, stored);
    call("$group", object([("_id", fate), ("n", call("$sum", amount))]))
}
