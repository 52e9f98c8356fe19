//! count, sum and avg of linked documents: signed deltas, exact (SEMANTICS R8).

use super::amount::Amount;
use crate::link::{Query, key};
use crate::rule::{Link, Rule, Tally};
use document::filter::Filter;
use document::op::Capture;
use document::update::Update;
use document::value::Path;
use document::{Array, Doc, Env, Error, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// What one change means: for each host key, how much.
pub type Deltas = SmallVec<[(Value<'static>, Amount); 2]>;

/// A count, sum or avg rule, compiled.
#[derive(Debug)]
pub struct TallyProgram {
    rule: Arc<Rule>,
    link: Link,
    tally: Tally,
    watched_source: Capture,
    watched_host: Vec<Path>,
}

/// A host's value and, for sums and averages, its state.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub value: Value<'static>,
    pub state: Option<Doc<'static>>,
}

impl TallyProgram {
    pub fn new(rule: &Arc<Rule>) -> Result<TallyProgram> {
        let _ = rule;
        Err(Error::not_implemented("this"))
    }

    pub fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    pub fn name(&self) -> &str {
        &self.rule.name
    }

    pub fn watched_source(&self) -> &Capture {
        &self.watched_source
    }

    pub fn watched_host(&self) -> &[Path] {
        &self.watched_host
    }

    /// What a change of a source document means for hosts. Refuses an array in the link of `after` unless the rule says `each`.
    pub fn deltas(&self, before: Option<&Doc<'_>>, after: Option<&Doc<'_>>, env: &Env) -> Result<Deltas> {
        let _ = (before, after, env, &self.link, &self.tally);
        Err(Error::not_implemented("this"))
    }

    /// The host keys that a source document links to: known before an insert, for hot parents (R12).
    pub fn keys(&self, source: &Doc<'_>, env: &Env) -> Result<key::Values> {
        let _ = (source, env);
        Err(Error::not_implemented("this"))
    }

    /// The hosts of a key: `{ _id: key }`.
    pub fn hosts(&self, key: &Value<'_>) -> Filter {
        Filter::equality(&self.link.local.path.dotted(), key)
    }

    /// The key under which a host collects; nothing if it links to nothing.
    pub fn host_key(&self, host: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(host, &self.link.local).values.into_iter().next()
    }

    /// Evaluates some hosts from their children: one row per key that has any; see [`TallyProgram::evaluated`].
    pub fn children(&self, keys: &[Value<'_>]) -> Result<Query> {
        let _ = keys;
        Err(Error::not_implemented("this"))
    }

    /// What a row of [`TallyProgram::children`] says; no row means no children.
    pub fn evaluated(&self, row: Option<&Doc<'_>>) -> Result<Evaluated> {
        let _ = row;
        Err(Error::not_implemented("this"))
    }

    /// The host with its field (and state) as evaluated: for an insert, so that it stays one statement.
    pub fn place(&self, host: &Doc<'_>, evaluated: &Evaluated) -> Doc<'static> {
        let _ = evaluated;
        host.clone().into_owned()
    }

    /// The same as an update.
    pub fn set(&self, evaluated: &Evaluated) -> Result<Update> {
        let _ = evaluated;
        Err(Error::not_implemented("this"))
    }

    /// What a host has now: its field and its state.
    pub fn stored(&self, host: &Doc<'_>) -> Evaluated {
        let _ = host;
        Evaluated { value: Value::Missing, state: None }
    }

    /// Whether both are the same: equal values of the same type, equal states.
    pub fn same(&self, left: &Evaluated, right: &Evaluated) -> bool {
        let _ = (left, right);
        false
    }

    /// See [`super::super::Program::expected`].
    pub fn expected(&self, only_differences: bool) -> Array<'static> {
        let _ = only_differences;
        Array::empty()
    }
}
