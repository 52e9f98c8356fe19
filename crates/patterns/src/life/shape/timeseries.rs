//! `create` with MongoDB's `timeseries` option on the embedded store: a bucket rule, made at once, that belongs to no declaration.

use super::drop::Leaving;
use super::rows::{Place, Shaping, Turn};
use super::{advance, bucket_of, drop as dropping, stored};
use crate::life::records::At;
use crate::life::{Entry, Life, State, catalog, expiry};
use crate::mql;
use crate::rule::Rule;
use crate::shape::bucket::{Bucket, Period};
use document::backend::Session;
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// As many readings as MongoDB puts into a bucket.
const AT_MOST: i32 = 1_000;

impl Life {
    /// The time-series collection of that name, if it was made by `create`.
    fn timeseries(&self, ns: &Namespace) -> Option<Entry> {
        self.entries().into_iter().find(|entry| entry.rule.host == *ns && !entry.is_declared())
    }

    pub(crate) fn is_timeseries(&self, ns: &Namespace) -> bool {
        self.timeseries(ns).is_some()
    }

    /// All of a database, with the options they were made with.
    pub(crate) fn all_timeseries(&self, db: &str) -> Vec<(Arc<str>, Doc<'static>)> {
        let made = |entry: Entry| Some((entry.rule.host.collection.clone(), entry.row.shape?.timeseries?));
        self.entries().into_iter().filter(|entry| *entry.db == *db).filter_map(made).collect()
    }

    /// Makes one. `options` are as `listCollections` shows them.
    pub(crate) async fn create_timeseries(
        &self,
        context: &Context,
        ns: &Namespace,
        options: &Doc<'static>,
    ) -> Result<()> {
        self.refuse_raw()?;
        let rule = Arc::new(rule(ns, options)?);
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = At { backend: &*self.backend, session: &mut session, context };
            self.refuse_taken(&mut at, ns).await?;
            if let Some(bucket) = bucket_of(&rule)
                && stored::found(&mut at, &bucket.into).await?.is_some()
            {
                let message = format!("Collection {} already exists.", bucket.into);
                return Err(Error::new(Code::NamespaceExists, message)
                    .with_hint("the buckets of the time-series collection are stored under that name"));
            }
            self.save_timeseries(&mut at, &rule, options).await?;
        }
        self.bring_to_end(&rule).await
    }

    /// What has the name already, in MongoDB's words.
    pub(crate) async fn refuse_taken(&self, at: &mut At<'_>, ns: &Namespace) -> Result<()> {
        let message = match (self.timeseries(ns), stored::found(at, ns).await?) {
            (Some(_), _) => format!("A timeseries collection already exists. NS: {ns}"),
            (None, Some(found)) if found.is_view() => format!("A view already exists. NS: {ns}"),
            (None, Some(_)) => format!("Collection {ns} already exists."),
            (None, None) => return Ok(()),
        };
        Err(Error::new(Code::NamespaceExists, message))
    }

    async fn save_timeseries(&self, at: &mut At<'_>, rule: &Arc<Rule>, options: &Doc<'static>) -> Result<()> {
        let Some(bucket) = bucket_of(rule) else { return Ok(()) };
        let place = Place { stored: bucket.into.collection.to_string(), declaration: Some(rule.declaration.clone()) };
        let turn = Turn { places: vec![place], ..Turn::default() };
        let epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        let row = catalog::Row {
            rule: rule.name.to_string(),
            kind: rule.kind.to_owned(),
            declaration: rule.declaration.clone(),
            state: State::Maintaining,
            epoch,
            done: 0,
            total: 0,
            with_data: false,
            tidy: false,
            by: self.process.clone(),
            shape: Some(Shaping { places: Vec::new(), turn: Some(turn), timeseries: Some(options.clone()) }),
        };
        catalog::save(at, &rule.host.db, &row).await?;
        self.put_entry(Entry::new(&rule.host.db, row, rule.clone())?);
        self.put_in_force()
    }

    /// Does at once what the keeper would do.
    async fn bring_to_end(&self, rule: &Rule) -> Result<()> {
        loop {
            let entries = self.entries();
            let Some(entry) = entries.iter().find(|entry| entry.rule.host == rule.host && entry.rule.name == rule.name)
            else {
                return Ok(());
            };
            if entry.row.state == State::On {
                return Ok(());
            }
            self.check_stopped()?;
            advance(self, entry).await?;
        }
    }

    /// Drops one with all that is in it; false if there is none of that name.
    pub(crate) async fn drop_timeseries(&self, context: &Context, ns: &Namespace) -> Result<bool> {
        let Some(entry) = self.timeseries(ns) else { return Ok(false) };
        self.refuse_raw()?;
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = At { backend: &*self.backend, session: &mut session, context };
            let leaving = Leaving { with_data: true, keep_buckets: false };
            dropping::begin(self, &mut at, &entry, leaving).await?;
        }
        self.bring_to_end(&entry.rule).await?;
        Ok(true)
    }
}

/// The rule that `create` means.
fn rule(ns: &Namespace, options: &Doc<'static>) -> Result<Rule> {
    let Some(Value::Document(series)) = options.get("timeseries") else {
        return Err(Error::bad_value("'timeseries' must be a document"));
    };
    let text = |name: &str| series.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let every = match text("granularity").as_deref() {
        Some("minutes") => "day",
        Some("hours") => "month",
        _ => "hour",
    };
    let mut declaration = DocWriter::new();
    declaration.append("database", &Value::from(&*ns.db)).start_document("collections");
    declaration.start_document(&ns.collection).start_document("bucket");
    declaration.append("time", &Value::string(text("timeField").unwrap_or_default()));
    declaration.append("by", &Value::Array(text("metaField").into_iter().map(Value::string).collect()));
    declaration.append("every", &Value::from(every)).append("at_most", &Value::Int32(AT_MOST));
    declaration.end().end().end();
    crate::declare::from_catalog(&declaration.finish())
        .map_err(|error| Error::new(Code::InvalidOptions, format!("{ns}: {}", error.message())))
}

/// Buckets go when all of their readings have expired: an index on the period's start, which is that much earlier.
pub(super) async fn ensure_expiry(at: &mut At<'_>, bucket: &Bucket, options: &Doc<'static>) -> Result<()> {
    let Some(after) = options.get("expireAfterSeconds").as_ref().and_then(expiry::seconds) else { return Ok(()) };
    let period = bucket.every.name();
    let index = mql::document([
        ("key", mql::object([(period, Value::Int32(1))])),
        ("name", Value::string(format!("{period}_1"))),
        ("expireAfterSeconds", Value::Int64(after.saturating_add(longest(bucket.every)).min(i64::from(i32::MAX)))),
    ]);
    let op = AdminOp::CreateIndexes { ns: bucket.into.clone(), indexes: vec![index] };
    at.backend.admin(at.session, at.context, op).await.map(drop)
}

/// How many seconds the longest period of its kind has.
fn longest(every: Period) -> i64 {
    const DAY: i64 = 86_400;
    match every {
        Period::Minute => 60,
        Period::Hour => 3_600,
        Period::Day => DAY,
        Period::Month => 31 * DAY,
        Period::Quarter => 92 * DAY,
        Period::Year => 366 * DAY,
    }
}

/// A row of `listCollections` as MongoDB shows a time-series collection, which is stored as a view here.
pub(crate) fn listed(name: &str, options: &Doc<'static>) -> Doc<'static> {
    mql::document([
        ("name", Value::from(name)),
        ("type", Value::from("timeseries")),
        ("options", Value::Document(options.borrow())),
        ("info", mql::object([("readOnly", Value::Bool(false))])),
    ])
}
