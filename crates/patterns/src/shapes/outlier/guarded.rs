//! A `$push` on a document that has no overflow and room for the items: one statement, guarded by flag and count. What matches
//! nothing is no such document, and goes the long way.

use crate::mql::{call, call_with, document, field, list, object};
use crate::rule::Outlier;
use crate::shapes::outlier::array_update::items;
use crate::shapes::outlier::stored::number;
use document::filter::{Filter, Node, Test};
use document::op::UpdateStatement;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{DocWriter, Result, Value};
use std::sync::Arc;

/// The guarded statement; `None` if it is not a push by `_id` that one statement can do.
pub(crate) fn guarded(outliers: &[Arc<Outlier>], statement: &UpdateStatement) -> Result<Option<UpdateStatement>> {
    let is_by_id = statement.filter.root.required_equality("_id").is_some() && statement.filter.collation.is_none();
    let Value::Document(operators) = &statement.update.source else { return Ok(None) };
    if !is_by_id || statement.multi || statement.update.is_replacement() {
        return Ok(None);
    }
    let mut filter = statement.filter.clone();
    let (mut counts, mut pushes) = (DocWriter::new(), false);
    for outlier in outliers {
        let mut pushed: Option<Vec<Value<'static>>> = None;
        for (operator, fields) in operators.iter() {
            let Value::Document(fields) = fields else { continue };
            for (path, argument) in fields.iter() {
                match path.as_str().split('.').next() == Some(&outlier.field) {
                    false => {}
                    true if operator.as_str() == "$push" && path.as_str() == outlier.field => {
                        pushed = Some(items(&argument));
                    }
                    true => return Ok(None),
                }
            }
        }
        let is_tested = crate::shapes::outlier::filter::is_about(std::slice::from_ref(outlier), &statement.filter);
        if pushed.is_none() && !is_tested {
            continue;
        }
        let new = pushed.unwrap_or_default();
        let Some(room) = outlier.keep.checked_sub(new.len()) else { return Ok(None) };
        // The whole array is embedded then: a condition on it is exact.
        filter = filter.and(Filter::from_node(Node::field(&outlier.flag, Test::Not(Box::new(Test::Exists)))));
        if new.is_empty() {
            continue;
        }
        pushes = true;
        let most = i64::try_from(room).unwrap_or(i64::MAX);
        filter = filter.and(Filter::from_node(Node::field(&outlier.count, Test::Lte(Value::Int64(most)))));
        if let Some(limit) = outlier.keep_bytes {
            filter = filter.and(fits(outlier, limit, &new)?);
        }
        if outlier.unique {
            let other = Test::Not(Box::new(Test::among(new.clone())));
            filter = filter.and(Filter::from_node(Node::field(&outlier.field, other)));
            if new
                .iter()
                .enumerate()
                .any(|(at, item)| super::filter::contains(new.get(at + 1..).unwrap_or_default(), item))
            {
                return Ok(None);
            }
        }
        counts.append(&outlier.count, &number(new.len() as u64));
    }
    if !pushes {
        return Ok(None);
    }
    let update = with_counts(&statement.update, counts)?;
    Ok(Some(UpdateStatement { filter, update, multi: false, upsert: false, hint: statement.hint.clone() }))
}

/// Whether array and new items are small enough together.
fn fits(outlier: &Outlier, limit: usize, new: &[Value<'static>]) -> Result<Filter> {
    let empty = call_with("$ifNull", [field(&outlier.field), list([])]);
    let all = call("$bsonSize", object([("a", empty)]));
    let more = DocWriter::new().append("", &list(new.iter().map(Value::borrow))).len();
    let room = i64::try_from(limit.saturating_sub(more)).unwrap_or(i64::MAX);
    let expression = call_with("$lte", [all, Value::Int64(room)]);
    Filter::parse(&document([("$expr", expression)]), &mut Names::new())
}

/// The operators, and the counts beside them.
fn with_counts(update: &Update, counts: DocWriter) -> Result<Update> {
    let Value::Document(operators) = &update.source else { return Ok(update.clone()) };
    let counts = counts.finish();
    let mut writer = DocWriter::with_capacity(operators.as_bytes().len() + 64);
    for (operator, fields) in operators.iter() {
        match (operator.as_str(), &fields) {
            ("$inc", Value::Document(own)) => {
                let mut all = DocWriter::new();
                for (name, value) in own.iter().chain(counts.iter()) {
                    all.append(name.as_str(), &value);
                }
                writer.append("$inc", &Value::Document(all.finish()));
            }
            (name, fields) => drop(writer.append(name, fields)),
        }
    }
    if !operators.contains("$inc") {
        writer.append("$inc", &Value::Document(counts));
    }
    Update::parse(&Value::Document(writer.finish()), &update.array_filters, &mut Names::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::outlier::samples::followers;
    use bson::doc;
    use document::Doc;

    fn shown(filter: bson::Document, update: bson::Document) -> Option<(String, String)> {
        let statement = UpdateStatement {
            filter: Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap(),
            update: Update::parse(&Value::Document(Doc::from(update)), &[], &mut Names::new()).unwrap(),
            multi: false,
            upsert: false,
            hint: None,
        };
        let found = guarded(&[Arc::new(followers(5))], &statement).unwrap()?;
        let Value::Document(update) = &found.update.source else { panic!("{found:?}") };
        let text = |doc: &Doc<'_>| bson::Document::try_from(doc).unwrap().to_string();
        Some((text(&found.filter.source), text(update)))
    }

    #[test]
    fn a_push_by_id_is_one_statement() {
        let (filter, update) =
            shown(doc! { "_id": 1 }, doc! { "$push": { "followers": { "$each": [1, 2] } } }).unwrap();
        for part in ["_id", "hasOverflow", "\"followerCount\": { \"$lte\": 3 }"] {
            assert!(filter.contains(part), "{filter}");
        }
        assert!(update.contains("\"$inc\": { \"followerCount\": 2 }"), "{update}");
        let (_, update) = shown(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 }, "$push": { "followers": 1 } }).unwrap();
        assert!(update.contains("\"$inc\": { \"n\": 1, \"followerCount\": 1 }"), "{update}");
    }

    #[test]
    fn everything_else_goes_the_long_way() {
        let push = doc! { "$push": { "followers": 1 } };
        assert!(shown(doc! { "name": "a" }, push).is_none());
        assert!(shown(doc! { "_id": 1 }, doc! { "$addToSet": { "followers": 1 } }).is_none());
        assert!(shown(doc! { "_id": 1 }, doc! { "$push": { "followers": { "$each": [1, 2, 3, 4, 5, 6] } } }).is_none());
        assert!(shown(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } }).is_none());
    }
}
