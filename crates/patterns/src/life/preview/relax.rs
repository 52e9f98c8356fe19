//! What of a validator has to go so that it takes certain documents: the single keywords that refuse them, and no more.

use crate::mql::{document, list, object};
use crate::print::in_shell;
use document::{Array, Doc, DocWriter, Value};

/// Whether a validator refuses what has to pass.
type Refuses<'r> = &'r dyn Fn(&Doc<'_>) -> bool;

/// Keywords that are read only beside another one.
const COMPANIONS: &[(&str, &str)] =
    &[("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum"), ("$regex", "$options")];

/// The validator without what refuses.
pub(super) fn relaxed(validator: &Doc<'_>, refuses: Refuses<'_>) -> Doc<'static> {
    let mut out = DocWriter::new();
    for (name, value) in validator.iter() {
        let clause = |value: &Value<'_>| document([(name.as_str(), value.borrow())]);
        let looser = match &value {
            value if !refuses(&clause(value)) => Some(value.borrow().into_owned()),
            Value::Document(schema) if name.as_str() == "$jsonSchema" => {
                let whole = |schema: Doc<'static>| document([("$jsonSchema", Value::Document(schema))]);
                Some(Value::Document(relaxed_schema(schema, &|schema| refuses(&whole(schema)))))
            }
            Value::Array(clauses) if name.as_str() == "$and" => {
                let clauses = clauses.iter().filter_map(|clause| match clause {
                    Value::Document(clause) => Some(relaxed(&clause, refuses)).filter(|clause| !clause.is_empty()),
                    _ => None,
                });
                let clauses: Vec<Value<'static>> = clauses.map(Value::Document).collect();
                (!clauses.is_empty()).then(|| list(clauses))
            }
            Value::Document(tests) if !name.as_str().starts_with('$') => {
                let kept = |test: Doc<'static>| document([(name.as_str(), Value::Document(test))]);
                Some(keywords(tests, &|test| refuses(&kept(test)), &|_, _| None))
                    .filter(|tests| !tests.is_empty())
                    .map(Value::Document)
            }
            _ => None,
        };
        // A value that refuses for what it is together is left out as a whole.
        if let Some(value) = looser.filter(|value| !refuses(&clause(value))) {
            out.append(name.as_str(), &value);
        }
    }
    out.finish()
}

/// The schema without the keywords that refuse; `refuses` is asked about schemas in the same place.
pub(super) fn relaxed_schema(schema: &Doc<'_>, refuses: &dyn Fn(Doc<'static>) -> bool) -> Doc<'static> {
    let looser = |keyword: &str, value: &Value<'_>| -> Option<Value<'static>> {
        let at = |value: Value<'_>| refuses(document([(keyword, value)]));
        match (keyword, value) {
            ("properties" | "patternProperties", Value::Document(all)) => {
                let fields = all.iter().filter_map(|(name, own)| {
                    let inside = |own: Doc<'static>| at(object([(name.as_str(), Value::Document(own))]));
                    let own = match own {
                        Value::Document(own) => Value::Document(relaxed_schema(&own, &inside)),
                        _ => return None,
                    };
                    Some((name.as_str().to_owned(), own))
                });
                let fields: Vec<(String, Value<'static>)> = fields.collect();
                Some(object(fields.iter().map(|(name, own)| (&**name, own.borrow()))))
            }
            ("items", Value::Document(items)) => {
                Some(Value::Document(relaxed_schema(items, &|items| at(Value::Document(items)))))
            }
            ("allOf", Value::Array(parts)) => Some(list(parts.iter().map(|part| match part {
                Value::Document(part) => {
                    Value::Document(relaxed_schema(&part, &|part| at(list([Value::Document(part)]))))
                }
                other => other.into_owned(),
            }))),
            ("required", Value::Array(names)) => {
                let names: Vec<_> =
                    names.iter().map(Value::into_owned).filter(|name| !at(list([name.borrow()]))).collect();
                (!names.is_empty()).then(|| list(names))
            }
            ("dependencies", Value::Document(all)) => {
                let kept = all.iter().filter(|(name, on)| !at(object([(name.as_str(), on.borrow())])));
                let kept: Vec<_> = kept.map(|(name, on)| (name.as_str().to_owned(), on.into_owned())).collect();
                (!kept.is_empty()).then(|| object(kept.iter().map(|(name, on)| (&**name, on.borrow()))))
            }
            _ => None,
        }
    };
    // What other fields may be depends on which are named.
    let named = |keyword: &str| match schema.get(keyword) {
        Some(Value::Document(named)) => {
            let any = |(name, _): (document::Text<'_>, Value<'_>)| (name.as_str().to_owned(), Doc::empty());
            let named: Vec<_> = named.iter().map(any).collect();
            object(named.iter().map(|(name, any)| (&**name, Value::Document(any.borrow()))))
        }
        _ => Value::Missing,
    };
    let refuses = |part: Doc<'static>| match part.get("additionalProperties") {
        None => refuses(part),
        Some(others) => refuses(document([
            ("properties", named("properties")),
            ("patternProperties", named("patternProperties")),
            ("additionalProperties", others),
        ])),
    };
    keywords(schema, &refuses, &looser)
}

