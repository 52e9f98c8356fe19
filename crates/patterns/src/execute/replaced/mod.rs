//! What is written to `pleach.replaced` in the transaction that changes a host: what the host had at the paths of a rule, before
//! the rule changed them. How rows are given back and freed is a matter of the rule's life ([`crate::life::replaced`]).

mod fields;
pub mod lifted;
pub(crate) mod originals;
pub mod progress;
pub(crate) mod values;

use crate::execute::access::{Access, find, update_one, update_op};
use crate::mql;
use crate::rule::{Rule, State, names};
use document::error::label;
use document::filter::Filter;
use document::op::UpdateStatement;
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::order;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
pub use lifted::Lifted;
pub use progress::Progress;
use std::cmp::Ordering;
use std::sync::Arc;
use values::Places;

/// A rule whose hosts are being seeded: what is kept of them, and of which.
pub(crate) struct Keeping {
    pub(crate) rule: Arc<Rule>,
    pub(crate) since: i64,
    /// Hosts before it have values of the rule's own.
    seeded_to: Option<Value<'static>>,
    places: Places,
}

impl Keeping {
    /// `None` if nothing is kept of the rule's hosts.
    pub(crate) fn of(rule: &Arc<Rule>, state: &State, progress: &Progress) -> Option<Keeping> {
        let since = progress.since?;
        let seeded_to = progress.seeded_to(state);
        match matches!(seeded_to, Some(Value::MaxKey)) {
            true => None,
            false => Some(Keeping { rule: rule.clone(), since, seeded_to, places: Places::of(rule) }),
        }
    }

    /// Of those of the rules that are not on, by what the catalog says in the open transaction; each with the epoch it is known by
    /// here. A transaction whose moment is before that fails as after a conflict: it does not see what the rule must keep.
    pub(crate) async fn unfinished(at: &mut Access<'_>, rules: &[(Arc<Rule>, i64)]) -> Result<Vec<Keeping>> {
        let Some((first, _)) = rules.first() else { return Ok(Vec::new()) };
        let wanted = rules.iter().map(|(rule, _)| Value::string(&*rule.name)).collect();
        let rows = at.find(find(&names::catalog(&first.host.db), Filter::among("_id", wanted))).await?;
        let mut list = Vec::new();
        for (rule, epoch) in rules {
            let is_of_rule = |row: &&Doc<'static>| row.get("_id").is_some_and(|id| id.as_str() == Some(&*rule.name));
            let row = rows.iter().find(is_of_rule).filter(|row| mql::long(row.get("epoch")) >= *epoch);
            match row.and_then(|row| Some((State::of(row)?, Progress::read(row)))) {
                Some((state, progress)) => list.extend(Keeping::of(rule, &state, &progress)),
                None => return Err(conflict("the rules changed meanwhile")),
            }
        }
        Ok(list)
    }

    /// Whether the host's values are from before the rule.
    pub(crate) fn is_original(&self, id: &Value<'_>) -> bool {
        self.seeded_to.as_ref().is_none_or(|to| order::compare(id, to) != Ordering::Less)
    }

    /// What a host has at the paths of the rule.
    pub(crate) fn record(&self, host: &Doc<'_>) -> Array<'static> {
        self.places.record(host)
    }

    pub(crate) fn row(&self, host: &Value<'_>, was: Array<'static>) -> Doc<'static> {
        let id = host_id(&self.rule.name, self.since, Some(host));
        mql::document([("_id", id), ("was", Value::Array(was))])
    }
}

/// `{ rule, since, host }`; without a host the smallest of the rule's life.
pub(crate) fn host_id(rule: &str, since: i64, host: Option<&Value<'_>>) -> Value<'static> {
    let mut id = DocWriter::new();
    id.append("rule", &Value::from(rule)).append("since", &Value::DateTime(since));
    if let Some(host) = host {
        id.append("host", host);
    }
    Value::Document(id.finish())
}

pub(crate) fn written_meanwhile(error: Error) -> Error {
    match error.code() {
        Code::DuplicateKey => conflict("what a host had was kept meanwhile"),
        _ => error,
    }
}

fn conflict(message: &'static str) -> Error {
    Error::new(Code::WriteConflict, message).with_label(label::TRANSIENT)
}

/// A host that a client's write or a job changes: as it was before, and its `_id`.
pub(crate) struct Replaced<'h> {
    pub(crate) id: Value<'static>,
    /// `None` for a new host.
    pub(crate) before: Option<&'h Doc<'static>>,
}

/// Keeps what hosts had that are changed ahead of the walk, in the open transaction. A host that had nothing is noted too: unlike
/// the hosts that the walk has not reached, it has a value of the rule's own.
pub(crate) async fn keep_some(at: &mut Access<'_>, keeping: &[Keeping], hosts: &[Replaced<'_>]) -> Result<()> {
    let mut statements = Vec::new();
    for keeping in keeping {
        for host in hosts.iter().filter(|host| keeping.is_original(&host.id)) {
            let was = host.before.map_or_else(Array::empty, |before| keeping.record(before));
            let row = keeping.row(&host.id, was);
            statements.extend(unless_there(&row)?);
        }
    }
    let Some(first) = keeping.first().filter(|_| !statements.is_empty()) else { return Ok(()) };
    let op = update_op(&names::replaced(&first.rule.host.db), statements);
    at.write(&op).await.map(drop).map_err(written_meanwhile)
}

/// `{ $setOnInsert: { was } }`: the first row of a host stays.
fn unless_there(row: &Doc<'static>) -> Result<Option<UpdateStatement>> {
    let (Some(id), Some(was)) = (row.get("_id"), row.get("was")) else { return Ok(None) };
    let change = mql::call("$setOnInsert", mql::object([("was", was)]));
    let update = Update::parse(&change, &[], &mut Names::new())?;
    Ok(Some(UpdateStatement { upsert: true, ..update_one(Filter::equality("_id", &id), update) }))
}
