//! Which hosts have no room for a dotted field: something that is neither a document nor null is on the way to it.

use crate::execute::access::Access;
use crate::execute::evaluate::Evaluator;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::{documents, sample};
use crate::mql::{call, document, list, object};
use crate::rule::{Obstacle, Rule};
use document::backend::{BatchLimit, Session};
use document::filter::Filter;
use document::op::{Find, ReadOp};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::{Result, Value};
use std::sync::Arc;

const BATCH: BatchLimit = BatchLimit { documents: 2_000, bytes: 4 << 20 };

/// Counts them. Nothing can be kept there, whatever flag is given.
pub(super) async fn look(at: &mut Access<'_>, rule: &Arc<Rule>) -> Result<Option<Refusal>> {
    if rule.field.parts.len() < 2 {
        return Ok(None);
    }
    let (evaluator, mut reading) = (Evaluator::new(rule)?, Session::default());
    let mut cursor = at.backend.read(&mut reading, at.context, ReadOp::Find(suspects(rule)?)).await?;
    let (mut number, mut example): (u64, Option<(Value<'static>, Obstacle)>) = (0, None);
    loop {
        let batch = cursor.next(&mut reading, at.context, BATCH).await?;
        for host in &batch.documents {
            if let Some(obstacle) = evaluator.obstacle(host) {
                number += 1;
                example.get_or_insert_with(|| (host.get("_id").unwrap_or(Value::Null), obstacle));
            }
        }
        if batch.exhausted {
            break;
        }
    }
    let refusal = |(id, obstacle): (Value<'static>, Obstacle)| {
        let (name, field, number) = (&rule.name, &rule.field, documents(number));
        let (id, value) = (sample::shown(&id), sample::shown(&obstacle.value));
        let reason = format!(
            "rule {name}: `{}` is not a document in {number}, such as {value} in that with _id {id}, so `{field}` has no place there",
            obstacle.name
        );
        let way_out = "change these documents first, or keep the field elsewhere";
        Refusal { need: Need::OtherData(way_out.to_owned()), reason }
    };
    Ok(example.map(refusal))
}

/// What of the hosts must be looked at: no more than the fields that lead to the value and to the reference.
fn suspects(rule: &Arc<Rule>) -> Result<Find> {
    let is_in_elements = rule.kept_field().is_none_or(|field| field.enters_arrays());
    let filter = match is_in_elements {
        true => Filter::all(),
        false => Filter::parse(&document([("$or", obstructed(rule))]), &mut Names::new())?,
    };
    let mut names = vec!["_id", rule.field.first()];
    if let Some(link) = rule.link() {
        names.push(link.local.path.first());
    }
    names.sort_unstable();
    names.dedup();
    let shown = document(names.into_iter().map(|name| (name, Value::Int32(1))));
    let projection = Some(Arc::new(Projection::parse_find(&shown, &filter, &mut Names::new())?));
    Ok(Find { projection, ..Find::matching(rule.host.clone(), filter) })
}

/// One condition for each part of the way. `$type` looks into arrays, so these are named.
fn obstructed(rule: &Rule) -> Value<'static> {
    let mut path = String::new();
    let mut any = Vec::new();
    let on_way = rule.field.parts.len().saturating_sub(1);
    for part in rule.field.parts.iter().take(on_way) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&part.name);
        let of_type = |name: &str| object([(&*path, call("$type", Value::from(name)))]);
        any.push(of_type("array"));
        any.push(call("$nor", list([of_type("object"), object([(&*path, Value::Null)])])));
    }
    list(any)
}
