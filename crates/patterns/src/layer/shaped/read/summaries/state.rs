//! What a report holds of one group while buckets pass by.

use crate::layer::shaped::read::summaries::group_stage::{Field, Kind, Of};
use document::Value;
use document::value::number::Number;
use document::value::order;
use document::value::sum::Sum;
use std::cmp::Ordering;

/// One field's state.
#[derive(Debug)]
pub(super) enum State {
    /// Documents are counted for the whole group.
    Count,
    Sum(Sum),
    Avg(Sum, u64),
    Extreme(Ordering, Option<Value<'static>>),
}

impl State {
    pub(super) fn new(kind: Kind) -> State {
        match kind {
            Kind::Count => State::Count,
            Kind::Sum => State::Sum(Sum::new()),
            Kind::Avg => State::Avg(Sum::new(), 0),
            Kind::Min => State::Extreme(Ordering::Less, None),
            Kind::Max => State::Extreme(Ordering::Greater, None),
        }
    }

    /// One document's value, or an extreme of several.
    pub(super) fn add(&mut self, value: &Value<'_>) {
        match self {
            State::Count => {}
            State::Sum(sum) => {
                if let Some(number) = Number::of(value) {
                    sum.add(number);
                }
            }
            State::Avg(sum, count) => {
                if let Some(number) = Number::of(value) {
                    sum.add(number);
                    *count += 1;
                }
            }
            State::Extreme(wanted, best) => {
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
            (State::Sum(_), Value::Int32(_)) => self.add(figure),
            (State::Extreme(..), figure) if !figure.is_missing() => self.add(figure),
            _ => return false,
        }
        true
    }

    /// The answer, over so many documents.
    pub(super) fn finish(&self, field: &Field, documents: i64) -> Value<'static> {
        match self {
            State::Count => times(&field.of, documents),
            State::Sum(sum) => sum.total().into(),
            State::Avg(_, 0) => Value::Null,
            State::Avg(sum, count) => sum.average(*count).into(),
            State::Extreme(_, best) => best.clone().unwrap_or(Value::Null),
        }
    }
}

/// So many times the number that stands for one document.
fn times(of: &Of, documents: i64) -> Value<'static> {
    match of {
        Of::Each(Value::Int32(each)) => match documents.checked_mul(i64::from(*each)) {
            Some(product) => Number::int_or_long(product).into(),
            None => Value::Null,
        },
        Of::Each(Value::Int64(each)) => documents.checked_mul(*each).map_or(Value::Null, Value::Int64),
        _ => Value::Null,
    }
}
