//! The catalog: what rules a database has, as they were declared, and where each is in its life.
//!
//! A row is `{ _id: <rule>, kind, declaration, state, position, epoch }` and what its state needs besides. The catalog
//! remembers: a server that is started without a declaration enforces what it finds here.

use crate::declare::from_catalog;
use crate::execute::access::{Access, by_id, find, update_one, update_op};
use crate::execute::rights::namespaces;
use crate::life::Life;
use crate::life::relocate::record::Relocation;
use crate::life::replaced::Progress;
use crate::life::transaction::{OwnTransaction, retried};
pub(crate) use crate::mql::long;
use crate::rule::Rule;
use crate::rule::names;
use crate::rule::state::State;
use document::filter::Filter;
use document::op::{AdminOp, Namespace};
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// One rule as the catalog has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub rule: String,
    pub kind: String,
    /// The rule's own block, normalised; with it `database` and `collection`, so that it stands by itself.
    pub declaration: Doc<'static>,
    pub state: State,
    /// Counted up with every change of the catalog.
    pub epoch: i64,
    /// How many hosts are done, and how many there were when it began: for progress only.
    pub done: i64,
    pub total: i64,
    /// Retiring: whether the field itself goes too.
    pub with_data: bool,
    /// What the rule was before had state in the hosts, which this one has not: to be removed before it is on.
    pub tidy: bool,
    /// The process that brings it on or off; empty where there can be only one.
    pub by: String,
    /// Of a shape: where its documents are, and what is under way.
    pub shape: Option<Relocation>,
    /// What was there before the rule, and what became of it.
    pub replaced: Progress,
    /// Of versions: how they were declared before, while documents are brought back that are stored in versions of that.
    pub taken_back: Option<Doc<'static>>,
}

impl Row {
    pub(crate) fn read(row: &Doc<'_>) -> Option<Row> {
        let text = |name: &str| Some(row.get(name)?.as_str()?.to_owned());
        let Some(Value::Document(declaration)) = row.get("declaration") else { return None };
        Some(Row {
            rule: text("_id")?,
            kind: text("kind")?,
            declaration: declaration.into_owned(),
            state: State::of(row)?,
            epoch: long(row.get("epoch")),
            done: long(row.get("done")),
            total: long(row.get("total")),
            with_data: row.get("with_data").is_some_and(|value| value.is_truthy()),
            tidy: row.get("tidy").is_some_and(|value| value.is_truthy()),
            by: text("by").unwrap_or_default(),
            shape: Relocation::read(row),
            replaced: Progress::read(row),
            taken_back: match row.get("taken_back") {
                Some(Value::Document(before)) => Some(before.into_owned()),
                _ => None,
            },
        })
    }

    pub(crate) fn write(&self) -> Doc<'static> {
        let mut row = DocWriter::new();
        row.append("_id", &Value::from(&*self.rule)).append("kind", &Value::from(&*self.kind));
        row.append("declaration", &Value::Document(self.declaration.borrow()));
        self.state.write(&mut row);
        row.append("epoch", &Value::Int64(self.epoch));
        row.append("done", &Value::Int64(self.done)).append("total", &Value::Int64(self.total));
        for (name, is) in [("with_data", self.with_data), ("tidy", self.tidy)] {
            if is {
                row.append(name, &Value::Bool(true));
            }
        }
        if !self.by.is_empty() {
            row.append("by", &Value::from(&*self.by));
        }
        if let Some(shape) = &self.shape {
            row.append("shape", &Value::Document(shape.write()));
        }
        self.replaced.write(&mut row);
        if let Some(before) = &self.taken_back {
            row.append("taken_back", &Value::Document(before.borrow()));
        }
        row.finish()
    }

    /// The rule that the row declares. Fails unless it is the one that the row is named after and all its collections are in the
    /// database whose catalog has the row: whoever may write to one catalog decides nothing about another database.
    pub(crate) fn rule_in(&self, db: &str) -> Result<Rule> {
        let rule = from_catalog(&self.declaration).map_err(|error| error.context(&format!("rule {}: ", self.rule)))?;
        if *rule.name != *self.rule || namespaces(&rule).iter().any(|ns| *ns.db != *db) {
            let message = format!("the row {} declares the rule {} of {}", self.rule, rule.name, rule.host.db);
            return Err(Error::bad_value(message));
        }
        Ok(rule)
    }

    /// What is taken over where the rule begins anew.
    pub(crate) fn carried(&self) -> Progress {
        self.replaced.carried(&self.state)
    }

    /// Hosts before it have values of the rule's own; `None` if no host has been seeded.
    pub(crate) fn seeded_to(&self) -> Option<Value<'static>> {
        self.replaced.seeded_to(&self.state)
    }
}

/// The rules of one database, by name.
pub(crate) async fn load(at: &mut Access<'_>, db: &str) -> Result<Vec<Row>> {
    let ns = names::catalog(db);
    let rows = at.find(document::op::Find { sort: Some(by_id()), ..find(&ns, Filter::all()) }).await?;
    // Other rows have a document as their id; a row from a newer version is left alone, and said.
    let mut known = Vec::new();
    for row in &rows {
        match (Row::read(row), row.get("_id")) {
            (Some(row), _) => known.push(row),
            (None, Some(Value::String(name))) => {
                tracing::warn!(rule = name.as_str(), catalog = %ns, "a rule in the catalog is not understood; it is not kept");
            }
            (None, _) => {}
        }
    }
    Ok(known)
}

