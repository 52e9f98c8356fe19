//! A filter that asks for series and a span of time and nothing else.

use crate::shapes::bucket::Bucket;
use document::Value;
use document::filter::{Filter, InSet, Node, Test};
use document::value::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// In milliseconds, from (inclusive) …
    pub(super) from: i64,
    /// … to (exclusive); the end of time is never reached.
    pub(super) to: i64,
    /// On stored buckets: exactly those of the series that were asked for. Packed, all.
    pub(super) series: Filter,
    /// The bytes of the series that were asked for, if they are part of a packed `_id`; `None` means all.
    pub(super) packed: Option<Vec<Vec<u8>>>,
}

impl Scope {
    pub(super) fn of(bucket: &Bucket, filter: &Filter) -> Option<Scope> {
        let mut scope = Scope { from: i64::MIN, to: i64::MAX, series: Filter::all(), packed: None };
        let (mut nodes, mut plain) = (Vec::new(), true);
        filter.root.each_required(&mut |node| plain = plain && scope.take(bucket, node, &mut nodes).is_some());
        if !nodes.is_empty() {
            scope.series = Filter::from_node(Node::all_of(nodes));
        }
        plain.then_some(scope)
    }

    fn take(&mut self, bucket: &Bucket, node: &Node, nodes: &mut Vec<Node>) -> Option<()> {
        match node {
            Node::Field { path, test } if path.parts.len() == 1 && path.first() == &*bucket.time => self.time(test),
            Node::Field { path, test } if is_hex(bucket, path) => self.hex(bucket, path, test, nodes),
            // What tests only fields that are stored beside the readings may be asked of the bucket.
            Node::Expr(_) | Node::Whole(_) => None,
            node => {
                let paths = node.reads()?;
                let stored = |path: &Path| bucket.by.iter().any(|series| *series.field == *path.first() && !series.hex);
                let sayable = !contains_expression(node) && !paths.is_empty() && paths.iter().all(stored);
                sayable.then(|| nodes.push(node.clone()))
            }
        }
    }

    /// Only dates compare with a reading's time.
    fn time(&mut self, test: &Test) -> Option<()> {
        match test {
            Test::Gte(Value::DateTime(at)) => self.from = self.from.max(*at),
            Test::Gt(Value::DateTime(at)) => self.from = self.from.max(at.checked_add(1)?),
            Test::Lt(Value::DateTime(at)) => self.to = self.to.min(*at),
            Test::Lte(Value::DateTime(at)) => self.to = self.to.min(at.checked_add(1)?),
            Test::Eq(Value::DateTime(at)) => {
                self.from = self.from.max(*at);
                self.to = self.to.min(at.checked_add(1)?);
            }
            Test::All(tests) => return tests.iter().try_for_each(|test| self.time(test)),
            _ => return None,
        }
        Some(())
    }

    /// Hex digits are what readings have; no other value is worth a summary.
    fn hex(&mut self, bucket: &Bucket, path: &Path, test: &Test, nodes: &mut Vec<Node>) -> Option<()> {
        let keys: Vec<Vec<u8>> = match test {
            Test::Eq(value) => vec![bytes(value)?],
            Test::In(set) if set.regexes.is_empty() => set.values.iter().map(bytes).collect::<Option<_>>()?,
            _ => return None,
        };
        if path.parts.len() != 1 {
            return None;
        }
        if bucket.packed {
            // Two conditions on one field are too rare to be put together here.
            return self.packed.replace(keys).is_none().then_some(());
        }
        let values = keys.into_iter().map(|key| Value::Binary { subtype: 0, bytes: key.into() }).collect();
        let set = InSet::new(values, Vec::new());
        nodes.push(Node::Field { path: path.clone(), test: Test::In(Arc::new(set)) });
        Some(())
    }
}

fn is_hex(bucket: &Bucket, path: &Path) -> bool {
    bucket.by.iter().any(|series| *series.field == *path.first() && series.hex)
}

fn contains_expression(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(contains_expression),
        Node::Expr(_) | Node::Whole(_) => true,
        Node::Field { .. } => false,
    }
}

/// The bytes of an even number of hex digits.
fn bytes(value: &Value<'_>) -> Option<Vec<u8>> {
    document::value::hex::to_bytes(value.as_str()?)
}
