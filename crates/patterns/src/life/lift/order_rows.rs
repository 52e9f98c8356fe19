//! The order of lifted items in `pleach.replaced`: ids, not the items themselves. A row is about one part of one host's array:
//! `{ _id: { rule, since, host, item }, ids, made, keyed }`, where `item` is the place of the first and the lists name places in `ids` whose
//! `_id` was made, or that held the key of their host. The first row of a host also has `array`, where the array stood and what it was if
//! it was none, or the empty document that its window was made in (see [`crate::execute::replaced::values`]), and `there`, the ids of
//! the children that the host had before.

use crate::execute::replaced::values::Places;
use crate::life::lift::item::{Child, Lift};
use crate::life::replaced::{host_id, host_of};
use crate::mql;
use crate::rule::key;
use document::value::Path;
use document::{Array, Doc, DocWriter, Value};
use hashbrown::{HashMap, HashSet};

/// What is kept of some items of a host.
pub(super) struct OrderRow<'c> {
    pub(super) host: Value<'static>,
    /// The place of the first.
    pub(super) item: i64,
    pub(super) children: &'c [Child],
    /// Of the first row.
    pub(super) array: Option<Array<'static>>,
    pub(super) there: Vec<Value<'static>>,
}

impl OrderRow<'_> {
    /// Whether it tells nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty() && self.array.is_none() && self.there.is_empty()
    }

    pub(super) fn write(&self, lift: &Lift<'_>, since: i64) -> Doc<'static> {
        let mut id = DocWriter::new();
        if let Value::Document(of_host) = host_id(&lift.rule.name, since, Some(&self.host)) {
            for (name, value) in of_host.iter() {
                id.append(name.as_str(), &value);
            }
        }
        id.append("item", &Value::Int64(self.item));
        let places = |is: fn(&Child) -> bool| -> Array<'static> {
            let places = self.children.iter().enumerate().filter(|(_, child)| is(child));
            places.map(|(place, _)| Value::Int32(i32::try_from(place).unwrap_or(i32::MAX))).collect()
        };
        let mut row = DocWriter::new();
        row.append("_id", &Value::Document(id.finish()));
        row.append("ids", &Value::Array(self.children.iter().map(|child| child.id.clone()).collect()));
        for (name, list) in [("made", places(|child| child.is_made)), ("keyed", places(|child| child.had_key))] {
            if !list.is_empty() {
                row.append(name, &Value::Array(list));
            }
        }
        if let Some(array) = &self.array {
            row.append("array", &Value::Array(array.borrow()));
        }
        if !self.there.is_empty() {
            row.append("there", &Value::Array(self.there.iter().cloned().collect()));
        }
        row.finish()
    }
}

/// Whether a row of `pleach.replaced` is about lifted items.
pub(crate) fn is_order_row(row: &Doc<'_>) -> bool {
    row.contains("ids")
}

/// What was kept of one host.
#[derive(Default)]
pub(super) struct HostOrder {
    /// The ids of the items in their order; whether each was made, and whether the item held the key.
    pub(super) items: Vec<(Value<'static>, bool, bool)>,
    pub(super) array: Option<Array<'static>>,
    /// Children that were there before, as bytes.
    pub(super) there: HashSet<Vec<u8>>,
}

/// By host; rows come in the order of hosts and items.
pub(super) fn read(rows: &[Doc<'static>]) -> HashMap<Vec<u8>, HostOrder> {
    let mut orders: HashMap<Vec<u8>, HostOrder> = HashMap::new();
    for row in rows.iter().filter(|row| is_order_row(row)) {
        let Some(host) = host_of(row) else { continue };
        let order = orders.entry(key::bytes(&host)).or_default();
        let (made, keyed) = (places(row, "made"), places(row, "keyed"));
        for (place, id) in list(row, "ids").into_iter().enumerate() {
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            order.items.push((id, made.contains(&place), keyed.contains(&place)));
        }
        if let Some(Value::Array(array)) = row.get("array") {
            order.array = Some(array);
        }
        order.there.extend(list(row, "there").iter().map(key::bytes));
    }
    orders
}

/// The ids of the items that one row is about.
pub(super) fn ids(row: &Doc<'static>) -> Vec<Value<'static>> {
    list(row, "ids")
}

fn list(row: &Doc<'static>, name: &str) -> Vec<Value<'static>> {
    match row.get(name) {
        Some(Value::Array(list)) => list.iter().map(Value::into_owned).collect(),
        _ => Vec::new(),
    }
}

fn places(row: &Doc<'static>, name: &str) -> HashSet<i64> {
    list(row, name).iter().filter_map(|place| place.as_i64_exact()).collect()
}

/// Where the array stands in a host, with `value` in its place.
pub(super) fn standing(array: &Path, host: &Doc<'_>, value: &Value<'_>) -> Array<'static> {
    with_value(&Places::at(array).record(host), array, value)
}

/// Whether a record says where the array stood.
pub(super) fn has_array(record: &Array<'_>, array: &Path) -> bool {
    let path = array.dotted();
    record.iter().any(|entry| matches!(entry, Value::Document(entry) if is_of(&entry, &path)))
}

/// Whether an entry of a record is about a path.
fn is_of(entry: &Doc<'_>, path: &str) -> bool {
    entry.get("path").is_some_and(|at| at.as_str() == Some(path))
}

/// A record whose entry of the array has another value.
pub(super) fn with_value(record: &Array<'_>, array: &Path, value: &Value<'_>) -> Array<'static> {
    let path = array.dotted();
    let other = |entry: Value<'_>| match entry {
        Value::Document(entry) if is_of(&entry, &path) => {
            let fields = entry.iter().map(|(name, now)| match name.as_str() {
                "value" => ("value".to_owned(), value.clone().into_owned()),
                other => (other.to_owned(), now.into_owned()),
            });
            let fields: Vec<(String, Value<'static>)> = fields.collect();
            mql::object(fields.iter().map(|(name, value)| (&**name, value.borrow())))
        }
        other => other.into_owned(),
    };
    record.iter().map(other).collect()
}
