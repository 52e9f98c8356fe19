//! What a rule's field is on some hosts, and what it should be: evaluated from scratch for many hosts at a time. Seeding,
//! audit and repair are this and a comparison.

use super::records::{At, aggregate, find};
use crate::link::fence::fence_key;
use crate::link::obstacle::{Arrays, Obstacle};
use crate::link::{Copies, CopyProgram, Evaluated, Fate, Program, Query, TallyProgram, key};
use crate::mql::{call, literal};
use crate::rule::{Expression, Rule, Upkeep, WhenDeleted};
use document::backend::{FenceKey, Mode};
use document::error::label;
use document::filter::{Filter, Node};
use document::pipeline::expr::Names;
use document::update::{Native, Update};
use document::value::Path;
use document::value::path::Part;
use document::{ArrayWriter, Code, Doc, DocWriter, Env, Error, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// So many hosts are evaluated at a time.
const HOSTS: usize = 500;

/// A rule, ready to be evaluated.
pub(crate) struct Evaluator {
    rule: Arc<Rule>,
    way: Way,
    /// Whether updates also write what the rule remembers in `_pleach`.
    with_state: bool,
}

enum Way {
    Copy(Arc<CopyProgram>),
    Tally(Arc<TallyProgram>),
    Expression(Box<Own>),
}

/// A field computed from the document itself.
struct Own {
    expression: Expression,
    update: Update,
}

/// A host whose field is not what it should be.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) id: Value<'static>,
    /// The link values of the host: what is in the outbox under one of them is no drift.
    pub(crate) keys: key::Values,
    pub(crate) stored: Value<'static>,
    pub(crate) expected: Value<'static>,
    /// What becomes of the value; `Right` if only what the rule remembers beside it differs.
    pub(crate) fate: Fate,
    /// What leaves no room for the value.
    pub(crate) obstacle: Option<Obstacle>,
    /// Makes it right.
    pub(crate) update: Update,
}

impl Evaluator {
    pub(crate) fn new(rule: &Arc<Rule>) -> Result<Evaluator> {
        let way = match (&rule.upkeep, Program::new(rule)?) {
            (_, Some(Program::Copy(program))) => Way::Copy(program),
            (_, Some(Program::Tally(program))) => Way::Tally(program),
            (Upkeep::Expression(expression), None) => {
                let update = Update::parse(&set_stage(&rule.field, &expression.source), &[], &mut Names::new())?;
                Way::Expression(Box::new(Own { expression: expression.clone(), update }))
            }
            (Upkeep::Link(_) | Upkeep::Bucket(_), None) => {
                let message = format!("the rule {} keeps no field", rule.name);
                return Err(Error::new(Code::InternalError, message));
            }
        };
        Ok(Evaluator { rule: rule.clone(), way, with_state: true })
    }

    /// For a rule that is not applied: nobody would keep the state right.
    pub(crate) fn without_state(rule: &Arc<Rule>) -> Result<Evaluator> {
        Ok(Evaluator { with_state: false, ..Evaluator::new(rule)? })
    }

    pub(crate) fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    /// The hosts of a link value.
    pub(crate) fn hosts(&self, key: &Value<'_>) -> Filter {
        match &self.way {
            Way::Copy(program) => program.hosts(key),
            Way::Tally(program) => program.hosts(key),
            Way::Expression(_) => Filter::from_node(Node::Or(Vec::new())),
        }
    }

    /// Whether the source that hosts refer to by `key` is there.
    pub(crate) async fn has_source(&self, at: &mut At<'_>, key: &Value<'static>) -> Result<bool> {
        match &self.way {
            Way::Copy(program) => Ok(!rows(at, program.sources(std::slice::from_ref(key))?).await?.is_empty()),
            Way::Tally(_) | Way::Expression(_) => Ok(true),
        }
    }

    /// Whether a host refers to a source that was there when it came to do so.
    pub(crate) fn had_source(&self, host: &Doc<'_>, key: &Value<'_>) -> bool {
        matches!(&self.way, Way::Copy(program) if program.holds_copy(host, key))
    }

    pub(crate) fn fence(&self, key: &Value<'_>) -> FenceKey {
        fence_key(&self.rule, key)
    }

    /// How an evaluation passes its fences (SEMANTICS R1): copies only fill, tallies are read from many documents.
    pub(crate) fn mode(&self) -> Mode {
        match &self.way {
            Way::Copy(_) => Mode::Shared,
            Way::Tally(_) | Way::Expression(_) => Mode::Exclusive,
        }
    }

