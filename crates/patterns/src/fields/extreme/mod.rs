//! The smallest or largest value of a field of child documents, of any type, in MongoDB's order; null and missing are ignored.
//!
//! A child that comes, or gets a better value, is compared with what the host holds. One that leaves, or gets a worse value, matters
//! only if the host holds its value: then the children are read again, one seek by the index that [`seek`] asks for.

pub(crate) mod registered;
mod seek;
#[cfg(test)]
mod tests;

use crate::fields::fold::{ChildChange, Fold, FoldField, Grouping, HostExpressions, Next, Sameness, Shortcut};
use crate::mql::{call, call_with, field, object};
use crate::rule::field::Samples;
use crate::rule::items::{Item, Items};
use crate::rule::numbers::{CHILDREN, Numbers, StateForm, count};
use crate::rule::{Delta, Effect, HostField, Inquiry, Link, Lookup, Needs};
use document::backend::Mode;
use document::op::Capture;
use document::pipeline::expr::field_of_document;
use document::value::{Path, order};
use document::{Doc, Result, Value};
use smallvec::SmallVec;

/// Which end of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Min,
    Max,
}

impl Extreme {
    fn word(self) -> &'static str {
        match self {
            Extreme::Min => "min",
            Extreme::Max => "max",
        }
    }

    /// The expression and the accumulator.
    fn operator(self) -> &'static str {
        match self {
            Extreme::Min => "$min",
            Extreme::Max => "$max",
        }
    }

    fn prefers(self, one: &Value<'_>, other: &Value<'_>) -> bool {
        match self {
            Extreme::Min => order::compare(one, other).is_lt(),
            Extreme::Max => order::compare(one, other).is_gt(),
        }
    }
}

/// The smallest or largest value at a path of the children.
#[derive(Clone, Debug)]
pub struct ExtremeFold {
    which: Extreme,
    path: Path,
}

pub type ExtremeField = FoldField<ExtremeFold>;

impl ExtremeField {
    pub fn new(target: HostField, link: Link, which: Extreme, path: Path) -> Result<ExtremeField> {
        FoldField::of(target, link, ExtremeFold { which, path })
    }
}

impl ExtremeFold {
    fn best<'i>(&self, items: impl IntoIterator<Item = &'i Item>) -> Option<&'i Item> {
        items.into_iter().reduce(|best, next| if self.which.prefers(&next.value, &best.value) { next } else { best })
    }

    /// The value of a child that counts.
    fn value<'c>(&self, child: &Doc<'c>) -> Option<Value<'c>> {
        Some(field_of_document(child, &self.path.parts)).filter(|value| !value.is_nullish())
    }
}

impl Fold for ExtremeFold {
    fn describe(&self, source: &str) -> String {
        format!("{} of {} from {source}", self.which.word(), self.path)
    }

    fn reads(&self) -> Capture {
        Capture::Paths(vec![self.path.clone()])
    }

    fn empty(&self) -> Value<'static> {
        Value::Null
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        let best = call(self.which.operator(), field(&self.path.dotted()));
        Grouping::of(vec![("best", best)], field("best"), form)
    }

    fn shortcut(&self) -> Option<Shortcut> {
        Some(seek::shortcut(self.which, &self.path))
    }

    /// Of equal numbers of different types, that of any child is right.
    fn sameness(&self) -> Sameness {
        Sameness::ByValue
    }

    fn lookup(&self) -> Lookup {
        Lookup::ByValue
    }

    fn needs(&self, host: &HostField, link: &Link) -> Needs {
        seek::needs(&self.path, &host.host, link)
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let was = change.before.and_then(|child| self.value(child));
        let is = change.after.and_then(|child| self.value(child));
        let (came, left) = match (is, was) {
            (Some(is), Some(was)) if order::equal(&is, &was) => (None, None),
            // Whatever the host holds is at least as good as the value before.
            (Some(is), Some(was)) if self.which.prefers(&is, &was) => (Some(is), None),
            both => both,
        };
        let items = |value: Option<Value<'_>>| -> Items {
            let item = |value: Value<'_>| Item {
                id: change.id.clone().into_owned(),
                order: SmallVec::new(),
                value: value.into_owned(),
            };
            value.map(item).into_iter().collect()
        };
        let is_looked_at = left.is_some();
        let delta = Delta::Items { came: items(came), left: items(left), children: change.children() };
        let effect = if is_looked_at { Effect::Look(delta) } else { Effect::Update(delta) };
        std::iter::once(effect).collect()
    }

    fn is_blind(&self) -> bool {
        true
    }

    fn decide(&self, stored: &Value<'_>, delta: Delta) -> Effect {
        let Delta::Items { came, left, children } = &delta else { return Effect::Update(delta) };
        let (came, left) = (self.best(came), self.best(left));
        let is_kept = match (left, came) {
            (None, _) => true,
            (Some(left), _) if !stored.is_nullish() && self.which.prefers(stored, &left.value) => true,
            // It takes the place of the one that left.
            (Some(left), Some(came)) => !self.which.prefers(&left.value, &came.value),
            (Some(_), None) => false,
        };
        if !is_kept {
            return Effect::Ask(Inquiry { about: Value::Missing, delta, mode: Mode::Exclusive });
        }
        let came = came.filter(|came| stored.is_nullish() || self.which.prefers(&came.value, stored));
        match (came, children) {
            (None, 0) => Effect::Nothing,
            _ => {
                let came = came.cloned().into_iter().collect();
                Effect::Update(Delta::Items { came, left: Items::new(), children: *children })
            }
        }
    }

    /// Of what came and of what left the best is enough. A child that came and left again is no longer there, and what it outdid
    /// may be forgotten: as long as nothing as good came, [`Fold::decide`] asks.
    fn combine(&self, first: Delta, second: &Delta) -> Delta {
        let Delta::Items { came: more, left: gone, children: more_children } = second else { return first };
        let Delta::Items { mut came, left, children } = first else { return first };
        came.retain(|item| !gone.iter().any(|gone| order::equal(&gone.id, &item.id)));
        let best = |items: &Items, more: &Items| self.best(items.iter().chain(more)).cloned().into_iter().collect();
        Delta::Items { came: best(&came, more), left: best(&left, gone), children: children + more_children }
    }

    fn next(&self, host: &HostExpressions) -> Next {
        let came = Value::string(format!("$${}.came", host.delta));
        Next::OfStored(call_with(self.which.operator(), [host.stored.clone(), came]))
    }

    fn constant(&self, delta: &Delta, form: StateForm) -> Value<'static> {
        let Delta::Items { came, children, .. } = delta else { return Value::Null };
        let came = self.best(came).map_or(Value::Missing, |item| item.value.borrow());
        let children = if form.children { count(*children) } else { Value::Missing };
        object([("came", came), (CHILDREN, children)])
    }

    fn apply(&self, delta: &Delta, stored: Value<'_>, _: &Numbers) -> Result<Value<'static>> {
        let came = match delta {
            Delta::Items { came, .. } => self.best(came).map(|item| &item.value),
            _ => None,
        };
        Ok(match came {
            Some(came) if stored.is_nullish() || self.which.prefers(came, &stored) => came.clone(),
            _ if stored.is_nullish() => Value::Null,
            _ => stored.into_owned(),
        })
    }

    fn samples(&self, sources: &[Doc<'static>]) -> Samples {
        let values = sources.iter().filter_map(|child| self.value(child).map(Value::into_owned)).collect();
        Samples { values, ..Samples::default() }
    }
}
