//! What a field is on some hosts, and what it should be: evaluated from scratch for many hosts at a time. Seeding, audit, repair and
//! the outbox are this and a comparison. A host that a client writes is completed by `execute::host_fields`, by the same methods.

use crate::execute::access::{Access, aggregate, find};
use crate::execute::roll_up::WHOLE_RULE;
use crate::fields::set_paths::put;
use crate::fields::value_at;
use crate::mql::{call, literal};
use crate::rule::fence::fence_key;
use crate::rule::{Fate, Fetch, Field, Obstacle, Rows, Rule, WhenDeleted, key};
use document::backend::{FenceKey, Mode};
use document::error::label;
use document::filter::Filter;
use document::op::ReadOp;
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::{Native, Update};
use document::{Code, Doc, Env, Error, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// So many hosts are evaluated at a time.
const HOSTS: usize = 500;

/// A rule, ready to be evaluated.
pub(crate) struct Evaluator {
    rule: Arc<Rule>,
    field: Arc<dyn Field>,
    /// Whether updates also write what the rule remembers in `_pleach`.
    with_state: bool,
    /// Whether the value is what the host's own state gives: where the state is known to be right.
    by_state: bool,
    /// Whether it makes visible what the walk over a roll-up's source has gathered.
    shows_gathered: bool,
}

/// A host whose field is not what it should be.
#[derive(Clone, Debug)]
pub(crate) struct HostDifference {
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
        let none = || Error::new(Code::InternalError, format!("the rule {} keeps no field", rule.name));
        let field = rule.kept_field().ok_or_else(none)?.clone();
        Ok(Evaluator { rule: rule.clone(), field, with_state: true, by_state: false, shows_gathered: false })
    }

    /// To seed a rule: of a roll-up, the walk over its source has left the state of each host, which may tell the value.
    pub(crate) fn to_seed(rule: &Arc<Rule>) -> Result<Evaluator> {
        let shows_gathered = rule.link().is_some_and(|link| link.create);
        let evaluator = Evaluator::new(rule)?;
        let by_state = shows_gathered && is_shown_by_state(&*evaluator.field)?;
        Ok(Evaluator { by_state, shows_gathered, ..evaluator })
    }

    /// For a rule that is not applied: nobody would keep the state right.
    pub(crate) fn without_state(rule: &Arc<Rule>) -> Result<Evaluator> {
        Ok(Evaluator { with_state: false, ..Evaluator::new(rule)? })
    }

    pub(crate) fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    pub(crate) fn field(&self) -> &Arc<dyn Field> {
        &self.field
    }

    /// The hosts of a link value.
    pub(crate) fn hosts(&self, key: &Value<'_>) -> Filter {
        self.field.hosts(key)
    }

    /// Whether the source that hosts refer to by `key` is there.
    pub(crate) async fn has_source(&self, at: &mut Access<'_>, key: &Value<'static>) -> Result<bool> {
        match self.deletes_hosts() {
            true => Ok(!self.rows(at, std::slice::from_ref(key)).await?.is_empty()),
            false => Ok(true),
        }
    }

    /// Whether a host refers to a source that was there when it came to do so.
    pub(crate) fn had_source(&self, host: &Doc<'_>, key: &Value<'_>) -> bool {
        self.field.holds(host, key)
    }

    pub(crate) fn fence(&self, key: &Value<'_>) -> FenceKey {
        fence_key(&self.rule, key)
    }

    /// How an evaluation passes its fences (SEMANTICS R1).
    pub(crate) fn mode(&self) -> Mode {
        self.field.fences().evaluate
    }

    /// What orders the evaluation of these hosts against changes of what it reads (SEMANTICS R1).
    pub(crate) fn fences(&self, hosts: &[Doc<'static>]) -> Vec<(FenceKey, Mode)> {
        let mode = self.mode();
        let mut fences: Vec<(FenceKey, Mode)> = Vec::with_capacity(hosts.len() + 1);
        if self.shows_gathered {
            // Against who still adds to states alone: a host whose value is right is not written by the walk.
            fences.push((fence_key(&self.rule, &WHOLE_RULE), Mode::Exclusive));
        }
        if self.by_state {
            return fences;
        }
        for host in hosts {
            fences.extend(self.keys(host).iter().map(|key| (fence_key(&self.rule, key), mode)));
        }
        fences.sort_by(|a, b| a.0.key.cmp(&b.0.key));
        fences.dedup_by(|a, b| a.0 == b.0);
        fences
    }

    /// The link values of a host.
    pub(crate) fn keys(&self, host: &Doc<'static>) -> key::Values {
        self.field.keys(host)
    }

    /// The `_id`s of the hosts that a job for this key changes or deletes, by what `at` sees.
    pub(crate) async fn changed_by_job(
        &self,
        at: &mut Access<'_>,
        key: &Value<'static>,
    ) -> Result<Vec<Value<'static>>> {
        let hosts = at.find(find(&self.rule.host, self.hosts(key))).await?;
        if self.deletes_hosts() && !self.has_source(at, key).await? {
            let gone = hosts.iter().filter(|host| self.had_source(host, key));
            return Ok(gone.filter_map(|host| host.get("_id")).collect());
        }
        let makes = self.rule.link().is_some_and(|link| link.create) && hosts.is_empty();
        if makes && self.rows(at, std::slice::from_ref(key)).await?.contains(key) {
            return Ok(vec![key.clone()]);
        }
        let mut ids = Vec::new();
        for some in hosts.chunks(HOSTS) {
            ids.extend(self.differences(at, some).await?.into_iter().map(|difference| difference.id));
        }
        Ok(ids)
    }

    /// Whether hosts are deleted with their source.
    pub(crate) fn deletes_hosts(&self) -> bool {
        self.rule.link().is_some_and(|link| link.when_deleted == WhenDeleted::Cascade)
    }

    /// The hosts whose field is not what it should be, by what `at` sees.
    pub(crate) async fn differences(&self, at: &mut Access<'_>, hosts: &[Doc<'static>]) -> Result<Vec<HostDifference>> {
        let rows = match self.by_state {
            true => Rows::default(),
            false => self.rows(at, &self.distinct_keys(hosts)).await?,
        };
        self.differences_by(at, hosts, &rows)
    }

    /// The same by rows that were read.
    pub(crate) fn differences_by(
        &self,
        at: &Access<'_>,
        hosts: &[Doc<'static>],
        rows: &Rows,
    ) -> Result<Vec<HostDifference>> {
        let sent = !at.backend.facts().runs_our_code;
        let mut differences = Vec::new();
        for host in hosts {
            // An array where the rule links single values: such a host is left alone.
            if self.field.wanted(host, None).is_err() {
                continue;
            }
            let by_state = if self.by_state { self.field.shown_by_state(host)? } else { None };
            let right = match by_state {
                Some(right) => right,
                None => self.field.place(host, Some(host), rows, &at.context.env)?,
            };
            if self.field.is_right(host, &right) {
                continue;
            }
            differences.push(self.difference(host, self.without_unkept(host, right), sent)?);
        }
        Ok(differences)
    }

    /// Of a roll-up: the documents that should exist and do not, as differences from a document with nothing but its `_id`.
    pub(crate) async fn absent(&self, at: &mut Access<'_>) -> Result<Vec<HostDifference>> {
        let Some(stages) = self.field.without_host() else { return Ok(Vec::new()) };
        let (source, sent) = (self.rule.link().map(|link| &link.source), !at.backend.facts().runs_our_code);
        let Some(source) = source else { return Ok(Vec::new()) };
        let documents = at.all(aggregate(source, Pipeline::parse(&stages, &mut Names::new())?)).await?;
        let mut rows = Rows::default();
        rows.add(&*self.field, Fetch::Rows, &documents);
        let mut absent = Vec::with_capacity(documents.len());
        for id in documents.iter().filter_map(|row| row.get("_id")) {
            let host = crate::mql::document([("_id", id)]);
            let right = self.field.place(&host, None, &rows, &at.context.env)?;
            absent.push(self.difference(&host, self.without_unkept(&host, right), sent)?);
        }
        Ok(absent)
    }

    /// The right host; where nobody would keep its state, the host with the right value alone.
    fn without_unkept(&self, host: &Doc<'static>, right: Doc<'static>) -> Doc<'static> {
        let field = &self.rule.field.parts;
        match self.field.state() {
            Some(_) if !self.with_state => put(host, &[(field, field_of_document(&right, field).into_owned())]),
            _ => right,
        }
    }

    fn difference(&self, host: &Doc<'static>, right: Doc<'static>, sent: bool) -> Result<HostDifference> {
        let field = &self.rule.field;
        Ok(HostDifference {
            id: host.get("_id").unwrap_or(Value::Null),
            keys: self.keys(host),
            stored: value_at(host, field).into_owned(),
            expected: value_at(&right, field).into_owned(),
            fate: self.field.fate(host, &right),
            obstacle: self.obstacle(host),
            // What is sent over a network says only what changes; here the document is at hand as it becomes.
            update: match sent {
                true => self.field.correction(host, &right)?,
                false => becomes(host, &right),
            },
        })
    }

    /// What leaves no room in the host for the value.
    pub(crate) fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        self.field.obstacle(host)
    }

    /// The hosts, of these, whose copies stay although their source does not exist.
    pub(crate) async fn sourceless(&self, at: &mut Access<'_>, hosts: &[Doc<'static>]) -> Result<HashSet<Vec<u8>>> {
        let holds_any = |host: &&Doc<'static>| self.keys(host).iter().any(|key| self.had_source(host, key));
        let holding: Vec<Doc<'static>> = hosts.iter().filter(holds_any).cloned().collect();
        let rows = self.rows(at, &self.distinct_keys(&holding)).await?;
        let is_lost =
            |host: &&Doc<'static>| self.keys(host).iter().any(|key| !rows.contains(key) && self.had_source(host, key));
        Ok(holding.iter().filter(is_lost).filter_map(|host| host.get("_id")).map(|id| key::bytes(&id)).collect())
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

    /// What there is of some keys, by what `at` sees.
    pub(crate) async fn rows(&self, at: &mut Access<'_>, keys: &[Value<'static>]) -> Result<Rows> {
        let fetch = if at.backend.facts().runs_our_code { Fetch::Documents } else { Fetch::Rows };
        rows(&*self.field, keys, fetch, |op| at.all(op)).await
    }
}

/// What there is of some keys, by one query. Who reads has passed the fences that go before it, and passes the others at the end
/// (SEMANTICS R1).
pub(super) async fn rows<F: Future<Output = Result<Vec<Doc<'static>>>>>(
    field: &dyn Field,
    keys: &[Value<'static>],
    fetch: Fetch,
    read: impl FnOnce(ReadOp) -> F,
) -> Result<Rows> {
    let mut rows = Rows::default();
    if !keys.is_empty() {
        let documents = read(field.query(keys, fetch)?).await?;
        rows.add(field, fetch, &documents);
    }
    Ok(rows)
}

/// Whether the state of a field's hosts tells its value.
pub(crate) fn is_shown_by_state(field: &dyn Field) -> Result<bool> {
    Ok(field.shown_by_state(&Doc::empty())?.is_some())
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
