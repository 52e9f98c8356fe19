//! Documents that an earlier life of a bucket rule has thrown away, given back to a collection that is stored as it is: after a plain
//! `drop`, or behind the buckets of the rule's last life.
//!
//! The rows lead: a part of them is one transaction that puts the originals in the place of what the buckets have left. It begins
//! anew after a stop; what was given back has no row any more.

use crate::execute::gate::Point;
use crate::life::access::{Access, by_id, find};
use crate::life::replaced::documents::Originals;
use crate::life::replaced::restore::among;
use crate::life::replaced::{amount, host_id, host_of};
use crate::life::transaction::{OwnTransaction, is_transient};
use crate::life::{Entry, Life, catalog, names};
use crate::rule::{Rule, key};
use crate::shapes::bucket::Bucket;
use document::backend::{Backend, Session};
use document::filter::{Filter, Node, Test};
use document::op::{Capture, Context, Delete, DeleteStatement, Durability, Find, Insert, Namespace, WriteOp};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashSet;

/// How many rows are looked at in one transaction.
const PART: u64 = 200;

/// Gives back what is kept of the rule's lives, the newest first. Returns `false` if somebody has changed the rule meanwhile.
pub(crate) async fn restore(life: &Life, entry: &Entry) -> Result<bool> {
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    // The mover has given back what the life has kept that it ends.
    let moved = entry.row.replaced.since.filter(|_| !entry.sides.is_empty());
    for of in amount::lives(&mut at, &entry.db, &entry.rule.name).await? {
        let then = of.rule();
        let rule = then.as_ref().unwrap_or(&entry.rule);
        let Some(bucket) = rule.bucket().filter(|_| Some(of.since) != moved) else { continue };
        if !(Returning { life, entry, rule, bucket, since: of.since }.all().await?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One life of a bucket rule.
struct Returning<'a> {
    life: &'a Life,
    entry: &'a Entry,
    rule: &'a Rule,
    bucket: &'a Bucket,
    since: i64,
}

/// What came of a part.
enum Part {
    /// The `_id` of its last row.
    Done(Value<'static>),
    End,
    /// Somebody has changed the rule meanwhile.
    Superseded,
}

impl Returning<'_> {
    async fn all(&self) -> Result<bool> {
        let most = self.life.at_most(PART);
        let (mut position, mut size) = (host_id(&self.rule.name, self.since, None), most);
        loop {
            self.life.check_stopped()?;
            let context = Context { durability: Durability::Relaxed, ..self.life.context() };
            match self.part(&context, &position, size, true).await {
                Ok(Part::Done(last)) => (position, size) = (last, (size * 2).min(most)),
                Ok(Part::End) => return Ok(true),
                Ok(Part::Superseded) => return Ok(false),
                Err(error) if is_transient(&error) => {
                    size = (size / 4).max(1);
                    tokio::task::yield_now().await;
                }
                // Another document has the `_id` of one of them by now. One by one, to learn which.
                Err(error) if error.code() == Code::DuplicateKey && size > 1 => size = 1,
                Err(error) if error.code() == Code::DuplicateKey => {
                    match self.part(&context, &position, size, false).await? {
                        Part::Done(last) => position = last,
                        Part::End => return Ok(true),
                        Part::Superseded => return Ok(false),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn part(&self, context: &Context, position: &Value<'static>, size: u64, give_back: bool) -> Result<Part> {
        let (life, rule) = (self.life, self.rule);
        // Held until the commit: who declares the rule anew in another process waits for this one.
        let _held = life.patterned.rules();
        let mut began = OwnTransaction::begin(life, context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &self.entry.db, &rule.name).await? != Some(self.entry.row.epoch) {
            return Ok(Part::Superseded);
        }
        life.pass(Point::Life("take")).await?;
        let end = host_id(&rule.name, self.since, Some(&Value::MaxKey));
        let range = vec![Node::field("_id", Test::Gt(position.clone())), Node::field("_id", Test::Lt(end))];
        let rows = find(&names::replaced(&self.entry.db), Filter::from_node(Node::And(range)));
        let rows = at.find(Find { sort: Some(by_id()), limit: Some(size), ..rows }).await?;
        let Some(last) = rows.last().and_then(|row| row.get("_id")) else { return Ok(Part::End) };
        if !give_back {
            return Ok(Part::Done(last));
        }
        let (mut ids, mut seen) = (Vec::new(), HashSet::new());
        ids.extend(rows.iter().filter_map(host_of).filter(|id| seen.insert(key::bytes(id))));
        let ns = self.entry.sides.first().map_or(&rule.host, |side| &side.stored);
        let documents = at.find(find(ns, among(ids))).await?;
        let originals = Originals { rule, since: self.since };
        let right = originals.give_back(&mut at, self.bucket, documents.clone()).await?;
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
        Ok(Part::Done(last))
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
        let is_plain = self.entry.sides.is_empty();
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