    /// What orders the evaluation of these hosts against changes of what it reads (SEMANTICS R1).
    pub(crate) fn fences(&self, hosts: &[Doc<'static>]) -> Vec<(FenceKey, Mode)> {
        if matches!(&self.way, Way::Expression(_)) {
            // It reads what it writes.
            return Vec::new();
        }
        let mode = self.mode();
        let mut fences: Vec<(FenceKey, Mode)> = Vec::with_capacity(hosts.len());
        for host in hosts {
            fences.extend(self.keys(host).iter().map(|key| (fence_key(&self.rule, key), mode)));
        }
        fences.sort_by(|a, b| a.0.key.cmp(&b.0.key));
        fences.dedup_by(|a, b| a.0 == b.0);
        fences
    }

    /// The link values of a host.
    pub(crate) fn keys(&self, host: &Doc<'static>) -> key::Values {
        match &self.way {
            // An array where none may be links nothing: such a host is left alone.
            Way::Copy(program) => program.references(host).unwrap_or_default(),
            Way::Tally(program) => program.host_key(host).into_iter().collect(),
            Way::Expression(_) => key::Values::new(),
        }
    }

    /// The `_id`s of the hosts that a job for this key changes or deletes, by what `at` sees.
    pub(crate) async fn changed_by_job(&self, at: &mut At<'_>, key: &Value<'static>) -> Result<Vec<Value<'static>>> {
        let hosts = at.find(find(&self.rule.host, self.hosts(key))).await?;
        if self.deletes_hosts() && !self.has_source(at, key).await? {
            let gone = hosts.iter().filter(|host| self.had_source(host, key));
            return Ok(gone.filter_map(|host| host.get("_id")).collect());
        }
        let mut ids = Vec::new();
        for some in hosts.chunks(HOSTS) {
            ids.extend(self.differences(at, some).await?.into_iter().map(|difference| difference.id));
        }
        Ok(ids)
    }

    /// Whether hosts are deleted with their source.
    pub(crate) fn deletes_hosts(&self) -> bool {
        matches!(&self.rule.upkeep, Upkeep::Link(link) if link.when_deleted == WhenDeleted::Cascade)
    }

