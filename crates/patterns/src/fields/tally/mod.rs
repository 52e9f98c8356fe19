//! count, sum and avg of linked documents: signed deltas, exact (SEMANTICS R8).
//!
//! [`amount`] adds up numbers exactly, [`exact`] does the same in MQL, [`definition`] computes values from scratch.

pub mod amount;
mod definition;
pub mod exact;
mod field;
pub(crate) mod registered;
#[cfg(test)]
mod roll_up_tests;
#[cfg(test)]
mod tests;

use crate::fields::host_update::{count_or_zero, increment};
use crate::fields::set_paths::{Entry, put};
use crate::fields::variable;
use crate::mql::{call_with, field};
use crate::rule::field::HostStages;
use crate::rule::{Delta, HostField, Link, Reads, key, owned};
use amount::{Numbers, StateForm};
use definition::Stateful;
use document::op::Capture;
use document::pipeline::Pipeline;
use document::pipeline::expr::field_of_document;
use document::update::Update;
use document::value::Path;
use document::{Code, Doc, Env, Error, Result, Value};
use exact::{Shown, next_state, visible, visible_expression};
use smallvec::SmallVec;

/// Aggregates that a signed delta maintains.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    Count,
    Sum(Path),
    Avg(Path),
}

/// A count, sum or avg of linked documents.
#[derive(Debug)]
pub struct TallyField {
    target: HostField,
    link: Link,
    tally: Tally,
    /// What it keeps beside its value: nothing for a count of hosts that are there without it.
    stateful: Option<Stateful>,
    owned: Owned,
    /// The field, dotted.
    field: String,
    /// The name of the amounts in pipelines.
    variable: String,
    stages: HostStages,
    /// Those that leave the value as it is, for a host that seeding comes to later.
    state_stages: HostStages,
    /// Of a count: the updates for one child more and one less.
    one_more: Option<Update>,
    one_less: Option<Update>,
    /// What comes behind the `$match` on keys in [`Field::query`].
    grouping: Pipeline,
    reads: Reads,
}

/// The paths that the field owns.
#[derive(Clone, Debug)]
struct Owned {
    field: Path,
    state: Option<Path>,
}

