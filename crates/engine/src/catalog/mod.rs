//! The catalog: what exists (databases, collections, views and indexes), how it is found when a store is opened, and which paths
//! of an index have arrays. Readers look at an immutable [`Catalog`] without locking; a change makes a new one, and its records are
//! part of the batch that makes it true.
//!
//! One record per collection in the space `catalog`, under its id; [`recover`] reads them when opening.

mod multikey;
pub(crate) mod recover;
mod uses;

use crate::store::{Space, Store};
use bytes::Bytes;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::text::TextSpec;
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use multikey::Marks;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use uses::Uses;

/// A number that no other collection of this store ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionId(pub u64);

/// The collections of one database, by name.
type Database = BTreeMap<Arc<str>, Arc<Collection>>;

/// All collections at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    databases: HashMap<Arc<str>, Arc<Database>, foldhash::fast::FixedState>,
}

impl Catalog {
    pub fn get(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.databases.get(&ns.db)?.get(&ns.collection)
    }

    /// The collections and views of one database, by name.
    pub fn collections(&self, db: &str) -> impl Iterator<Item = &Arc<Collection>> {
        self.databases.get(db).into_iter().flat_map(|collections| collections.values())
    }

    /// The names of the databases that have something in them, sorted.
    pub fn databases(&self) -> Vec<&Arc<str>> {
        let mut names: Vec<&Arc<str>> = self.databases.keys().collect();
        names.sort();
        names
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.databases.values().flat_map(|collections| collections.values())
    }

    /// Adds a collection, or puts its new version in place of the old one.
    pub fn insert(&mut self, collection: Arc<Collection>) {
        let database = self.databases.entry(collection.ns.db.clone()).or_default();
        Arc::make_mut(database).insert(collection.ns.collection.clone(), collection);
    }

    pub fn remove(&mut self, ns: &Namespace) {
        if let Some(database) = self.databases.get_mut(&ns.db) {
            Arc::make_mut(database).remove(&ns.collection);
            if database.is_empty() {
                self.databases.remove(&ns.db);
            }
        }
    }
}

/// One version of a collection or view: changing anything but its counters and multikey marks makes a new one.
#[derive(Clone, Debug)]
pub struct Collection {
    pub id: CollectionId,
    pub ns: Namespace,
    pub uuid: [u8; 16],
    /// As `listCollections` shows them.
    pub options: Doc<'static>,
    pub validation: Option<Arc<Validation>>,
    /// The first is the index on `_id`; its entries are the documents themselves.
    pub indexes: Vec<Arc<Index>>,
    pub content: Content,
    /// Shared by all versions.
    pub life: Arc<Life>,
}

#[derive(Clone, Debug)]
pub enum Content {
    Stored(Space),
    View(Arc<View>),
}

/// What stays the same over all versions of a collection.
#[derive(Debug, Default)]
pub struct Life {
    /// Writers of documents hold it shared; an operation that changes the collection holds it alone.
    pub gate: Arc<tokio::sync::RwLock<()>>,
    pub documents: AtomicI64,
    /// The sum of the documents' sizes.
    pub bytes: AtomicI64,
    /// The id that the next index gets: ids are not used twice.
    pub next_index: AtomicU64,
    /// Set when the collection is gone, for operations that still hold it.
    pub dropped: AtomicBool,
    pub plans: crate::index::access::PlanCache,
}

#[derive(Debug)]
pub struct View {
    pub on: Namespace,
    /// As it was given.
    pub source: Array<'static>,
    pub pipeline: Pipeline,
}

#[derive(Debug)]
pub struct Validation {
    pub filter: Filter,
    /// `moderate`: documents that did not fit before may be updated as they please.
    pub moderate: bool,
    /// `warn`: a document that does not fit is written all the same.
    pub warn: bool,
}

#[derive(Debug)]
pub struct Index {
    pub id: u32,
    pub name: Arc<str>,
    pub keys: Vec<IndexKey>,
    pub unique: bool,
    pub sparse: bool,
    pub partial: Option<Filter>,
    /// Seconds after which a document expires: a TTL index.
    pub expire_after: Option<i64>,
    /// Kept up to date but not used by queries.
    pub hidden: bool,
    /// What a text index holds.
    pub text: Option<TextKeys>,
    /// As `listIndexes` shows it.
    pub spec: Doc<'static>,
    /// Whether queries may use it: not while it is being built.
    pub ready: bool,
    marks: Marks,
    uses: Uses,
}

