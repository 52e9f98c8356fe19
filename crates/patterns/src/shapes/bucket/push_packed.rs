//! Push-down where the stored `_id` is all there is: a series and a range of time are a range of bytes.

use crate::shapes::bucket::key::{packed_length, packed_period};
use crate::shapes::bucket::push::bytes_of;
use crate::shapes::bucket::{Bucket, hex};
use document::filter::{Node, Test};
use document::value::Path;
use document::value::calendar::Moment;
use document::{Doc, Value};

/// What a conjunction says about series and time. Nothing about the series means any; the bounds are included.
struct Bounds {
    series: Option<Vec<Vec<u8>>>,
    from: i64,
    to: i64,
}

impl Bucket {
    /// Nothing means that any bucket may have a match.
    pub(super) fn push_packed(&self, node: &Node) -> Option<Node> {
        if let Node::Or(nodes) = node {
            return nodes.iter().map(|node| self.push_packed(node)).collect::<Option<_>>().map(Node::Or);
        }
        let mut bounds = Bounds { series: None, from: i64::MIN, to: i64::MAX };
        let mut pushed = Vec::new();
        node.each_required(&mut |node| match node {
            Node::Field { path, test: Test::In(set) } if path.dotted() == "_id" && set.regexes.is_empty() => {
                let each = set.values.iter().map(|id| self.push_packed(&Node::equality("_id", id)));
                pushed.extend(each.collect::<Option<_>>().map(Node::Or));
            }
            Node::Field { path, test } => self.narrow(&mut bounds, path, test),
            Node::Or(_) => pushed.extend(self.push_packed(node)),
            _ => {}
        });
        if let Some(series) = &bounds.series {
            pushed.push(self.ranges(series, bounds.from, bounds.to));
        }
        (!pushed.is_empty()).then(|| Node::all_of(pushed))
    }

    fn narrow(&self, bounds: &mut Bounds, path: &Path, test: &Test) {
        if let Test::All(tests) = test {
            tests.iter().for_each(|test| self.narrow(bounds, path, test));
            return;
        }
        let names: Vec<&str> = path.parts.iter().map(|part| &*part.name).collect();
        let series = self.by.first().map_or("", |series| &series.field);
        match (names.as_slice(), test) {
            (["_id"], Test::Eq(Value::Document(id))) => self.narrow_by_id(bounds, id),
            // No logical document has another `_id`.
            (["_id"], Test::Eq(_)) => bounds.series = Some(Vec::new()),
            (["_id", name] | [name], test) if *name == series => bounds.narrow_series(test),
            (["_id", name] | [name], test) if *name == &*self.time => bounds.narrow_time(test),
            _ => {}
        }
    }

    fn narrow_by_id(&self, bounds: &mut Bounds, id: &Doc<'_>) {
        match self.parts_of_id(id) {
            Some(parts) => {
                if let [Some(series)] = parts.series.as_slice() {
                    bounds.narrow_series(&Test::Eq(series.clone()));
                }
                bounds.narrow_time(&Test::Eq(Value::DateTime(parts.at)));
            }
            None => bounds.series = Some(Vec::new()),
        }
    }

    /// The `_id`s of these series in these periods.
    fn ranges(&self, series: &[Vec<u8>], from: i64, to: i64) -> Node {
        let digits = |at: i64, beyond: u8| match Moment::of(at).year {
            0..=9999 => packed_period(self.every, at),
            _ => vec![beyond; packed_length(self.every)],
        };
        // Before the year 0 is before all, behind 9999 behind all; nothing lies between bounds on the same side.
        let (low, high) = (digits(from, if from < 0 { 0 } else { 0xFF }), digits(to, if to < 0 { 0 } else { 0xFF }));
        if from > to || low > high {
            return Node::Or(Vec::new());
        }
        let id = |series: &[u8], period: &[u8]| hex::binary([series, period].concat());
        let ranges = series.iter().map(|series| match low == high {
            true => Node::field("_id", Test::Eq(id(series, &low))),
            false => Node::all_of([
                Node::field("_id", Test::Gte(id(series, &low))),
                Node::field("_id", Test::Lte(id(series, &high))),
            ]),
        });
        let mut ranges: Vec<Node> = ranges.collect();
        match ranges.len() {
            1 => ranges.pop().unwrap_or(Node::Or(Vec::new())),
            _ => Node::Or(ranges),
        }
    }
}

impl Bounds {
    fn narrow_series(&mut self, test: &Test) {
        let values = match test {
            Test::Eq(value) => std::slice::from_ref(value),
            Test::In(set) if set.regexes.is_empty() => &set.values,
            _ => return,
        };
        // A packed series is always a text: nothing else equals one.
        let found: Vec<Vec<u8>> = values.iter().filter_map(|value| bytes_of(value).flatten()).collect();
        self.series = Some(match self.series.take() {
            Some(before) => before.into_iter().filter(|series| found.contains(series)).collect(),
            None => found,
        });
    }

    fn narrow_time(&mut self, test: &Test) {
        let dates = |values: &[Value<'_>]| -> Option<Vec<i64>> {
            let date = |value: &Value<'_>| if let Value::DateTime(at) = value { Some(*at) } else { None };
            values.iter().map(date).collect()
        };
        let (from, to) = match test {
            Test::Eq(Value::DateTime(at)) => (*at, *at),
            Test::Lt(Value::DateTime(at)) => (i64::MIN, at.saturating_sub(1)),
            Test::Lte(Value::DateTime(at)) => (i64::MIN, *at),
            Test::Gt(Value::DateTime(at)) | Test::Gte(Value::DateTime(at)) => (*at, i64::MAX),
            Test::In(set) if set.regexes.is_empty() => match dates(&set.values) {
                Some(dates) => match (dates.iter().min(), dates.iter().max()) {
                    (Some(first), Some(last)) => (*first, *last),
                    _ => return,
                },
                None => return,
            },
            _ => return,
        };
        self.from = self.from.max(from);
        self.to = self.to.min(to);
    }
}
