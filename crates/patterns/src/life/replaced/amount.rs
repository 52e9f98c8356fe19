//! How much is kept of each rule: a row of the catalog per life of a rule, `{ _id: { replaced: <rule>, since }, collection,
//! documents, bytes, declaration, seeded_to }`. It outlives the rule, so that `status` and `forget` know what is left, and it goes with
//! a dump of the catalog: whoever finds fewer rows than it says knows that they were lost. When the rule goes, its declaration and
//! what it has left in the hosts are added (see [`leave`]): `drop RULE --restore` gives back what is kept of a rule that is gone, too.

use crate::execute::access::{Access, find, update_one, update_op};
use crate::life::catalog::long;
use crate::life::replaced::Lifted;
use crate::mql;
use crate::rule::Rule;
use crate::rule::names;
use document::filter::Filter;
use document::op::UpdateStatement;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, DocWriter, Result, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
}

/// What is kept of one life of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Of {
    pub(crate) rule: String,
    pub(crate) since: i64,
    pub(crate) collection: String,
    pub(crate) amount: Amount,
    /// Of a life that has ended: what the rule was …
    declaration: Option<Doc<'static>>,
    /// … and before which `_id` hosts still have values of the rule's own.
    pub(crate) seeded_to: Option<Value<'static>>,
    /// … and which arrays are lifted.
    pub(crate) lifted: Option<Lifted>,
}

impl Of {
    /// The rule as it was at the end of this life; `None` if that was not written down.
    pub(crate) fn rule(&self) -> Option<Rule> {
        crate::declare::from_catalog(self.declaration.as_ref()?).ok()
    }
}

impl Amount {
    pub(crate) fn add(&mut self, row: &Doc<'_>) {
        self.documents += 1;
        self.bytes += i64::try_from(row.as_bytes().len()).unwrap_or(i64::MAX);
    }

    pub(crate) fn minus(self, row: &Doc<'_>) -> Amount {
        let mut gone = Amount::default();
        gone.add(row);
        self.plus(Amount { documents: -gone.documents, bytes: -gone.bytes })
    }

    pub(crate) fn plus(self, other: Amount) -> Amount {
        Amount { documents: self.documents + other.documents, bytes: self.bytes + other.bytes }
    }

    pub(crate) fn is_nothing(self) -> bool {
        self.documents == 0
    }

    /// `{ documents, bytes }`.
    pub(crate) fn show(self) -> Value<'static> {
        mql::object([("documents", Value::Int64(self.documents)), ("bytes", Value::Int64(self.bytes))])
    }
}

fn id(rule: &str, since: i64) -> Value<'static> {
    mql::object([("replaced", Value::from(rule)), ("since", Value::DateTime(since))])
}

/// Adds to what is kept of the life of a rule, or takes away; in the transaction that does so.
pub(crate) async fn add(at: &mut Access<'_>, rule: &Rule, since: i64, more: Amount) -> Result<()> {
    if more == Amount::default() {
        return Ok(());
    }
    let mut change = DocWriter::new();
    change.append("$inc", &more.show());
    let collection = ("collection", Value::from(&*rule.host.collection));
    change.append("$setOnInsert", &mql::object([collection]));
    let update = Update::parse(&Value::Document(change.finish()), &[], &mut Names::new())?;
    let filter = Filter::equality("_id", &id(&rule.name, since));
    let statement = UpdateStatement { upsert: true, ..update_one(filter, update) };
    at.write(&update_op(&names::catalog(&rule.host.db), vec![statement])).await.map(drop)
}

/// What is kept of one life of a rule; `None` if nothing ever was.
pub(crate) async fn of_life(at: &mut Access<'_>, rule: &Rule, since: i64) -> Result<Option<Amount>> {
    let row = at.one(&names::catalog(&rule.host.db), &id(&rule.name, since)).await?;
    Ok(row.as_ref().and_then(read).map(|of| of.amount))
}

/// Everything that is kept in a database, of rules that are gone too.
pub(crate) async fn all(at: &mut Access<'_>, db: &str) -> Result<Vec<Of>> {
    let any = mql::document([("_id.replaced", mql::object([("$exists", Value::Bool(true))]))]);
    let rows = at.find(find(&names::catalog(db), Filter::parse(&any, &mut Names::new())?)).await?;
    Ok(rows.iter().filter_map(read).collect())
}

/// All lives of one rule.
pub(crate) async fn of_rule(at: &mut Access<'_>, db: &str, rule: &str) -> Result<Amount> {
    let all = all(at, db).await?;
    Ok(all.iter().filter(|of| of.rule == rule).fold(Amount::default(), |sum, of| sum.plus(of.amount)))
}

/// The lives of one rule of which something is kept, the newest first.
pub(crate) async fn lives(at: &mut Access<'_>, db: &str, rule: &str) -> Result<Vec<Of>> {
    let mut lives: Vec<Of> = all(at, db).await?.into_iter().filter(|of| of.rule == rule).collect();
    lives.sort_by_key(|of| std::cmp::Reverse(of.since));
    Ok(lives)
}

/// Writes down what the rule was at the end of a life, which hosts still have values of its own and which arrays are lifted. Does nothing
/// if nothing is kept.
pub(crate) async fn leave(
    at: &mut Access<'_>,
    rule: &Rule,
    since: i64,
    seeded_to: Option<&Value<'static>>,
    lifted: Option<&Lifted>,
) -> Result<()> {
    let declaration = ("declaration", Value::Document(rule.declaration.borrow()));
    let lifted = lifted.map(|lifted| Value::Document(lifted.show()));
    let known = [("seeded_to", seeded_to.map(Value::borrow)), ("lifted", lifted)];
    let (set, unset): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, value)| value.is_some());
    let set = set.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut change = DocWriter::new();
    change.append("$set", &mql::object([declaration].into_iter().chain(set)));
    if !unset.is_empty() {
        change.append("$unset", &mql::object(unset.iter().map(|(name, _)| (*name, Value::from("")))));
    }
    let update = Update::parse(&Value::Document(change.finish()), &[], &mut Names::new())?;
    let statement = update_one(Filter::equality("_id", &id(&rule.name, since)), update);
    at.write(&update_op(&names::catalog(&rule.host.db), vec![statement])).await.map(drop)
}

/// Removes the row of a life of which nothing is kept any more.
pub(crate) async fn remove(at: &mut Access<'_>, db: &str, rule: &str, since: i64) -> Result<()> {
    at.delete(&names::catalog(db), Filter::equality("_id", &id(rule, since))).await.map(drop)
}

fn read(row: &Doc<'static>) -> Option<Of> {
    let Some(Value::Document(id)) = row.get("_id") else { return None };
    let since = match id.get("since") {
        Some(Value::DateTime(since)) => since,
        _ => return None,
    };
    let collection = row.get("collection").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let amount = Amount { documents: long(row.get("documents")), bytes: long(row.get("bytes")) };
    let declaration = match row.get("declaration") {
        Some(Value::Document(declaration)) => Some(declaration),
        _ => None,
    };
    let rule = id.get("replaced")?.as_str()?.to_owned();
    let lifted = match row.get("lifted") {
        Some(Value::Document(lifted)) => Some(Lifted::read(&lifted)),
        _ => None,
    };
    Some(Of { rule, since, collection, amount, declaration, seeded_to: row.get("seeded_to"), lifted })
}
