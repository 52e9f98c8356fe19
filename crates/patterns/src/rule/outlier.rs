//! An array whose first items are embedded and whose others are documents of an overflow collection (SEMANTICS R18), as data.

use crate::mql::{call, field, object};
use crate::rule::needs::Direction;
use crate::rule::{IndexNeed, Needs, ViewNeed};
use document::op::{CollectionOptions, Namespace};
use document::value::Path;
use document::{Array, Value};

/// What an outlier rule declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlier {
    pub host: Namespace,
    /// The array: a field of the first level.
    pub field: String,
    /// So many items are embedded at most …
    pub keep: usize,
    /// … of so many bytes together.
    pub keep_bytes: Option<usize>,
    /// Where the other items are, a document each: `{ owner, item, index }`, with the declared names.
    pub overflow: Namespace,
    pub owner: String,
    pub item: String,
    /// True while items are in the overflow, absent otherwise.
    pub flag: String,
    /// How many items the whole array has.
    pub count: String,
    /// Whether no item may be there twice.
    pub unique: bool,
}

/// The place of an item of the overflow in the order of the array.
pub const INDEX: &str = "index";

impl Outlier {
    /// `users.followers`: all items, a document each, to read.
    pub fn items(&self) -> Namespace {
        Namespace::new(&self.host.db, &format!("{}.{}", self.host.collection, self.field))
    }

    /// The same while the rule goes: nothing overflows any more, and what did comes back.
    pub fn without_limit(&self) -> Outlier {
        Outlier { keep: usize::MAX, keep_bytes: None, ..self.clone() }
    }

    pub fn has_limit(&self) -> bool {
        self.keep != usize::MAX
    }

    /// The fields that the rule keeps in the host.
    pub fn owned(&self) -> Vec<Path> {
        vec![Path::new(&self.flag), Path::new(&self.count)]
    }

    /// All fields of the host that the rule is about.
    pub fn watched(&self) -> Vec<Path> {
        [&self.field, &self.flag, &self.count].map(|name| Path::new(name)).into()
    }

    /// The stages that make rows of hosts: a row for each embedded item.
    pub fn rows_of_hosts(&self) -> Array<'static> {
        let arrays = object([(&*self.field, call("$type", Value::from("array")))]);
        let unwind = object([("path", field(&self.field)), ("includeArrayIndex", Value::from(INDEX))]);
        let row = self.row(field("_id"), field(&self.field), call("$toInt", field(INDEX)));
        [call("$match", arrays), call("$unwind", unwind), call("$replaceWith", row)].into_iter().collect()
    }

    /// The stages that make rows of the overflow.
    pub fn rows_of_overflow(&self) -> Array<'static> {
        let row = self.row(field(&self.owner), field(&self.item), field(INDEX));
        [call("$replaceWith", row)].into_iter().collect()
    }

    fn row(&self, owner: Value<'_>, item: Value<'_>, index: Value<'_>) -> Value<'static> {
        let id = object([(&*self.owner, owner.borrow()), (INDEX, index.borrow())]);
        object([("_id", id), (&*self.owner, owner.borrow()), (&*self.item, item), (INDEX, index.borrow())])
    }

    /// The overflow in the order of the array and by the item, and all items as a view.
    pub fn needs(&self) -> Needs {
        let in_order = IndexNeed::lookup(&self.overflow, [Path::new(&self.owner), Path::new(INDEX)]);
        let by_item = IndexNeed::lookup(&self.overflow, [Path::new(&self.item), Path::new(&self.owner)]);
        let longest = IndexNeed {
            keys: vec![(Path::new(&self.count), Direction::Any)],
            partial: Some(crate::mql::document([(&*self.flag, Value::Bool(true))])),
            ..IndexNeed::lookup(&self.host, [])
        };
        Needs {
            collections: vec![(self.overflow.clone(), CollectionOptions::default())],
            indexes: vec![
                IndexNeed { unique: true, ..in_order },
                IndexNeed { unique: self.unique, ..by_item },
                longest,
            ],
            views: vec![self.view()],
            expires: vec![self.host.clone()],
        }
    }

    /// An index on all items, as indexes on where they are. Embedded items are found by their host, or by an index on the array.
    pub fn stored_indexes(&self, need: &IndexNeed) -> Vec<IndexNeed> {
        let mut stored = vec![IndexNeed { ns: self.overflow.clone(), unique: false, ..need.clone() }];
        if let Some((path, _)) = need.keys.first().filter(|(path, _)| path.first() == self.item) {
            let rest = path.parts.iter().skip(1).cloned();
            let parts = Path::new(&self.field).parts.into_iter().chain(rest).collect();
            stored.push(IndexNeed::lookup(&self.host, [Path { parts }]));
        }
        stored
    }

    fn view(&self) -> ViewNeed {
        let overflow = object([
            ("coll", Value::from(&*self.overflow.collection)),
            ("pipeline", Value::Array(self.rows_of_overflow())),
        ]);
        let stages = self.rows_of_hosts().iter().chain([call("$unionWith", overflow)]).collect();
        ViewNeed { ns: self.items(), on: self.host.clone(), pipeline: stages }
    }
}
