//! A copy of some fields of the one linked source document, kept in the host: plain, per element of an array of
//! sub-documents (`items.product` by `items.productId`), or an array of copies for an array of ids (`each: true`).
//!
//! A copy exists exactly while its source does (a source that has none of the fields gives `{}`); an id without a source
//! has no copy, and null at its place in an array of copies.

use crate::link::{Query, key};
use crate::rule::{Link, Rule};
use document::filter::Filter;
use document::op::{Capture, UpdateStatement};
use document::update::Update;
use document::value::Path;
use document::{Array, Doc, Error, Result, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// An extended reference, compiled.
#[derive(Debug)]
pub struct CopyProgram {
    rule: Arc<Rule>,
    link: Link,
    watched_source: Capture,
    watched_host: Vec<Path>,
}

/// The copies of some sources, by key.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    by_key: HashMap<Vec<u8>, Doc<'static>>,
}

/// What a changed source document means for the hosts that refer to it.
#[derive(Clone, Debug)]
pub enum SourceChange {
    /// Inserted, or given this key: dangling references are filled (R28).
    Appeared { key: Value<'static>, copy: Doc<'static> },
    /// A copied field changed; never for a rule that says `when_changed: keep`.
    Changed { key: Value<'static>, copy: Doc<'static> },
    /// Deleted, or no longer with this key: `when_deleted` applies.
    Vanished { key: Value<'static> },
}

/// What is done to every host of a key.
#[derive(Clone, Copy, Debug)]
pub enum Spread<'c> {
    /// The source is there: its copy (a rule with `when_changed: keep` fills only what is empty).
    Fill(&'c Doc<'c>),
    /// `when_deleted: unset`.
    Unset,
}

/// Where copies go in one host, and what goes there.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    /// Concrete dotted paths (`items.0.product`); nothing means that there is none.
    list: Vec<(String, Option<Value<'static>>)>,
}

impl Copies {
    pub fn new() -> Copies {
        Copies::default()
    }

    pub fn insert(&mut self, key: &Value<'_>, copy: Doc<'static>) {
        self.by_key.insert(key::bytes(key), copy);
    }

    /// Takes a row of [`CopyProgram::sources`]: `{ _id: key, copy }`.
    pub fn add_row(&mut self, row: &Doc<'_>) {
        if let (Some(key), Some(Value::Document(copy))) = (row.get("_id"), row.get("copy")) {
            self.insert(&key, copy.into_owned());
        }
    }

    pub fn get(&self, key: &Value<'_>) -> Option<&Doc<'static>> {
        self.by_key.get(&key::bytes(key))
    }
}

impl Placements {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The host with the copies in their places: for an insert.
    pub fn apply(&self, host: &Doc<'_>) -> Result<Doc<'static>> {
        Ok(host.clone().into_owned())
    }

    /// The same as an update of the host that was looked at; nothing if it is right already.
    pub fn update(&self) -> Result<Option<Update>> {
        Err(Error::not_implemented("this"))
    }
}

impl CopyProgram {
    pub fn new(rule: &Arc<Rule>) -> Result<CopyProgram> {
        let _ = rule;
        Err(Error::not_implemented("this"))
    }

    pub fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    pub fn name(&self) -> &str {
        &self.rule.name
    }

    pub fn watched_source(&self) -> &Capture {
        &self.watched_source
    }

    pub fn watched_host(&self) -> &[Path] {
        &self.watched_host
    }

    /// The sources that a host refers to, each once. Refuses an array in the link unless the rule says `each`.
    pub fn references(&self, host: &Doc<'_>) -> Result<key::Values> {
        let _ = (host, &self.link);
        Err(Error::not_implemented("this"))
    }

    /// The value that hosts refer to a source by: its `_id`, or what `match` says.
    pub fn source_key(&self, source: &Doc<'_>) -> Option<Value<'static>> {
        let _ = source;
        None
    }

    /// The copy that a source gives.
    pub fn copy(&self, source: &Doc<'_>) -> Doc<'static> {
        let _ = source;
        Doc::empty()
    }

    pub fn source_change(&self, before: Option<&Doc<'_>>, after: Option<&Doc<'_>>) -> SmallVec<[SourceChange; 2]> {
        let _ = (before, after);
        SmallVec::new()
    }

    /// Reads the copies of some keys: rows for [`Copies::add_row`].
    pub fn sources(&self, keys: &[Value<'_>]) -> Result<Query> {
        let _ = keys;
        Err(Error::not_implemented("this"))
    }

    /// What must change in a host so that its copies are right. `before` is the host before the client's write: a rule that says
    /// `when_changed: keep` takes the copies of unchanged references from there, and so does one with `when_deleted: keep` where
    /// the source has gone.
    pub fn fill(&self, host: &Doc<'_>, before: Option<&Doc<'_>>, copies: &Copies) -> Result<Placements> {
        let _ = (host, before, copies);
        Err(Error::not_implemented("this"))
    }

    /// The hosts that refer to a key.
    pub fn hosts(&self, key: &Value<'_>) -> Filter {
        let _ = key;
        Filter::all()
    }

    /// One statement on all hosts that refer to a key (`multi`); narrow its filter to do it in parts.
    pub fn spread(&self, key: &Value<'_>, what: Spread<'_>) -> Result<UpdateStatement> {
        let _ = (key, what);
        Err(Error::not_implemented("this"))
    }

    /// See [`super::super::Program::expected`]. Copies in arrays are shown as arrays, null where there is none.
    pub fn expected(&self, only_differences: bool) -> Array<'static> {
        let _ = only_differences;
        Array::empty()
    }
}
