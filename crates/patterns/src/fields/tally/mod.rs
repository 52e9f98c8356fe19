//! count, sum and avg of linked documents: signed deltas, exact (SEMANTICS R8).
//!
//! [`crate::rule::numbers`] adds up numbers exactly, [`exact`] does the same in MQL.

pub mod exact;
pub(crate) mod registered;
#[cfg(test)]
mod roll_up_tests;
mod rows;
#[cfg(test)]
mod tests;

use crate::fields::fold::{ChildChange, Fold, FoldField, Grouping, HostExpressions, KeyedRows, Next};
use crate::mql::{call, field, object};
use crate::rule::field::Samples;
use crate::rule::numbers::{Numbers, StateForm};
use crate::rule::{Delta, Effect, HostField, Link, Recipe};
use document::op::Capture;
use document::pipeline::Stage;
use document::pipeline::expr::field_of_document;
use document::value::{Decimal128, Path};
use document::{Doc, Result, Value};
use exact::{Shown, accumulators, grouped_state, visible, visible_expression};
use rows::SumRows;
use smallvec::SmallVec;
use std::sync::Arc;

/// Aggregates that a signed delta maintains.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    Count,
    Sum(Path),
    Avg(Path),
}

/// A count, sum or avg of linked documents.
pub type TallyField = FoldField<Tally>;

impl TallyField {
    pub fn new(target: HostField, link: Link, tally: Tally) -> Result<TallyField> {
        FoldField::of(target, link, tally)
    }
}

impl Tally {
    /// The numbers that it adds up; none for a count.
    fn path(&self) -> Option<&Path> {
        match self {
            Tally::Count => None,
            Tally::Sum(path) | Tally::Avg(path) => Some(path),
        }
    }

    fn shown(&self) -> Shown {
        match self {
            Tally::Count => Shown::Children,
            Tally::Sum(_) => Shown::Sum,
            Tally::Avg(_) => Shown::Mean,
        }
    }
}

impl Fold for Tally {
    fn describe(&self, source: &str) -> String {
        match self {
            Tally::Count => format!("count of {source}"),
            Tally::Sum(path) => format!("sum of {path} from {source}"),
            Tally::Avg(path) => format!("avg of {path} from {source}"),
        }
    }

    fn reads(&self) -> Capture {
        Capture::Paths(self.path().into_iter().cloned().collect())
    }

    fn keeps_numbers(&self) -> bool {
        self.path().is_some()
    }

    fn empty(&self) -> Value<'static> {
        visible(self.shown(), &Numbers::default())
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        if !form.is_some() {
            return Grouping::of(vec![("n", call("$sum", Value::Int32(1)))], field("n"), form);
        }
        let state = grouped_state(form, Value::from("$$ROOT"));
        let value = visible_expression(self.shown(), field("expectedState"));
        Grouping {
            before: Vec::new(),
            accumulators: self.path().map(|path| accumulators(&path.dotted())).unwrap_or_default(),
            behind: vec![
                call("$project", object([("expectedState", state)])),
                call("$set", object([("expected", value)])),
            ],
        }
    }

    fn rows(&self, key: Path, form: StateForm) -> Option<Arc<dyn Stage>> {
        let maker = SumRows { path: self.path()?.clone(), shown: self.shown(), form };
        Some(Arc::new(KeyedRows { key, maker }))
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let amount = |child: &Doc<'_>| match self.path() {
            Some(path) => Numbers::of(&field_of_document(child, &path.parts)),
            None => Numbers::default(),
        };
        let children = i64::from(change.form.children);
        let numbers = |child: &Doc<'_>| Numbers { children, ..amount(child) };
        let (came, left): (Option<Delta>, Option<Delta>) = match change.form.is_some() {
            false => (change.after.map(|_| Delta::Count(1)), change.before.map(|_| Delta::Count(-1))),
            true => (
                change.after.map(|after| Delta::Numbers(numbers(after))),
                change.before.map(|before| Delta::Numbers(numbers(before).negated())),
            ),
        };
        came.into_iter().chain(left).map(Effect::Update).collect()
    }

    fn is_blind(&self) -> bool {
        true
    }

    fn next(&self, host: &HostExpressions) -> Next {
        match host.form.is_some() {
            true => Next::OfState(visible_expression(self.shown(), host.state.clone())),
            false => Next::Counted,
        }
    }

    fn constant(&self, delta: &Delta, form: StateForm) -> Value<'static> {
        match delta {
            Delta::Numbers(numbers) => Value::Document(numbers.to_constant(form)),
            _ => Value::Null,
        }
    }

    fn apply(&self, _: &Delta, _: Value<'_>, state: &Numbers) -> Result<Value<'static>> {
        Ok(visible(self.shown(), state))
    }

    fn of_state(&self, state: &Numbers) -> Option<Value<'static>> {
        Some(visible(self.shown(), state))
    }

    fn samples(&self, sources: &[Doc<'static>]) -> Samples {
        let mut samples = Samples::default();
        match self {
            Tally::Sum(path) => {
                let numbers = sources.iter().map(|child| field_of_document(child, &path.parts).into_owned());
                samples.values.extend(numbers.filter(Value::is_number));
            }
            // Of the type that its children have.
            Tally::Avg(_) => samples.any.extend([Value::Double(0.5), Value::Decimal(Decimal128::ZERO)]),
            // However many there will be.
            Tally::Count => samples.values.push(Value::Int32(i32::MAX)),
        }
        samples
    }

    fn recipe(&self, link: &Link) -> Option<Recipe> {
        (*self == Tally::Count && link.filter.is_none()).then_some(Recipe::Count)
    }
}
