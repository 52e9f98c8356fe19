//! Fields, rules and collections for tests: collections are vectors.

use crate::fields::{CopyField, Tally, TallyField};
use crate::rule::{
    ClientWrites, Field, HostField, KeyPath, Kind, Link, LinkKey, Refers, Rule, WhenChanged, WhenDeleted,
};
use document::filter::Filter;
use document::op::{Change, Namespace};
use document::pipeline::expr::Names;
use document::pipeline::{Collections, Pipeline, Rows, Run, from_documents};
use document::update::{Applied, Update};
use document::value::Path;
use document::{Array, Doc, Env, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) fn key(path: &str, each: bool) -> KeyPath {
    KeyPath { path: Path::new(path), each }
}

pub(crate) fn target(host: &str, field: &str) -> HostField {
    let rule = format!("{host}.{field}").into();
    HostField { rule, host: Namespace::new("shop", host), path: Path::new(field) }
}

/// A rule that keeps the field.
pub(crate) fn rule(field: Arc<dyn Field>) -> Arc<Rule> {
    let HostField { rule: name, host, path } = field.target().clone();
    Arc::new(Rule {
        name,
        pattern: "computed",
        host,
        field: path,
        lift: None,
        kind: Kind::Field(field),
        client_writes: ClientWrites::Override,
        declaration: Doc::empty(),
    })
}

/// `products.<field>`: a tally of reviews by productId.
pub(crate) fn tally(field: &str, tally: Tally, change: impl FnOnce(&mut Link)) -> Arc<TallyField> {
    Arc::new(TallyField::new(target("products", field), reviews(change), tally).unwrap())
}

/// Products to their reviews, by productId.
pub(crate) fn reviews(change: impl FnOnce(&mut Link)) -> Link {
    let mut link = Link {
        local: key("_id", false),
        source: Namespace::new("shop", "reviews"),
        foreign: LinkKey::Path(key("productId", false)),
        refers: Refers::Source,
        filter: None,
        lag: None,
        when_changed: WhenChanged::Refresh,
        when_deleted: WhenDeleted::Keep,
        create: false,
    };
    change(&mut link);
    link
}

pub(crate) fn filter(filter: bson::Document) -> Option<Filter> {
    Some(Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap())
}

/// A copy of users in `posts.<field>`.
pub(crate) fn copy(field: &str, by: KeyPath, fields: &[(&str, &str)], change: impl FnOnce(&mut Link)) -> CopyField {
    let fields = fields.iter().map(|(name, path)| ((*name).into(), Path::new(path))).collect();
    let mut link = Link {
        local: by,
        source: Namespace::new("shop", "users"),
        foreign: LinkKey::Path(key("_id", false)),
        refers: Refers::Host,
        filter: None,
        lag: None,
        when_changed: WhenChanged::Refresh,
        when_deleted: WhenDeleted::Keep,
        create: false,
    };
    change(&mut link);
    CopyField::new(target("posts", field), link, fields).unwrap()
}

/// A changed source document.
pub(crate) fn change(before: Option<Doc<'static>>, after: Option<Doc<'static>>) -> Change {
    Change { id: Value::Int32(0), before, after }
}

#[derive(Clone, Default)]
pub(crate) struct Memory(pub(crate) HashMap<String, Vec<Doc<'static>>>);

impl Memory {
    pub(crate) fn with(mut self, name: &str, documents: Vec<Doc<'static>>) -> Memory {
        self.0.insert(name.to_owned(), documents);
        self
    }

    /// Runs stages on a collection.
    pub(crate) fn aggregate(&self, collection: &str, stages: &Array<'_>) -> Vec<Doc<'static>> {
        self.run(collection, &Pipeline::parse(stages, &mut Names::new()).unwrap())
    }

    pub(crate) fn run(&self, collection: &str, pipeline: &Pipeline) -> Vec<Doc<'static>> {
        let mut rows = self.open(collection, pipeline, &Env::fixed()).unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            found.push(row);
        }
        found
    }
}

impl Collections for Memory {
    fn open(&self, collection: &str, pipeline: &Pipeline, env: &Env) -> Result<Rows> {
        let documents = self.0.get(collection).cloned().unwrap_or_default();
        pipeline.start(from_documents(documents), &Run { env: env.clone(), collections: Arc::new(self.clone()) })
    }
}

/// The document after the update, by its own program and by what it says to a real MongoDB: both must agree.
pub(crate) fn apply(update: &Update, doc: &Doc<'static>) -> Result<Doc<'static>> {
    let done = |applied| match applied {
        Applied::Unchanged => doc.clone(),
        Applied::Changed(new) => new,
    };
    let mut names = Names::new();
    for (name, value) in update.constants.iter().flat_map(|constants| constants.iter()) {
        names.bind_constant(name.as_str(), value.into_owned());
    }
    let spoken = Update::parse(&update.source, &update.array_filters, &mut names).unwrap();
    let (native, spoken) = (
        update.apply(doc, &Default::default(), &Env::fixed()).map(done),
        spoken.apply(doc, &Default::default(), &Env::fixed()).map(done),
    );
    match (&native, &spoken) {
        (Ok(native), Ok(spoken)) => assert_eq!(native, spoken),
        (Err(native), Err(spoken)) => {
            let spoken = crate::rule::numbers::translated(spoken.clone());
            assert_eq!((native.code(), native.message()), (spoken.code(), spoken.message()));
        }
        _ => panic!("{native:?} but {spoken:?}"),
    }
    native
}

pub(crate) fn get(doc: &Doc<'_>, path: &str) -> Value<'static> {
    document::pipeline::expr::field_of_document(doc, &Path::new(path).parts).into_owned()
}