/// The document without the fields that refuse, or with what `looser` makes of them.
fn keywords(
    all: &Doc<'_>,
    refuses: &dyn Fn(Doc<'static>) -> bool,
    looser: &dyn Fn(&str, &Value<'_>) -> Option<Value<'static>>,
) -> Doc<'static> {
    let mut out = DocWriter::new();
    for (name, value) in all.iter() {
        let name = name.as_str();
        if COMPANIONS.iter().any(|(_, companion)| *companion == name) {
            continue;
        }
        let companion = COMPANIONS.iter().find(|(keyword, _)| *keyword == name).map(|(_, companion)| *companion);
        let beside = companion.and_then(|companion| Some((companion, all.get(companion)?)));
        let part = |value: &Value<'_>| {
            let beside = beside.as_ref().map(|(name, value)| (*name, value.borrow()));
            document([(name, value.borrow())].into_iter().chain(beside))
        };
        let kept = match refuses(part(&value)) {
            false => Some(value.into_owned()),
            true => looser(name, &value).filter(|value| !refuses(part(value))),
        };
        if let Some(kept) = kept {
            part(&kept).iter().for_each(|(name, value)| {
                out.append(name.as_str(), &value);
            });
        }
    }
    out.finish()
}

/// What the one says and the other no longer does, as people write it. What only became wider is not among it.
pub(super) fn lost(before: &Doc<'_>, after: &Doc<'_>) -> Vec<String> {
    let mut all = Vec::new();
    compare(before, after, "", &mut all);
    all
}

fn compare(before: &Doc<'_>, after: &Doc<'_>, prefix: &str, all: &mut Vec<String>) {
    for (name, was) in before.iter() {
        let path = match (prefix, name.as_str()) {
            (prefix, "$jsonSchema" | "properties") => prefix.to_owned(),
            ("", name) => name.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        let shown = |value: Value<'_>| format!("{path}: {}", in_shell(&value));
        match (&was, after.get(name.as_str())) {
            (was, None) => all.push(shown(was.borrow())),
            (Value::Document(was), Some(Value::Document(is))) => compare(was, &is, &path, all),
            (Value::Array(was), Some(Value::Array(is))) => compare_lists(was, &is, &path, all),
            _ => {}
        }
    }
}

/// Clauses and subschemas are compared by their place, if none is gone; of other values those count that are.
fn compare_lists(was: &Array<'_>, is: &Array<'_>, path: &str, all: &mut Vec<String>) {
    let documents = |values: &Array<'_>| values.iter().all(|value| matches!(value, Value::Document(_)));
    if documents(was) && documents(is) && was.iter().count() == is.iter().count() {
        for (was, is) in was.iter().zip(is.iter()) {
            if let (Value::Document(was), Value::Document(is)) = (was, is) {
                compare(&was, &is, path, all);
            }
        }
        return;
    }
    let gone: Vec<Value<'_>> = was.iter().filter(|was| !is.iter().any(|is| is == *was)).collect();
    if !gone.is_empty() {
        all.push(format!("{path}: {}", in_shell(&list(gone))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::Env;
    use document::filter::Filter;
    use document::pipeline::expr::Names;

    /// The validator relaxed for one document, and what is lost by it.
    #[track_caller]
    fn check(validator: bson::Document, passes: bson::Document, expected: bson::Document, gone: &[&str]) {
        let passes = Doc::from(passes);
        let refuses = |validator: &Doc<'_>| {
            let filter = Filter::parse(validator, &mut Names::new()).unwrap();
            !filter.matches(&passes, &Env::fixed()).unwrap()
        };
        let before = Doc::from(validator);
        let after = relaxed(&before, &refuses);
        assert_eq!(bson::Document::try_from(&after).unwrap(), expected);
        assert_eq!(lost(&before, &after), gone);
        assert!(!refuses(&after));
    }

    #[test]
    fn only_the_keyword_in_the_way_goes() {
        let written = || doc! { "_id": 1, "price": 4, "customerId": 7, "customer": { "name": "Ada" } };
        let schema = |own: bson::Document| doc! { "$jsonSchema": own };
        check(
            schema(doc! { "required": ["price"], "maxProperties": 3 }),
            written(),
            schema(doc! { "required": ["price"] }),
            &["maxProperties: 3"],
        );
        check(
            schema(doc! { "required": ["price", "x"], "not": { "required": ["customer"] } }),
            written(),
            schema(doc! { "required": ["price"] }),
            &["required: [\"x\"]", "not: { required: [\"customer\"] }"],
        );
        check(
            schema(doc! { "dependencies": { "customer": ["paid"], "price": ["customerId"] } }),
            written(),
            schema(doc! { "dependencies": { "price": ["customerId"] } }),
            &["dependencies.customer: [\"paid\"]"],
        );
        check(
            doc! { "price": { "$gt": 1, "$lt": 3 }, "$or": [{ "customer": { "$exists": false } }], "$expr": { "$eq": ["$_id", 1] } },
            written(),
            doc! { "price": { "$gt": 1 }, "$expr": { "$eq": ["$_id", 1] } },
            &["price.$lt: 3", "$or: [{ customer: { $exists: false } }]"],
        );
        let customer =
            |own: bson::Document| schema(doc! { "properties": { "customer": own, "price": { "minimum": 1 } } });
        check(
            customer(
                doc! { "bsonType": "object", "required": ["name", "mail"], "properties": { "name": { "bsonType": "string", "maxLength": 2 } } },
            ),
            written(),
            customer(
                doc! { "bsonType": "object", "required": ["name"], "properties": { "name": { "bsonType": "string" } } },
            ),
            &["customer.required: [\"mail\"]", "customer.name.maxLength: 2"],
        );
        check(
            schema(doc! { "properties": { "price": { "maximum": 4, "exclusiveMaximum": true, "minimum": 1 } } }),
            written(),
            schema(doc! { "properties": { "price": { "minimum": 1 } } }),
            &["price.maximum: 4", "price.exclusiveMaximum: true"],
        );
        check(
            schema(doc! { "properties": { "_id": {} }, "additionalProperties": false, "required": ["price"] }),
            written(),
            schema(doc! { "properties": { "_id": {} }, "required": ["price"] }),
            &["additionalProperties: false"],
        );
    }
}
