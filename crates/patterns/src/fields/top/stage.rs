//! A child that comes, put into a window by the update itself: as an expression that needs no answer, and as code.
//!
//! Where the window does not tell the place, both fail (see [`undecided`]): the next attempt looks at the host. The expression fails
//! also where an item's order is that of an array, which MongoDB's expressions do not compare as its indexes do.

use super::items::ItemOrder;
use super::window::{Outcome, Reading};
use crate::fields::fold::HostExpressions;
use crate::fields::order::SortOrder;
use crate::mql::{call, call_with, cond, list, object, with};
use crate::rule::items::Item;
use crate::rule::needs::Direction;
use crate::rule::undecided;
use document::value::Path;
use document::{Result, Value};

/// How a window is read and written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placing<'w> {
    pub(super) order: &'w SortOrder,
    pub(super) items: &'w ItemOrder,
    pub(super) keep: u32,
}

/// What a key orders by that no expression compares as an index does.
const UNORDERED: [&str; 2] = ["array", "undefined"];

impl Placing<'_> {
    /// Whether children with these orders can be constants of an expression.
    pub(super) fn takes(came: &[Item]) -> bool {
        !came.iter().flat_map(|item| &item.order).any(|value| matches!(value, Value::Undefined))
    }

    /// The children that came, the first ones first: `{ k0, …, id, item }`.
    pub(super) fn constant(&self, came: &[Item]) -> Value<'static> {
        list(self.first(came).into_iter().map(|item| {
            let names: Vec<String> = (0..item.order.len()).map(|at| format!("k{at}")).collect();
            let keys = names.iter().zip(&item.order).map(|(name, value)| (&**name, value.borrow()));
            object(keys.chain([("id", item.id.borrow()), ("item", item.value.borrow())]))
        }))
    }

    /// Those that have a place in an empty window.
    fn first<'i>(&self, came: &'i [Item]) -> Vec<&'i Item> {
        let mut came: Vec<&Item> = came.iter().collect();
        came.sort_by(|a, b| {
            let compared = self.order.compare((&a.order, Some(&a.id)), (&b.order, Some(&b.id)));
            compared.unwrap_or(std::cmp::Ordering::Equal)
        });
        came.truncate(self.keep());
        came
    }

    fn keep(&self) -> usize {
        usize::try_from(self.keep).unwrap_or(usize::MAX)
    }

    /// The window with them.
    pub(super) fn apply(&self, stored: &Value<'_>, came: &[Item]) -> Result<Value<'static>> {
        let Value::Array(window) = stored else { return Err(undecided::error()) };
        let is_told = |item: Value<'_>| matches!(item, Value::Document(doc) if self.items.is_single(&doc));
        if !window.iter().all(is_told) {
            return Err(undecided::error());
        }
        let came: Vec<Item> = self.first(came).into_iter().cloned().collect();
        match (Reading { order: self.order, items: self.items, keep: self.keep() }).after(stored, &came, &[]) {
            Outcome::Unchanged => Ok(stored.clone().into_owned()),
            Outcome::Changed(value) => Ok(value),
            Outcome::Unknown => Err(undecided::error()),
        }
    }

    /// The same as an expression. Each that came stands behind the items that are before it, and behind those that came with it.
    pub(super) fn expression(&self, host: &HostExpressions) -> Value<'static> {
        let (window, keep) = (host.stored.clone(), Value::Int64(i64::from(self.keep)));
        let fails = undecided::expression(window.clone());
        let came = Value::string(format!("$${}.came", host.delta));
        let earlier = object([("input", window.clone()), ("as", Value::from("s")), ("cond", self.is_before(&fails))]);
        let place = call_with("$add", [Value::from("$$this"), call("$size", call("$filter", earlier))]);
        let placed = call_with(
            "$concatArrays",
            [
                call_with("$slice", [Value::from("$$value"), Value::from("$$at")]),
                list([Value::from("$$c.item")]),
                call_with("$slice", [Value::from("$$value"), Value::from("$$at"), keep.borrow()]),
            ],
        );
        let one = call_with("$arrayElemAt", [came.borrow(), Value::from("$$this")]);
        let all = object([
            ("input", call_with("$range", [Value::Int32(0), call("$size", came)])),
            ("initialValue", window.clone()),
            ("in", with([("c", one)], with([("at", place)], placed))),
        ]);
        let first = call_with("$slice", [call("$reduce", all), keep.borrow()]);
        let fits = call_with("$lte", [call("$size", window.clone()), keep]);
        cond(call("$isArray", window), cond(fits, first, fails.clone()), fails)
    }

    /// Whether the item `s` stands before `c`; fails where `s` does not tell.
    fn is_before(&self, fails: &Value<'static>) -> Value<'static> {
        let item = |path: &str| Value::string(format!("$$s.{path}"));
        let type_of = |value: Value<'static>| call("$type", value);
        let is_not = |value: Value<'static>, name: &str| call_with("$ne", [type_of(value), Value::from(name)]);
        let mut untold = vec![is_not(Value::from("$$s"), "object")];
        let keys: Vec<(String, bool)> = self.items.keys().map(|key| (key.path.dotted(), key.descending)).collect();
        untold.extend(
            keys.iter().map(|(path, _)| call_with("$in", [type_of(item(path)), list(UNORDERED.map(Value::from))])),
        );
        untold.extend(self.items.nested().map(|name| call_with("$eq", [type_of(item(name)), Value::from("array")])));
        untold.extend(self.items.id().map(|name| call_with("$eq", [type_of(item(name)), Value::from("missing")])));
        let mut branches = vec![branch(call_with("$or", untold), fails.clone())];
        for (at, (path, descending)) in keys.iter().enumerate() {
            let both = [call_with("$ifNull", [item(path), Value::Null]), Value::string(format!("$$c.k{at}"))];
            branches.extend(compared(both, *descending));
        }
        if let (Some(ties), Some(name)) = (self.order.ties(), self.items.id()) {
            branches.extend(compared([item(name), Value::from("$$c.id")], ties == Direction::Descending));
        }
        call("$switch", object([("branches", list(branches)), ("default", fails.clone())]))
    }
}

/// The cases in which one of two values comes first.
fn compared(both: [Value<'static>; 2], descending: bool) -> [Value<'static>; 2] {
    [
        branch(call_with("$lt", both.clone()), Value::Bool(!descending)),
        branch(call_with("$gt", both), Value::Bool(descending)),
    ]
}

fn branch(case: Value<'static>, then: Value<'static>) -> Value<'static> {
    object([("case", case), ("then", then)])
}

impl ItemOrder {
    /// Whether no array or undefined value orders an item.
    fn is_single(&self, item: &document::Doc<'_>) -> bool {
        let value = |path: &Path| document::pipeline::expr::field_of_document(item, &path.parts);
        !self.keys().any(|key| matches!(value(&key.path), Value::Array(_) | Value::Undefined))
    }
}
