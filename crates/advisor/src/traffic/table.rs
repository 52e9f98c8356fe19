//! Operations counted by their shape: so many shapes at most, those that ran least leave.

use super::CommandShape;
use super::described;
use super::operation::Operation;
use document::traffic::{describe, fingerprint};
use document::{Doc, Value};
use hashbrown::HashMap;

/// How many shapes are kept, as a server does.
pub(super) const SHAPES: usize = 1_000;
/// The part of a full table that makes room.
const PART: usize = 16;

#[derive(Default)]
pub(super) struct Table {
    shapes: HashMap<u64, CommandShape>,
    /// The time of the first operation and of the last, in milliseconds since 1970.
    pub(super) first: Option<i64>,
    pub(super) last: i64,
}

impl Table {
    /// Counts an operation.
    pub(super) fn add(&mut self, operation: &Operation<'_>) {
        self.first = Some(self.first.map_or(operation.at, |first| first.min(operation.at)));
        self.last = self.last.max(operation.at);
        let made = operation.with_command(|command, statement| {
            let hash = fingerprint(&operation.database, command, statement);
            let filter = statement.leading_filter();
            if let Some(shape) = self.shapes.get_mut(&hash) {
                keep_same(&mut shape.constants, filter.as_ref());
                count(shape, operation);
                return None;
            }
            let mut shape = described::shape(&describe(&operation.database, command, statement))?;
            shape.constants = filter.as_ref().map(conditions).unwrap_or_default();
            count(&mut shape, operation);
            Some((hash, shape))
        });
        if let Some((hash, shape)) = made {
            if self.shapes.len() >= SHAPES {
                self.make_room();
            }
            self.shapes.insert(hash, shape);
        }
    }

    fn make_room(&mut self) {
        let mut worth: Vec<(u64, u64)> = self.shapes.iter().map(|(hash, shape)| (shape.count, *hash)).collect();
        worth.sort_unstable();
        for (_, hash) in worth.into_iter().take(SHAPES.div_ceil(PART)) {
            self.shapes.remove(&hash);
        }
    }

    /// How long it was from the first operation to the last.
    pub(super) fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a log")]
        self.first.map_or(0.0, |first| (self.last - first).max(0) as f64 / 1_000.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// The shapes of a source, in a fixed order.
    pub(super) fn finish(self, source: usize) -> Vec<CommandShape> {
        let mut all: Vec<(u64, CommandShape)> = self.shapes.into_iter().collect();
        all.sort_unstable_by(|(one_hash, one), (other_hash, other)| {
            other.count.cmp(&one.count).then_with(|| one_hash.cmp(other_hash))
        });
        all.into_iter().map(|(_, shape)| CommandShape { source, ..shape }).collect()
    }
}

fn count(shape: &mut CommandShape, operation: &Operation<'_>) {
    shape.count += u64::from(!operation.is_more);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    let milliseconds = operation.milliseconds as f64;
    shape.milliseconds += milliseconds;
    shape.examined += operation.examined;
    shape.returned += operation.returned.max(u64::from(matches!(&*operation.name, "count" | "distinct")));
    shape.written += operation.written;
    shape.bytes += operation.bytes;
}

/// The conditions of a filter that are plain values.
fn conditions(filter: &Doc<'_>) -> Vec<(String, Value<'static>)> {
    let plain = filter.iter().filter_map(|(name, value)| {
        let value = match &value {
            Value::Document(inner) => inner.get("$eq")?,
            value => value.borrow(),
        };
        let is_plain = !name.as_str().starts_with('$')
            && !matches!(value, Value::Document(_) | Value::Array(_) | Value::Regex { .. });
        is_plain.then(|| (name.as_str().to_owned(), value.into_owned()))
    });
    plain.collect()
}

fn keep_same(constants: &mut Vec<(String, Value<'static>)>, filter: Option<&Doc<'_>>) {
    if constants.is_empty() {
        return;
    }
    let now = filter.map(conditions).unwrap_or_default();
    constants.retain(|(path, value)| {
        now.iter().any(|(other, same)| other == path && crate::values::hash(same) == crate::values::hash(value))
    });
}
