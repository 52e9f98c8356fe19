//! Documents that an earlier life of a shape's rule has thrown away, given back to a collection that is stored as it is: after a plain
//! `drop`, or behind what the rule's last life has stored.
//!
//! The rows lead: a part of them is one transaction that puts the originals in the place of what the form has left. It begins
//! anew after a stop; what was given back has no row any more.

use crate::execute::access::{Access, find};
use crate::execute::gate::Point;
use crate::life::replaced::documents::Originals;
use crate::life::replaced::restore::among;
use crate::life::replaced::{amount, host_id, host_of};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, Recovery, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::names;
use crate::rule::shape::Shape;
use crate::rule::{Rule, key};
use document::backend::{Answer, Backend, Session};
use document::op::{Capture, Context, Delete, DeleteStatement, Durability, Insert, Namespace, WriteOp};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashSet;

/// How many rows are looked at in one transaction.
const PART: u64 = 200;

/// Gives back what is kept of the rule's lives, the newest first. Returns `false` if somebody has changed the rule meanwhile.
pub(crate) async fn restore(life: &Life, entry: &CatalogRule) -> Result<bool> {
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    // The mover has given back what the life has kept that it ends.
    let moved = entry.row.replaced.since.filter(|_| !entry.places.is_empty());
    for of in amount::lives(&mut at, &entry.db, &entry.rule.name).await? {
        let then = of.rule();
        let rule = then.as_ref().unwrap_or(&entry.rule);
        let Some(shape) = rule.shape().filter(|_| Some(of.since) != moved) else { continue };
        let first = host_id(&rule.name, of.since, None);
        let mut returning = ReturningDocuments { life, entry, rule, shape: &**shape, since: of.since };
        if walk(life, Pace::even(PART), Some(first), &mut returning).await? == WalkEnd::Superseded {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One life of a shape's rule.
struct ReturningDocuments<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    rule: &'a Rule,
    shape: &'a dyn Shape,
    since: i64,
}

impl PartWork for ReturningDocuments<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }

    /// Another document has the `_id` of one of them by now: that one is left.
    fn failed<'a>(&'a mut self, error: Error, part: PartOfWalk<'a>) -> Answer<'a, Recovery> {
        Box::pin(async move {
            match (error.code(), part.size) {
                (Code::DuplicateKey, 1) => {
                    let (mut session, context) = (Session::default(), self.life.context());
                    let mut at = Access { backend: &*self.life.backend, session: &mut session, context: &context };
                    Ok(Recovery::Skip(self.rows(&mut at, part).await?.1))
                }
                (Code::DuplicateKey, _) => Ok(Recovery::OneByOne),
                _ => Err(error),
            }
        })
    }
}

impl ReturningDocuments<'_> {
    /// The rows of a part, and where the next part begins.
    async fn rows(
        &self,
        at: &mut Access<'_>,
        part: PartOfWalk<'_>,
    ) -> Result<(Vec<Doc<'static>>, Option<Value<'static>>)> {
        let end = host_id(&self.rule.name, self.since, Some(&Value::MaxKey));
        walk::read(at, &names::replaced(&self.entry.db), part, Some(&end)).await
    }

    async fn one_part(&self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, rule) = (self.life, self.rule);
        let context = &Context { durability: Durability::Relaxed, ..life.context() };
        // Held until the commit: another process that applies the rule anew waits for this one.
        let _held = life.patterned.rules();
        let mut began = OwnTransaction::begin(life, context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &self.entry.db, &rule.name).await? != Some(self.entry.row.epoch) {
            return Ok(None);
        }
        life.pass(Point::Life("take")).await?;
        let (rows, next) = self.rows(&mut at, part).await?;
        let (mut ids, mut seen) = (Vec::new(), HashSet::new());
        ids.extend(rows.iter().filter_map(host_of).filter(|id| seen.insert(key::bytes(id))));
        let ns = self.entry.places.first().map_or(&rule.host, |place| &place.stored);
        let documents = at.find(find(ns, among(ids))).await?;
        let originals = Originals { rule, since: self.since };
        let right = originals.give_back(&mut at, self.shape, documents.clone()).await?;
        let differ = |from: &[Doc<'static>], other: &[Doc<'static>]| -> Vec<Doc<'static>> {
            let same: HashSet<&[u8]> = other.iter().map(Doc::as_bytes).collect();
            from.iter().filter(|document| !same.contains(document.as_bytes())).cloned().collect()
        };
        let (old, new) = (differ(&documents, &right), differ(&right, &documents));
        life.pass(Point::Life("give back")).await?;
        if !old.is_empty() {
            self.exchange(&mut began, ns, old, new).await?;
        }
        life.pass(Point::Life("save")).await?;
        began.commit().await?;
        Ok(Some(PartDone { next, ..PartDone::default() }))
    }

    /// Documents under the logical name may be what others come from: they are changed as by a client.
    async fn exchange(
        &self,
        began: &mut OwnTransaction<'_>,
        ns: &Namespace,
        old: Vec<Doc<'static>>,
        new: Vec<Doc<'static>>,
    ) -> Result<()> {
        let filter = among(old.iter().filter_map(|document| document.get("_id")).collect());
        let statements = vec![DeleteStatement::all(filter)];
        let delete = Delete::of(ns.clone(), statements);
        let insert = Insert { bypass_validation: true, ..Insert::of(ns.clone(), new) };
        let is_plain = self.entry.places.is_empty();
        for op in [WriteOp::Delete(delete), WriteOp::Insert(insert)] {
            let (session, context) = (&mut began.session, began.context);
            let mut written = match is_plain {
                true => self.life.patterned.write(session, context, &op, &Capture::Nothing).await?,
                false => self.life.backend.write(session, context, &op, &Capture::Nothing).await?,
            };
            if let Some(failed) = written.errors.pop() {
                return Err(failed.error);
            }
        }
        Ok::<(), Error>(())
    }
}
