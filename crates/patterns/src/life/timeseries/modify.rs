//! `collMod` of a time-series collection: its expiry, a coarser granularity, and whether an index is hidden.

use crate::execute::access::Access;
use crate::life::relocate::change;
use crate::life::relocate::record::Relocation;
use crate::life::timeseries::options::{ensure_expiry, expiry_index, rule, with_expiry, with_granularity};
use crate::life::timeseries::{Life, indexes};
use crate::life::{CatalogRule, catalog};
use crate::rule::State;
use document::backend::Session;
use document::op::{AdminOp, Context, Namespace};
use document::value::order;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// From finer to coarser.
const GRANULARITIES: [&str; 3] = ["seconds", "minutes", "hours"];

impl Life {
    pub(crate) async fn modify_timeseries(
        &self,
        context: &Context,
        ns: &Namespace,
        change: &Doc<'static>,
    ) -> Result<Doc<'static>> {
        for (name, _) in change.iter() {
            match name.as_str() {
                "viewOn" | "pipeline" => return Err(invalid("option only supported on a view: pipeline")),
                "expireAfterSeconds" | "timeseries" | "index" => {}
                other => return Err(invalid(&format!("option not supported on a time-series collection: {other}"))),
            }
        }
        let granularity = match change.get("timeseries") {
            Some(Value::Document(series)) => series.get("granularity").map(Value::into_owned),
            _ => None,
        };
        let mut reply = DocWriter::new();
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = Access { backend: &*self.backend, session: &mut session, context };
            let Some(entry) = self.settled_timeseries(ns)? else { return Ok(Doc::empty()) };
            let coarser = match granularity.as_ref().and_then(Value::as_str) {
                Some(wanted) => coarser(&entry, wanted)?,
                None => None,
            };
            if let Some(Value::Document(index)) = change.get("index") {
                self.hide(&mut at, &entry, &index, &mut reply).await?;
            }
            if let Some(after) = change.get("expireAfterSeconds") {
                self.expire_after(&mut at, ns, after.as_number().map(|after| after.to_i64_saturated())).await?;
            }
            match coarser {
                Some(granularity) => self.begin_coarser(&mut at, ns, granularity).await?,
                None => return Ok(reply.finish()),
            }
        }
        let Some(entry) = self.timeseries(ns) else { return Ok(reply.finish()) };
        self.bring_to_end(&entry.rule).await?;
        Ok(reply.finish())
    }

    async fn expire_after(&self, at: &mut Access<'_>, ns: &Namespace, after: Option<i64>) -> Result<()> {
        let Some(entry) = self.timeseries(ns) else { return Ok(()) };
        let Some(bucket) = entry.rule.bucket() else { return Ok(()) };
        let mut row = entry.row.clone();
        let shape = row.shape.get_or_insert_default();
        let options = with_expiry(&shape.timeseries.clone().unwrap_or_else(Doc::empty), after);
        let known = shape.indexes.clone();
        shape.timeseries = Some(options.clone());
        self.save_changed(at, &entry, row).await?;
        if after.is_none()
            && let Some(name) = expiry_index(at, bucket).await?
        {
            // An index that a client made is made anew, without the expiry.
            let op = AdminOp::DropIndexes { ns: bucket.into.clone(), which: Value::string(name) };
            at.backend.admin(at.session, at.context, op).await?;
        }
        ensure_expiry(at, bucket, &options).await?;
        indexes::ensure(at, bucket, &known).await
    }

    /// Writes down that the readings go to longer buckets.
    async fn begin_coarser(&self, at: &mut Access<'_>, ns: &Namespace, granularity: &str) -> Result<()> {
        let Some(entry) = self.timeseries(ns) else { return Ok(()) };
        let shape = entry.row.shape.clone().unwrap_or_default();
        let options = with_granularity(&shape.timeseries.clone().unwrap_or_else(Doc::empty), granularity);
        let changed = Arc::new(rule(ns, &options)?);
        let Some(bucket) = changed.bucket() else { return Ok(()) };
        let change = change::to_declared(at, Some(&entry), &changed, &bucket.into).await?;
        let row = catalog::Row {
            declaration: changed.declaration.clone(),
            state: State::Maintaining,
            epoch: entry.row.epoch + 1,
            done: 0,
            total: 0,
            by: self.process.clone(),
            shape: Some(Relocation { switchover: Some(change.switchover), timeseries: Some(options), ..shape }),
            ..entry.row.clone()
        };
        self.unpublished.store(true, Ordering::Relaxed);
        if !catalog::replace(at, &entry.db, &row, entry.row.epoch).await? {
            self.refresh(at).await?;
            let message = format!("{ns} was changed meanwhile");
            return Err(Error::new(Code::ConflictingOperationInProgress, message));
        }
        self.put_entry(CatalogRule::new(&entry.db, row, changed)?);
        self.put_in_force()
    }

    /// Hides an index of clients, or shows it again.
    async fn hide(
        &self,
        at: &mut Access<'_>,
        entry: &CatalogRule,
        asked: &Doc<'_>,
        reply: &mut DocWriter,
    ) -> Result<()> {
        if asked.contains("expireAfterSeconds") {
            return Err(invalid(
                "TTL indexes are not supported for time-series collections. Please refer to the documentation and use the top-level 'expireAfterSeconds' option instead",
            ));
        }
        let Some(bucket) = entry.rule.bucket() else { return Ok(()) };
        let mut row = entry.row.clone();
        let shape = row.shape.get_or_insert_default();
        let wanted = |index: &&mut Doc<'static>| match (asked.get("name"), asked.get("keyPattern"), index.get("key")) {
            (Some(name), _, _) => index.get("name").is_some_and(|own| order::equal(&own, &name)),
            (None, Some(pattern), Some(key)) => order::equal(&key, &pattern),
            _ => false,
        };
        let Some(index) = shape.indexes.iter_mut().find(wanted) else {
            let asked = asked.get("name").or_else(|| asked.get("keyPattern")).unwrap_or(Value::Null);
            let asked =
                asked.as_str().map_or_else(|| document::value::show::element(&asked).to_string(), str::to_owned);
            let message = format!("cannot find index {asked} for ns {}", bucket.into);
            return Err(Error::new(Code::IndexNotFound, message));
        };
        let mut change = DocWriter::new();
        change.start_document("index").append("name", &index.get("name").unwrap_or(Value::Null));
        for (option, value) in asked.iter().filter(|(option, _)| !matches!(option.as_str(), "name" | "keyPattern")) {
            change.append(option.as_str(), &value);
        }
        change.end();
        let op = AdminOp::CollMod { ns: bucket.into.clone(), change: change.finish() };
        for answer in at.backend.admin(at.session, at.context, op).await? {
            for (name, value) in answer.iter() {
                reply.append(name.as_str(), &value);
            }
        }
        let hidden = asked.get("hidden").is_some_and(|hidden| hidden.is_truthy());
        let mut shown = DocWriter::new();
        for (name, value) in index.iter().filter(|(name, _)| name.as_str() != "hidden") {
            shown.append(name.as_str(), &value);
        }
        shown.append("hidden", &if hidden { Value::Bool(true) } else { Value::Missing });
        *index = shown.finish();
        self.save_changed(at, entry, row).await
    }
}

/// The granularity that is asked for, if it is another one.
fn coarser(entry: &CatalogRule, wanted: &str) -> Result<Option<&'static str>> {
    let options = entry.row.shape.as_ref().and_then(|shape| shape.timeseries.as_ref());
    let now = match options.and_then(|options| options.get("timeseries")) {
        Some(Value::Document(series)) => series.get("granularity").and_then(|now| now.as_str().map(str::to_owned)),
        _ => None,
    };
    let place = |name: &str| GRANULARITIES.iter().position(|known| *known == name).unwrap_or_default();
    match place(wanted).cmp(&place(now.as_deref().unwrap_or_default())) {
        std::cmp::Ordering::Equal => Ok(None),
        std::cmp::Ordering::Greater => Ok(GRANULARITIES.get(place(wanted)).copied()),
        std::cmp::Ordering::Less => Err(invalid(
            "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.",
        )),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidOptions, message)
}