    /// The hosts whose field is not what it should be, by what `at` sees.
    pub(crate) async fn differences(&self, at: &mut At<'_>, hosts: &[Doc<'static>]) -> Result<Vec<Difference>> {
        match &self.way {
            Way::Copy(program) => self.copies(at, program, hosts).await,
            Way::Tally(program) => self.tallies(at, program, hosts).await,
            Way::Expression(own) => {
                let mut differences = Vec::new();
                for host in hosts {
                    let right = own.expression.set.transform(host, &at.context.env)?;
                    let (stored, expected) = (value_at(host, &self.rule.field), value_at(&right, &self.rule.field));
                    if stored != expected {
                        let fate = Fate::of(&stored, &expected);
                        differences.push(self.difference(host, (stored, expected), fate, own.update.clone()));
                    }
                }
                Ok(differences)
            }
        }
    }

    fn difference(
        &self,
        host: &Doc<'static>,
        (stored, expected): (Value<'_>, Value<'_>),
        fate: Fate,
        update: Update,
    ) -> Difference {
        Difference {
            id: host.get("_id").unwrap_or(Value::Null),
            keys: self.keys(host),
            stored: stored.into_owned(),
            expected: expected.into_owned(),
            fate,
            obstacle: self.obstacle(host),
            update,
        }
    }

    /// What leaves no room in the host for the value.
    pub(crate) fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        match &self.way {
            Way::Copy(program) => program.obstacle(host),
            Way::Tally(program) => program.obstacle(host),
            Way::Expression(_) => Obstacle::on_way(host, &self.rule.field.parts, Arrays::AreEntered),
        }
    }

    /// The hosts, of these, whose copies stay although their source does not exist.
    pub(crate) async fn sourceless(&self, at: &mut At<'_>, hosts: &[Doc<'static>]) -> Result<HashSet<Vec<u8>>> {
        let Way::Copy(program) = &self.way else { return Ok(HashSet::new()) };
        let (keys, mut found) = (self.distinct_keys(hosts), HashSet::new());
        if !keys.is_empty() {
            let rows = rows(at, program.sources(&keys)?).await?;
            found.extend(rows.iter().filter_map(|row| row.get("_id")).map(|value| key::bytes(&value)));
        }
        let is_missing = |key: &Value<'static>| !found.contains(&key::bytes(key));
        let ids =
            hosts.iter().filter(|host| self.keys(host).iter().any(|key| is_missing(key) && self.had_source(host, key)));
        Ok(ids.filter_map(|host| host.get("_id")).map(|id| key::bytes(&id)).collect())
    }

    /// Each link value of the hosts once.
    fn distinct_keys(&self, hosts: &[Doc<'static>]) -> Vec<Value<'static>> {
        let mut seen: HashMap<Vec<u8>, Value<'static>> = HashMap::with_capacity(hosts.len());
        for host in hosts {
            for value in self.keys(host) {
                seen.entry(key::bytes(&value)).or_insert(value);
            }
        }
        seen.into_values().collect()
    }

    async fn copies(&self, at: &mut At<'_>, program: &CopyProgram, hosts: &[Doc<'static>]) -> Result<Vec<Difference>> {
        let mut copies = Copies::new();
        let keys = self.distinct_keys(hosts);
        let sent = !at.backend.facts().runs_our_code;
        if !keys.is_empty() {
            if sent {
                rows(at, program.sources(&keys)?).await?.iter().for_each(|row| copies.add_row(row));
            } else {
                let (ns, filter) = program.whole_sources(&keys);
                at.find(find(&ns, filter)).await?.iter().for_each(|source| copies.add_source(program, source));
            }
        }
        let mut differences = Vec::new();
        for host in hosts {
            let Ok(placements) = program.fill(host, Some(host), &copies) else { continue };
            if placements.is_empty() {
                continue;
            }
            let right = placements.apply(host)?;
            let (stored, expected) = (value_at(host, &self.rule.field), value_at(&right, &self.rule.field));
            // What is sent over a network says only what changes; here the document is at hand as it becomes.
            let update = match sent {
                true => placements.update()?,
                false => Some(becomes(host, &right)),
            };
            let (Some(update), Some(fate)) = (update, placements.fate()) else { continue };
            differences.push(self.difference(host, (stored, expected), fate, update));
        }
        Ok(differences)
    }

    async fn tallies(
        &self,
        at: &mut At<'_>,
        program: &TallyProgram,
        hosts: &[Doc<'static>],
    ) -> Result<Vec<Difference>> {
        let keys = self.distinct_keys(hosts);
        let mut by_key = HashMap::with_capacity(keys.len());
        if !keys.is_empty() {
            for row in rows(at, program.children(&keys)?).await? {
                if let Some(value) = row.get("_id") {
                    by_key.insert(key::bytes(&value), row);
                }
            }
        }
        let mut differences = Vec::new();
        for host in hosts {
            let row = program.host_key(host).and_then(|value| by_key.get(&key::bytes(&value)));
            let expected = program.evaluated(row)?;
            let stored = program.stored(host);
            if !program.same(&stored, &expected) {
                let update = match self.with_state {
                    true => program.set(&expected)?,
                    false => program.set(&Evaluated { state: None, ..expected.clone() })?,
                };
                let fate = Fate::of(&stored.value, &expected.value);
                differences.push(self.difference(host, (stored.value, expected.value), fate, update));
            }
        }
        Ok(differences)
    }
}

/// The update that makes `after` of a document that is as it was looked at in the same transaction.
pub(crate) fn becomes(before: &Doc<'static>, after: &Doc<'static>) -> Update {
    let whole = call("$replaceWith", literal(Value::Document(after.borrow())));
    let program = Becomes { before: before.clone(), after: after.clone() };
    Update::native(std::iter::once(whole).collect(), None, Arc::new(program))
}

#[derive(Debug)]
struct Becomes {
    before: Doc<'static>,
    after: Doc<'static>,
}

impl Native for Becomes {
    fn apply(&self, doc: &Doc<'_>, _: &Env) -> Result<Doc<'static>> {
        match doc.as_bytes() == self.before.as_bytes() {
            true => Ok(self.after.clone()),
            false => {
                Err(Error::new(Code::WriteConflict, "the document changed meanwhile").with_label(label::TRANSIENT))
            }
        }
    }
}

async fn rows(at: &mut At<'_>, query: Query) -> Result<Vec<Doc<'static>>> {
    at.all(aggregate(&query.ns, query.pipeline)).await
}

/// `[{ $set: { <field>: <expression> } }]`.
fn set_stage(field: &Path, expression: &Value<'_>) -> Value<'static> {
    let mut stage = DocWriter::new();
    stage.start_document("$set").append(&field.dotted(), expression).end();
    Value::Array([Value::Document(stage.finish())].into_iter().collect())
}

/// The value at a path; through arrays an array of what its elements have, null where they have nothing.
pub(crate) fn value_at<'d>(doc: &Doc<'d>, path: &Path) -> Value<'d> {
    follow(Value::Document(doc.clone()), &path.parts)
}

fn follow<'d>(value: Value<'d>, parts: &[Part]) -> Value<'d> {
    let Some((first, rest)) = parts.split_first() else { return value };
    match value {
        Value::Document(doc) => doc.get(&first.name).map_or(Value::Missing, |inner| follow(inner, rest)),
        Value::Array(array) => {
            let mut items = ArrayWriter::new();
            for item in array.iter() {
                items.push(&follow(item, parts));
            }
            Value::Array(items.finish())
        }
        _ => Value::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    #[test]
    fn values_are_followed_through_arrays() {
        let doc = Doc::from(doc! { "a": { "b": 1 }, "items": [{ "p": { "n": "x" } }, {}, 5] });
        for (path, expected) in [
            ("a.b", Some(bson!(1))),
            ("a.c", None),
            ("c", None),
            ("items.p", Some(bson!([{ "n": "x" }, (Bson::Null), (Bson::Null)]))),
        ] {
            let expected = expected.map_or(Value::Missing, Value::from);
            assert_eq!(value_at(&doc, &Path::new(path)), expected, "{path}");
        }
    }
}
