//! The read that a command asks for, as far as `pleach explain` needs to know it.

use crate::life::explain::{ExplainedCommand, filter, hint};
use document::op::{Aggregate, Count, Distinct, Find, Namespace, ReadOp};
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, sort_spec};
use document::project::Projection;
use document::value::Path;
use document::{Doc, Error, Result, Value};
use std::sync::Arc;

/// `None` if it is no read of a collection, or one that only a real MongoDB can answer: with a collation.
pub(super) fn read_op(explained: &ExplainedCommand<'_>) -> Result<Option<ReadOp>> {
    let (command, names) = (explained.command, &mut explained.names.clone());
    let Some(collection) = explained.target.as_str() else { return Ok(None) };
    let is_read = matches!(explained.name.as_str(), "find" | "aggregate" | "count" | "distinct");
    if !is_read || explained.collation(command)?.is_some() {
        return Ok(None);
    }
    let ns = Namespace::new(explained.db, collection);
    let hint = hint(command)?;
    Ok(Some(match explained.name.as_str() {
        "find" => ReadOp::Find(find(ns, command, names)?),
        "aggregate" => {
            let Some(Value::Array(stages)) = command.get("pipeline") else {
                return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
            };
            let pipeline = Pipeline::parse(&stages, names)?;
            ReadOp::Aggregate(Aggregate {
                ns,
                collectionless: false,
                pipeline,
                hint,
                allow_disk_use: true,
                collation: None,
            })
        }
        "count" => {
            let (skip, limit) = window(command);
            ReadOp::Count(Count { ns, filter: filter(command, "query", names)?, skip, limit, hint })
        }
        "distinct" => {
            let key = command.get("key").and_then(|key| key.as_str().map(Path::new));
            let key = key.ok_or_else(|| Error::failed_to_parse("'key' is missing"))?;
            ReadOp::Distinct(Distinct { ns, key, filter: filter(command, "query", names)?, hint })
        }
        _ => return Ok(None),
    }))
}

fn find(ns: Namespace, command: &Doc<'_>, names: &mut Names) -> Result<Find> {
    let filter = filter(command, "filter", names)?;
    let document = |name: &str| match command.get(name) {
        Some(Value::Document(doc)) if !doc.is_empty() => Some(doc),
        _ => None,
    };
    let sort = document("sort").map(|spec| sort_spec::parse(&spec)).transpose()?;
    let projection = match document("projection") {
        Some(spec) => {
            let parsed = Projection::parse_find(&spec, &filter, names)?;
            Some(Arc::new(parsed.with_sort(sort.as_ref())?))
        }
        None => None,
    };
    let (skip, limit) = window(command);
    Ok(Find { sort, projection, skip, limit, hint: hint(command)?, ..Find::matching(ns, filter) })
}

fn window(command: &Doc<'_>) -> (u64, Option<u64>) {
    let number = |name: &str| command.get(name).and_then(|value| value.as_i64_exact()).map(i64::unsigned_abs);
    (number("skip").unwrap_or_default(), number("limit").filter(|limit| *limit > 0))
}
