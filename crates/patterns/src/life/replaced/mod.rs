//! `pleach.replaced`: what hosts had before a rule changed them, and documents that a conversion threw away. It is written in
//! the transaction that changes them, given back by `drop RULE --restore`, and freed by `forget RULE`.
//!
//! A row is `{ _id: { rule, since, host }, was: [ … ] }` (see [`values`]) or, of a conversion, `{ _id: { rule, since, host, was },
//! document }` (see [`documents`]). `since` is when the rule was applied: each life of it keeps what was there before that
//! life, and all are given back, the oldest last. Only what was there before the rule is kept: the first row of a host stays, and hosts
//! that the rule has seeded once are not looked at again. How much there is stands in the catalog (see [`amount`]), and what becomes
//! of it when a rule is gone in [`gone`].

pub(crate) mod amount;
pub(crate) mod documents;
pub(crate) mod ended_rules;
mod fields;
pub(crate) mod forget;
mod handover;
pub(crate) mod plain;
pub(crate) mod progress;
pub(crate) mod restore;
mod values;

pub use progress::{Progress, Seeded};
pub(crate) use values::{Places, without};

use crate::life::access::{Access, find, update_one, update_op};
use crate::life::catalog::Row;
use crate::life::{names, walk};
use crate::mql;
use crate::rule::Rule;
use amount::Amount;
use document::error::label;
use document::filter::Filter;
use document::op::{AdminOp, CollectionOptions, UpdateStatement};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::order;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use hashbrown::HashSet;
use std::cmp::Ordering;
use std::sync::Arc;

/// How much is sent in one statement.
const STATEMENT_ROWS: usize = 1_000;
const STATEMENT_BYTES: usize = 4 << 20;

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
    pub(crate) fn of(rule: &Arc<Rule>, row: &Row) -> Option<Keeping> {
        let since = row.replaced.since?;
        let seeded_to = row.seeded_to();
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
        let filter = Filter::among("_id", wanted);
        let rows = at.find(find(&names::catalog(&first.host.db), filter)).await?;
        let rows: Vec<Row> = rows.iter().filter_map(Row::read).collect();
        let mut list = Vec::new();
        for (rule, epoch) in rules {
            match rows.iter().find(|row| *row.rule == *rule.name).filter(|row| row.epoch >= *epoch) {
                Some(row) => list.extend(Keeping::of(rule, row)),
                None => return Err(conflict("the rules changed meanwhile")),
            }
        }
        Ok(list)
    }

    /// Whether the host's values are from before the rule.
    fn is_original(&self, id: &Value<'_>) -> bool {
        self.seeded_to.as_ref().is_none_or(|to| order::compare(id, to) != Ordering::Less)
    }

    /// What a host has at the paths of the rule.
    pub(crate) fn record(&self, host: &Doc<'_>) -> Array<'static> {
        self.places.record(host)
    }

    fn row(&self, host: &Value<'_>, was: Array<'static>) -> Doc<'static> {
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

/// The rows of some hosts, by their `_id`: from one on, up to but not including another.
pub(crate) fn rows_between(
    rule: &Rule,
    since: i64,
    from: Option<&Value<'_>>,
    to: Option<&Value<'_>>,
) -> document::op::Find {
    let (first, last) = (host_id(&rule.name, since, from), host_id(&rule.name, since, to.or(Some(&Value::MaxKey))));
    walk::range(&names::replaced(&rule.host.db), Some(&first), Some(&last))
}

/// The host that a row is about.
pub(crate) fn host_of(row: &Doc<'static>) -> Option<Value<'static>> {
    match row.get("_id") {
        Some(Value::Document(id)) => id.get("host"),
        _ => None,
    }
}

/// Keeps what the hosts of a part have, in the walk's transaction. What a client's write has kept before stays.
pub(crate) async fn keep_part(
    at: &mut Access<'_>,
    keeping: &Keeping,
    hosts: &[Doc<'static>],
    part: (Option<&Value<'_>>, Option<&Value<'_>>),
) -> Result<()> {
    let there = at.find(rows_between(&keeping.rule, keeping.since, part.0, part.1)).await?;
    let (mut amount, mut known, mut empty) = (Amount::default(), HashSet::new(), Vec::new());
    for row in &there {
        let Some(host) = host_of(row) else { continue };
        known.insert(crate::rule::key::bytes(&host));
        match row.get("was") {
            // It said that the host had nothing, as long as the walk had not come to it.
            Some(Value::Array(was)) if was.is_empty() => empty.extend(row.get("_id")),
            _ => amount.add(row),
        }
    }
    if !empty.is_empty() {
        let ids = Filter::among("_id", empty);
        at.delete(&names::replaced(&keeping.rule.host.db), ids).await?;
    }
    let mut rows = Vec::new();
    for host in hosts {
        let id = host.get("_id").unwrap_or(Value::Null);
        if !keeping.is_original(&id) || known.contains(&crate::rule::key::bytes(&id)) {
            continue;
        }
        let was = keeping.record(host);
        if !was.is_empty() {
            rows.push(keeping.row(&id, was));
        }
    }
    rows.iter().for_each(|row| amount.add(row));
    insert(at, &keeping.rule, rows).await?;
    amount::add(at, &keeping.rule, keeping.since, amount).await
}

/// Inserts rows, so many in one statement as a server takes. A row that is there already was written by somebody meanwhile.
pub(crate) async fn insert(at: &mut Access<'_>, rule: &Rule, rows: Vec<Doc<'static>>) -> Result<()> {
    let ns = names::replaced(&rule.host.db);
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let size = row.as_bytes().len();
        if !batch.is_empty() && (batch.len() >= STATEMENT_ROWS || bytes + size > STATEMENT_BYTES) {
            at.insert(&ns, std::mem::take(&mut batch)).await.map_err(written_meanwhile)?;
            bytes = 0;
        }
        bytes += size;
        batch.push(row);
    }
    match batch.is_empty() {
        true => Ok(()),
        false => at.insert(&ns, batch).await.map_err(written_meanwhile),
    }
}

fn written_meanwhile(error: Error) -> Error {
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

/// When a rule that is applied now begins to keep what it replaces: behind every earlier life of it.
pub(crate) async fn begin(at: &mut Access<'_>, rule: &Rule) -> Result<i64> {
    let lives = amount::lives(at, &rule.host.db, &rule.name).await?;
    let mut since = lives.first().map_or(i64::MIN, |of| of.since + 1).max(at.context.env.now);
    loop {
        let one = document::op::Find { limit: Some(1), ..rows_between(rule, since, None, None) };
        if at.find(one).await?.is_empty() && amount::of_life(at, rule, since).await?.is_none() {
            return Ok(since);
        }
        since += 1;
    }
}

/// Makes the collection, where making it in a transaction would be in the way of others.
pub(crate) async fn prepare(at: &mut Access<'_>, db: &str) -> Result<()> {
    let ns = names::replaced(db);
    if !at.backend.facts().creation_blocks || crate::life::relocate::stored::found(at, &ns).await?.is_some() {
        return Ok(());
    }
    let op = AdminOp::Create { ns, options: CollectionOptions::default() };
    match at.backend.admin(at.session, at.context, op).await {
        Err(error) if error.code() != Code::NamespaceExists => Err(error),
        _ => Ok(()),
    }
}
