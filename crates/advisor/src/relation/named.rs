//! A relation that traffic names: how its references stand in the documents, and how many of them lead somewhere. Unlike those that are
//! looked for in the data it may be mostly dangling.

use super::{Relation, Source, column};
use crate::kept::references::{references, sources};
use crate::reader::Reader;
use crate::survey::Collection;
use crate::values::{hash, share};
use document::Result;

/// So many references are looked up.
const REFERENCES: usize = 500;

/// `None` if no sampled document has a value at the path.
pub async fn named(
    reader: &Reader<'_>,
    from: &Collection,
    path: &str,
    to: &Collection,
    key: &str,
) -> Result<Option<Relation>> {
    let columns = column::columns(&from.sample);
    let Some(column) = columns.into_iter().find(|column| column.path == path) else { return Ok(None) };
    let mut relation = Relation {
        from: from.name().to_owned(),
        path: column.path,
        is_many: column.arrays > 0,
        arrays: column.arrays,
        ends_in_array: column.ends_in_array,
        to: to.name().to_owned(),
        key: key.to_owned(),
        checked: 0,
        found: 0,
        beyond_chance: 0.0,
        confidence: 0.0,
    };
    let all = references(&from.sample, &relation, REFERENCES);
    let found = sources(reader, &Source::of(to), key, &all, true).await?;
    relation.checked = all.len() as u64;
    relation.found = all.iter().filter(|reference| found.contains_key(&hash(&reference.value))).count() as u64;
    relation.confidence = share(relation.found, relation.checked);
    Ok(Some(relation))
}