/// The keys `_fts` and `_ftsx` of a text index: a term, and how much the document is about it.
#[derive(Clone, Debug)]
pub struct TextKeys {
    pub spec: Arc<TextSpec>,
    /// The place of `_fts` among the keys; the score is behind it.
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexKey {
    pub path: Path,
    pub descending: bool,
}

impl Collection {
    /// The documents' space; an error for a view.
    pub fn space(&self) -> Result<&Space> {
        match &self.content {
            Content::Stored(space) => Ok(space),
            Content::View(_) => Err(Error::new(
                Code::CommandNotSupportedOnView,
                format!("Namespace {} is a view, not a collection", self.ns),
            )),
        }
    }

    pub fn view(&self) -> Option<&Arc<View>> {
        match &self.content {
            Content::View(view) => Some(view),
            Content::Stored(_) => None,
        }
    }

    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| &*index.name == name)
    }

    /// The text index, of which there is one at most.
    pub fn text_index(&self) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.text.is_some())
    }

    /// The indexes that have entries of their own: all but the one on `_id`.
    pub fn secondary(&self) -> &[Arc<Index>] {
        self.indexes.get(1..).unwrap_or_default()
    }

    /// Counts a lookup of a document by its `_id`.
    pub(crate) fn looked_up(&self) {
        if let Some(on_id) = self.indexes.first() {
            on_id.used();
        }
    }

    /// How many documents there are, without counting them.
    pub fn count(&self) -> u64 {
        u64::try_from(self.life.documents.load(Ordering::Relaxed)).unwrap_or_default()
    }

    pub fn bytes(&self) -> u64 {
        u64::try_from(self.life.bytes.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// The key and value of its record.
    pub fn record(&self) -> (Bytes, Bytes) {
        let mut writer = DocWriter::new();
        writer.append("db", &Value::from(&*self.ns.db));
        writer.append("name", &Value::from(&*self.ns.collection));
        writer.append("uuid", &Value::Binary { subtype: 4, bytes: document::Blob::Borrowed(&self.uuid) });
        writer.append("options", &Value::Document(self.options.borrow()));
        match &self.content {
            Content::Stored(space) => {
                writer.append("space", &Value::from(space.name()));
                let next = self.life.next_index.load(Ordering::Relaxed);
                writer.append("nextIndex", &Value::Int64(i64::try_from(next).unwrap_or(i64::MAX)));
                writer.start_array("indexes");
                for (position, index) in self.indexes.iter().enumerate() {
                    writer.start_document(&position.to_string());
                    writer.append("id", &Value::Int64(i64::from(index.id)));
                    writer.append("ready", &Value::Bool(index.ready));
                    writer.append("spec", &Value::Document(index.spec.borrow()));
                    writer.append("multikey", &Value::Array(index.marks.record()));
                    writer.end();
                }
                writer.end();
            }
            Content::View(view) => {
                writer.append("viewOn", &Value::from(&*view.on.collection));
                writer.append("pipeline", &Value::Array(view.source.borrow()));
            }
        }
        (record_key(self.id), writer.finish().into_bytes())
    }

    /// Reads a record back.
    pub fn from_record(key: &[u8], record: &Doc<'_>, store: &Store) -> Result<Collection> {
        let torn = || Error::new(Code::InternalError, "a record of the catalog cannot be read");
        let text = |name: &str| record.get(name).and_then(|value| value.as_str().map(str::to_owned)).ok_or_else(torn);
        let id = key.strip_prefix(&[COLLECTION]).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
        let ns = Namespace::new(&text("db")?, &text("name")?);
        let uuid = match record.get("uuid") {
            Some(Value::Binary { bytes, .. }) => bytes.as_slice().try_into().map_err(|_| torn())?,
            _ => return Err(torn()),
        };
        let options = match record.get("options") {
            Some(Value::Document(options)) => options.into_owned(),
            _ => return Err(torn()),
        };
        let life = Life::default();
        let mut indexes = Vec::new();
        let content = if let (Some(on), Some(Value::Array(source))) = (record.get("viewOn"), record.get("pipeline")) {
            let on = Namespace::new(&ns.db, on.as_str().ok_or_else(torn)?);
            let pipeline = Pipeline::parse(&source, &mut Names::new())?;
            Content::View(Arc::new(View { on, source: source.into_owned(), pipeline }))
        } else {
            if let Some(Value::Int64(next)) = record.get("nextIndex") {
                life.next_index.store(next.cast_unsigned(), Ordering::Relaxed);
            }
            let Some(Value::Array(list)) = record.get("indexes") else { return Err(torn()) };
            for entry in list.iter() {
                let Value::Document(entry) = entry else { return Err(torn()) };
                indexes.push(Arc::new(Index::from_record(&entry).ok_or_else(torn)??));
            }
            Content::Stored(store.space(&text("space")?)?)
        };
        let validation = Validation::from_options(&options)?;
        let id = CollectionId(id.ok_or_else(torn)?);
        Ok(Collection { id, ns, uuid, options, validation, indexes, content, life: Arc::new(life) })
    }
}

/// The first byte of the keys of collection records.
pub const COLLECTION: u8 = b'c';

/// The key of a collection's record.
pub fn record_key(id: CollectionId) -> Bytes {
    let mut key = vec![COLLECTION];
    key.extend_from_slice(&id.0.to_be_bytes());
    Bytes::from(key)
}

impl Validation {
    /// What `validator`, `validationLevel` and `validationAction` say; `None` if nothing is checked.
    pub fn from_options(options: &Doc<'_>) -> Result<Option<Arc<Validation>>> {
        let Some(Value::Document(validator)) = options.get("validator") else { return Ok(None) };
        let text = |name: &str| options.get(name).and_then(|value| value.as_str().map(str::to_owned));
        let level = text("validationLevel");
        if level.as_deref() == Some("off") || validator.is_empty() {
            return Ok(None);
        }
        check_validator(&validator)?;
        let filter = Filter::parse(&validator.into_owned(), &mut Names::new())?;
        let (moderate, warn) =
            (level.as_deref() == Some("moderate"), text("validationAction").as_deref() == Some("warn"));
        Ok(Some(Arc::new(Validation { filter, moderate, warn })))
    }
}

/// Operators that search by an index have no place in a validator.
fn check_validator(validator: &Doc<'_>) -> Result<()> {
    for (name, value) in validator.iter() {
        match (name.as_str(), value) {
            ("$near" | "$nearSphere" | "$geoNear", _) => {
                let message = "$geoNear, $near, and $nearSphere are not allowed in this context";
                return Err(Error::new(Code::Location(5_626_500), message));
            }
            (operator @ ("$text" | "$where"), _) => {
                return Err(Error::bad_value(format!("{operator} is not allowed in this context")));
            }
            ("$jsonSchema" | "$expr", _) => {}
            (_, Value::Document(inner)) => check_validator(&inner)?,
            (_, Value::Array(list)) => {
                for item in list.iter() {
                    if let Value::Document(inner) = item {
                        check_validator(&inner)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Index {
    /// The index that every collection has.
    pub fn on_id() -> Index {
        let mut spec = DocWriter::new();
        spec.append("v", &Value::Int32(2));
        spec.start_document("key").append("_id", &Value::Int32(1)).end();
        spec.append("name", &Value::from("_id_"));
        Index {
            id: crate::store::keys::DOCUMENTS,
            name: "_id_".into(),
            keys: vec![IndexKey { path: Path::new("_id"), descending: false }],
            unique: true,
            sparse: false,
            partial: None,
            expire_after: None,
            hidden: false,
            text: None,
            spec: spec.finish(),
            ready: true,
            marks: Marks::none(1),
            uses: Uses::none(),
        }
    }

    /// An index as its specification says it, which must have been checked and completed (`admin/create_indexes.rs`).
    pub fn from_spec(id: u32, spec: Doc<'static>, ready: bool) -> Result<Index> {
        let keys = match spec.get("key") {
            Some(Value::Document(keys)) => keys,
            _ => return Err(Error::new(Code::CannotCreateIndex, "an index needs a key pattern")),
        };
        let keys: Vec<IndexKey> = keys
            .iter()
            .map(|(name, direction)| IndexKey { path: Path::new(name.as_str()), descending: is_negative(&direction) })
            .collect();
        let truth = |name: &str| spec.get(name).is_some_and(|value| value.is_truthy());
        let partial = match spec.get("partialFilterExpression") {
            Some(Value::Document(filter)) => Some(Filter::parse(&filter, &mut Names::new())?),
            _ => None,
        };
        let expire_after = spec.get("expireAfterSeconds").and_then(|value| whole(&value));
        let name: Arc<str> = spec.get("name").and_then(|name| name.as_str().map(Arc::from)).unwrap_or_default();
        let (marks, uses) = (Marks::none(keys.len()), Uses::none());
        let (unique, sparse, hidden) = (truth("unique"), truth("sparse"), truth("hidden"));
        let at = keys.iter().position(|key| key.path.first() == "_fts");
        let text = at.zip(TextSpec::of_index(&spec)).map(|(at, spec)| TextKeys { spec: Arc::new(spec), at });
        Ok(Index { id, name, keys, unique, sparse, partial, expire_after, hidden, text, spec, ready, marks, uses })
    }

    /// The same index with another specification: what `collMod` does. Its entries and marks stay.
    pub fn with_spec(&self, spec: Doc<'static>, ready: bool) -> Result<Index> {
        if self.id == crate::store::keys::DOCUMENTS {
            return Ok(Index { spec, uses: self.uses.clone(), ..Index::on_id() });
        }
        // The marks are shared: a writer that still has the old version sets them for both.
        Ok(Index { marks: self.marks.clone(), uses: self.uses.clone(), ..Index::from_spec(self.id, spec, ready)? })
    }

    fn from_record(record: &Doc<'_>) -> Option<Result<Index>> {
        let Value::Int64(id) = record.get("id")? else { return None };
        let Value::Document(spec) = record.get("spec")? else { return None };
        let id = u32::try_from(id).ok()?;
        let ready = record.get("ready")?.is_truthy();
        let index = if id == crate::store::keys::DOCUMENTS {
            Ok(Index { spec: spec.into_owned(), ..Index::on_id() })
        } else {
            Index::from_spec(id, spec.into_owned(), ready)
        };
        if let (Ok(index), Some(Value::Array(marks))) = (&index, record.get("multikey")) {
            index.marks.load(&marks);
        }
        Some(index)
    }

    /// The parts of the path of key `position` that arrays have been seen at, as bits; part 63 stands for all behind it.
    /// Look only after taking the snapshot to be read: marks are set before the documents that need them are visible.
    pub fn multikey(&self, position: usize) -> u64 {
        self.marks.of(position)
    }

    pub fn is_multikey(&self) -> bool {
        self.marks.any()
    }

    /// A query or a statement uses it.
    pub(crate) fn used(&self) {
        self.uses.add();
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Adds marks; true if the collection's record has to be written with the documents that need them.
    pub fn mark_multikey(&self, marks: &[u64]) -> bool {
        self.marks.add(marks)
    }

    /// `{ a: 1, b: -1 }` as it was given.
    pub fn key_pattern(&self) -> Doc<'_> {
        match self.spec.borrow().get("key") {
            Some(Value::Document(keys)) => keys.into_owned(),
            _ => Doc::empty(),
        }
    }
}

fn is_negative(value: &Value<'_>) -> bool {
    match value {
        Value::Int32(number) => *number < 0,
        Value::Int64(number) => *number < 0,
        Value::Double(number) => *number < 0.0,
        Value::Decimal(number) => document::value::order::compare(&Value::Decimal(*number), &Value::Int32(0)).is_lt(),
        _ => false,
    }
}

/// A number of seconds; fractions are cut.
pub(crate) fn whole(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        Value::Double(number) if number.is_finite() => Some(*number as i64),
        _ => None,
    }
}
