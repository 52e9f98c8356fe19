//! A client's `$inc` of one slot as one statement on its bucket: what a person would write by hand.

use crate::shapes::bucket::write::single_statement::SingleStatement;
use crate::shapes::bucket::{Body, Bucket, Slot, Slots};
use document::filter::{Filter, Node, Test};
use document::op::UpdateStatement;
use document::update::Update;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

/// The statement at that place as one `$inc` upsert; `None` if it says anything else. Only the statement decides, so that a
/// command that is sent again goes the same way.
pub(super) fn increment(bucket: &Arc<Bucket>, statement: &UpdateStatement, index: usize) -> Option<SingleStatement> {
    let Body::Slots(slots) = &bucket.body else { return None };
    if !statement.upsert || statement.hint.is_some() {
        return None;
    }
    let sums = sums(slots, &statement.update)?;
    let mut fields = DocWriter::new();
    equalities(bucket, slots, &statement.filter, &mut fields)?;
    for (name, value) in sums.iter() {
        fields.append(name.as_str(), &value);
    }
    // What cannot be encoded is refused by the way that evaluates it.
    let encoded = bucket.encode(&fields.finish()).ok()?;
    let statement = bucket.add(&encoded.key, 0, &[encoded.entry]).ok()?;
    Some(SingleStatement { index, statement, id: encoded.id })
}

/// `{ $inc: { <declared sum>: <number>, … } }` and nothing else.
fn sums(slots: &Slots, update: &Update) -> Option<Doc<'static>> {
    let Value::Document(spec) = &update.source else { return None };
    let mut operators = spec.iter();
    let (Some((name, Value::Document(fields))), None) = (operators.next(), operators.next()) else { return None };
    let declared = |name: &str| slots.sums.iter().any(|(sum, _)| &**sum == name);
    let fits = name.as_str() == "$inc"
        && !fields.is_empty()
        && fields.iter().all(|(name, value)| declared(name.as_str()) && value.is_number());
    fits.then(|| fields.into_owned())
}

/// Writes what the filter says, if that is one value for each series field, the time and the slot, and nothing else.
fn equalities(bucket: &Bucket, slots: &Slots, filter: &Filter, fields: &mut DocWriter) -> Option<()> {
    let mut wanted: Vec<&str> = bucket.by.iter().map(|series| &*series.field).chain([&*bucket.time]).collect();
    if let Slot::Field { field, .. } = &slots.slot {
        wanted.push(field);
    }
    let nodes = match &filter.root {
        Node::And(nodes) => nodes.as_slice(),
        node => std::slice::from_ref(node),
    };
    if nodes.len() != wanted.len() {
        return None;
    }
    for name in wanted {
        let mut values = nodes.iter().filter_map(|node| match node {
            Node::Field { path, test: Test::Eq(value) } if path.parts.len() == 1 && path.first() == name => Some(value),
            _ => None,
        });
        match values.next()? {
            // Equality with these asks for more than one value.
            Value::Array(_) | Value::Null | Value::Undefined | Value::Regex { .. } | Value::Missing => return None,
            value => fields.append(name, value),
        };
    }
    Some(())
}
