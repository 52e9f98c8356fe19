//! `status`: where each rule is, how far, what waits in the outbox.

use crate::execute::access::{Access, aggregate};
use crate::execute::rights::Rights;
use crate::life::replaced::amount::Amount;
use crate::life::replaced::{Seeded, amount};
use crate::life::{CatalogRule, Life, apply, catalog, lifecycle, load, unkeyed};
use crate::mql;
use crate::rule::names;
use crate::rule::state::State;
use document::backend::Session;
use document::op::{Context, Namespace};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What waits in one outbox, by rule.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    pending: i64,
    oldest_ms: i64,
}

impl Life {
    /// `{ rules: [ { rule, state, progress, lag_ms, pending, overridden } ], outbox: { pending, oldest_ms } }`, of
    /// one database or of all; of rules that the client may read. Of a roll-up also `unkeyed`: how many source
    /// documents count nowhere. A rule says what its seeding did (`seeded`) and what is kept of
    /// what it replaced (`kept`); what is kept of rules that are gone is listed beside them.
    pub(crate) async fn status(&self, at: &mut Access<'_>, db: Option<&str>, rights: &Rights) -> Result<Doc<'static>> {
        let databases = match db {
            Some(db) => vec![db.to_owned()],
            None => catalog::databases(at).await?,
        };
        self.status_of(at, db, &databases, rights).await
    }

    /// The same; what is kept of rules that are gone is looked for in these databases.
    async fn status_of(
        &self,
        at: &mut Access<'_>,
        db: Option<&str>,
        others: &[String],
        rights: &Rights,
    ) -> Result<Doc<'static>> {
        let is_shown = |entry: &CatalogRule| db.is_none_or(|db| *entry.db == *db) && rights.may_see(&entry.rule);
        let entries: Vec<CatalogRule> = self.applied(db).await?.into_iter().filter(is_shown).collect();
        let databases: BTreeSet<&str> = entries.iter().map(|entry| &*entry.db).collect();
        let (mut waiting, mut all) = (HashMap::new(), Waiting::default());
        for db in &databases {
            for (rule, figures) in jobs(at, db).await? {
                if !entries.iter().any(|entry| *entry.db == **db && *entry.rule.name == *rule) {
                    continue;
                }
                all.pending += figures.pending;
                all.oldest_ms = all.oldest_ms.max(figures.oldest_ms);
                waiting.insert(((*db).to_owned(), rule), figures);
            }
        }
        let mut kept: BTreeMap<(String, String), Amount> = BTreeMap::new();
        for db in databases.into_iter().chain(others.iter().map(String::as_str)).collect::<BTreeSet<_>>() {
            for of in amount::all(at, db).await? {
                let ns = Namespace::new(db, &of.collection);
                if !of.amount.is_nothing() && rights.may("find", &ns) {
                    let sum = kept.entry((db.to_owned(), of.rule)).or_default();
                    *sum = sum.plus(of.amount);
                }
            }
        }
        let mut rules = ArrayWriter::new();
        for entry in &entries {
            let key = (entry.db.to_string(), entry.rule.name.to_string());
            let waiting = waiting.get(&key).copied().unwrap_or_default();
            let health = lifecycle::of(&entry.rule).status(self, at, entry).await?;
            let unkeyed = match entry.row.state.is_kept() {
                true => unkeyed::in_status(self, at, entry).await?,
                false => None,
            };
            rules.push(&Value::Document(self.show(entry, waiting, unkeyed, health, kept.remove(&key))));
        }
        let mut status = DocWriter::new();
        status.append("rules", &Value::Array(rules.finish())).start_document("outbox");
        status.append("pending", &Value::Int64(all.pending)).append("oldest_ms", &Value::Int64(all.oldest_ms)).end();
        if !kept.is_empty() {
            status.append("kept", &Value::Array(kept.iter().map(show_gone).collect()));
        }
        if self.is_raw() {
            status.append("raw", &Value::Bool(true));
        }
        self.show_pending(&mut status, db, rights);
        if self.untidy.lock().iter().any(|untidy| db.is_none_or(|db| db == untidy)) {
            // Indexes of rules that are gone, while another process changes rules.
            status.append("tidying", &Value::Bool(true));
        }
        self.show_ignored(&mut status, db, rights);
        Ok(status.finish())
    }

    /// `pending: [ { rule, database, reason } ]`: declared rules that wait for a flag of `apply`. Left out if there are none.
    fn show_pending(&self, status: &mut DocWriter, db: Option<&str>, rights: &Rights) {
        let pending = self.pending.lock().clone();
        let is_shown = |rule: &&apply::Pending| {
            let is_visible = || rule.namespaces.iter().all(|ns| rights.may("find", ns));
            db.is_none_or(|db| rule.db == db) && is_visible()
        };
        let rows = pending.iter().filter(is_shown).map(|rule| with_reason(&rule.rule, &rule.db, &rule.reason));
        append_rows(status, "pending", rows.collect());
    }

