//! What a rule needs in the database beside its documents, as data: `life/install` compares it with what is there, shows, makes, undoes
//! and gives back.

use crate::mql;
use crate::rule::{Link, LinkKey, Refers};
use document::op::{CollectionOptions, Namespace};
use document::value::Path;
use document::{Array, Doc, DocWriter, Value};

#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Collections of the rule's own, with their options.
    pub collections: Vec<(Namespace, CollectionOptions)>,
    pub views: Vec<ViewNeed>,
    pub indexes: Vec<IndexNeed>,
    /// Collections whose documents must not expire unseen (SEMANTICS R7).
    pub expires: Vec<Namespace>,
}

/// A view that is the logical collection.
#[derive(Clone, Debug)]
pub struct ViewNeed {
    pub ns: Namespace,
    /// The collection that the view is over.
    pub on: Namespace,
    pub pipeline: Array<'static>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexNeed {
    pub ns: Namespace,
    pub keys: Vec<(Path, Direction)>,
    pub unique: bool,
    /// The documents that must be in it; all if `None`. An index of more documents serves too.
    pub partial: Option<Doc<'static>>,
    /// Seconds after which documents go.
    pub expire_after: Option<i64>,
    /// Of a text index: the fields that are searched, with their weights. It has no other keys.
    pub text: Vec<(Path, i32)>,
}

/// The order of one key of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only equal values are looked for: any order serves.
    Any,
    Ascending,
    Descending,
}

impl Direction {
    /// As an index has it.
    pub fn number(self) -> i32 {
        match self {
            Direction::Any | Direction::Ascending => 1,
            Direction::Descending => -1,
        }
    }
}

/// All types of values that a reference can have, by name and by number.
pub const REFERENCE_TYPES: &[(&str, i64)] = &[
    ("double", 1),
    ("string", 2),
    ("object", 3),
    ("array", 4),
    ("binData", 5),
    ("objectId", 7),
    ("bool", 8),
    ("date", 9),
    ("regex", 11),
    ("int", 16),
    ("timestamp", 17),
    ("long", 18),
    ("decimal", 19),
    ("minKey", -1),
    ("maxKey", 127),
];

impl IndexNeed {
    /// By which equal values are found.
    pub fn lookup(ns: &Namespace, paths: impl IntoIterator<Item = Path>) -> IndexNeed {
        let keys = paths.into_iter().map(|path| (path, Direction::Any)).collect();
        IndexNeed { ns: ns.clone(), keys, unique: false, partial: None, expire_after: None, text: Vec::new() }
    }

    /// By which each value that a reference can have means one document. Documents that lack the field, or have null, are left alone.
    pub fn referenced(ns: &Namespace, path: Path) -> IndexNeed {
        let types = mql::list(REFERENCE_TYPES.iter().map(|(name, _)| Value::from(*name)));
        let partial = mql::document([(&*path.dotted(), mql::call("$type", types))]);
        IndexNeed { unique: true, partial: Some(partial), ..IndexNeed::lookup(ns, [path]) }
    }

    /// By which documents are found that hold some words.
    pub fn text(ns: &Namespace, text: Vec<(Path, i32)>) -> IndexNeed {
        IndexNeed { text, ..IndexNeed::lookup(ns, []) }
    }

