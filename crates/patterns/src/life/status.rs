//! `status`: where each rule is, how far, what waits in the outbox.

use super::records::{At, aggregate};
use super::states::State;
use super::{Entry, Life, catalog, names, shape};
use crate::mql;
use document::backend::Session;
use document::op::Context;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// What waits in one outbox, by rule.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    pending: i64,
    oldest_ms: i64,
}

impl Life {
    /// `{ rules: [ { rule, state, progress, lag_ms, pending, overridden } ], outbox: { pending, oldest_ms } }` (SEMANTICS F), of
    /// one database or of all.
    pub(crate) async fn status(&self, at: &mut At<'_>, db: Option<&str>) -> Result<Doc<'static>> {
        let entries: Vec<Entry> =
            self.entries().into_iter().filter(|entry| db.is_none_or(|db| *entry.db == *db)).collect();
        let databases: BTreeSet<&str> = entries.iter().map(|entry| &*entry.db).collect();
        let (mut waiting, mut all) = (HashMap::new(), Waiting::default());
        for db in databases {
            for (rule, figures) in jobs(at, db).await? {
                all.pending += figures.pending;
                all.oldest_ms = all.oldest_ms.max(figures.oldest_ms);
                waiting.insert((db.to_owned(), rule), figures);
            }
        }
        let mut rules = ArrayWriter::new();
        for entry in &entries {
            let key = (entry.db.to_string(), entry.rule.name.to_string());
            let waiting = waiting.get(&key).copied().unwrap_or_default();
            let health = shape::health::health(self, at, entry).await?;
            rules.push(&Value::Document(self.show(entry, waiting, health)));
        }
        let mut status = DocWriter::new();
        status.append("rules", &Value::Array(rules.finish())).start_document("outbox");
        status.append("pending", &Value::Int64(all.pending)).append("oldest_ms", &Value::Int64(all.oldest_ms)).end();
        Ok(status.finish())
    }

    /// `{ pleach: <status of all databases> }`, for `serverStatus`.
    pub(crate) async fn server_status(&self, context: &Context) -> Result<Doc<'static>> {
        let mut session = Session::default();
        let mut at = At { backend: &*self.backend, session: &mut session, context };
        let mut answer = DocWriter::new();
        answer.append("pleach", &Value::Document(self.status(&mut at, None).await?));
        Ok(answer.finish())
    }

    fn show(&self, entry: &Entry, waiting: Waiting, health: Option<Doc<'static>>) -> Doc<'static> {
        let row = &entry.row;
        let mut rule = DocWriter::new();
        rule.append("rule", &Value::from(&*row.rule)).append("database", &Value::from(&*entry.db));
        rule.append("kind", &Value::from(&*row.kind)).append("state", &Value::from(row.state.name()));
        rule.append("progress", &Value::Double(progress(row)));
        if !matches!(row.state, State::On) {
            rule.append("done", &Value::Int64(row.done)).append("total", &Value::Int64(row.total.max(row.done)));
        }
        rule.append("lag_ms", &Value::Int64(waiting.oldest_ms)).append("pending", &Value::Int64(waiting.pending));
        let overridden = i64::try_from(self.patterned.overridden(&entry.rule)).unwrap_or(i64::MAX);
        rule.append("overridden", &Value::Int64(overridden));
        if let Some(health) = health {
            rule.append("health", &Value::Document(health));
        }
        if let Some(problem) = &entry.problem {
            rule.append("problem", &Value::from(&**problem));
        }
        rule.finish()
    }
}

/// From 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn progress(row: &catalog::Row) -> f64 {
    match row.state {
        State::On => 1.0,
        State::Seeding { position: Some(Value::MaxKey) } => 1.0,
        State::Seeding { .. } | State::Retiring if row.total > 0 => (row.done as f64 / row.total as f64).min(0.999),
        _ => 0.0,
    }
}

/// What waits in the outbox of a database, by rule: counted where it is.
async fn jobs(at: &mut At<'_>, db: &str) -> Result<Vec<(String, Waiting)>> {
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
