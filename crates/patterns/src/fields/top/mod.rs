//! The first so many children by an order, kept in their parent: a window.
//!
//! [`items`] is what a window shows of a child, [`window`] what changed children make of a window that is there. A window whose items
//! tell their order is looked at before the children are asked; across a network, [`stage`] puts what comes in its place unseen.

mod items;
pub(crate) mod registered;
mod rows;
mod stage;
#[cfg(test)]
mod stage_tests;
#[cfg(test)]
mod tests;
mod window;
#[cfg(test)]
mod window_tests;

pub use items::ItemForm;

use crate::fields::fold::children::from_documents;
use crate::fields::fold::{ChildChange, Fold, FoldField, Grouping, HostExpressions, KEY, KeyedRows, Next, Shortcut};
use crate::fields::order::SortOrder;
use crate::fields::ranked::{IDS, Ranked, combined, inquiry};
use crate::mql::{call, call_with, field, list, object};
use crate::rule::field::Samples;
use crate::rule::numbers::{CHILDREN, Numbers, StateForm, count};
use crate::rule::{Delta, Effect, HostField, Link, Lookup, Needs};
use document::op::Capture;
use document::pipeline::Stage;
use document::value::{Path, show};
use document::{Doc, Result, Value};
use items::ItemOrder;
use rows::WindowRows;
use smallvec::SmallVec;
use stage::Placing;
use std::sync::Arc;
use window::{Outcome, Reading};

/// Which children a window shows, and what of them.
#[derive(Clone, Debug)]
pub struct Window {
    order: SortOrder,
    keep: u32,
    form: ItemForm,
    /// `None` if items do not tell their order: then each change asks.
    items: Option<ItemOrder>,
}

/// A window on linked documents.
pub type TopField = FoldField<Window>;

impl TopField {
    pub fn new(target: HostField, link: Link, window: Window) -> Result<TopField> {
        FoldField::of(target, link, window)
    }
}

impl Window {
    pub fn new(order: SortOrder, keep: u32, form: ItemForm) -> Window {
        let items = form.order(&order);
        Window { order, keep, form, items }
    }

    /// Whether a child that comes is put in its place without reading the others.
    pub fn tells_order(&self) -> bool {
        self.items.is_some()
    }

    fn placing(&self) -> Option<Placing<'_>> {
        self.items.as_ref().map(|items| Placing { order: &self.order, items, keep: self.keep })
    }

    fn sort(&self) -> Value<'static> {
        call("$sort", Value::Document(self.order.document()))
    }

    fn keep(&self) -> Value<'static> {
        Value::Int64(i64::from(self.keep))
    }
}

impl Fold for Window {
    fn describe(&self, source: &str) -> String {
        let order = Value::Document(self.order.document());
        format!("first {} of {source} in the order {}", self.keep, show::element(&order))
    }

    fn reads(&self) -> Capture {
        let Capture::Paths(mut paths) = self.form.reads() else { return Capture::Everything };
        paths.extend(self.order.keys().into_iter().map(|(path, _)| path));
        Capture::Paths(paths)
    }

    fn empty(&self) -> Value<'static> {
        list([])
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        let shown = object([("item", self.form.expression()), ("id", field("_id"))]);
        let first = call_with("$slice", [field("shown"), self.keep()]);
        let mut row = vec![("expected", field("first.item")), (IDS, field("first.id"))];
        if form.children {
            row.push(("expectedState", object([(CHILDREN, field(CHILDREN))])));
        }
        Grouping {
            before: vec![from_documents(), self.sort()],
            accumulators: vec![("shown", call("$push", shown))],
            behind: vec![
                call("$set", object([("first", first)])),
                call("$project", object(row)),
                // A whole child has had its computed key beside it.
                call("$unset", Value::string(format!("expected.{KEY}"))),
            ],
        }
    }

    /// A whole child has its computed key beside it, which the stages take away.
    fn rows(&self, key: Path, form: StateForm) -> Option<Arc<dyn Stage>> {
        let (is_whole, maker) = (self.form == ItemForm::Whole, WindowRows { window: self.clone(), form });
        (!is_whole || key.first() != KEY).then(|| Arc::new(KeyedRows { key, maker }) as Arc<dyn Stage>)
    }

    fn shortcut(&self) -> Option<Shortcut> {
        let row = object([
            ("_id", Value::Null),
            ("expected", call("$push", self.form.expression())),
            (IDS, call("$push", field("_id"))),
        ]);
        let branch = vec![from_documents(), self.sort(), call("$limit", self.keep()), call("$group", row)];
        Some(Shortcut { branches: vec![branch], behind: Vec::new() })
    }

    fn lookup(&self) -> Lookup {
        self.order.lookup()
    }

    fn needs(&self, host: &HostField, link: &Link) -> Needs {
        self.order.needs(&host.host, link)
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let changed = Ranked::of(change, &self.order, |child| self.form.of(child));
        let effect = changed.map(|Ranked { delta, is_unsortable }| match self.tells_order() && !is_unsortable {
            true => Effect::Look(delta),
            false => inquiry(delta),
        });
        effect.into_iter().collect()
    }

    /// A tie that the items do not decide makes the stages fail.
    fn is_blind(&self) -> bool {
        self.tells_order()
    }

    fn stages_decide(&self, delta: &Delta) -> bool {
        matches!(delta, Delta::Items { came, left, .. } if left.is_empty() && Placing::takes(came))
            && self.tells_order()
    }

    fn decide(&self, stored: &Value<'_>, delta: Delta) -> Effect {
        let (Delta::Items { came, left, children }, Some(items)) = (&delta, &self.items) else { return inquiry(delta) };
        let keep = usize::try_from(self.keep).unwrap_or(usize::MAX);
        match (Reading { order: &self.order, items, keep }).after(stored, came, left) {
            Outcome::Unchanged => Effect::Nothing,
            Outcome::Changed(value) => Effect::Update(Delta::Set { value, appeared: false, children: *children }),
            Outcome::Unknown => inquiry(delta),
        }
    }

    fn combine(&self, first: Delta, second: &Delta) -> Delta {
        combined(first, second)
    }

    fn next(&self, host: &HostExpressions) -> Next {
        Next::OfStored(self.placing().map_or_else(|| host.stored.clone(), |placing| placing.expression(host)))
    }

    fn constant(&self, delta: &Delta, form: StateForm) -> Value<'static> {
        let (Delta::Items { came, children, .. }, Some(placing)) = (delta, self.placing()) else { return Value::Null };
        let children = if form.children { count(*children) } else { Value::Missing };
        object([("came", placing.constant(came)), (CHILDREN, children)])
    }

    fn apply(&self, delta: &Delta, stored: Value<'_>, _: &Numbers) -> Result<Value<'static>> {
        match (delta, self.placing()) {
            (Delta::Items { came, .. }, Some(placing)) => placing.apply(&stored, came),
            _ => Ok(stored.into_owned()),
        }
    }

    fn samples(&self, sources: &[Doc<'static>]) -> Samples {
        let values = sources.iter().map(|child| list([self.form.of(child)])).collect();
        Samples { values, ..Samples::default() }
    }
}
