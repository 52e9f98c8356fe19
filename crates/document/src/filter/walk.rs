//! How a filter finds the values of a dotted path: through documents, implicitly through arrays, and by array index.
//!
//! The rules are MongoDB's, odd corners included: a number after an array is an index *and* a field name of its
//! documents, arrays directly inside arrays are entered only by index, and an array of scalars has no sub-fields at all
//! (not even missing ones).

use crate::error::Result;
use crate::raw::{Array, Doc};
use crate::value::Value;
use crate::value::path::Part;

/// What an array at the end of the path yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Its elements, then the array itself.
    ElementsAndArray,
    /// Only its elements.
    ElementsOnly,
    /// Only the array itself.
    ArrayOnly,
}

/// Calls `visit` with each value that `parts` leads to in `doc` (missing where it leads nowhere), and the index in the
/// outermost array that was walked implicitly. Stops at the first `true` and returns it.
pub fn walk(
    doc: &Doc<'_>,
    parts: &[Part],
    leaves: Leaves,
    visit: &mut impl FnMut(&Value<'_>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    document(doc, parts, leaves, None, visit)
}

fn document(
    doc: &Doc<'_>,
    parts: &[Part],
    leaves: Leaves,
    index: Option<usize>,
    visit: &mut impl FnMut(&Value<'_>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    let Some((first, rest)) = parts.split_first() else { return Ok(false) };
    let found = doc.get(&first.name);
    // A path that ends with a dot ends at an array before it.
    let rest = match (&found, rest) {
        (Some(Value::Array(_)), [last]) if last.name.is_empty() => &[],
        _ => rest,
    };
    match (found, rest.is_empty()) {
        (Some(Value::Array(items)), true) if leaves == Leaves::ArrayOnly => visit(&Value::Array(items), index),
        (Some(Value::Array(items)), _) => array(&items, rest, leaves, index, visit),
        (Some(value), true) => visit(&value, index),
        (Some(Value::Document(inner)), false) => document(&inner, rest, leaves, index, visit),
        (Some(_), false) | (None, _) => visit(&Value::Missing, index),
    }
}

fn array(
    items: &Array<'_>,
    rest: &[Part],
    leaves: Leaves,
    index: Option<usize>,
    visit: &mut impl FnMut(&Value<'_>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    let Some((next, after)) = rest.split_first() else {
        for (position, item) in items.iter().enumerate() {
            if visit(&item, index.or(Some(position)))? {
                return Ok(true);
            }
        }
        return match leaves {
            Leaves::ElementsOnly => Ok(false),
            _ => visit(&Value::Array(items.borrow()), index),
        };
    };
    for (position, item) in items.iter().enumerate() {
        if let Value::Document(inner) = &item
            && document(inner, rest, leaves, index.or(Some(position)), visit)?
        {
            return Ok(true);
        }
        if next.index != Some(position) {
            continue;
        }
        // An index that the path names is not one that a positional operator may use.
        let found = match (&item, after.is_empty()) {
            (item, true) => visit(item, index)?,
            (Value::Document(inner), false) => document(inner, after, leaves, index, visit)?,
            (Value::Array(inner), false) => array(inner, after, leaves, index, visit)?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