    /// `{ path: 1, … }`
    pub fn key(&self) -> Doc<'static> {
        if !self.text.is_empty() {
            let paths: Vec<String> = self.text.iter().map(|(path, _)| path.dotted()).collect();
            return mql::document(paths.iter().map(|path| (&**path, Value::from("text"))));
        }
        let paths: Vec<(String, i32)> =
            self.keys.iter().map(|(path, direction)| (path.dotted(), direction.number())).collect();
        mql::document(paths.iter().map(|(path, number)| (&**path, Value::Int32(*number))))
    }

    /// The key as `listIndexes` shows it.
    pub fn listed_key(&self) -> Doc<'static> {
        match self.text.is_empty() {
            true => self.key(),
            false => mql::document([("_fts", Value::from("text")), ("_ftsx", Value::Int32(1))]),
        }
    }

    /// `{ path: weight, … }` of a text index.
    pub fn weights(&self) -> Doc<'static> {
        let weights: Vec<(String, i32)> = self.text.iter().map(|(path, weight)| (path.dotted(), *weight)).collect();
        mql::document(weights.iter().map(|(path, weight)| (&**path, Value::Int32(*weight))))
    }

    /// The name that it gets if it is made and the name is free.
    pub fn name(&self) -> String {
        if !self.text.is_empty() {
            return self.text.iter().map(|(path, _)| format!("{path}_text")).collect::<Vec<_>>().join("_");
        }
        let key = |(path, direction): &(Path, Direction)| format!("{path}_{}", direction.number());
        self.keys.iter().map(key).collect::<Vec<_>>().join("_")
    }

    /// As `createIndexes` takes it.
    pub fn spec(&self, name: &str) -> Doc<'static> {
        let mut spec = DocWriter::new();
        spec.append("key", &Value::Document(self.key())).append("name", &Value::from(name));
        if self.unique {
            spec.append("unique", &Value::Bool(true));
        }
        if let Some(partial) = &self.partial {
            spec.append("partialFilterExpression", &Value::Document(partial.borrow()));
        }
        if !self.text.is_empty() {
            spec.append("weights", &Value::Document(self.weights()));
        }
        if let Some(seconds) = self.expire_after {
            spec.append("expireAfterSeconds", &Value::Int64(seconds));
        }
        spec.finish()
    }

    /// The paths, for people.
    pub fn paths(&self) -> String {
        let text = self.text.iter().map(|(path, _)| path.dotted());
        self.keys.iter().map(|(path, _)| path.dotted()).chain(text).collect::<Vec<_>>().join(", ")
    }
}

impl Needs {
    /// Of a field that is kept by a link: changes find what they concern, and a reference means one document.
    pub fn of_link(host: &Namespace, link: &Link) -> Needs {
        let local = link.local.path.clone();
        let indexes: Vec<IndexNeed> = match link.refers {
            Refers::Host => {
                let foreign = link.foreign.path().map(|key| IndexNeed::referenced(&link.source, key.path.clone()));
                std::iter::once(IndexNeed::lookup(host, [local])).chain(foreign).collect()
            }
            Refers::Source => {
                let lookup = IndexNeed::lookup(&link.source, by_and_where(link));
                vec![lookup, IndexNeed::referenced(host, local)]
            }
        };
        // Collections are kept by `_id`, which is unique.
        let is_by_id = |need: &IndexNeed| need.keys.first().is_some_and(|(path, _)| path.dotted() == "_id");
        // A key that no index can serve needs none.
        let is_served = |need: &IndexNeed| !need.keys.is_empty() && !is_by_id(need);
        let indexes = indexes.into_iter().filter(is_served).collect();
        Needs { indexes, expires: vec![link.source.clone()], ..Needs::default() }
    }

    /// The same for a field that looks for children by their value: the index that finds the children of a key has it too.
    pub fn of_link_and_value(host: &Namespace, link: &Link, value: &Path) -> Needs {
        let mut needs = Needs::of_link(host, link);
        let mut paths = sought(&link.foreign);
        if is_narrowed(link) {
            if !paths.contains(value) {
                paths.push(value.clone());
            }
            needs.indexes.retain(|need| need.unique || need.ns != link.source);
            needs.indexes.push(IndexNeed::lookup(&link.source, paths));
        }
        needs
    }
}

/// Whether an index that begins with a key of the link can have more paths: a document may have one array in it, and `_id` is unique.
pub(crate) fn is_narrowed(link: &Link) -> bool {
    let first = sought(&link.foreign).into_iter().next();
    !link.each_foreign() && first.is_some_and(|path| path.dotted() != "_id")
}

/// The `by` path, then the one path that `where` reads: more would cost every write more than it saves.
fn by_and_where(link: &Link) -> Vec<Path> {
    let mut paths = sought(&link.foreign);
    let read = link.filter.as_ref().and_then(|filter| filter.root.reads()).unwrap_or_default();
    if let [path] = read.as_slice()
        && !link.foreign.each()
        && !paths.is_empty()
        && !paths.contains(path)
    {
        paths.push(path.clone());
    }
    paths
}

/// The paths by which the documents of a key are found; none if they cannot be.
pub(crate) fn sought(key: &LinkKey) -> Vec<Path> {
    match key {
        LinkKey::Path(key) => vec![key.path.clone()],
        LinkKey::Expression(expression) => expression.seek.iter().flat_map(|seek| seek.paths()).cloned().collect(),
    }
}
