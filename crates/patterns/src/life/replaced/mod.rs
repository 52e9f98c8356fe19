//! `pleach.replaced`: what hosts had before a rule changed them, and documents that a conversion threw away. It is written in
//! the transaction that changes them, given back by `drop RULE --restore`, and freed by `forget RULE`.
//!
//! A row is `{ _id: { rule, since, host }, was: [ … ] }` (see [`crate::execute::replaced::values`]) or, of a conversion, `{ _id: { rule, since, host, was },
//! document }` (see [`documents`]), or of a lift the order of items (see [`crate::life::lift::order_rows`]). `since` is when the rule was applied: each life of it keeps what was there before that
//! life, and all are given back, the oldest last. Only what was there before the rule is kept: the first row of a host stays, and hosts
//! that the rule has seeded once are not looked at again. How much there is stands in the catalog (see [`amount`]), and what becomes
//! of it when a rule is gone in [`gone`].

pub(crate) mod amount;
pub(crate) mod documents;
pub(crate) mod ended_rules;
pub(crate) mod forget;
mod handover;
pub(crate) mod plain;
pub(crate) mod restore;

pub use crate::execute::replaced::lifted::Lifted;
pub use crate::execute::replaced::progress::{Progress, Seeded};
pub(crate) use crate::execute::replaced::values::{OnTheWay, Places, without};
pub(crate) use crate::execute::replaced::{Keeping, Replaced, host_id, keep_some, written_meanwhile};

use crate::execute::access::Access;
use crate::life::lift::order_rows::is_order_row;
use crate::life::walk;
use crate::rule::Rule;
use crate::rule::names;
use amount::Amount;
use document::filter::Filter;
use document::op::{AdminOp, CollectionOptions};
use document::{Code, Doc, Result, Value};
use hashbrown::HashSet;

/// How much is sent in one statement.
const STATEMENT_ROWS: usize = 1_000;
const STATEMENT_BYTES: usize = 4 << 20;

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
    let mut there = at.find(rows_between(&keeping.rule, keeping.since, part.0, part.1)).await?;
    there.retain(|row| !is_order_row(row));
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
    if !at.backend.facts().creation_blocks || crate::life::relocate::stored::look_up(at, &ns).await?.is_some() {
        return Ok(());
    }
    let op = AdminOp::Create { ns, options: CollectionOptions::default() };
    match at.backend.admin(at.session, at.context, op).await {
        Err(error) if error.code() != Code::NamespaceExists => Err(error),
        _ => Ok(()),
    }
}
