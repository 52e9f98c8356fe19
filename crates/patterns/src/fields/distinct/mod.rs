//! How many different values the children have at a path: null is a value, missing is none, equality is BSON's. With `each_value` an
//! array counts by its elements.
//!
//! Whether a value that comes is new, and whether one that leaves was the last, is asked of the children: how many have it now.

mod ask;
pub(crate) mod registered;
#[cfg(test)]
mod tests;

use crate::fields::fold::children::from_documents;
use crate::fields::fold::{ChildChange, Fold, FoldField, Grouping, HostExpressions, Next};
use crate::mql::{call, call_with, cond, field, list, long, object, with};
use crate::rule::field::Samples;
use crate::rule::numbers::{CHILDREN, Numbers, StateForm, count};
use crate::rule::{Delta, Effect, Fetch, HostField, Inquiry, Link, Lookup, Needs, Question};
use document::backend::Mode;
use document::op::Capture;
use document::pipeline::expr::field_of_document;
use document::value::{Number, Path, order};
use document::{Array, Doc, Result, Value};
use smallvec::SmallVec;

/// The number of different values at a path of the children.
#[derive(Clone, Debug)]
pub struct DistinctFold {
    path: Path,
    each_value: bool,
}

pub type DistinctField = FoldField<DistinctFold>;

impl DistinctField {
    pub fn new(target: HostField, link: Link, path: Path, each_value: bool) -> Result<DistinctField> {
        FoldField::of(target, link, DistinctFold { path, each_value })
    }
}

/// Where the values of a child stand while they are counted one by one.
const VALUE: &str = "_pleach_value";
/// The place of one among them.
const AT: &str = "_pleach_at";

impl DistinctFold {
    /// The values of a child, each once.
    fn values(&self, child: Option<&Doc<'_>>) -> Vec<Value<'static>> {
        let value = child.map_or(Value::Missing, |child| field_of_document(child, &self.path.parts));
        let mut values: Vec<Value<'static>> = match value {
            Value::Missing => Vec::new(),
            Value::Array(items) if self.each_value => items.iter().map(Value::into_owned).collect(),
            one => vec![one.into_owned()],
        };
        values.sort_by(order::compare);
        values.dedup_by(|a, b| order::equal(a, b));
        values
    }

    /// The same as an expression, perhaps several times.
    fn list_of_values(&self) -> Value<'static> {
        let value = || Value::from("$$v");
        let has_type = |name: &str| call_with("$eq", [call("$type", value()), Value::from(name)]);
        let single = cond(has_type("missing"), list([]), list([value()]));
        let all = if self.each_value { cond(has_type("array"), value(), single) } else { single };
        with([("v", field(&self.path.dotted()))], all)
    }
}

impl Fold for DistinctFold {
    fn describe(&self, source: &str) -> String {
        format!("distinct values of {} from {source}", self.path)
    }

    fn reads(&self) -> Capture {
        Capture::Paths(vec![self.path.clone()])
    }

    fn empty(&self) -> Value<'static> {
        Value::Int32(0)
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        let set = |path: &str| ("values", call("$addToSet", field(path)));
        let number = call("$size", field("values"));
        if !self.each_value {
            let group = Grouping::of(vec![set(&self.path.dotted())], number, form);
            return Grouping { before: vec![from_documents()], ..group };
        }
        let unwind = object([
            ("path", field(VALUE)),
            ("includeArrayIndex", Value::from(AT)),
            ("preserveNullAndEmptyArrays", Value::Bool(true)),
        ]);
        let mut accumulators = vec![set(VALUE)];
        if form.children {
            // One for all values of a child.
            let is_first = call_with("$lte", [field(AT), Value::Int32(0)]);
            accumulators.push((CHILDREN, call("$sum", cond(is_first, Value::Int32(1), Value::Int32(0)))));
        }
        let values = call("$set", object([(VALUE, self.list_of_values())]));
        let before = vec![from_documents(), values, call("$unwind", unwind)];
        Grouping { before, ..Grouping::of(accumulators, number, form) }
    }

    fn lookup(&self) -> Lookup {
        Lookup::ByValue
    }

    fn needs(&self, host: &HostField, link: &Link) -> Needs {
        Needs::of_link_and_value(&host.host, link, &self.path)
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let (was, is) = (self.values(change.before), self.values(change.after));
        let lacks = |values: &[Value<'static>], one: &Value<'static>| !values.iter().any(|own| order::equal(own, one));
        let number = |n: i64| match change.form.children {
            true => Delta::Numbers(Numbers { n, ..Numbers::default() }),
            false => Delta::Count(n),
        };
        let ask = |about: &Value<'static>, n: i64, mode: Mode| {
            Effect::Ask(Inquiry { about: about.clone(), delta: number(n), mode })
        };
        let came = is.iter().filter(|value| lacks(&was, value)).map(|value| ask(value, 1, Mode::Shared));
        let left = was.iter().filter(|value| lacks(&is, value)).map(|value| ask(value, -1, Mode::Exclusive));
        let mut effects: SmallVec<[Effect; 2]> = came.chain(left).collect();
        if change.form.children {
            let children = change.children();
            effects.push(Effect::Update(Delta::Numbers(Numbers { children, ..Numbers::default() })));
        }
        effects
    }

    fn next(&self, host: &HostExpressions) -> Next {
        if !host.form.children {
            return Next::Counted;
        }
        let stored = || host.stored.clone();
        let stored = cond(call("$isNumber", stored()), stored(), Value::Int32(0));
        Next::OfStored(call_with("$add", [stored, Value::string(format!("$${}.n", host.delta))]))
    }

    fn constant(&self, delta: &Delta, _: StateForm) -> Value<'static> {
        match delta {
            Delta::Numbers(numbers) => object([("n", count(numbers.n)), (CHILDREN, count(numbers.children))]),
            _ => Value::Null,
        }
    }

    fn apply(&self, delta: &Delta, stored: Value<'_>, _: &Numbers) -> Result<Value<'static>> {
        let n = match delta {
            Delta::Numbers(numbers) => numbers.n,
            _ => 0,
        };
        Ok(stored.as_number().map_or_else(|| count(n), |stored| stored.plus(Number::int_or_long(n)).into()))
    }

    fn ask(&self, link: &Link, questions: &[Question], fetch: Fetch) -> Option<Array<'static>> {
        Some(ask::stages(self, link, questions, fetch))
    }

    /// A value is counted while any child has it.
    fn answer(&self, question: &Question, row: Option<&Doc<'_>>) -> Option<Delta> {
        let changed = amount(&question.delta);
        let now = row.map_or(0, |row| long(row.get("n")));
        let difference = i64::from(now > 0) - i64::from(now > changed);
        let delta = match &question.delta {
            Delta::Numbers(_) => Delta::Numbers(Numbers { n: difference, ..Numbers::default() }),
            _ => Delta::Count(difference),
        };
        (difference != 0).then_some(delta)
    }

    fn samples(&self, _: &[Doc<'static>]) -> Samples {
        // However many there will be.
        Samples { values: vec![Value::Int32(i32::MAX)], ..Samples::default() }
    }
}

/// How many children more have a value.
fn amount(delta: &Delta) -> i64 {
    match delta {
        Delta::Count(n) => *n,
        Delta::Numbers(numbers) => numbers.n,
        _ => 0,
    }
}
