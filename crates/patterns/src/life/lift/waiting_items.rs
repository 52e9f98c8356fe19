//! Items that wait in an array to be lifted, or were written there past Pleach.

use crate::execute::access::{Access, find};
use crate::life::catalog::long;
use crate::mql::{call, document};
use crate::rule::Rule;
use document::filter::Filter;
use document::op::{Count, Find, ReadOp};
use document::pipeline::expr::Names;
use document::{Result, Value};

/// Whether some host has an item in the array that the rule lifts.
pub(crate) async fn are_there(at: &mut Access<'_>, rule: &Rule) -> Result<bool> {
    let Some(filter) = with_items(rule)? else { return Ok(false) };
    Ok(!at.find(Find { limit: Some(1), ..find(&rule.host, filter) }).await?.is_empty())
}

/// How many hosts do.
pub(crate) async fn hosts(at: &mut Access<'_>, rule: &Rule) -> Result<u64> {
    let Some(filter) = with_items(rule)? else { return Ok(0) };
    let rows = at.all(ReadOp::Count(Count { ns: rule.host.clone(), filter, skip: 0, limit: None, hint: None })).await?;
    Ok(rows.first().map_or(0, |row| u64::try_from(long(row.get("n"))).unwrap_or(0)))
}

fn with_items(rule: &Rule) -> Result<Option<Filter>> {
    let Some(array) = &rule.lift else { return Ok(None) };
    let filter = document([(&*format!("{array}.0"), call("$exists", Value::Bool(true)))]);
    Filter::parse(&filter, &mut Names::new()).map(Some)
}
