//! How much one part of the walk takes: some hosts whose arrays are small together, or some items of one host. Decided by sizes, so that
//! no more is read than a part may hold.

use crate::execute::access::{Access, find};
use crate::life::catalog::long;
use crate::life::lift::item::Lift;
use crate::life::walk::{self, PartOfWalk};
use crate::mql::{call, cond, document, field, list};
use crate::rule::key;
use document::filter::Filter;
use document::op::{Find, Namespace};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// One part takes at most so many items …
const MOST_ITEMS: u64 = 5_000;
/// … of so many bytes.
const MOST_BYTES: u64 = 4 << 20;

/// What a part takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extent {
    /// All items of the hosts up to but not including `next`.
    Hosts { next: Option<Value<'static>> },
    /// So many items of one host. `next` is the host behind it.
    Items { host: Value<'static>, limit: u64, next: Option<Value<'static>> },
}

/// A host, by its size.
#[derive(Debug)]
pub(super) struct Size {
    pub(super) id: Value<'static>,
    pub(super) items: u64,
    pub(super) bytes: u64,
}

/// Looks at the sizes of the next hosts. `begun`: how many items of the first are lifted; `most`: how many a part may have.
pub(super) async fn look(
    at: &mut Access<'_>,
    lift: &Lift<'_>,
    part: PartOfWalk<'_>,
    begun: u64,
    most: u64,
) -> Result<Extent> {
    let sizes = document([("_id", Value::Int32(1)), ("items", size(lift)), ("bytes", call("$bsonSize", root()))]);
    let all = Filter::all();
    let projection = Some(Arc::new(Projection::parse_find(&sizes, &all, &mut Names::new())?));
    let rows = at.find(Find { projection, ..part.find(lift.host(), None) }).await?;
    let number = |row: &Doc<'static>, name: &str| u64::try_from(long(row.get(name))).unwrap_or(0);
    let sizes = rows.iter().map(|row| Size {
        id: row.get("_id").unwrap_or(Value::Null),
        items: number(row, "items"),
        bytes: number(row, "bytes"),
    });
    let is_begun = |size: &Size| begun > 0 && part.from.is_some_and(|from| key::bytes(from) == key::bytes(&size.id));
    // Conflicts are rarer the shorter a part takes.
    let most = (MOST_ITEMS.min(most) >> (2 * part.conflicts.min(6))).max(1);
    Ok(cut(&sizes.collect::<Vec<_>>(), part.size, most, is_begun))
}

fn root() -> Value<'static> {
    Value::from("$$ROOT")
}

/// How many items the array has; 0 if it is none.
pub(super) fn size(lift: &Lift<'_>) -> Value<'static> {
    let array = || field(&lift.array.dotted());
    cond(call("$isArray", list([array()])), call("$size", array()), Value::Int32(0))
}

/// As many hosts as fit, at most `hosts`; or some items of the first.
fn cut(sizes: &[Size], hosts: u64, most: u64, is_begun: impl Fn(&Size) -> bool) -> Extent {
    let (mut items, mut bytes, mut taken) = (0, 0, 0);
    for size in sizes {
        items += size.items;
        bytes += size.bytes;
        if taken == 0 && (is_begun(size) || items > most || (bytes > MOST_BYTES && items > 1)) {
            let each = (size.bytes / size.items.max(1)).max(1);
            let limit = (MOST_BYTES / each).clamp(1, most);
            return Extent::Items { host: size.id.clone(), limit, next: sizes.get(1).map(|size| size.id.clone()) };
        }
        if taken > 0 && (items > most || bytes > MOST_BYTES) {
            break;
        }
        taken += 1;
        if taken as u64 >= hosts {
            break;
        }
    }
    Extent::Hosts { next: sizes.get(taken).map(|size| size.id.clone()) }
}

impl Extent {
    /// Reads the hosts of the part, each with no more items than it is about, and one to see whether there are more.
    pub(super) fn find(&self, lift: &Lift<'_>, from: Option<&Value<'_>>, begun: u64) -> Result<Find> {
        let ns: &Namespace = lift.host();
        let (hosts, skip, limit) = match self {
            Extent::Hosts { next } => return Ok(walk::range(ns, from, next.as_ref())),
            Extent::Items { host, limit, .. } => (find(ns, Filter::equality("_id", host)), begun, limit + 1),
        };
        let long = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
        let slice = document([(&*lift.array.dotted(), call("$slice", list([long(skip), long(limit)])))]);
        let projection = Some(Arc::new(Projection::parse_find(&slice, &hosts.filter, &mut Names::new())?));
        Ok(Find { projection, ..hosts })
    }

    /// Whether it is about items of this host alone.
    pub(super) fn is_of(&self, id: Option<&Value<'_>>) -> bool {
        matches!((self, id), (Extent::Items { host, .. }, Some(id)) if key::bytes(host) == key::bytes(id))
    }

    /// How many items of each host the part takes.
    pub(super) fn limit(&self) -> u64 {
        match self {
            Extent::Hosts { .. } => u64::MAX,
            Extent::Items { limit, .. } => *limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(u64, u64)]) -> Vec<Size> {
        list.iter()
            .zip(0..)
            .map(|((items, bytes), id)| Size { id: Value::Int32(id), items: *items, bytes: *bytes })
            .collect()
    }

    #[test]
    fn small_hosts_go_together_and_large_ones_in_parts() {
        let whole = |next: Option<i32>| Extent::Hosts { next: next.map(Value::Int32) };
        let some =
            |limit, next: Option<i32>| Extent::Items { host: Value::Int32(0), limit, next: next.map(Value::Int32) };
        let none = |_: &Size| false;
        for (list, hosts, expected) in [
            (vec![], 10, whole(None)),
            (vec![(10, 1_000); 3], 10, whole(None)),
            (vec![(10, 1_000); 3], 2, whole(Some(2))),
            (vec![(60, 1_000), (60, 1_000)], 10, whole(Some(1))),
            (vec![(0, MOST_BYTES), (1, 1_000)], 10, whole(Some(1))),
            (vec![(0, MOST_BYTES + 1), (1, 1_000)], 10, whole(Some(1))),
            (vec![(101, 1_000), (1, 1_000)], 10, some(100, Some(1))),
            (vec![(64, 4 * MOST_BYTES)], 10, some(16, None)),
        ] {
            assert_eq!(cut(&sizes(&list), hosts, 100, none), expected, "{list:?}");
        }
        assert_eq!(cut(&sizes(&[(10, 1_000); 2]), 10, 100, |size| size.id == Value::Int32(0)), some(100, Some(1)));
    }
}
