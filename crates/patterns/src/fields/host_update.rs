//! One update of a host for everything that some changes mean for its fields, whatever their kinds (SEMANTICS R31): a plain
//! `$inc` while there are only counts, else a pipeline whose deltas are constants, and the same as code.

use crate::fields::set_paths::{Entry, put};
use crate::fields::tally::amount::count;
use crate::mql::{call, call_with, cond, document, field, list, object};
use crate::rule::field::{HostStages, OwnStage};
use crate::rule::{Delta, Field};
use document::filter::Details;
use document::pipeline::expr::Names;
use document::update::{Applied, Native, Update};
use document::{Array, Doc, DocWriter, Env, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// The deltas of several fields of one host.
#[derive(Clone, Debug, Default)]
pub struct HostUpdate {
    deltas: Deltas,
}

type Deltas = SmallVec<[(Arc<dyn Field>, Delta); 2]>;

impl HostUpdate {
    pub fn new() -> HostUpdate {
        HostUpdate::default()
    }

    pub fn add(&mut self, field: &Arc<dyn Field>, delta: Delta) -> Result<()> {
        match self.deltas.iter_mut().find(|(other, _)| Arc::ptr_eq(other, field)) {
            Some((_, sum)) => *sum = field.combine(sum.clone(), &delta)?,
            None => self.deltas.push((Arc::clone(field), delta)),
        }
        Ok(())
    }

    /// The fields that change; none if changes cancel each other out.
    pub fn fields(&self) -> impl Iterator<Item = &Arc<dyn Field>> {
        self.deltas.iter().filter(|(_, delta)| !delta.is_zero()).map(|(field, _)| field)
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

    fn into_pipeline(self) -> Update {
        let mut constants = DocWriter::with_capacity(160);
        for (field, delta) in &self.deltas {
            constants.append(field.variable(), &field.constant(delta));
        }
        let stages = match self.single() {
            Some((field, _)) => field.stages().alone.clone(),
            None => merged(self.deltas.iter().map(|(field, _)| field.stages())),
        };
        Update::native(stages, Some(constants.finish()), Arc::new(Adding { deltas: self.deltas }))
    }
}

impl HostStages {
    pub fn new(first: Vec<(String, Value<'static>)>, second: Option<(String, Value<'static>)>) -> HostStages {
        let mut stages = HostStages { first, second, alone: Array::empty() };
        stages.alone = merged(std::iter::once(&stages));
        stages
    }
}

/// `{ $inc: increments }`, compiled.
pub(crate) fn increment(increments: Doc<'static>) -> Result<Update> {
    let spec = object([("$inc", Value::Document(increments))]);
    Update::parse(&spec, &[], &mut Names::new())
}

/// The stages of several fields as two: all states and counts, then all visible values.
fn merged<'f>(fields: impl Iterator<Item = &'f HostStages> + Clone) -> Array<'static> {
    let first = fields.clone().flat_map(|stages| stages.first.iter().map(|(path, set)| (&**path, set.borrow())));
    let second = fields.filter_map(|stages| stages.second.as_ref()).map(|(path, set)| (&**path, set.borrow()));
    let set = |fields: Doc<'static>| object([("$set", Value::Document(fields))]);
    let (first, second) = (document(first), document(second));
    let mut stages = vec![set(first)];
    if !second.is_empty() {
        stages.push(set(second));
    }
    match list(stages) {
        Value::Array(stages) => stages,
        _ => Array::empty(),
    }
}

/// The same as code.
#[derive(Debug)]
struct Adding {
    deltas: Deltas,
}

impl Native for Adding {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        let mut entries: SmallVec<[Entry<'_>; 6]> = SmallVec::new();
        for (field, delta) in &self.deltas {
            field.apply(delta, doc, &mut entries)?;
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
