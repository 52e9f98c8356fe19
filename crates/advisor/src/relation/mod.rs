//! Which field holds the `_id`, or another unique field, of which collection.

use crate::options::Options;
use crate::reader::Reader;
use crate::survey::Collection;
use document::Result;

/// The values of one field are those of another collection's key.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// The collection that refers.
    pub from: String,
    /// The path of the reference; through arrays as filters write it.
    pub path: String,
    /// The path leads through an array or to one: several references in a document.
    pub is_many: bool,
    /// The collection that is referred to.
    pub to: String,
    /// Its key: `_id`, or a path with a unique index.
    pub key: String,
    /// How many different values were looked up, and how many of them are there.
    pub checked: u64,
    pub found: u64,
    /// How much more often than by chance.
    pub beyond_chance: f64,
}

impl Relation {
    /// The share of the references that lead nowhere.
    pub fn dangling(&self) -> f64 {
        1.0 - crate::values::share(self.found, self.checked)
    }
}

/// The relations between the collections of a database.
pub async fn relations(
    _reader: &Reader<'_>,
    _db: &str,
    _collections: &[Collection],
    _options: &Options,
) -> Result<Vec<Relation>> {
    Ok(Vec::new())
}
