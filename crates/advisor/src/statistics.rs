//! What the server says about a collection without reading its documents: counts, sizes, indexes, options.

use crate::reader::Reader;
use crate::values::{figure, flag, text};
use document::op::{AdminOp, Namespace};
use document::{Doc, Result, Value};

/// Exact figures of a collection.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    pub count: u64,
    /// Of all documents, uncompressed.
    pub bytes: u64,
    pub index_bytes: u64,
    pub indexes: Vec<Index>,
    pub capped: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    /// The paths, in order.
    pub keys: Vec<String>,
    pub unique: bool,
    pub partial: bool,
}

impl Statistics {
    pub async fn of(reader: &Reader<'_>, ns: &Namespace) -> Result<Statistics> {
        let answer = reader.admin(AdminOp::CollStats { ns: ns.clone(), scale: 1 }).await?;
        let Some(stats) = answer.first() else { return Ok(Statistics::default()) };
        // Without the right to list them nothing is known of indexes; the documents can still be read.
        let indexes = reader.admin(AdminOp::ListIndexes { ns: ns.clone() }).await.unwrap_or_default();
        Ok(Statistics {
            count: figure(stats, "count"),
            bytes: figure(stats, "size"),
            index_bytes: figure(stats, "totalIndexSize"),
            indexes: indexes.iter().map(Index::of).collect(),
            capped: flag(stats, "capped"),
        })
    }

    pub fn average(&self) -> u64 {
        self.bytes.checked_div(self.count).unwrap_or_default()
    }

    /// Whether the value of a path is in one document only.
    pub fn is_unique(&self, path: &str) -> bool {
        path == "_id" || self.indexes.iter().any(|index| index.unique && !index.partial && index.keys == [path])
    }

    /// Whether an index begins with the path.
    pub fn is_indexed(&self, path: &str) -> bool {
        path == "_id"
            || self.indexes.iter().any(|index| !index.partial && index.keys.first().is_some_and(|key| key == path))
    }
}

impl Index {
    fn of(spec: &Doc<'static>) -> Index {
        let keys = match spec.get("key") {
            Some(Value::Document(key)) => key.iter().map(|(name, _)| name.as_str().to_owned()).collect(),
            _ => Vec::new(),
        };
        Index {
            name: text(spec, "name").to_owned(),
            keys,
            unique: flag(spec, "unique"),
            partial: spec.contains("partialFilterExpression") || flag(spec, "sparse"),
        }
    }
}
