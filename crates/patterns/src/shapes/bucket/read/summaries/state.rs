//! What a report holds of one group while buckets pass by.

use crate::shapes::bucket::read::summaries::group_stage::{Accumulator, GroupField, Operand};
use document::Value;
use document::value::number::Number;
use document::value::order;
use document::value::sum::Sum;
use std::cmp::Ordering;

/// One field's state.
#[derive(Debug)]
pub(super) enum AccumulatorState {
    /// Documents are counted for the whole group.
    Count,
    Sum(Sum),
    Avg(Sum, u64),
    Extreme(Ordering, Option<Value<'static>>),
}

impl AccumulatorState {
    pub(super) fn new(kind: Accumulator) -> AccumulatorState {
        match kind {
            Accumulator::Count => AccumulatorState::Count,
            Accumulator::Sum => AccumulatorState::Sum(Sum::new()),
            Accumulator::Avg => AccumulatorState::Avg(Sum::new(), 0),
            Accumulator::Min => AccumulatorState::Extreme(Ordering::Less, None),
            Accumulator::Max => AccumulatorState::Extreme(Ordering::Greater, None),
        }
    }

    /// One document's value, or an extreme of several.
    pub(super) fn add(&mut self, value: &Value<'_>) {
        match self {
            AccumulatorState::Count => {}
            AccumulatorState::Sum(sum) => {
                if let Some(number) = Number::of(value) {
                    sum.add(number);
                }
            }
            AccumulatorState::Avg(sum, count) => {
                if let Some(number) = Number::of(value) {
                    sum.add(number);
                    *count += 1;
                }
            }
            AccumulatorState::Extreme(wanted, best) => {
                let better = |best: &Value<'static>| order::compare(value, best) == *wanted;
                if !value.is_nullish() && best.as_ref().is_none_or(better) {
                    *best = Some(value.clone().into_owned());
                }
            }
        }
    }

    /// Takes the figure of a whole bucket, if it is the same as its values one by one.
    pub(super) fn take(&mut self, figure: &Value<'_>) -> bool {
        match (&*self, figure) {
            // An int means that all numbers were, and that nothing was rounded.
            (AccumulatorState::Sum(_), Value::Int32(_)) => self.add(figure),
            (AccumulatorState::Extreme(..), figure) if !figure.is_missing() => self.add(figure),
            _ => return false,
        }
        true
    }

    /// The answer, over so many documents.
    pub(super) fn finish(&self, field: &GroupField, documents: i64) -> Value<'static> {
        match self {
            AccumulatorState::Count => times(&field.of, documents),
            AccumulatorState::Sum(sum) => sum.total().into(),
            AccumulatorState::Avg(_, 0) => Value::Null,
            AccumulatorState::Avg(sum, count) => sum.average(*count).into(),
            AccumulatorState::Extreme(_, best) => best.clone().unwrap_or(Value::Null),
        }
    }
}

/// So many times the number that stands for one document.
fn times(of: &Operand, documents: i64) -> Value<'static> {
    match of {
        Operand::Each(Value::Int32(each)) => match documents.checked_mul(i64::from(*each)) {
            Some(product) => Number::int_or_long(product).into(),
            None => Value::Null,
        },
        Operand::Each(Value::Int64(each)) => documents.checked_mul(*each).map_or(Value::Null, Value::Int64),
        _ => Value::Null,
    }
}
