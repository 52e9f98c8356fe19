//! What `status` says of an outlier array: the longest ones, and how fast they grow.

use crate::execute::access::{Access, find};
use crate::execute::outlier::owners::{by_index, of_owner};
use crate::life::plan::documents;
use crate::rule::Outlier;
use document::filter::{Filter, Node, Test};
use document::op::{Find, SortKey, SortSpec};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// So many arrays are shown.
const SHOWN: u64 = 5;

/// Growth is that of the last items.
const LAST: u64 = 1_000;

const DAY_MS: f64 = 86_400_000.0;

/// `{ overflow, largest: [ { _id, count, per_day } ] }`.
pub(crate) async fn health(at: &mut Access<'_>, outlier: &Arc<Outlier>) -> Result<Doc<'static>> {
    let flagged = Node::equality(&outlier.flag, &Value::Bool(true));
    let counted = Node::field(&outlier.count, Test::Gt(Value::Int32(0)));
    let filter = Filter::from_node(Node::And(vec![flagged, counted]));
    let shown = crate::mql::document([(&*outlier.count, Value::from(1))]);
    let longest = Find {
        sort: Some(SortSpec { keys: vec![SortKey { path: Path::new(&outlier.count), descending: true }] }),
        limit: Some(SHOWN),
        projection: Some(Arc::new(Projection::parse_find(&shown, &filter, &mut Names::new())?)),
        ..find(&outlier.host, filter)
    };
    let mut largest = ArrayWriter::new();
    for host in at.find(longest).await? {
        let id = host.get("_id").unwrap_or(Value::Missing);
        let mut entry = DocWriter::new();
        entry.append("_id", &id).append("count", &host.get(&outlier.count).unwrap_or(Value::Null));
        if let Some(rate) = per_day(at, outlier, &id).await? {
            entry.append("per_day", &Value::Double(rate));
        }
        largest.push(&Value::Document(entry.finish()));
    }
    let mut status = DocWriter::new();
    status.append("overflow", &Value::Int64(documents(at, &outlier.overflow).await?));
    status.append("largest", &Value::Array(largest.finish()));
    Ok(status.finish())
}

/// How many items a day came lately, by when the last ones were written.
async fn per_day(at: &mut Access<'_>, outlier: &Outlier, owner: &Value<'_>) -> Result<Option<f64>> {
    let nth = |skip: u64| Find {
        sort: Some(by_index(true)),
        skip,
        limit: Some(1),
        ..find(&outlier.overflow, of_owner(outlier, owner))
    };
    let Some(newest) = at.find(nth(0)).await?.into_iter().next() else { return Ok(None) };
    let Some(earlier) = at.find(nth(LAST)).await?.into_iter().next() else { return Ok(None) };
    let (Some(now), Some(then)) = (written(&newest), written(&earlier)) else { return Ok(None) };
    let passed = (now - then).max(1_000.0);
    Ok(Some((LAST as f64 * DAY_MS / passed).round()))
}

/// When a document of the overflow was made, in milliseconds.
fn written(document: &Doc<'_>) -> Option<f64> {
    match document.get("_id")? {
        Value::ObjectId(id) => {
            let bytes: [u8; 4] = id.get(..4)?.try_into().ok()?;
            Some(f64::from(u32::from_be_bytes(bytes)) * 1_000.0)
        }
        _ => None,
    }
}
