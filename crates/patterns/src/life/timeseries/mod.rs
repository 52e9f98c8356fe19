//! `create` with MongoDB's `timeseries` option on the embedded store: a bucket rule, made at once, that belongs to no declaration.
//! Its indexes are in [`indexes`], what `collMod` changes in [`modify`].

mod indexes;
mod modify;
mod options;

use crate::execute::access::Access;
use crate::life::relocate::drop as dropping;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::record::{Location, Relocation, Switchover};
use crate::life::relocate::{advance, stored};
use crate::life::replaced::Progress;
use crate::life::{CatalogRule, Life, catalog};
use crate::mql;
use crate::rule::Rule;
use crate::rule::State;
use document::backend::Session;
use document::op::{Context, Namespace};
use document::{Code, Doc, Error, Result, Value};
use options::rule;
use std::sync::Arc;

pub(crate) use indexes::is_timeseries as refused_on_timeseries;

/// Makes what a time-series collection has beside its buckets, if the rule is one.
pub(super) async fn ensure(at: &mut Access<'_>, entry: &CatalogRule) -> Result<()> {
    let (Some(bucket), Some(shape)) = (entry.rule.bucket(), &entry.row.shape) else { return Ok(()) };
    let Some(options) = &shape.timeseries else { return Ok(()) };
    options::ensure_expiry(at, bucket, options).await?;
    indexes::ensure(at, bucket, &shape.indexes).await
}

impl Life {
    /// The time-series collection of that name, if it was made by `create`.
    fn timeseries(&self, ns: &Namespace) -> Option<CatalogRule> {
        self.entries().into_iter().find(|entry| entry.rule.host == *ns && !entry.is_declared())
    }

    /// Whether time-series collections are made here: a real MongoDB has its own.
    pub(crate) fn keeps_timeseries(&self) -> bool {
        !self.backend.facts().own_time_series
    }

    /// What MongoDB says of commands that a time-series collection does not answer; `None` if it is none of ours.
    pub(crate) fn refused_as_timeseries(&self, ns: &Namespace) -> Option<Error> {
        (self.keeps_timeseries() && self.is_timeseries(ns)).then(|| refused_on_timeseries(ns))
    }

    pub(crate) fn is_timeseries(&self, ns: &Namespace) -> bool {
        self.timeseries(ns).is_some()
    }

    /// All of a database, with the options they were made with.
    pub(crate) fn all_timeseries(&self, db: &str) -> Vec<(Arc<str>, Doc<'static>)> {
        let made = |entry: CatalogRule| Some((entry.rule.host.collection.clone(), entry.row.shape?.timeseries?));
        self.entries().into_iter().filter(|entry| *entry.db == *db).filter_map(made).collect()
    }

    /// Makes one. `options` are as `listCollections` shows them; buckets that are there are taken over only if it is asked to.
    pub(crate) async fn create_timeseries(
        &self,
        context: &Context,
        ns: &Namespace,
        options: &Doc<'static>,
        adopts: bool,
    ) -> Result<()> {
        self.refuse_raw()?;
        let rule = Arc::new(rule(ns, options)?);
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = Access { backend: &*self.backend, session: &mut session, context };
            self.refuse_taken(&mut at, ns).await?;
            if let Some(bucket) = rule.bucket()
                && stored::look_up(&mut at, &bucket.into).await?.is_some()
            {
                if !adopts {
                    let message = format!("Collection {} already exists.", bucket.into);
                    return Err(Error::new(Code::NamespaceExists, message)
                        .with_hint("the buckets of the time-series collection are stored under that name"));
                }
                crate::life::relocate::adopt::check(&mut at, &rule, &bucket.into).await?;
            }
            self.save_timeseries(&mut at, &rule, options).await?;
        }
        self.bring_to_end(&rule).await
    }

    /// What has the name already, in MongoDB's words.
    pub(crate) async fn refuse_taken(&self, at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
        let message = match (self.timeseries(ns), stored::look_up(at, ns).await?) {
            (Some(_), _) => format!("A timeseries collection already exists. NS: {ns}"),
            (None, Some(found)) if found.is_view() => format!("A view already exists. NS: {ns}"),
            (None, Some(_)) => format!("Collection {ns} already exists."),
            (None, None) => return Ok(()),
        };
        Err(Error::new(Code::NamespaceExists, message))
    }

    /// The time-series collection as it is when nothing is under way with it. Asked with `changing` held, it stays so.
    fn settled_timeseries(&self, ns: &Namespace) -> Result<Option<CatalogRule>> {
        match self.timeseries(ns) {
            Some(entry) if entry.row.state != State::On => {
                let message = format!("{ns} is being brought into another form");
                Err(Error::new(Code::ConflictingOperationInProgress, message).with_hint("try again in a moment"))
            }
            other => Ok(other),
        }
    }

    /// Writes down what was changed, as long as nobody else has changed it.
    async fn save_changed(&self, at: &mut Access<'_>, entry: &CatalogRule, row: catalog::Row) -> Result<()> {
        if !catalog::replace(at, &entry.db, &row, entry.row.epoch).await? {
            self.refresh(at).await?;
            let message = format!("{} was changed meanwhile", entry.rule.host);
            return Err(Error::new(Code::ConflictingOperationInProgress, message));
        }
        self.put_entry(CatalogRule::new(&entry.db, row, entry.rule.clone())?);
        self.put_in_force()
    }

    async fn save_timeseries(&self, at: &mut Access<'_>, rule: &Arc<Rule>, options: &Doc<'static>) -> Result<()> {
        let Some(bucket) = rule.bucket() else { return Ok(()) };
        let place =
            Location { stored: bucket.into.collection.to_string(), declaration: Some(rule.declaration.clone()) };
        let switchover = Switchover { places: vec![place], ..Switchover::default() };
        let epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        let row = catalog::Row {
            rule: rule.name.to_string(),
            kind: rule.pattern.to_owned(),
            declaration: rule.declaration.clone(),
            state: State::Maintaining,
            epoch,
            done: 0,
            total: 0,
            with_data: false,
            tidy: false,
            by: self.process.clone(),
            shape: Some(Relocation {
                switchover: Some(switchover),
                timeseries: Some(options.clone()),
                ..Relocation::default()
            }),
            replaced: Progress::default(),
            taken_back: None,
        };
        catalog::save(at, &rule.host.db, &row).await?;
        self.put_entry(CatalogRule::new(&rule.host.db, row, rule.clone())?);
        self.put_in_force()
    }

    /// Does at once what the reconciler would do.
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
            let mut at = Access { backend: &*self.backend, session: &mut session, context };
            let leaving = Leaving { with_data: true, ..Leaving::default() };
            dropping::begin(self, &mut at, &entry, leaving).await?;
        }
        self.bring_to_end(&entry.rule).await?;
        Ok(true)
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
