//! How many documents each version has, for `plan`, `status` and `drop`; and how the migration goes.

use crate::execute::rights::Rights;
use crate::life::versions::migration::is_open;
use crate::life::{CatalogRule, Life};
use crate::rule::{Lens, State};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{Context, Count, Namespace, ReadOp};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// How many documents are stored in each version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct VersionCounts {
    /// By version, from 1; those that are taken back are among them.
    pub(crate) known: Vec<(i32, u64)>,
    /// Documents whose number is none that is known.
    pub(crate) other: u64,
}

impl VersionCounts {
    /// Counted where documents are stored. `backend` is the one beneath the layer: it sees numbers as they are.
    pub(crate) async fn look(
        backend: &dyn Backend,
        context: &Context,
        ns: &Namespace,
        lens: &Lens,
    ) -> Result<VersionCounts> {
        let mut known = Vec::new();
        for version in 1..=lens.last_known() {
            known.push((version, count(backend, context, ns, lens.stored_as(version)).await?));
        }
        Ok(VersionCounts { known, other: count(backend, context, ns, lens.unknown()).await? })
    }

    /// Those that are not of this version, and not of an unknown one.
    pub(crate) fn but(&self, newest: i32) -> u64 {
        self.known.iter().filter(|(version, _)| *version != newest).map(|(_, number)| number).sum()
    }

    /// `{ "1": n, "2": n, other: n }`.
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut versions = DocWriter::new();
        for (version, number) in &self.known {
            versions.append(&version.to_string(), &long(*number));
        }
        if self.other > 0 {
            versions.append("other", &long(self.other));
        }
        versions.finish()
    }
}

impl Life {
    /// How many documents of a rule of versions are stored in others than the newest, and how many in each. `None` if the rule is
    /// about no versions, or the client does not see it.
    pub(crate) async fn older_documents(
        &self,
        rights: &Rights,
        context: &Context,
        db: Option<&str>,
        rule: &str,
    ) -> Result<Option<(u64, Doc<'static>)>> {
        let is_it = |entry: &CatalogRule| *entry.rule.name == *rule && db.is_none_or(|db| *entry.db == *db);
        let found = self.entries().into_iter().find(|entry| is_it(entry) && rights.may_see(&entry.rule));
        let Some((entry, lens)) = found.as_ref().and_then(|entry| Some((entry, entry.rule.lens()?))) else {
            return Ok(None);
        };
        let counts = VersionCounts::look(&**self.patterned.inner(), context, &entry.rule.host, lens).await?;
        Ok(Some((counts.but(lens.newest()), counts.show())))
    }
}

/// `{ versions, left, migrating, unconverted, stuck, per_second, seconds_left }`: how a rule of versions is, for `status`.
pub(crate) async fn figures(
    life: &Life,
    context: &Context,
    entry: &CatalogRule,
    lens: &Arc<Lens>,
) -> Result<Doc<'static>> {
    let backend = &**life.patterned.inner();
    let ns = &entry.rule.host;
    let counts = VersionCounts::look(backend, context, ns, lens).await?;
    let left = counts.but(lens.newest());
    let mut unconverted = 0;
    for (path, to) in lens.versions().iter().flatten().filter_map(|step| step.converted()) {
        unconverted +=
            count(backend, context, ns, lens.current().and(not_of_type(path.dotted().as_str(), to)?)).await?;
    }
    let mut figures = DocWriter::new();
    figures.append("newest", &Value::Int32(lens.newest()));
    figures.append("versions", &Value::Document(counts.show())).append("left", &long(left));
    let stuck = life.migrations.stuck(&entry.rule.name);
    let is_worked_on = lens.migrate.background && entry.row.state == State::On;
    let waits_only = is_worked_on && !is_open(&lens.migrate, context.env.now);
    if left > 0 && is_worked_on && !waits_only && stuck.is_empty() {
        figures.append("migrating", &Value::Bool(true));
    }
    if left > 0 && waits_only {
        figures.append("waits", &Value::Bool(true));
    }
    if let Some(hours) = lens.migrate.hours_text().filter(|_| left > 0) {
        figures.append("hours_utc", &Value::string(hours));
    }
    if unconverted > 0 {
        figures.append("unconverted", &long(unconverted));
    }
    if !stuck.is_empty() {
        figures.append("stuck", &Value::Int64(i64::try_from(stuck.len()).unwrap_or(i64::MAX)));
        let some = stuck
            .into_iter()
            .take(5)
            .map(|(id, reason)| crate::mql::object([("_id", id), ("reason", Value::string(reason))]));
        figures.append("stuck_documents", &Value::Array(some.collect()));
    }
    if let Some(rate) = life.migrations.rate(&entry.rule.name).filter(|_| left > 0) {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let seconds = if rate > 0.0 { Value::Double((left as f64 / rate).ceil()) } else { Value::Null };
        figures.append("per_second", &Value::Double(rate.round())).append("seconds_left", &seconds);
    }
    Ok(figures.finish())
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

fn not_of_type(path: &str, name: &str) -> Result<Filter> {
    use crate::mql::{call, document, object};
    let other = call("$not", call("$type", Value::from(name)));
    let both = document([(
        "$and",
        crate::mql::list([object([(path, call("$exists", Value::Bool(true)))]), object([(path, other)])]),
    )]);
    Filter::parse(&both, &mut document::pipeline::expr::Names::new())
}

pub(crate) async fn count(backend: &dyn Backend, context: &Context, ns: &Namespace, filter: Filter) -> Result<u64> {
    let mut session = Session::default();
    let op = ReadOp::Count(Count { ns: ns.clone(), filter, skip: 0, limit: None, hint: None });
    let mut cursor = backend.read(&mut session, context, op).await?;
    let batch = cursor.next(&mut session, context, BatchLimit { documents: 1, bytes: 1 << 20 }).await?;
    let number = batch.documents.first().and_then(|row| row.get("n")?.as_i64_exact());
    Ok(number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
}
