//! `listCollections`: of Pleach's own collections clients see the catalog, which a dump needs, and documents of theirs that are on
//! their way from one form to another. The rest is listed only where the filter names it.
//!
//! In front of a real MongoDB the client's command is passed on with a stricter filter, so that rights, cursors and errors are
//! MongoDB's own.

use crate::mql;
use crate::rule::names;
use document::backend::{Class, Head};
use document::{Doc, DocWriter, Value};

/// What is passed on in place of a client's `listCollections`; `None` for any other command, and for one that names ours.
pub(super) fn rewritten(command: &Head<'_>) -> Option<Doc<'static>> {
    if command.class != Class::ListCollections || document::raw::validate(command.body.as_bytes()).is_err() {
        return None;
    }
    let asked = match command.body.get("filter") {
        None => None,
        Some(Value::Document(filter)) if !names_ours(&filter) => Some(filter.into_owned()),
        // It names ours, or it is no filter: MongoDB says so.
        Some(_) => return None,
    };
    let filter = match asked {
        None => visible(),
        Some(asked) => mql::document([("$and", mql::list([Value::Document(asked), Value::Document(visible())]))]),
    };
    let mut body = DocWriter::with_capacity(command.body.as_bytes().len() + filter.as_bytes().len() + 16);
    for (name, value) in command.body.iter().filter(|(name, _)| name.as_str() != "filter") {
        body.append(name.as_str(), &value);
    }
    body.append("filter", &Value::Document(filter));
    Some(body.finish())
}

/// The rows of `listCollections` that a client sees.
pub(super) fn shown(rows: Vec<Doc<'static>>, filter: &Doc<'_>) -> Vec<Doc<'static>> {
    match names_ours(filter) {
        true => rows,
        false => rows.into_iter().filter(|row| !is_hidden(row)).collect(),
    }
}

fn is_hidden(row: &Doc<'_>) -> bool {
    row.get("name").is_some_and(|name| name.as_str().is_some_and(names::is_hidden))
}

/// The same as a filter.
fn visible() -> Doc<'static> {
    let name = |test: Value<'static>| mql::object([("name", test)]);
    let pattern = |pattern: &'static str| mql::object([("$regex", Value::from(pattern))]);
    let any = [
        name(mql::object([("$not", pattern("^pleach\\."))])),
        name(Value::from("pleach.catalog")),
        name(pattern("^pleach\\.aside\\.")),
    ];
    mql::document([("$or", mql::list(any))])
}

/// Whether a filter asks for collections of ours by name.
fn names_ours(filter: &Doc<'_>) -> bool {
    filter.iter().any(|(field, value)| match (field.as_str(), value) {
        ("name", value) => is_ours(&value),
        ("$and" | "$or", Value::Array(parts)) => {
            parts.iter().any(|part| matches!(part, Value::Document(part) if names_ours(&part)))
        }
        _ => false,
    })
}

/// Whether a test of the name asks for one of ours; what it rules out is not asked for.
fn is_ours(test: &Value<'_>) -> bool {
    match test {
        Value::String(name) => name.as_str().starts_with(names::PREFIX),
        Value::Regex { pattern, .. } => speaks_of_us(pattern.as_str()),
        Value::Document(tests) => tests.iter().any(|(operator, operand)| match (operator.as_str(), operand) {
            ("$eq", operand) => is_ours(&operand),
            ("$regex", Value::String(pattern)) => speaks_of_us(pattern.as_str()),
            ("$regex", operand) => is_ours(&operand),
            ("$in", Value::Array(names)) => names.iter().any(|name| is_ours(&name)),
            _ => false,
        }),
        _ => false,
    }
}

fn speaks_of_us(pattern: &str) -> bool {
    pattern.contains("pleach")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn ours_are_listed_where_the_filter_names_them() {
        for (filter, named) in [
            (doc! {}, false),
            (doc! { "name": "orders" }, false),
            (doc! { "type": "view" }, false),
            (doc! { "name": { "$ne": "pleach.catalog" } }, false),
            (doc! { "name": { "$not": { "$regex": "^pleach" } } }, false),
            (doc! { "name": "pleach.fences" }, true),
            (doc! { "name": { "$eq": "pleach.outbox" } }, true),
            (doc! { "name": { "$in": ["orders", "pleach.outbox"] } }, true),
            (doc! { "name": { "$regex": "^pleach\\." } }, true),
            (
                doc! { "name": bson::Regex { pattern: "^pleach".try_into().unwrap(), options: "".try_into().unwrap() } },
                true,
            ),
            (doc! { "$or": [{ "type": "view" }, { "name": "pleach.retries" }] }, true),
        ] {
            assert_eq!(names_ours(&Doc::from(filter.clone())), named, "{filter}");
        }
    }

    #[test]
    fn a_command_that_passes_keeps_all_but_its_filter() {
        let asked = doc! { "listCollections": 1, "filter": { "type": "view" }, "cursor": { "batchSize": 2 }, "nameOnly": true, "$db": "shop" };
        let body = Doc::from(asked.clone());
        let head = Head {
            name: "listCollections",
            class: Class::ListCollections,
            db: "shop",
            target: None,
            user: None,
            body: &body,
        };
        let sent = bson::Document::try_from(&rewritten(&head).unwrap()).unwrap();
        for name in ["listCollections", "cursor", "nameOnly", "$db"] {
            assert_eq!(sent.get(name), asked.get(name), "{name}");
        }
        let parts = sent.get_document("filter").unwrap().get_array("$and").unwrap();
        assert_eq!(parts.first().and_then(|part| part.as_document()), Some(&doc! { "type": "view" }));
        let named = Doc::from(doc! { "listCollections": 1, "filter": { "name": "pleach.fences" }, "$db": "shop" });
        assert!(rewritten(&Head { body: &named, ..head }).is_none());
        assert!(rewritten(&Head { class: Class::ListIndexes, ..head }).is_none());
    }
}