pub(crate) async fn save(at: &mut Access<'_>, db: &str, row: &Row) -> Result<()> {
    at.put(&names::catalog(db), &row.write()).await
}

fn as_of(rule: &str, epoch: i64) -> Filter {
    Filter::equality("_id", &Value::from(rule)).and(Filter::equality("epoch", &Value::Int64(epoch)))
}

/// Changes a row unless somebody else has done so since that epoch; says whether it was so.
pub(crate) async fn replace(at: &mut Access<'_>, db: &str, row: &Row, epoch: i64) -> Result<bool> {
    let update = Update::parse(&Value::Document(row.write()), &[], &mut Names::new())?;
    let statement = update_one(as_of(&row.rule, epoch), update);
    Ok(at.write(&update_op(&names::catalog(db), vec![statement])).await?.n > 0)
}

/// Writes a row that takes something over from the row as it is in the catalog: whoever seeds the rule saves its position there
/// meanwhile, before this process knows of it. Gives it as it was written; `None` if the row is of another epoch than the one given.
pub(crate) async fn write_over(
    life: &Life,
    db: &str,
    row: &Row,
    epoch: Option<i64>,
    take_over: impl Fn(&Row, &mut Row),
) -> Result<Option<Row>> {
    let take_over = &take_over;
    let attempt = || async move {
        let context = life.context();
        let mut began = OwnTransaction::begin(life, &context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
        let now = at.one(&names::catalog(db), &Value::from(&*row.rule)).await?.as_ref().and_then(Row::read);
        if epoch.is_some() && now.as_ref().map(|now| now.epoch) != epoch {
            return Ok(None);
        }
        let mut new = row.clone();
        if let Some(now) = &now {
            take_over(now, &mut new);
        }
        save(&mut at, db, &new).await?;
        began.commit().await?;
        Ok(Some(new))
    };
    retried(life, attempt).await
}

/// When a rule was last changed; `None` if it is not there.
pub(crate) async fn epoch(at: &mut Access<'_>, db: &str, rule: &str) -> Result<Option<i64>> {
    let row = at.one(&names::catalog(db), &Value::from(rule)).await?;
    Ok(row.map(|row| long(row.get("epoch"))))
}

/// The row of a rule; `None` if it is not there.
pub(crate) async fn one(at: &mut Access<'_>, db: &str, rule: &str) -> Result<Option<Row>> {
    Ok(load(at, db).await?.into_iter().find(|row| row.rule == rule))
}

/// Forgets a rule unless somebody has changed it since.
pub(crate) async fn remove(at: &mut Access<'_>, db: &str, row: &Row) -> Result<()> {
    at.delete(&names::catalog(db), as_of(&row.rule, row.epoch)).await.map(drop)
}

/// The databases that have a catalog.
pub(crate) async fn databases(at: &mut Access<'_>) -> Result<Vec<String>> {
    let list = AdminOp::ListDatabases { filter: Filter::all(), name_only: true };
    let mut found = Vec::new();
    for entry in at.backend.admin(at.session, at.context, list).await? {
        let Some(Value::String(db)) = entry.get("name") else { continue };
        let db = db.as_str();
        match has_catalog(at, db).await {
            Ok(true) => found.push(db.to_owned()),
            Ok(false) => {}
            // A database of the server's own has no rules.
            Err(error) if error.code() == Code::Unauthorized && matches!(db, "admin" | "config" | "local") => {}
            Err(error) if error.code() == Code::Unauthorized => tracing::warn!(
                database = db,
                "the connection string's user may not list its collections: rules in it, if any, are not kept by this process"
            ),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

async fn has_catalog(at: &mut Access<'_>, db: &str) -> Result<bool> {
    let Namespace { collection, .. } = names::catalog(db);
    let filter = Filter::equality("name", &Value::from(&*collection));
    let list = AdminOp::ListCollections { db: db.to_owned(), filter, name_only: true };
    Ok(!at.backend.admin(at.session, at.context, list).await?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::replaced::{Lifted, Seeded};
    use bson::doc;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let row = Row {
            rule: "products.reviewCount".to_owned(),
            kind: "computed".to_owned(),
            declaration: Doc::from(doc! { "count": "reviews", "by": "productId" }),
            state: State::Seeding { position: Some(Value::Int32(7)) },
            epoch: 3,
            done: 5,
            total: 9,
            with_data: false,
            tidy: true,
            by: "p".to_owned(),
            shape: Some(Relocation::default()),
            replaced: Progress {
                since: Some(5),
                seeded_to: Some(Value::Int32(3)),
                seeded: Seeded { corrected: 1, filled: 2, removed: 3, left: 4, moved: 0, unkeyed: 5, lifted: 6 },
                lifted: Some(Lifted { array: "reviews".to_owned(), ..Lifted::default() }),
                restore: true,
                restored_to: Some(Value::MaxKey),
            },
            taken_back: Some(Doc::from(doc! { "steps": [] })),
        };
        assert_eq!(Row::read(&row.write()), Some(row));
        assert_eq!(Row::read(&Doc::from(doc! { "_id": { "process": "x" }, "epoch": 1 })), None);
    }
}
