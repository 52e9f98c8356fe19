//! What folds by an order share: children as items, what came and left as one delta, and the questions about the first children.
//!
//! Where a host does not tell its order, an insert asks for the first children under a shared fence: if the new child is among them the
//! host is written, if not, nothing rests on the answer. Only what takes a child away, or changes it, asks exclusively (SEMANTICS R1).

use crate::fields::fold::ChildChange;
use crate::fields::order::SortOrder;
use crate::rule::field::Inquiry;
use crate::rule::items::{Item, Items};
use crate::rule::{Delta, Effect, Question};
use document::backend::Mode;
use document::value::order;
use document::{Doc, Value};

/// What a changed child means for its host.
pub(crate) struct Ranked {
    pub(crate) delta: Delta,
    /// The order of a child is not known: MongoDB cannot sort it.
    pub(crate) is_unsortable: bool,
}

impl Ranked {
    /// `value` is what the host shows of a child. Returns `None` if nothing that matters changed.
    pub(crate) fn of(
        change: &ChildChange<'_>,
        by: &SortOrder,
        value: impl Fn(&Doc<'_>) -> Value<'static>,
    ) -> Option<Ranked> {
        let mut is_unsortable = false;
        let mut item = |child: &Doc<'_>| {
            let order = by.values(child);
            is_unsortable |= order.is_err();
            // A change of one of several documents in a stored one has an `id` of its own.
            let id = child.get("_id").map_or_else(|| change.id.clone().into_owned(), Value::into_owned);
            Item { id, order: order.unwrap_or_default(), value: value(child) }
        };
        let (came, left) = (change.after.map(&mut item), change.before.map(&mut item));
        if came == left && !is_unsortable {
            return None;
        }
        let delta = Delta::Items {
            came: came.into_iter().collect(),
            left: left.into_iter().collect(),
            children: change.children(),
        };
        Some(Ranked { delta, is_unsortable })
    }
}

/// The question what the first children are now.
pub(crate) fn inquiry(delta: Delta) -> Effect {
    let mode = if takes_away(&delta) { Mode::Exclusive } else { Mode::Shared };
    Effect::Ask(Inquiry { about: Value::Missing, delta, mode })
}

fn takes_away(delta: &Delta) -> bool {
    !matches!(delta, Delta::Items { left, .. } if left.is_empty())
}

/// Both deltas as one, the second behind the first: a child that came and left again was never there. The second is the shorter one
/// where a part has many changes.
pub(crate) fn combined(mut first: Delta, second: &Delta) -> Delta {
    if let (
        Delta::Items { came, left, children },
        Delta::Items { came: then_came, left: then_left, children: then_children },
    ) = (&mut first, second)
    {
        cancel(came, left, then_left);
        cancel(left, came, then_came);
        *children += then_children;
    }
    first
}

/// Takes what is in `from` out of it, and adds the rest to `to`.
fn cancel(from: &mut Items, to: &mut Items, items: &[Item]) {
    for item in items {
        if !from.take(item) {
            to.push(item.clone());
        }
    }
}

/// The `_id`s of the children that a row is made of, beside `expected`: one, or a list.
pub(crate) const IDS: &str = "ids";

/// Whether children came, and the answer is about others: then the host stays as it is.
pub(crate) fn is_about_others(question: &Question, row: Option<&Doc<'_>>) -> bool {
    let Delta::Items { came, left, .. } = &question.delta else { return false };
    let is_new = |id: &Value<'_>| came.iter().any(|item| order::equal(&item.id, id));
    let found = match row.and_then(|row| row.get(IDS)) {
        Some(Value::Array(ids)) => ids.iter().any(|id| is_new(&id)),
        Some(id) => is_new(&id),
        None => false,
    };
    left.is_empty() && !came.is_empty() && !found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mql::{document, list};
    use crate::rule::items::compared;

    fn item(id: i32, value: i32) -> Item {
        Item { id: Value::Int32(id), order: Default::default(), value: Value::Int32(value) }
    }

    fn delta(came: &[(i32, i32)], left: &[(i32, i32)]) -> Delta {
        let items = |list: &[(i32, i32)]| list.iter().map(|(id, value)| item(*id, *value)).collect();
        Delta::Items { came: items(came), left: items(left), children: 1 }
    }

    #[test]
    fn what_came_and_left_cancels() {
        for (first, second, expected) in [
            (delta(&[(1, 1)], &[]), delta(&[(2, 2)], &[]), delta(&[(1, 1), (2, 2)], &[])),
            (delta(&[(1, 1)], &[]), delta(&[], &[(1, 1)]), delta(&[], &[])),
            (delta(&[(1, 1)], &[]), delta(&[(1, 5)], &[(1, 1)]), delta(&[(1, 5)], &[])),
            (delta(&[], &[(1, 1)]), delta(&[(1, 1)], &[]), delta(&[], &[])),
            (delta(&[], &[(1, 1)]), delta(&[(1, 2)], &[]), delta(&[(1, 2)], &[(1, 1)])),
            (delta(&[(1, 2)], &[(1, 1)]), delta(&[(1, 1)], &[(1, 2)]), delta(&[], &[])),
        ] {
            let (Delta::Items { came, left, children }, Delta::Items { came: c, left: l, .. }) =
                (combined(first, &second), expected)
            else {
                panic!("no items")
            };
            assert_eq!((came, left, children), (c, l, 2));
        }
    }

    #[test]
    fn what_many_changes_of_one_host_cost_grows_with_their_number() {
        let cost = |n: i32| {
            compared::by(|| {
                let come = (0..n).map(|id| delta(&[(id, 1)], &[]));
                let change = (0..n).map(|id| delta(&[(id, 2)], &[(id, 1)]));
                let leave = (0..n).map(|id| delta(&[], &[(id, 2)]));
                let all = come.chain(change).chain(leave).reduce(|first, second| combined(first, &second)).unwrap();
                assert!(matches!(&all, Delta::Items { came, left, .. } if came.is_empty() && left.is_empty()));
            })
        };
        let (some, more) = (cost(500), cost(4_000));
        assert!(more <= 8 * some, "{some} comparisons for 500 children, {more} for 4000");
    }

    #[test]
    fn an_insert_that_is_not_among_the_first_leaves_the_host() {
        let question = |delta: Delta| Question { key: Value::Int32(1), about: Value::Missing, delta };
        let row = |ids: Value<'static>| document([(IDS, ids)]);
        let (one, two) = (row(Value::Int32(1)), row(list([Value::Int32(1), Value::Int32(2)])));
        for (delta, row, others) in [
            (delta(&[(1, 1)], &[]), Some(&one), false),
            (delta(&[(2, 1)], &[]), Some(&one), true),
            (delta(&[(2, 1), (3, 1)], &[]), Some(&two), false),
            (delta(&[(3, 1)], &[]), Some(&two), true),
            (delta(&[(3, 1)], &[]), None, true),
            (delta(&[(3, 1)], &[(3, 2)]), Some(&two), false),
            (delta(&[], &[(3, 2)]), None, false),
        ] {
            assert_eq!(is_about_others(&question(delta), row), others);
        }
    }
}
