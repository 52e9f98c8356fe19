//! One update of a host for everything that some changes mean for its fields, whatever their kinds (SEMANTICS R31): a plain
//! `$inc` while there are only counts, else a pipeline whose deltas are constants, and the same as code.

use crate::fields::set_paths::{Entry, put};
use crate::mql::{call, call_with, cond, document, field, list, literal, object};
use crate::rule::field::{HostStages, OwnStage};
use crate::rule::numbers::count;
use crate::rule::owned::STATE;
use crate::rule::{Delta, Field};
use document::filter::Details;
use document::pipeline::expr::{Names, field_of_document};
use document::update::{Applied, Native, Update};
use document::value::Path;
use document::{Array, Doc, DocWriter, Env, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// The deltas of several fields of one host.
#[derive(Clone, Debug, Default)]
pub struct HostUpdate {
    deltas: Deltas,
    /// If it may make the host: what is put where a new one has nothing.
    defaults: Option<Defaults>,
}

type Defaults = Vec<(Path, Value<'static>)>;

type Deltas = SmallVec<[(Arc<dyn Field>, Delta); 2]>;

impl HostUpdate {
    pub fn new() -> HostUpdate {
        HostUpdate::default()
    }

    pub fn add(&mut self, field: &Arc<dyn Field>, delta: Delta) -> Result<()> {
        match self.deltas.iter_mut().find(|(other, _)| Arc::ptr_eq(other, field)) {
            Some((_, sum)) => *sum = field.combine(std::mem::replace(sum, Delta::Unset), &delta)?,
            None => self.deltas.push((Arc::clone(field), delta)),
        }
        Ok(())
    }

    /// The fields that change; none if changes cancel each other out.
    pub fn fields(&self) -> impl Iterator<Item = &Arc<dyn Field>> {
        self.deltas.iter().filter(|(_, delta)| !delta.is_zero()).map(|(field, _)| field)
    }

    /// Whether a host that is there is surely written.
    pub fn always_writes(&self) -> bool {
        self.deltas.iter().any(|(_, delta)| delta.always_writes())
    }

    /// How many children come to the host and leave it, of all fields that make it: whether one comes, and whether one leaves.
    pub fn comings(&self) -> (bool, bool) {
        let children = || self.deltas.iter().map(|(_, delta)| delta.children());
        (children().any(|n| n > 0), children().any(|n| n < 0))
    }

    /// The fields of which only the state changes.
    pub fn hidden(&self) -> impl Iterator<Item = &Arc<dyn Field>> {
        self.deltas.iter().filter(|(_, delta)| matches!(delta, Delta::State(_))).map(|(field, _)| field)
    }

    /// The host may be made by it: a new one gets these values besides, and its state at its end.
    pub fn may_make(&mut self, defaults: Vec<(Path, Value<'static>)>) {
        self.defaults = Some(defaults);
    }

    /// The only delta, if there is one.
    pub fn single(&self) -> Option<(&Arc<dyn Field>, &Delta)> {
        match self.deltas.as_slice() {
            [(field, delta)] => Some((field, delta)),
            _ => None,
        }
    }

    /// Returns `None` if nothing changes.
    pub fn into_update(mut self) -> Result<Option<Update>> {
        self.deltas.retain(|(_, delta)| !delta.is_zero());
        if self.deltas.is_empty() {
            return Ok(None);
        }
        if let Some(compiled) = self.single().and_then(|(field, delta)| field.compiled_update(delta)) {
            return Ok(Some(compiled.clone()));
        }
        let mut increments = DocWriter::new();
        for (field, delta) in &self.deltas {
            let Delta::Count(n) = delta else { return Ok(Some(self.into_pipeline())) };
            increments.append(&field.target().path.dotted(), &count(*n));
        }
        increment(increments.finish()).map(Some)
    }

    /// The same for a host that seeding may not have reached: what is stored there may be anything, and where it is no number the
    /// amount counts from 0. Seeding computes the value anew; only that the host is written matters to it.
    pub fn into_update_while_seeding(mut self) -> Option<Update> {
        self.deltas.retain(|(_, delta)| !delta.is_zero());
        (!self.deltas.is_empty()).then(|| self.into_pipeline())
    }

    fn into_pipeline(mut self) -> Update {
        // As the stages stand: new fields are added in their order.
        self.deltas.sort_by_key(|(field, delta)| field.stages(delta).whole.is_some());
        let mut constants = DocWriter::with_capacity(160);
        for (field, delta) in &self.deltas {
            constants.append(field.variable(), &field.constant(delta));
        }
        let all = || self.deltas.iter().map(|(field, delta)| field.stages(delta));
        let stages = match (&self.defaults, self.single()) {
            (Some(defaults), _) => making(all(), defaults),
            (None, Some((field, delta))) => field.stages(delta).alone.clone(),
            (None, None) => merged(all()),
        };
        let HostUpdate { deltas, defaults } = self;
        Update::native(stages, Some(constants.finish()), Arc::new(Adding { deltas, defaults }))
    }
}

impl HostStages {
    pub fn new(first: Vec<(String, Value<'static>)>, second: Option<(String, Value<'static>)>) -> HostStages {
        HostStages { first, second, whole: None, alone: Array::empty() }.with_alone()
    }

    /// One `$set` of a field of the first level.
    pub fn whole(name: String, set: Value<'static>) -> HostStages {
        HostStages { first: Vec::new(), second: None, whole: Some((name, set)), alone: Array::empty() }.with_alone()
    }

    fn with_alone(self) -> HostStages {
        HostStages { alone: merged(std::iter::once(&self)), ..self }
    }
}

/// `{ $inc: increments }`, compiled.
pub(crate) fn increment(increments: Doc<'static>) -> Result<Update> {
    let spec = object([("$inc", Value::Document(increments))]);
    Update::parse(&spec, &[], &mut Names::new())
}

/// The stages of several fields as two: all states and counts, then all visible values. Behind them, each by itself, what is set as a
/// whole.
fn merged<'f>(fields: impl Iterator<Item = &'f HostStages> + Clone) -> Array<'static> {
    let first = fields.clone().flat_map(|stages| stages.first.iter().map(|(path, set)| (&**path, set.borrow())));
    in_stages(document(first), fields)
}

/// The same for a host that may be new: other fields get their first values, and what is Pleach's own stands at the end.
fn making<'f>(fields: impl Iterator<Item = &'f HostStages> + Clone, defaults: &Defaults) -> Array<'static> {
    let default = |(path, value): &(Path, Value<'static>)| {
        let name = path.dotted();
        let set = call_with("$ifNull", [field(&name), literal(value.borrow())]);
        (name, set)
    };
    let first = fields.clone().flat_map(|stages| stages.first.iter().cloned()).chain(defaults.iter().map(default));
    let mut first: Vec<(String, Value<'static>)> = first.collect();
    first.sort_by_key(|(path, _)| is_state(path));
    in_stages(document(first.iter().map(|(path, set)| (&**path, set.borrow()))), fields)
}

