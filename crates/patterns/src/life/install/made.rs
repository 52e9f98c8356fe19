//! The indexes that Pleach has made, as rows of the catalog: `{ _id: { made: <collection>, index }, key }`. They are removed with the
//! last rule that needs them; an index that was there before stays.

use crate::execute::access::{Access, find};
use crate::execute::rights::Rights;
use crate::life::install::indexes::{PlannedIndex, is_of_use, serves};
use crate::life::{CatalogRule, Life, catalog, expiry};
use crate::mql;
use crate::rule::IndexNeed;
use crate::rule::State;
use crate::rule::names;
use document::backend::Session;
use document::filter::{Filter, Node, Test};
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Doc, DocWriter, Result, Value};

/// An index that was made for a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MadeIndex {
    pub(crate) ns: Namespace,
    pub(crate) index: String,
    key: Doc<'static>,
}

impl MadeIndex {
    pub(super) fn of(planned: &PlannedIndex) -> MadeIndex {
        MadeIndex { ns: planned.ns().clone(), index: planned.name.clone(), key: planned.need.listed_key() }
    }

    fn id(&self) -> Value<'static> {
        mql::object([("made", Value::from(&*self.ns.collection)), ("index", Value::from(&*self.index))])
    }

    /// From a row of the catalog; `None` if it is about something else.
    pub(crate) fn read(db: &str, row: &Doc<'_>) -> Option<MadeIndex> {
        let (Some(Value::Document(id)), Some(Value::Document(key))) = (row.get("_id"), row.get("key")) else {
            return None;
        };
        let text = |name: &str| Some(id.get(name)?.as_str()?.to_owned());
        Some(MadeIndex { ns: Namespace::new(db, &text("made")?), index: text("index")?, key: key.into_owned() })
    }

    pub(crate) async fn save(&self, at: &mut Access<'_>) -> Result<()> {
        let mut row = DocWriter::new();
        row.append("_id", &self.id()).append("key", &Value::Document(self.key.borrow()));
        at.put(&names::catalog(&self.ns.db), &row.finish()).await
    }

    pub(crate) async fn forget(&self, at: &mut Access<'_>) -> Result<()> {
        at.delete(&names::catalog(&self.ns.db), Filter::equality("_id", &self.id())).await.map(drop)
    }

    fn is(&self, index: &Doc<'_>) -> bool {
        index.get("name").is_some_and(|name| name.as_str() == Some(&*self.index))
            && matches!(index.get("key"), Some(Value::Document(key)) if key == self.key)
    }
}

/// All that were made in a database.
pub(crate) async fn all(at: &mut Access<'_>, db: &str) -> Result<Vec<MadeIndex>> {
    let rows = at.find(find(&names::catalog(db), Filter::from_node(Node::field("_id.made", Test::Exists)))).await?;
    Ok(rows.iter().filter_map(|row| MadeIndex::read(db, row)).collect())
}

/// Forgets those of a collection that clients have dropped: one that is made anew is theirs.
pub(crate) async fn forget_gone(at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
    let made: Vec<MadeIndex> = all(at, &ns.db).await?.into_iter().filter(|made| made.ns == *ns).collect();
    if made.is_empty() {
        return Ok(());
    }
    let there = expiry::indexes(at, ns).await?;
    for made in made.iter().filter(|made| !there.iter().any(|index| made.is(index))) {
        made.forget(at).await?;
    }
    Ok(())
}

impl Life {
    /// Removes what rules that are going leave. While another process changes rules it may be about to use them: then they are
    /// removed when that is done, see [`Life::tidy_again`].
    pub(crate) async fn tidy_indexes(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        let is_done = all(at, db).await?.is_empty() || self.try_to_tidy(at, db).await?;
        match is_done {
            true => self.untidy.lock().remove(db),
            false => self.untidy.lock().insert(db.to_owned()),
        };
        Ok(())
    }

