//! The rows of windows: of each key the first children by the order, and no more of them at a time.

use super::Window;
use crate::fields::fold::RowMaker;
use crate::fields::order::OrderValues;
use crate::fields::ranked::IDS;
use crate::mql::{document, list, object};
use crate::rule::numbers::{CHILDREN, StateForm, count};
use document::op::Capture;
use document::value::Path;
use document::{Doc, Result, Value};
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct WindowRows {
    pub(super) window: Window,
    pub(super) form: StateForm,
}

#[derive(Default)]
pub(super) struct FirstChildren {
    /// In order, never more than the window shows.
    list: Vec<Ranking>,
    children: i64,
}

struct Ranking {
    order: OrderValues,
    id: Value<'static>,
    item: Value<'static>,
}

impl RowMaker for WindowRows {
    type Gathered = FirstChildren;

    fn add(&self, first: &mut FirstChildren, child: &Doc<'_>) -> Result<()> {
        let (sort, keep) = (&self.window.order, usize::try_from(self.window.keep).unwrap_or(usize::MAX));
        first.children += 1;
        let (order, id) = (sort.values(child)?, child.borrow().get("_id").unwrap_or(Value::Missing));
        let is_before = |other: &Ranking| {
            let compared = sort.compare((&other.order, Some(&other.id)), (&order, Some(&id)));
            compared.is_some_and(|compared| compared != Ordering::Greater)
        };
        if first.list.len() >= keep && first.list.last().is_none_or(is_before) {
            return Ok(());
        }
        let at = first.list.partition_point(is_before);
        first.list.insert(at, Ranking { order, id: id.into_owned(), item: self.window.form.of(child) });
        first.list.truncate(keep);
        Ok(())
    }

    fn row(&self, key: &Value<'_>, first: FirstChildren) -> Doc<'static> {
        let ids = list(first.list.iter().map(|ranking| ranking.id.borrow()));
        let expected = list(first.list.into_iter().map(|ranking| ranking.item));
        let state = match self.form.children {
            true => object([(CHILDREN, count(first.children))]),
            false => Value::Missing,
        };
        document([("_id", key.borrow()), ("expected", expected), (IDS, ids), ("expectedState", state)])
    }

    fn reads(&self) -> Option<Vec<Path>> {
        let Capture::Paths(mut paths) = self.window.form.reads() else { return None };
        paths.extend(self.window.order.keys().into_iter().map(|(path, _)| path));
        paths.push(Path::new("_id"));
        Some(paths)
    }
}