/// Whether a path is part of what Pleach keeps for itself.
fn is_state(path: &str) -> bool {
    path.split('.').next() == Some(STATE)
}

fn in_stages<'f>(first: Doc<'static>, fields: impl Iterator<Item = &'f HostStages> + Clone) -> Array<'static> {
    let second = fields.clone().filter_map(|stages| stages.second.as_ref()).map(|(path, set)| (&**path, set.borrow()));
    let whole =
        fields.filter_map(|stages| stages.whole.as_ref()).map(|(name, set)| document([(&**name, set.borrow())]));
    let sets = [first, document(second)].into_iter().chain(whole).filter(|fields| !fields.is_empty());
    match list(sets.map(|fields| object([("$set", Value::Document(fields))]))) {
        Value::Array(stages) => stages,
        _ => Array::empty(),
    }
}

/// The same as code.
#[derive(Debug)]
struct Adding {
    deltas: Deltas,
    defaults: Option<Defaults>,
}

impl Native for Adding {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        let mut entries: SmallVec<[Entry<'_>; 6]> = SmallVec::new();
        for (field, delta) in &self.deltas {
            field.apply(delta, doc, &mut entries)?;
        }
        if let Some(defaults) = &self.defaults {
            for (path, value) in defaults {
                let stored = field_of_document(doc, &path.parts);
                entries.push((&path.parts, if stored.is_nullish() { value.borrow() } else { stored.into_owned() }));
            }
            entries.sort_by_key(|(parts, _)| parts.first().is_some_and(|first| &*first.name == STATE));
        }
        Ok(put(doc, &entries))
    }
}

/// The update with what the same host computes from the changed fields, so that it stays one statement.
pub fn with_own_stages(update: Update, then: &[&OwnStage]) -> Update {
    if then.is_empty() {
        return update;
    }
    let first: Vec<Value<'static>> = match &update.source {
        Value::Array(stages) => stages.iter().collect(),
        Value::Document(spec) => match spec.get("$inc") {
            Some(Value::Document(counts)) => vec![added(&counts)],
            _ => return update,
        },
        _ => return update,
    };
    let stages = first.into_iter().chain(then.iter().map(|own| own.stage.clone())).collect();
    let constants = update.constants.clone();
    let then = then.iter().map(|own| (*own).clone()).collect();
    Update::native(stages, constants, Arc::new(Computing { update, then }))
}

/// The same as code.
#[derive(Debug)]
struct Computing {
    update: Update,
    then: Vec<OwnStage>,
}

impl Native for Computing {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        let mut doc = match self.update.apply(doc, &Details::default(), env)? {
            Applied::Changed(doc) => doc,
            Applied::Unchanged => doc.clone().into_owned(),
        };
        for own in &self.then {
            doc = own.program.transform(&doc, env)?;
        }
        Ok(doc)
    }
}

/// `{ $inc: { a: 1 } }` as a stage.
fn added(counts: &Doc<'_>) -> Value<'static> {
    let mut set = DocWriter::new();
    for (name, count) in counts.iter() {
        let stored = call_with("$ifNull", [field(name.as_str()), Value::Int32(0)]);
        set.append(name.as_str(), &call_with("$add", [stored, count]));
    }
    call("$set", Value::Document(set.finish()))
}

/// The field as an expression, 0 if it is no number.
pub(crate) fn count_or_zero(path: &str) -> Value<'static> {
    cond(call("$isNumber", field(path)), field(path), Value::Int32(0))
}
