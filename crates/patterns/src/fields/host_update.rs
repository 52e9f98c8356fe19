//! One update of a host for everything that some changes mean for it (SEMANTICS R31).

use crate::fields::set_paths::{Entry, put};
use crate::fields::tally::TallyProgram;
use crate::fields::tally::amount::{Amount, Numbers, count, too_many_digits};
use crate::mql::{call, cond, document, field, list, object};
use document::pipeline::expr::field_of_document;
use document::update::{Native, Update};
use document::{Array, Code, Doc, DocWriter, Env, Error, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// The amounts of several rules for one host.
#[derive(Clone, Debug, Default)]
pub struct HostUpdate {
    amounts: SmallVec<[(Arc<TallyProgram>, Amount); 2]>,
}

impl HostUpdate {
    pub fn new() -> HostUpdate {
        HostUpdate::default()
    }

    pub fn add(&mut self, program: &Arc<TallyProgram>, amount: &Amount) -> Result<()> {
        match self.amounts.iter_mut().find(|(other, _)| Arc::ptr_eq(other, program)) {
            Some((_, sum)) => *sum = sum.plus(amount, program.name())?,
            None => self.amounts.push((Arc::clone(program), *amount)),
        }
        Ok(())
    }

    /// Whether nothing changes: changes that cancel each other out.
    pub fn is_zero(&self) -> bool {
        self.amounts.iter().all(|(_, amount)| amount.is_zero())
    }

    /// The rules that change something.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<TallyProgram>> {
        self.amounts.iter().filter(|(_, amount)| !amount.is_zero()).map(|(program, _)| program)
    }

    /// Nothing if nothing changes. A plain `$inc` while there are only counts, else one pipeline whose amounts are constants.
    pub fn into_update(mut self) -> Result<Option<Update>> {
        self.amounts.retain(|(_, amount)| !amount.is_zero());
        match self.amounts.as_slice() {
            [] => Ok(None),
            [(program, Amount::Count(n))] => program.increment(*n).map(Some),
            amounts if amounts.iter().all(|(_, amount)| matches!(amount, Amount::Count(_))) => {
                let mut increments = DocWriter::new();
                for (program, amount) in amounts {
                    if let Amount::Count(n) = amount {
                        increments.append(program.field(), &count(*n));
                    }
                }
                increment(increments.finish()).map(Some)
            }
            _ => Ok(Some(self.into_pipeline())),
        }
    }

    /// The same for a host that seeding may not have reached: what is stored there may be anything, and where it is no number the
    /// amount counts from 0. Seeding computes the value anew; only that the host is written matters to it.
    pub fn into_update_while_seeding(mut self) -> Option<Update> {
        self.amounts.retain(|(_, amount)| !amount.is_zero());
        (!self.amounts.is_empty()).then(|| self.into_pipeline())
    }

    fn into_pipeline(self) -> Update {
        let mut constants = DocWriter::with_capacity(160);
        for (program, amount) in &self.amounts {
            match amount {
                Amount::Count(n) => constants.append(program.variable(), &count(*n)),
                Amount::Numbers(numbers) => constants.append(program.variable(), &Value::Document(delta(numbers))),
            };
        }
        let stages = match self.amounts.as_slice() {
            [(program, _)] => program.stages().clone(),
            several => merged(several.iter().map(|(program, _)| &**program)),
        };
        let program = Arc::new(Adding { amounts: self.amounts });
        Update::native(stages, Some(constants.finish()), program)
    }
}

/// `{ $inc: increments }`, compiled.
pub(super) fn increment(increments: Doc<'static>) -> Result<Update> {
    let spec = object([("$inc", Value::Document(increments))]);
    Update::parse(&spec, &[], &mut document::pipeline::expr::Names::new())
}

/// All parts of an amount, zeros too: what the pipeline's variable holds.
fn delta(numbers: &Numbers) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(112);
    writer.append("n", &count(numbers.n));
    writer.append("sum", &Value::Decimal(numbers.sum));
    for (name, counter) in crate::fields::tally::amount::COUNTERS.into_iter().zip(numbers.counters()) {
        writer.append(name, &count(counter));
    }
    writer.finish()
}

/// The stages of several rules as two: all states and counts, then all visible values.
pub(super) fn merged<'p>(programs: impl Iterator<Item = &'p TallyProgram> + Clone) -> Array<'static> {
    let first =
        programs.clone().flat_map(|program| program.first_stage().iter().map(|(path, set)| (&**path, set.borrow())));
    let second =
        programs.filter_map(|program| program.second_stage().as_ref()).map(|(path, set)| (&**path, set.borrow()));
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
    amounts: SmallVec<[(Arc<TallyProgram>, Amount); 2]>,
}

impl Native for Adding {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        let mut entries: SmallVec<[Entry<'_>; 6]> = SmallVec::new();
        for (program, amount) in &self.amounts {
            let owned = program.watched();
            match amount {
                Amount::Count(n) => {
                    let more = document::value::Number::int_or_long(*n);
                    let sum = match field_of_document(doc, &owned.field.parts).as_number() {
                        Some(number) => number.plus(more).into(),
                        None => count(*n),
                    };
                    entries.push((&owned.field.parts, sum));
                }
                Amount::Numbers(numbers) => {
                    let Some(state) = &owned.state else { continue };
                    let broken = || {
                        Error::new(
                            Code::BadValue,
                            format!("{state} does not hold the state of rule {}: repair the rule", program.name()),
                        )
                    };
                    let old = Numbers::from_state(&field_of_document(doc, &state.parts)).ok_or_else(broken)?;
                    let new = old.plus(numbers).ok_or_else(|| too_many_digits(program.name()))?;
                    entries.push((&owned.field.parts, program.visible(&new)));
                    entries.push((&state.parts, Value::Document(new.to_state())));
                }
            }
        }
        Ok(put(doc, &entries))
    }
}

/// The field as an expression, 0 if it is no number.
pub(super) fn count_or_zero(path: &str) -> Value<'static> {
    cond(call("$isNumber", field(path)), field(path), Value::Int32(0))
}
