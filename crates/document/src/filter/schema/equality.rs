//! Equality as schemas mean it: the order of a document's fields does not matter.

use crate::raw::{Array, Doc};
use crate::value::{Value, order};

pub(super) fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Document(left), Value::Document(right)) => same_fields(left, right),
        (Value::Array(left), Value::Array(right)) => {
            let (mut left, mut right) = (left.iter(), right.iter());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if same(&left, &right) => {}
                    _ => return false,
                }
            }
        }
        (left, right) => order::equal(left, right),
    }
}

fn same_fields(left: &Doc<'_>, right: &Doc<'_>) -> bool {
    left.iter().count() == right.iter().count()
        && left.iter().all(|(name, value)| right.get(name.as_str()).is_some_and(|other| same(&value, &other)))
}

/// The first element that was there before. Elements that may be equal lie together after sorting scalars; documents and
/// arrays are compared one by one.
pub(super) fn duplicate<'a>(items: &Array<'a>) -> Option<Value<'a>> {
    let mut scalars: Vec<(usize, Value<'a>)> = Vec::new();
    let mut compound: Vec<(usize, Value<'a>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::Document(_) | Value::Array(_) => compound.push((index, item)),
            _ => scalars.push((index, item)),
        }
    }
    scalars.sort_by(|(_, left), (_, right)| order::compare(left, right));
    let scalar = scalars
        .windows(2)
        .filter_map(|pair| match pair {
            [(_, first), (index, second)] if order::equal(first, second) => Some((*index, second)),
            _ => None,
        })
        .min_by_key(|(index, _)| *index);
    let structured = compound.iter().enumerate().find_map(|(at, (index, item))| {
        compound.iter().take(at).any(|(_, earlier)| same(earlier, item)).then_some((*index, item))
    });
    [scalar, structured].into_iter().flatten().min_by_key(|(index, _)| *index).map(|(_, item)| item.clone())
}