    /// `ignored: [ { rule, database, reason } ]`: rows of the catalog that are no rules of their database. Shown to whom may read
    /// the catalog itself.
    fn show_ignored(&self, status: &mut DocWriter, db: Option<&str>, rights: &Rights) {
        let ignored = self.ignored.lock().clone();
        let is_shown =
            |row: &&load::Ignored| db.is_none_or(|db| *row.db == *db) && rights.may("find", &names::catalog(&row.db));
        let rows = ignored.iter().filter(is_shown).map(|row| with_reason(&row.rule, &row.db, &row.reason));
        append_rows(status, "ignored", rows.collect());
    }

    /// `{ pleach: <status of all databases that the client may read> }`, for `serverStatus`.
    pub(crate) async fn server_status(&self, rights: &Rights, context: &Context) -> Result<Doc<'static>> {
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let mut answer = DocWriter::new();
        answer.append("pleach", &Value::Document(self.status_of(&mut at, None, &[], rights).await?));
        Ok(answer.finish())
    }

    fn show(
        &self,
        entry: &CatalogRule,
        waiting: Waiting,
        unkeyed: Option<i64>,
        health: Option<Doc<'static>>,
        kept: Option<Amount>,
    ) -> Doc<'static> {
        let row = &entry.row;
        let mut rule = DocWriter::new();
        rule.append("rule", &Value::from(&*row.rule)).append("database", &Value::from(&*entry.db));
        rule.append("kind", &Value::from(&*row.kind))
            .append("state", &Value::from(if self.is_raw() { "off" } else { state(entry) }));
        rule.append("progress", &Value::Double(progress(entry)));
        if !matches!(row.state, State::On) {
            rule.append("done", &Value::Int64(row.done)).append("total", &Value::Int64(row.total.max(row.done)));
        }
        rule.append("lag_ms", &Value::Int64(waiting.oldest_ms)).append("pending", &Value::Int64(waiting.pending));
        let overridden = i64::try_from(self.patterned.overridden(&entry.rule)).unwrap_or(i64::MAX);
        rule.append("overridden", &Value::Int64(overridden));
        if let Some(unkeyed) = unkeyed {
            rule.append("unkeyed", &Value::Int64(unkeyed));
        }
        if row.replaced.seeded != Seeded::default() {
            rule.append("seeded", &Value::Document(row.replaced.seeded.show()));
        }
        if let Some(kept) = kept {
            rule.append("kept", &kept.show());
        }
        if let Some(health) = health {
            rule.append("health", &Value::Document(health));
        }
        if let Some(problem) = &entry.problem {
            rule.append("problem", &Value::from(&**problem));
        }
        rule.finish()
    }
}

fn with_reason(rule: &str, db: &str, reason: &str) -> Value<'static> {
    let [rule, db, reason] = [rule, db, reason].map(|text| Value::string(text.to_owned()));
    mql::object([("rule", rule), ("database", db), ("reason", reason)])
}

/// Left out if there are none.
fn append_rows(status: &mut DocWriter, name: &str, rows: Vec<Value<'static>>) {
    if !rows.is_empty() {
        status.append(name, &Value::Array(rows.into_iter().collect()));
    }
}

/// What is kept of a rule that is gone.
fn show_gone(((db, rule), amount): (&(String, String), &Amount)) -> Value<'static> {
    let Amount { documents, bytes } = *amount;
    mql::object([
        ("rule", Value::from(&**rule)),
        ("database", Value::from(&**db)),
        ("documents", Value::Int64(documents)),
        ("bytes", Value::Int64(bytes)),
    ])
}

/// The name of the rule's state; `lifting` while the items of an array become documents.
fn state(entry: &CatalogRule) -> &'static str {
    match entry.is_lifting() && entry.row.replaced.lifted.is_some() {
        true => "lifting",
        false => entry.row.state.name(),
    }
}

/// From 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn progress(entry: &CatalogRule) -> f64 {
    let row = &entry.row;
    match row.state {
        State::On => 1.0,
        State::Seeding { position: Some(Value::MaxKey) } => 1.0,
        State::Maintaining | State::Seeding { .. } | State::Retiring if row.total > 0 => {
            (row.done as f64 / row.total as f64).min(0.999)
        }
        _ => 0.0,
    }
}

/// What waits in the outbox of a database, by rule: counted where it is.
async fn jobs(at: &mut Access<'_>, db: &str) -> Result<Vec<(String, Waiting)>> {
    let group = mql::object([
        ("_id", Value::from("$_id.rule")),
        ("pending", mql::call("$sum", Value::Int32(1))),
        ("since", mql::call("$min", Value::from("$since"))),
    ]);
    let stages = std::iter::once(mql::call("$group", group)).collect();
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let now = at.context.env.now;
    let waiting = |row: &Doc<'static>| {
        let oldest_ms = match row.get("since") {
            Some(Value::DateTime(since)) => (now - since).max(0),
            _ => 0,
        };
        let rule = row.get("_id")?.as_str()?.to_owned();
        Some((rule, Waiting { pending: catalog::long(row.get("pending")), oldest_ms }))
    };
    Ok(at.all(aggregate(&names::outbox(db), pipeline)).await?.iter().filter_map(waiting).collect())
}
