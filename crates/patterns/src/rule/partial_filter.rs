//! The `where` of a rule as the filter of a partial index: an index of exactly the children that count has them page by page. MongoDB
//! takes few operators there, and of those finds its way back from a query for fewer still (`$or` is taken and never used).

use document::filter::Filter;
use document::{Doc, Value};

/// As `partialFilterExpression` takes it; `None` if an index of all children must do.
pub(crate) fn of(filter: &Filter) -> Option<Doc<'static>> {
    let fits = filter.source.iter().all(|(name, test)| fits(name.as_str(), &test));
    (fits && !filter.source.is_empty()).then(|| filter.source.clone())
}

fn fits(name: &str, test: &Value<'_>) -> bool {
    match (name, test) {
        ("$and", Value::Array(all)) => all.iter().all(|part| match part {
            Value::Document(part) => part.iter().all(|(name, test)| fits(name.as_str(), &test)),
            _ => false,
        }),
        (operator, _) if operator.starts_with('$') => false,
        (_, Value::Document(operators)) => {
            !operators.is_empty() && operators.iter().all(|(operator, operand)| is_taken(operator.as_str(), &operand))
        }
        (_, value) => is_plain(value),
    }
}

fn is_taken(operator: &str, operand: &Value<'_>) -> bool {
    match (operator, operand) {
        ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", value) => is_plain(value),
        ("$in", Value::Array(values)) => values.iter().all(|value| is_plain(&value)),
        ("$exists", flag) => flag.is_truthy(),
        ("$type", _) => true,
        _ => false,
    }
}

/// A value that means the same to every index: null means missing too, an array its elements, NaN compares in its own way.
fn is_plain(value: &Value<'_>) -> bool {
    match value {
        Value::String(_) | Value::Bool(_) | Value::DateTime(_) | Value::ObjectId(_) => true,
        number => number.as_number().is_some_and(|number| !number.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::pipeline::expr::Names;

    #[test]
    fn what_mongodb_takes_and_uses_is_said() {
        for (filter, is_said) in [
            (doc! { "status": "paid" }, true),
            (doc! { "rating": { "$gte": 4, "$lt": 6 }, "shown": true }, true),
            (doc! { "status": { "$in": ["paid", "sent"] } }, true),
            (doc! { "$and": [{ "a": 1 }, { "b": { "$exists": true } }] }, true),
            (doc! { "n": { "$type": "int" } }, true),
            (doc! { "status": { "$ne": "open" } }, false),
            (doc! { "$or": [{ "a": 1 }, { "b": 1 }] }, false),
            (doc! { "a": { "$exists": false } }, false),
            (doc! { "a": null }, false),
            (doc! { "a": { "$gt": f64::NAN } }, false),
            (doc! { "a": [1] }, false),
            (doc! { "a": { "b": 1 } }, false),
            (doc! { "$expr": { "$eq": ["$a", "$b"] } }, false),
            (doc! { "a": { "$regex": "x" } }, false),
            (doc! {}, false),
        ] {
            let parsed = Filter::parse(&Doc::from(filter.clone()), &mut Names::new()).unwrap();
            assert_eq!(of(&parsed), is_said.then(|| Doc::from(filter.clone())), "{filter}");
        }
    }
}