impl Owned {
    fn place(&self, host: &Doc<'_>, evaluated: &Evaluated) -> Doc<'static> {
        let mut entries: SmallVec<[Entry<'_>; 2]> = SmallVec::new();
        entries.push((&self.field.parts, evaluated.value.borrow()));
        if let (Some(path), Some(state)) = (&self.state, &evaluated.state) {
            entries.push((&path.parts, Value::Document(state.borrow())));
        }
        put(host, &entries)
    }
}

/// What one change means: for each host key, how much.
type Deltas = SmallVec<[(Value<'static>, Delta); 2]>;

/// A host's value and, for sums and averages, its state.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub value: Value<'static>,
    pub state: Option<Doc<'static>>,
}

impl TallyField {
    pub fn new(target: HostField, link: Link, tally: Tally) -> Result<TallyField> {
        let (shown, path) = match &tally {
            Tally::Count => (Shown::Children, None),
            Tally::Sum(path) => (Shown::Sum, Some(path.clone())),
            Tally::Avg(path) => (Shown::Mean, Some(path.clone())),
        };
        let form = StateForm { children: link.create, numbers: path.is_some() };
        let stateful = (form.children || form.numbers).then(|| Stateful { shown, path: path.clone(), form });
        let state = stateful.as_ref().map(|_| owned::state_path(&target.path));
        let (name, variable) = (target.path.dotted(), variable(&target.path));
        let (stages, state_stages) = match &state {
            Some(state) => {
                let state = state.dotted();
                // The field is made first, so that a new state comes at the end of the host.
                let place = call_with("$ifNull", [field(&name), Value::Null]);
                let next = next_state(form, field(&state), &variable, &target.rule);
                let shown = visible_expression(shown, field(&state));
                let only_state = HostStages::new(vec![(state.clone(), next.clone())], None);
                let both = vec![(name.clone(), place), (state, next)];
                (HostStages::new(both, Some((name.clone(), shown))), only_state)
            }
            None => {
                let amount = Value::string(format!("$${variable}"));
                let sum = call_with("$add", [count_or_zero(&name), amount]);
                (HostStages::new(vec![(name.clone(), sum)], None), HostStages::new(Vec::new(), None))
            }
        };
        let reads = Reads { source: watched_source(&link, path.as_ref()), host: vec![link.local.path.clone()] };
        let owned = Owned { field: target.path.clone(), state };
        let grouping = definition::compiled(&link, stateful.as_ref())?;
        let step = |n: i64| match &stateful {
            None => increment(crate::mql::document([(&*name, amount::count(n))])).map(Some),
            Some(_) => Ok(None),
        };
        let (one_more, one_less) = (step(1)?, step(-1)?);
        let field = name;
        Ok(TallyField {
            target,
            link,
            tally,
            stateful,
            owned,
            field,
            variable,
            stages,
            state_stages,
            one_more,
            one_less,
            grouping,
            reads,
        })
    }

    fn visible(&self, state: &Numbers) -> Value<'static> {
        self.stateful.as_ref().map_or(Value::Null, |stateful| visible(stateful.shown, state))
    }

    fn contribute(&self, doc: &Doc<'_>, env: &Env, refusing: bool, deltas: &mut Deltas) -> Result<()> {
        let linked = self.link.source_keys(doc, env);
        if linked.refused && refusing {
            return Err(key::refused(self, &self.link.foreign));
        }
        if linked.values.is_empty() {
            return Ok(());
        }
        if let Some(filter) = &self.link.filter
            && !filter.matches(doc, env)?
        {
            return Ok(());
        }
        let amount = match &self.stateful {
            None => Delta::Count(1),
            Some(stateful) => {
                let numbers = stateful.path.as_ref().map(|path| Numbers::of(&field_of_document(doc, &path.parts)));
                let children = i64::from(stateful.form.children);
                Delta::Numbers(Numbers { children, ..numbers.unwrap_or_default() })
            }
        };
        deltas.extend(linked.values.into_iter().map(|key| (key, amount.clone())));
        Ok(())
    }

    /// The key under which a host collects; nothing if it links to nothing.
    fn host_key(&self, host: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(host, &self.link.local).values.into_iter().next()
    }

    /// What a row says; no row means no children.
    pub fn evaluated(&self, row: Option<&Doc<'_>>) -> Evaluated {
        let Some(row) = row else {
            return match &self.stateful {
                None => Evaluated { value: Value::Int32(0), state: None },
                Some(stateful) => self.of_state(stateful.form, &Numbers::default()),
            };
        };
        let value = row.get("expected").map_or(Value::Missing, Value::into_owned);
        let state = match row.get("expectedState") {
            Some(Value::Document(state)) => Some(state.into_owned()),
            _ => None,
        };
        Evaluated { value, state }
    }

    fn of_state(&self, form: StateForm, state: &Numbers) -> Evaluated {
        Evaluated { value: self.visible(state), state: Some(state.to_state(form)) }
    }

    /// What a host has now: its field and its state.
    fn stored(&self, host: &Doc<'_>) -> Evaluated {
        let value = field_of_document(host, &self.owned.field.parts).into_owned();
        let state = self.owned.state.as_ref().map(|path| field_of_document(host, &path.parts));
        let state = match state {
            Some(Value::Document(state)) => Some(state.into_owned()),
            _ => None,
        };
        Evaluated { value, state }
    }

    fn broken(&self, state: &Path) -> Error {
        let message = format!("{state} does not hold the state of rule {}: repair the rule", self.target.rule);
        Error::new(Code::BadValue, message)
    }
}

fn watched_source(link: &Link, summed: Option<&Path>) -> Capture {
    let mut paths = link.foreign.paths().to_vec();
    paths.extend(summed.cloned());
    if let Some(filter) = &link.filter {
        match filter.root.reads() {
            Some(read) => paths.extend(read),
            None => return Capture::Everything,
        }
    }
    Capture::Paths(paths)
}
