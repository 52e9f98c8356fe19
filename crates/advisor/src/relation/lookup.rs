//! How many of a column's sampled values are keys of a parent: seen in the sample, or looked up in one read by index.

use super::candidate::Candidate;
use super::column::Column;
use crate::reader::{Bound, Reader};
use crate::values::{at, hash};
use document::filter::Filter;
use document::op::Find;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::{Doc, DocWriter, Result, Value};
use hashbrown::HashSet;
use std::sync::Arc;

/// How many references were looked up, each as often as it is there, and how many of them lead to a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    pub looked_up: u64,
    pub found: u64,
}

/// Looks the values up; also says whether that took a read.
pub async fn look(reader: &Reader<'_>, column: &Column, candidate: &Candidate<'_>) -> Result<(Looked, bool)> {
    if candidate.parent.is_whole {
        let looked = Looked { looked_up: column.keys.len() as u64, found: column.weight(candidate.distinct) };
        return Ok((looked, false));
    }
    if !candidate.parent.statistics.is_indexed(&candidate.key.path) {
        return Ok((Looked::default(), false));
    }
    let probes: HashSet<u64> = column.probes.keys().copied().collect();
    let unseen =
        column.probes.iter().filter(|(key, _)| !candidate.distinct.contains(*key)).map(|(_, value)| value.clone());
    let mut found: HashSet<u64> = probes.iter().copied().filter(|key| candidate.distinct.contains(key)).collect();
    let path = &candidate.key.path;
    let rows = among(reader, candidate, path, unseen.collect()).await?;
    found.extend(
        rows.iter().filter_map(|row| at(row, path)).map(|value| hash(&value)).filter(|key| probes.contains(key)),
    );
    Ok((Looked { looked_up: column.weight(&probes), found: column.weight(&found) }, true))
}

async fn among(
    reader: &Reader<'_>,
    candidate: &Candidate<'_>,
    path: &str,
    values: Vec<Value<'static>>,
) -> Result<Vec<Doc<'static>>> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let bound = Bound::documents(values.len() as u64 * 2);
    let filter = Filter::among(path, values);
    let projection = Some(Arc::new(Projection::parse_find(&only([path]), &filter, &mut Names::new())?));
    reader.find(Find { projection, ..Find::matching(candidate.parent.ns.clone(), filter) }, bound).await
}

/// A projection to some paths.
pub fn only<'p>(paths: impl IntoIterator<Item = &'p str>) -> Doc<'static> {
    let mut shown = DocWriter::new();
    let mut has_id = false;
    for path in paths {
        has_id |= path == "_id";
        shown.append(path, &Value::Int32(1));
    }
    if !has_id {
        shown.append("_id", &Value::Int32(0));
    }
    shown.finish()
}
