//! How many children of a key have a value now, as one pipeline for all questions of a part: rows `{ _id: key, about: value, n }`.

use super::{DistinctFold, VALUE, amount};
use crate::fields::fold::children::{counted, key_field, of_key, of_keys, one_after_the_other, only};
use crate::mql::{call, call_with, field, list, object};
use crate::rule::field::SOUGHT_KEYS;
use crate::rule::{Fetch, Link, Question, key};
use document::value::order;
use document::{Array, Value};

/// So many questions are looked up one by one, each only as far as it must be counted; more are counted in one pass.
const SOUGHT: usize = SOUGHT_KEYS;

pub(super) fn stages(fold: &DistinctFold, link: &Link, questions: &[Question], fetch: Fetch) -> Array<'static> {
    let may_join = fetch != Fetch::Shaped || questions.len() == 1;
    let is_sought = questions.len() <= SOUGHT && link.foreign.is_seekable() && may_join;
    let stages = if is_sought { one_by_one(fold, link, questions) } else { at_once(fold, link, questions) };
    stages.into_iter().collect()
}

fn one_by_one(fold: &DistinctFold, link: &Link, questions: &[Question]) -> Vec<Value<'static>> {
    let seek = |question: &Question| {
        let value = || call("$literal", question.about.borrow());
        let mut seek = of_key(link, &question.key);
        seek.extend(candidates(fold, std::slice::from_ref(&question.about)));
        seek.push(only(call_with("$in", [value(), fold.list_of_values()])));
        seek.extend(counted(link));
        // More than these children do not change the answer.
        seek.push(call("$limit", Value::Int64(amount(&question.delta).abs() + 1)));
        seek.push(call("$group", object([("_id", Value::Null), ("n", call("$sum", Value::Int32(1)))])));
        let row = [("_id", call("$literal", question.key.borrow())), ("about", value()), ("n", Value::Int32(1))];
        seek.push(call("$project", object(row)));
        seek
    };
    one_after_the_other(link, questions.iter().map(seek).collect())
}

fn at_once(fold: &DistinctFold, link: &Link, questions: &[Question]) -> Vec<Value<'static>> {
    let each_once = |of: fn(&Question) -> &Value<'static>| {
        let mut values: Vec<Value<'static>> = questions.iter().map(|question| of(question).clone()).collect();
        values.sort_by(order::compare);
        values.dedup_by(|a, b| order::equal(a, b));
        values
    };
    let mut stages: Vec<Value<'static>> =
        candidates(fold, &each_once(|question| &question.about)).into_iter().collect();
    stages.extend(of_keys(link, &each_once(|question| &question.key)));
    stages.extend(counted(link));
    // Once for each child that has it.
    let values = call_with("$setUnion", [fold.list_of_values(), list([])]);
    stages.push(call("$set", object([(VALUE, values)])));
    stages.push(call("$unwind", field(VALUE)));
    let group = object([("key", field(&key_field(link))), ("value", field(VALUE))]);
    stages.push(call("$group", object([("_id", group), ("n", call("$sum", Value::Int32(1)))])));
    let row = [("_id", field("_id.key")), ("about", field("_id.value")), ("n", Value::Int32(1))];
    stages.push(call("$project", object(row)));
    stages
}

/// Finds all children that may have one of these values, by an index; `None` if none can tell.
fn candidates(fold: &DistinctFold, values: &[Value<'static>]) -> Option<Value<'static>> {
    let sought = |value: &Value<'static>| match value {
        // A path through an array gives an array that no document holds: its first element is there.
        Value::Array(items) if !fold.each_value => items.get(0).map(Value::into_owned),
        other => Some(other.clone()),
    };
    let sought: Vec<Value<'static>> = values.iter().map(sought).collect::<Option<_>>()?;
    // MongoDB compares no field with it.
    let can_be = sought.iter().all(|value| !matches!(value, Value::Undefined));
    can_be.then(|| key::any_of(&fold.path, &sought))
}
