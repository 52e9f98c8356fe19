//! What a field is on some hosts, and what it should be. Seeding, audit, repair and the outbox are this and a comparison. A host that
//! a client writes is completed by `execute::host_fields`, by the same loop (`execute::evaluation`).

use crate::active::Rules;
use crate::execute::access::{Access, aggregate, find};
use crate::execute::evaluation::{Basis, Evaluation, Host, distinct, evaluate};
use crate::execute::executor::Executor;
use crate::execute::read;
use crate::execute::roll_up::WHOLE_RULE;
use crate::fields::set_paths::put;
use crate::fields::state_last;
use crate::fields::value_at;
use crate::mql::{call, literal};
use crate::rule::fence::fence_key;
use crate::rule::owned::STATE;
use crate::rule::{Fate, Fetch, Field, Lookup, Obstacle, Rows, Rule, Stack, WhenDeleted, key};
use document::backend::{FenceKey, Mode};
use document::error::label;
use document::filter::Filter;
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::{Native, Update};
use document::value::Path;
use document::{Code, Doc, Env, Error, Result, Value};
use hashbrown::HashSet;
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
    /// Knows how sources are stored; without it they are read by the names that clients know.
    executor: Option<Arc<Executor>>,
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
        let (rule, with_state) = (rule.clone(), true);
        Ok(Evaluator { rule, field, with_state, by_state: false, shows_gathered: false, executor: None })
    }

    /// Reads sources as they are stored.
    pub(crate) fn through(self, executor: &Arc<Executor>) -> Evaluator {
        Evaluator { executor: Some(executor.clone()), ..self }
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
            // Against writers that still add to states alone: a host whose value is right is not written by the walk.
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
        let (sent, env) = (!at.backend.facts().runs_our_code, &at.context.env);
        let mut hosts: Vec<Host> = hosts.iter().map(Host::stored).collect();
        let basis = if self.by_state { Basis::State } else { Basis::Stored };
        let read = async |keys: Vec<Value<'static>>| self.rows(at, &keys).await;
        evaluate(&*self.field, basis, &mut hosts, env, read).await?;
        self.compared(hosts, sent)
    }

    /// The same by rows that were read.
    pub(crate) fn differences_by(
        &self,
        at: &Access<'_>,
        hosts: &[Doc<'static>],
        rows: &Rows,
    ) -> Result<Vec<HostDifference>> {
        self.compared(self.placed(hosts.iter(), rows, &at.context.env)?, !at.backend.facts().runs_our_code)
    }

    fn placed<'h>(&self, hosts: impl Iterator<Item = &'h Doc<'static>>, rows: &Rows, env: &Env) -> Result<Vec<Host>> {
        let mut hosts: Vec<Host> = hosts.map(Host::stored).collect();
        Evaluation::begin(&*self.field, Basis::Stored, &mut hosts)?.finish(&mut hosts, rows, env)?;
        Ok(hosts)
    }

    /// Those that were not right before.
    fn compared(&self, hosts: Vec<Host>, sent: bool) -> Result<Vec<HostDifference>> {
        let mut differences = Vec::new();
        for Host { before, after } in hosts {
            let Some(before) = before else { continue };
            if before.as_bytes() != after.as_bytes() && !self.field.is_right(&before, &after) {
                differences.push(self.difference(&before, after, sent)?);
            }
        }
        Ok(differences)
    }

    /// Of a roll-up: the documents that should exist and do not, as differences from a document with nothing but its `_id`.
    pub(crate) async fn absent(&self, at: &mut Access<'_>) -> Result<Vec<HostDifference>> {
        let Some(stages) = self.field.without_host() else { return Ok(Vec::new()) };
        let (source, sent) = (self.rule.link().map(|link| &link.source), !at.backend.facts().runs_our_code);
        let Some(source) = source else { return Ok(Vec::new()) };
        let op = aggregate(source, Pipeline::parse(&stages, &mut Names::new())?);
        let rules = self.executor.as_ref().map(|executor| executor.rules());
        let of_array = rules.as_ref().and_then(|rules| Some((rules, self.stack(rules)?)));
        let documents = match of_array.filter(|(_, stack)| stack.is_virtual()) {
            Some((rules, stack)) => {
                let cursor = read::open(at.backend, rules, at.session, at.context, &op, stack).await?;
                at.drained(cursor).await?
            }
            None => at.all(op).await?,
        };
        let mut rows = Rows::default();
        rows.add(&*self.field, Fetch::Rows, &documents);
        let ids = documents.iter().filter_map(|row| row.get("_id"));
        let bare: Vec<Doc<'static>> = ids.map(|id| crate::mql::document([("_id", id)])).collect();
        let right = self.placed(bare.iter(), &rows, &at.context.env)?;
        bare.iter().zip(right).map(|(host, right)| self.difference(host, right.after, sent)).collect()
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
        let right = self.without_unkept(host, right);
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
                true => self.sent(host, &right)?,
                false => becomes(host, &state_last::with_state_last(right)),
            },
        })
    }

    /// The correction, with the state last where the field's own would put something behind it.
    fn sent(&self, host: &Doc<'static>, right: &Doc<'static>) -> Result<Update> {
        let correction = self.field.correction(host, right)?;
        if !state_last::is_covered(right) {
            return Ok(correction);
        }
        if let Some(moved) = state_last::in_stages(&correction)? {
            return Ok(moved);
        }
        let owned = self.rule.owned();
        let names = owned.iter().map(Path::first).chain([STATE]);
        Ok(state_last::difference(host, right, names)?.unwrap_or(correction))
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
        distinct(hosts.iter().flat_map(|host| self.keys(host)).collect())
    }

    /// What there is of some keys, by what `at` sees. The caller has passed the fences that go before it, and passes the others at
    /// the end (SEMANTICS R1).
    pub(crate) async fn rows(&self, at: &mut Access<'_>, keys: &[Value<'static>]) -> Result<Rows> {
        let rules = self.executor.as_ref().map(|executor| executor.rules());
        let stack = rules.as_ref().and_then(|rules| Some((rules, self.stack(rules)?)));
        let fetch = match at.backend.facts().runs_our_code {
            _ if stack.is_some() && self.field.lookup() != Lookup::Never => Fetch::Shaped,
            true => Fetch::Documents,
            false => Fetch::Rows,
        };
        let mut rows = Rows::default();
        for some in keys.chunks(self.field.lookup().keys_per_read(keys.len(), fetch)) {
            let op = self.field.query(some, fetch)?;
            let documents = match stack {
                Some((rules, stack)) => {
                    let cursor = read::open(at.backend, rules, at.session, at.context, &op, stack).await?;
                    at.drained(cursor).await?
                }
                None => at.all(op).await?,
            };
            rows.add(&*self.field, fetch, &documents);
        }
        Ok(rows)
    }
}

impl Evaluator {
    /// The stack through which sources are read; `None` if they are read as they are, or from a view.
    fn stack<'r>(&self, rules: &'r Rules) -> Option<&'r Arc<Stack>> {
        // While documents are relocated, the view has those of both places. No transaction reads that of an array.
        rules.shaped(&self.field.link()?.source).filter(|stack| stack.places.len() == 1 || stack.is_virtual())
    }
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
