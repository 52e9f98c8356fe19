//! A pipeline that groups all documents of a filter, or those of each series, read from its source.

use crate::shapes::bucket::{Body, Bucket, Stat};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::{Array, Doc, Value};
use std::sync::Arc;

/// One document for all, or for each series.
#[derive(Clone, Debug)]
pub(super) struct GroupSpec {
    pub(super) id: GroupId,
    /// `$count` gives a document without `_id`.
    pub(super) shows_id: bool,
    pub(super) fields: Vec<GroupField>,
}

#[derive(Clone, Debug)]
pub(super) enum GroupId {
    Constant(Value<'static>),
    /// One field of the series.
    Series(Arc<str>),
    /// `{ name: field of the series, … }`
    Fields(Vec<(Arc<str>, IdPart)>),
}

#[derive(Clone, Debug)]
pub(super) enum IdPart {
    Series(Arc<str>),
    Constant(Value<'static>),
}

#[derive(Clone, Debug)]
pub(super) struct GroupField {
    pub(super) name: Arc<str>,
    pub(super) kind: Accumulator,
    /// The stored name of the field that it is about; of counts the number that stands for each document.
    pub(super) of: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accumulator {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Each(Value<'static>),
    Stored {
        field: Arc<str>,
        /// The declared figure that is the answer for a whole bucket.
        stat: Option<String>,
    },
}

/// Filter, group, and the stages that follow. Returns `None` if the stages are others: of a plain find nothing is parsed.
pub(super) fn split(bucket: &Bucket, stages: &Array<'_>) -> Option<(Filter, GroupSpec, Array<'static>)> {
    let (mut conditions, mut stages) = (Vec::new(), stages.iter());
    let group = loop {
        let Value::Document(stage) = stages.next()? else { return None };
        let (name, spec) = stage.iter().next()?;
        match (name.as_str(), spec) {
            ("$match", Value::Document(source)) => conditions.push(source),
            ("$group", Value::Document(spec)) => break group(bucket, &spec)?,
            ("$count", Value::String(name)) => {
                let each = Operand::Each(Value::Int32(1));
                let field = GroupField { name: name.as_str().into(), kind: Accumulator::Count, of: each };
                break GroupSpec { id: GroupId::Constant(Value::Null), shows_id: false, fields: vec![field] };
            }
            _ => return None,
        }
    };
    let mut filter = Filter::all();
    for condition in &conditions {
        filter = filter.and(Filter::parse(condition, &mut Names::new()).ok()?);
    }
    Some((filter, group, stages.map(Value::into_owned).collect()))
}

fn group(bucket: &Bucket, spec: &Doc<'_>) -> Option<GroupSpec> {
    let (mut id, mut fields) = (None, Vec::new());
    for (name, value) in spec.iter() {
        match name.as_str() {
            "_id" => id = Some(group_id(bucket, &value)?),
            name => fields.push(field(bucket, name, &value)?),
        }
    }
    Some(GroupSpec { id: id?, shows_id: true, fields })
}

fn group_id(bucket: &Bucket, value: &Value<'_>) -> Option<GroupId> {
    match value {
        Value::Null | Value::Bool(_) | Value::Int32(_) | Value::Int64(_) => {
            Some(GroupId::Constant(value.clone().into_owned()))
        }
        Value::String(_) => series(bucket, value).map(GroupId::Series),
        Value::Document(fields) if !fields.is_empty() => fields
            .iter()
            .map(|(name, value)| {
                let plain = !name.as_str().starts_with('$') && !name.as_str().contains('.');
                let part = match value.as_str()?.starts_with('$') {
                    true => IdPart::Series(series(bucket, &value)?),
                    false => IdPart::Constant(value.into_owned()),
                };
                plain.then(|| (Arc::from(name.as_str()), part))
            })
            .collect::<Option<_>>()
            .map(GroupId::Fields),
        _ => None,
    }
}

/// The field of the series that `"$name"` is.
fn series(bucket: &Bucket, value: &Value<'_>) -> Option<Arc<str>> {
    let name = value.as_str()?.strip_prefix('$')?;
    bucket.by.iter().find(|series| *series.field == *name).map(|series| series.field.clone())
}

fn field(bucket: &Bucket, name: &str, value: &Value<'_>) -> Option<GroupField> {
    let Value::Document(accumulator) = value else { return None };
    let mut parts = accumulator.iter();
    let (Some((operator, argument)), None) = (parts.next(), parts.next()) else { return None };
    let named = |kind, of| Some(GroupField { name: name.into(), kind, of });
    let kind = match (operator.as_str(), &argument) {
        ("$count", Value::Document(none)) if none.is_empty() => {
            return named(Accumulator::Count, Operand::Each(Value::Int32(1)));
        }
        ("$sum", Value::Int32(_) | Value::Int64(_)) => {
            return named(Accumulator::Count, Operand::Each(argument.into_owned()));
        }
        ("$sum", _) => Accumulator::Sum,
        ("$avg", _) => Accumulator::Avg,
        ("$min", _) => Accumulator::Min,
        ("$max", _) => Accumulator::Max,
        _ => return None,
    };
    let path = argument.as_str()?.strip_prefix('$').filter(|path| !path.contains(['.', '$']) && !path.is_empty())?;
    named(kind, stored(bucket, kind, path)?)
}

/// Under which name, if any, an own field of the readings is stored.
fn stored(bucket: &Bucket, kind: Accumulator, path: &str) -> Option<Operand> {
    match &bucket.body {
        Body::Slots(slots) => {
            let (_, short) = slots.sums.iter().find(|(sum, _)| **sum == *path)?;
            Some(Operand::Stored { field: short.clone(), stat: None })
        }
        Body::Readings(readings) => {
            let beside =
                path == "_id" || *bucket.time == *path || bucket.by.iter().any(|series| *series.field == *path);
            if beside || *readings.unit.name == *path {
                return None;
            }
            let wanted = match kind {
                Accumulator::Sum => Some(Stat::Sum),
                Accumulator::Min => Some(Stat::Min),
                Accumulator::Max => Some(Stat::Max),
                // A mean of means is none.
                Accumulator::Avg | Accumulator::Count => None,
            };
            let declared = readings.stats.iter().filter(|(of, _)| **of == *path).flat_map(|(_, stats)| stats);
            let stat = declared.copied().find(|stat| Some(*stat) == wanted).map(|stat| stat.of(path));
            Some(Operand::Stored { field: path.into(), stat })
        }
    }
}