    /// Removes what had to stay while another process changed rules. Returns whether it is gone; whoever gets `false` asks again.
    pub(crate) async fn tidy_again(&self, db: &str) -> Result<bool> {
        if !self.untidy.lock().contains(db) {
            return Ok(true);
        }
        let _changing = self.changing.lock().await;
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        self.tidy_indexes(&mut at, db).await?;
        Ok(!self.untidy.lock().contains(db))
    }

    async fn try_to_tidy(&self, at: &mut Access<'_>, db: &str) -> Result<bool> {
        if !self.try_begin_change(at, db).await? {
            return Ok(false);
        }
        let dropped = self.drop_unneeded_indexes(at, db).await;
        self.end_change(at, db).await?;
        dropped.map(|_| true)
    }

    /// Removes the indexes of a database that no rule needs any more and that Pleach has made; returns them. Whoever calls it
    /// changes rules of the database, and nobody else does.
    pub(crate) async fn drop_unneeded_indexes(&self, at: &mut Access<'_>, db: &str) -> Result<Vec<MadeIndex>> {
        // As the catalog has them: another process may have added one a moment ago.
        let rows = catalog::load(at, db).await?;
        // A row that is no rule of the database needs nothing.
        let rules: Vec<_> =
            rows.iter().filter(|row| row.state != State::Retiring).filter_map(|row| row.rule_in(db).ok()).collect();
        let wanted: Vec<IndexNeed> = rules.iter().flat_map(|rule| rule.needed_indexes(rules.iter())).collect();
        let mut dropped = Vec::new();
        for made in all(at, db).await? {
            let there = expiry::indexes(at, &made.ns).await?;
            let Some(index) = there.iter().find(|index| made.is(index)) else {
                made.forget(at).await?;
                continue;
            };
            if wanted.iter().any(|wanted| wanted.ns == made.ns && is_of_use(wanted, index)) {
                continue;
            }
            let op = AdminOp::DropIndexes { ns: made.ns.clone(), which: Value::string(made.index.clone()) };
            match at.backend.admin(at.session, at.context, op).await {
                Err(error) if !matches!(error.code(), Code::IndexNotFound | Code::NamespaceNotFound) => {
                    return Err(error);
                }
                _ => {}
            }
            made.forget(at).await?;
            tracing::info!(index = &*made.index, collection = %made.ns, "removed: no rule needs it any more");
            dropped.push(made);
        }
        Ok(dropped)
    }
}

impl Life {
    /// The indexes by which a rule is kept and that Pleach has not made: they stay when it is dropped.
    pub(crate) async fn indexes_left(
        &self,
        rights: &Rights,
        context: &Context,
        db: Option<&str>,
        rule: &str,
    ) -> Result<Vec<String>> {
        let is_meant = |entry: &CatalogRule| *entry.rule.name == *rule && db.is_none_or(|db| *entry.db == *db);
        let Some(entry) = self.entries().into_iter().find(|entry| is_meant(entry) && rights.may_see(&entry.rule))
        else {
            return Ok(Vec::new());
        };
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let made = all(&mut at, &entry.db).await?;
        let mut left = Vec::new();
        let needs = entry.rule.needs();
        // A collection of the rule's own goes, or stays, with its indexes.
        let is_of_user = |need: &IndexNeed| !needs.collections.iter().any(|(ns, _)| *ns == need.ns);
        for wanted in needs.indexes.iter().filter(|need| is_of_user(need)) {
            for index in expiry::indexes(&mut at, &wanted.ns).await?.iter().filter(|index| serves(wanted, index)) {
                let is_ours = made.iter().any(|made| made.ns == wanted.ns && made.is(index));
                if let (false, Some(Value::String(name))) = (is_ours, index.get("name")) {
                    left.push(format!("{}.{}", wanted.ns.collection, name.as_str()));
                }
            }
        }
        Ok(left)
    }
}
