//! The value of the first or last child by an order; the last is the first from the other end. Its host does not hold the order, so
//! whatever may be first is looked up.

use crate::fields::fold::children::from_documents;
use crate::fields::fold::{ChildChange, Fold, FoldField, Grouping, KeyedRows, RowMaker, Shortcut};
use crate::fields::order::{OrderValues, SortOrder};
use crate::fields::ranked::{IDS, Ranked, combined, inquiry};
use crate::mql::{call, document, field, object};
use crate::rule::field::Samples;
use crate::rule::numbers::{CHILDREN, StateForm, count};
use crate::rule::{Delta, Effect, HostField, Link, Lookup, Needs, RegistryEntry};
use document::op::Capture;
use document::pipeline::Stage;
use document::pipeline::expr::field_of_document;
use document::value::{Path, show};
use document::{Doc, Result, Value};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "first",
    help: "The value of the first or last child document by an order.",
    page: "docs/concepts/computed.md",
    example: "examples/computed",
    blocks: &[
        "products:\n  computed:\n    firstRating: { first: rating, from: reviews, by: productId, sort: { at: 1 } }",
        "products:\n  computed:\n    lastRating: { last: rating, from: reviews, by: productId, sort: { at: 1 } }",
        // Of several that are equal, by `_id`.
        "products:\n  computed:\n    heaviest: { last: rating, from: reviews, by: productId, sort: { weight: 1, shelf: -1 }, where: { rating: { $gt: 1 } } }",
        "products:\n  computed:\n    lateRating: { first: rating, from: reviews, by: productId, sort: { weight: -1 }, lag: 1ms }",
        "products:\n  computed:\n    stats.lastSale: { last: sold.amount, from: sales, by: sold.productId, sort: { status: 1 } }",
        // Of a field that another rule keeps.
        "customers:\n  computed:\n    firstDouble: { first: double, from: orders, by: customerId, sort: { double: -1 } }\norders:\n  computed:\n    double: { expr: { $multiply: [{ $ifNull: [$n, 0] }, 2] } }",
    ],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    First,
    Last,
}

/// Which child's value is kept.
#[derive(Clone, Debug)]
pub struct First {
    path: Path,
    /// As declared.
    order: SortOrder,
    end: End,
    /// From the end that is kept.
    from_end: SortOrder,
}

/// The value of the first or last of linked documents.
pub type FirstField = FoldField<First>;

impl FirstField {
    pub fn new(target: HostField, link: Link, first: First) -> Result<FirstField> {
        FoldField::of(target, link, first)
    }
}

impl First {
    pub fn new(path: Path, order: SortOrder, end: End) -> First {
        let from_end = match end {
            End::First => order.clone(),
            End::Last => order.reversed(),
        };
        First { path, order, end, from_end }
    }

    fn sort(&self) -> Value<'static> {
        call("$sort", Value::Document(self.from_end.document()))
    }

    fn found(&self) -> Value<'static> {
        call("$first", field(&self.path.dotted()))
    }

    /// Null where the child has none, as the accumulator gives it.
    fn value(&self, child: &Doc<'_>) -> Value<'static> {
        match field_of_document(child, &self.path.parts) {
            Value::Missing => Value::Null,
            value => value.into_owned(),
        }
    }
}

impl Fold for First {
    fn describe(&self, source: &str) -> String {
        let end = match self.end {
            End::First => "first",
            End::Last => "last",
        };
        let order = Value::Document(self.order.document());
        format!("{end} {} from {source} in the order {}", self.path, show::element(&order))
    }

    fn reads(&self) -> Capture {
        let order = self.order.keys().into_iter().map(|(path, _)| path);
        Capture::Paths(std::iter::once(self.path.clone()).chain(order).collect())
    }

    fn empty(&self) -> Value<'static> {
        Value::Null
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        let mut row = vec![("expected", field("found")), (IDS, Value::Int32(1))];
        if form.children {
            row.push(("expectedState", object([(CHILDREN, field(CHILDREN))])));
        }
        Grouping {
            before: vec![from_documents(), self.sort()],
            accumulators: vec![("found", self.found()), (IDS, call("$first", field("_id")))],
            behind: vec![call("$project", object(row))],
        }
    }

    fn rows(&self, key: Path, form: StateForm) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(KeyedRows { key, maker: FirstRows { first: self.clone(), form } }))
    }

    fn shortcut(&self) -> Option<Shortcut> {
        let row = object([("_id", Value::Null), ("expected", self.found()), (IDS, call("$first", field("_id")))]);
        let branch = vec![from_documents(), self.sort(), call("$limit", Value::Int64(1)), call("$group", row)];
        Some(Shortcut { branches: vec![branch], behind: Vec::new() })
    }

    fn lookup(&self) -> Lookup {
        self.order.lookup()
    }

    /// One index serves both ends.
    fn needs(&self, host: &HostField, link: &Link) -> Needs {
        self.order.needs(&host.host, link)
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let changed = Ranked::of(change, &self.order, |child| self.value(child));
        changed.map(|ranked| inquiry(ranked.delta)).into_iter().collect()
    }

    fn combine(&self, first: Delta, second: &Delta) -> Delta {
        combined(first, second)
    }

    fn samples(&self, sources: &[Doc<'static>]) -> Samples {
        Samples { values: sources.iter().map(|child| self.value(child)).collect(), ..Samples::default() }
    }
}

/// The rows: of each key the child that is first so far.
#[derive(Debug)]
struct FirstRows {
    first: First,
    form: StateForm,
}

#[derive(Default)]
struct FirstChild {
    /// Its order, `_id` and value.
    child: Option<(OrderValues, Value<'static>, Value<'static>)>,
    children: i64,
}

impl RowMaker for FirstRows {
    type Gathered = FirstChild;

    fn add(&self, found: &mut FirstChild, child: &Doc<'_>) -> Result<()> {
        let (by, id) = (&self.first.from_end, child.borrow().get("_id").unwrap_or(Value::Missing));
        let order = by.values(child)?;
        found.children += 1;
        let is_behind = found.child.as_ref().is_some_and(|(other, other_id, _)| {
            by.compare((&order, Some(&id)), (other, Some(other_id))).is_none_or(Ordering::is_ge)
        });
        if !is_behind {
            found.child = Some((order, id.into_owned(), self.first.value(child)));
        }
        Ok(())
    }

    fn row(&self, key: &Value<'_>, found: FirstChild) -> Doc<'static> {
        let state = match self.form.children {
            true => object([(CHILDREN, count(found.children))]),
            false => Value::Missing,
        };
        let (id, value) = found.child.map_or((Value::Missing, Value::Null), |(_, id, value)| (id, value));
        document([("_id", key.borrow()), ("expected", value), (IDS, id), ("expectedState", state)])
    }

    fn reads(&self) -> Option<Vec<Path>> {
        let Capture::Paths(paths) = self.first.reads() else { return None };
        Some(paths.into_iter().chain([Path::new("_id")]).collect())
    }
}
