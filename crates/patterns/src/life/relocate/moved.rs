//! How much a change of form moves: stored and logical documents as they are now, counted. For `plan`.

use crate::execute::access::{Access, aggregate};
use crate::life::catalog;
use crate::life::relocate::record;
use crate::life::relocate::record::Switchover;
use crate::mql;
use crate::rule::Rule;
use crate::rule::shape::Place;
use document::filter::Filter;
use document::op::{Count, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, DocWriter, Result, Value};

/// What is moved from one place.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    /// Where it is when the move begins: a collection that is renamed for it has its new name.
    pub(crate) from: Namespace,
    /// Stored documents that are not the logical ones.
    pub(crate) buckets: i64,
    /// Logical documents.
    pub(crate) readings: i64,
}

impl Moved {
    /// How many stored documents are read.
    pub(crate) fn read(&self) -> i64 {
        if self.buckets > 0 { self.buckets } else { self.readings }
    }

    pub(crate) fn write(&self, step: &mut DocWriter) {
        step.append("buckets", &Value::Int64(self.buckets)).append("readings", &Value::Int64(self.readings));
    }
}

/// The places that the switchover moves documents from, each with the name that its documents have now. Nothing is renamed yet.
pub(crate) fn sources(rule: &Rule, switchover: &Switchover) -> Result<Vec<(Namespace, Place)>> {
    let places = record::places(&switchover.places, &rule.host.db)?;
    let now = |place: &Place| {
        let earlier = switchover.renames.iter().find(|(_, to)| **to == *place.stored.collection);
        earlier.map_or_else(|| place.stored.clone(), |(from, _)| Namespace::new(&rule.host.db, from))
    };
    Ok(places.into_iter().skip(1).map(|place| (now(&place), place)).collect())
}

/// What the switchover moves to its first place, by the place that it is moved from.
pub(crate) async fn moved(at: &mut Access<'_>, rule: &Rule, switchover: &Switchover) -> Result<Vec<Moved>> {
    let mut all = Vec::new();
    for (now, place) in sources(rule, switchover)? {
        let (buckets, readings) = counted(at, &now, &place).await?;
        all.push(Moved { from: place.stored, buckets, readings });
    }
    Ok(all)
}

/// What a removed shape gives back.
pub(crate) async fn given_back(at: &mut Access<'_>, from: &Place) -> Result<Moved> {
    let (buckets, readings) = counted(at, &from.stored, from).await?;
    Ok(Moved { from: from.stored.clone(), buckets, readings })
}

/// How many stored documents a place has that are not the logical ones, and how many logical ones. All are looked at.
async fn counted(at: &mut Access<'_>, now: &Namespace, place: &Place) -> Result<(i64, i64)> {
    if place.shape.is_plain() {
        return Ok((0, documents(at, now).await?));
    }
    let group = mql::object([
        ("_id", Value::Null),
        ("buckets", mql::call("$sum", Value::Int32(1))),
        ("readings", mql::call("$sum", place.shape.logical_count())),
    ]);
    let stages: Array<'static> = [mql::call("$group", group)].into_iter().collect();
    let rows = at.all(aggregate(now, Pipeline::parse(&stages, &mut Names::new())?)).await?;
    let of = |name: &str| rows.first().map_or(0, |row| catalog::long(row.get(name)));
    Ok((of("buckets"), of("readings")))
}

async fn documents(at: &mut Access<'_>, ns: &Namespace) -> Result<i64> {
    let count = Count { ns: ns.clone(), filter: Filter::all(), skip: 0, limit: None, hint: None };
    let rows = at.all(ReadOp::Count(count)).await?;
    Ok(rows.first().and_then(|row| row.get("n")).and_then(|n| n.as_i64_exact()).unwrap_or_default())
}
