//! Index specifications: checked as MongoDB checks them, and completed.

use super::text_spec;
use crate::catalog::Index;
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::value::{order, show};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::collections::HashSet;

/// The options in the order in which `listIndexes` shows them.
const OPTIONS: &[&str] = &[
    "background",
    "unique",
    "hidden",
    "partialFilterExpression",
    "sparse",
    "expireAfterSeconds",
    "storageEngine",
    "prepareUnique",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
];
/// Known, and only for kinds of indexes that are not there.
const OTHER_KINDS: &[&str] =
    &["2dsphereIndexVersion", "bits", "min", "max", "bucketSize", "wildcardProjection", "clustered"];
const PLUGINS: &[&str] = &["hashed", "text", "2d", "2dsphere", "geoHaystack", "wildcard"];

/// Checks one entry of `createIndexes` and writes it in its stored form.
pub(super) fn complete(given: &Doc<'_>) -> Result<Doc<'static>> {
    let place = |error: Error| {
        Error::new(
            error.code(),
            format!("Error in specification {} :: caused by :: {}", show::document(given), error.message()),
        )
    };
    let later = |error: Error| {
        let text = with_version(given);
        Error::new(
            error.code(),
            format!("Error in specification {} :: caused by :: {}", show::document(&text), error.message()),
        )
    };
    let key = check_fields(given).map_err(place)?;
    let name = given.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    if name == "*" {
        return Err(Error::bad_value("The index name '*' is not valid."));
    }
    if name.is_empty() {
        return Err(later(Error::new(Code::CannotCreateIndex, "index name cannot be empty")));
    }
    if name.contains('\0') {
        return Err(later(Error::new(Code::CannotCreateIndex, "index name cannot contain NUL bytes")));
    }
    if name == "_id_" && !is_id_pattern(&key) {
        let message = format!(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {}",
            show::document(&key)
        );
        return Err(Error::bad_value(message));
    }
    check_expiry(given, &key)?;
    if is_id_pattern(&key) {
        return complete_id(given, &key);
    }
    if let Some(Value::Document(filter)) = given.get("partialFilterExpression")
        && filter.contains("$expr")
    {
        return Err(place(Error::new(Code::from_number(224), "$expr is not allowed in this context")));
    }
    check_partial(given).map_err(|error| match error.code() {
        Code::CannotCreateIndex => later(error),
        _ => place(error),
    })?;
    if text_spec::is_text(&key) {
        return text_spec::completed(given, &key).map(|given| stored(&given, &name)).map_err(later);
    }
    Ok(stored(given, &name))
}

fn with_version(given: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (name, value) in given.iter() {
        writer.append(name.as_str(), &value);
    }
    if !given.contains("v") {
        writer.append("v", &Value::Int32(2));
    }
    writer.finish()
}

/// Types and names; gives the key pattern.
fn check_fields(given: &Doc<'_>) -> Result<Doc<'static>> {
    let mut key = None;
    for (name, value) in given.iter() {
        match name.as_str() {
            "key" => match &value {
                Value::Document(pattern) => {
                    check_pattern(pattern)?;
                    key = Some(pattern.clone().into_owned());
                }
                other => return Err(must_be("key", "an object", other)),
            },
            "name" if !matches!(value, Value::String(_)) => return Err(must_be("name", "a string", &value)),
            "partialFilterExpression" | "storageEngine" if !matches!(value, Value::Document(_)) => {
                return Err(must_be(name.as_str(), "an object", &value));
            }
            "unique" | "sparse" | "hidden" | "background" | "prepareUnique"
                if !matches!(value, Value::Bool(_)) && !value.is_number() =>
            {
                let message = format!(
                    "The field '{name} has value {name}: {}, which is not convertible to bool",
                    show::element(&value)
                );
                return Err(Error::type_mismatch(message));
            }
            "v" if !value.is_number() => return Err(must_be("v", "a number", &value)),
            "v" => match order::compare(&value, &Value::Int32(2)).is_eq() || order::equal(&value, &Value::Int32(1)) {
                true => {}
                false => {
                    let message = format!(
                        "Invalid index specification {}; cannot create an index with v={}",
                        show::document(given),
                        show::element(&value)
                    );
                    return Err(Error::new(Code::CannotCreateIndex, message));
                }
            },
            "collation" => check_collation(&value)?,
            "weights" => text_spec::check_weights(given, &value)?,
            "default_language" | "language_override" if !matches!(value, Value::String(_)) => {
                return Err(must_be(name.as_str(), "a string", &value));
            }
            "textIndexVersion" if !value.is_number() => return Err(must_be("textIndexVersion", "a number", &value)),
            "name" | "ns" | "dropDups" | "expireAfterSeconds" => {}
            known if OPTIONS.contains(&known) => {}
            known if OTHER_KINDS.contains(&known) => {
                return Err(Error::not_implemented(format!("the index option '{known}'")));
            }
            unknown => {
                let message = format!(
                    "The field '{unknown}' is not valid for an index specification. Specification: {}",
                    show::document(given)
                );
                return Err(Error::new(Code::InvalidIndexSpecificationOption, message));
            }
        }
    }
    let required = |name: &str| {
        Error::failed_to_parse(format!("The '{name}' field is a required property of an index specification"))
    };
    let key = key.ok_or_else(|| required("key"))?;
    if !given.contains("name") {
        return Err(required("name"));
    }
    Ok(key)
}

fn must_be(field: &str, what: &str, value: &Value<'_>) -> Error {
    Error::type_mismatch(format!("The field '{field}' must be {what}, but got {}", value.type_name()))
}

fn check_collation(value: &Value<'_>) -> Result<()> {
    let Value::Document(collation) = value else { return Err(must_be("collation", "an object", value)) };
    match collation.get("locale").as_ref().and_then(Value::as_str) {
        Some("simple") => Ok(()),
        _ => Err(Error::not_implemented("a collation other than { locale: \"simple\" }")),
    }
}

fn check_pattern(pattern: &Doc<'_>) -> Result<()> {
    let refused = |message: String| Err(Error::new(Code::CannotCreateIndex, message));
    if pattern.is_empty() {
        return refused("Index keys cannot be empty.".to_owned());
    }
    let is_text = text_spec::is_text(pattern);
    let kinds = pattern.iter().filter_map(|(_, kind)| kind.as_str().map(str::to_owned));
    if is_text && kinds.collect::<HashSet<_>>().len() > 1 {
        return refused("Can't use more than one index plugin for a single index.".to_owned());
    }
    for (name, direction) in pattern.iter() {
        if is_text && name.as_str() == "_fts" && direction.is_number() {
            return refused("Index key contains an illegal field name: '_fts'".to_owned());
        }
        if name.as_bytes().is_empty() {
            return refused("Index keys cannot be an empty field.".to_owned());
        }
        match &direction {
            Value::String(kind) => {
                let kind = kind.as_str();
                if !PLUGINS.contains(&kind) {
                    return refused(format!("Unknown index plugin '{kind}'"));
                }
                if kind != "text" {
                    return Err(Error::not_implemented(format!("an index of type '{kind}'")));
                }
                // All texts, and the key of a completed specification.
                if matches!(name.as_str(), "$**" | "_fts") {
                    continue;
                }
            }
            number if number.is_number() => {
                if order::equal(number, &Value::Int32(0)) {
                    return refused("Values in the index key pattern cannot be 0.".to_owned());
                }
                if order::equal(number, &Value::Double(f64::NAN)) {
                    return refused("Values in the index key pattern cannot be NaN.".to_owned());
                }
            }
            other => {
                return refused(format!(
                    "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                    other.type_name()
                ));
            }
        }
        for (at, part) in name.as_str().split('.').enumerate() {
            if part.is_empty() {
                return refused("Index keys cannot contain an empty field.".to_owned());
            }
            if part == "$**" && !is_text {
                return Err(Error::not_implemented("a wildcard index"));
            }
            let of_reference = at > 0 && matches!(part, "$db" | "$id" | "$ref");
            if part.starts_with('$') && !of_reference {
                return refused("Index key contains an illegal field name: field name starts with '$'.".to_owned());
            }
        }
    }
    Ok(())
}

fn check_expiry(given: &Doc<'_>, key: &Doc<'_>) -> Result<()> {
    let Some(seconds) = given.get("expireAfterSeconds") else { return Ok(()) };
    let refused = |message: String| {
        Err(Error::new(Code::CannotCreateIndex, format!("{message}. Index spec: {}", show::document(given))))
    };
    if !seconds.is_number() {
        let message = "TTL index 'expireAfterSeconds' option must be numeric, but received a type of";
        return refused(format!("{message} '{}'", seconds.type_name()));
    }
    if order::compare(&seconds, &Value::Int32(0)).is_lt() {
        return refused("TTL index 'expireAfterSeconds' option cannot be less than 0".to_owned());
    }
    if order::compare(&seconds, &Value::Int32(i32::MAX)).is_gt() {
        let message = "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number";
        return refused(message.to_owned());
    }
    if key.iter().count() > 1 {
        return refused("TTL indexes are single-field indexes, compound indexes do not support TTL".to_owned());
    }
    Ok(())
}

fn is_id_pattern(key: &Doc<'_>) -> bool {
    let mut fields = key.iter();
    matches!((fields.next(), fields.next()), (Some((name, way)), None) if name.as_str() == "_id" && way.as_str().is_none())
}

/// The index on `_id` is there already; what it may be called does not matter.
fn complete_id(given: &Doc<'_>, key: &Doc<'_>) -> Result<Doc<'static>> {
    if !key.get("_id").is_some_and(|direction| order::equal(&direction, &Value::Int32(1))) {
        let message = format!("The field 'key' for an _id index must be {{_id: 1}}, but got {}", show::document(key));
        return Err(Error::bad_value(message));
    }
    for (name, _) in given.iter() {
        if !matches!(name.as_str(), "key" | "name" | "v" | "ns" | "collation") {
            let message = format!(
                "The field '{name}' is not valid for an _id index specification. Specification: {}",
                show::document(&with_version(given))
            );
            return Err(Error::new(Code::InvalidIndexSpecificationOption, message));
        }
    }
    Ok(Index::on_id().spec)
}

fn check_partial(given: &Doc<'_>) -> Result<()> {
    let Some(Value::Document(filter)) = given.get("partialFilterExpression") else { return Ok(()) };
    if given.get("sparse").is_some_and(|sparse| sparse.is_truthy()) {
        let message = "cannot mix \"partialFilterExpression\" and \"sparse\" options";
        return Err(Error::new(Code::CannotCreateIndex, message));
    }
    Filter::parse(&filter, &mut Names::new())?.without_text()?;
    supported(&filter)
}

/// Partial filters know equality, ranges, existence, types, and conjunctions and disjunctions of those.
fn supported(filter: &Doc<'_>) -> Result<()> {
    let unsupported = |what: &str| {
        Err(Error::new(Code::CannotCreateIndex, format!("Expression not supported in partial index: {what}\n")))
    };
    for (name, value) in filter.iter() {
        match (name.as_str(), &value) {
            ("$and" | "$or", Value::Array(clauses)) => {
                for clause in clauses.iter() {
                    if let Value::Document(clause) = clause {
                        supported(&clause)?;
                    }
                }
            }
            ("$comment", _) => {}
            (operator, _) if operator.starts_with('$') => return unsupported(operator),
            (field, Value::Document(tests)) => {
                for (operator, argument) in tests.iter() {
                    match operator.as_str() {
                        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" | "$in" => {}
                        "$exists" if argument.is_truthy() => {}
                        "$exists" => return unsupported(&format!("$not\n    {field} exists")),
                        "$ne" => return unsupported(&format!("$not\n    {field} $eq {}", show::element(&argument))),
                        other if other.starts_with('$') => return unsupported(&format!("{field} {other}")),
                        _ => break,
                    }
                }
            }
            (field, Value::Regex { pattern, options }) => {
                return unsupported(&format!("{field} regex /{pattern}/{options}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn stored(given: &Doc<'_>, name: &str) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("v", &given.get("v").unwrap_or(Value::Int32(2)));
    writer.append("key", &given.get("key").unwrap_or(Value::Missing));
    writer.append("name", &Value::from(name));
    for option in OPTIONS {
        match (*option, given.get(option)) {
            (_, None) => {}
            ("unique" | "hidden", Some(value)) if !value.is_truthy() => {}
            ("unique" | "hidden" | "sparse", Some(value)) => {
                writer.append(option, &Value::Bool(value.is_truthy()));
            }
            ("expireAfterSeconds", Some(Value::Double(seconds))) => {
                writer.append(option, &Value::Int32(seconds as i32));
            }
            (_, Some(value)) => {
                writer.append(option, &value);
            }
        }
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_specification_is_stored_in_the_order_of_mongodb() {
        let check = |given: bson::Document, expected: bson::Document| {
            assert_eq!(complete(&Doc::from(given)).unwrap(), Doc::from(expected));
        };
        check(
            doc! {"key": {"b": 1}, "name": "b_1", "sparse": true, "unique": true, "expireAfterSeconds": 3.7},
            doc! {"v": 2, "key": {"b": 1}, "name": "b_1", "unique": true, "sparse": true, "expireAfterSeconds": 3},
        );
        check(
            doc! {"key": {"a": 1}, "name": "a_1", "unique": false, "sparse": false, "background": true},
            doc! {"v": 2, "key": {"a": 1}, "name": "a_1", "background": true, "sparse": false},
        );
        check(doc! {"key": {"_id": 1}, "name": "x"}, doc! {"v": 2, "key": {"_id": 1}, "name": "_id_"});
    }

    #[test]
    fn what_mongodb_refuses_is_refused_in_its_words() {
        let check = |given: bson::Document, code: i32, message: &str| {
            let error = complete(&Doc::from(given)).unwrap_err();
            assert_eq!((error.code().number(), error.message()), (code, message));
        };
        check(
            doc! {"key": {}, "name": "x"},
            67,
            "Error in specification { key: {}, name: \"x\" } :: caused by :: Index keys cannot be empty.",
        );
        check(
            doc! {"key": {"a": 0}, "name": "x"},
            67,
            "Error in specification { key: { a: 0 }, name: \"x\" } :: caused by :: Values in the index key pattern cannot be 0.",
        );
        check(
            doc! {"key": {"a": "foo"}, "name": "x"},
            67,
            "Error in specification { key: { a: \"foo\" }, name: \"x\" } :: caused by :: Unknown index plugin 'foo'",
        );
        check(
            doc! {"key": {"a": 1}},
            9,
            "Error in specification { key: { a: 1 } } :: caused by :: The 'name' field is a required property of an index specification",
        );
        check(
            doc! {"key": {"a": 1}, "name": ""},
            67,
            "Error in specification { key: { a: 1 }, name: \"\", v: 2 } :: caused by :: index name cannot be empty",
        );
        check(
            doc! {"key": {"a": 1}, "name": "x", "foo": 1},
            197,
            "Error in specification { key: { a: 1 }, name: \"x\", foo: 1 } :: caused by :: The field 'foo' is not valid for an index specification. Specification: { key: { a: 1 }, name: \"x\", foo: 1 }",
        );
        check(
            doc! {"key": {"_id": -1}, "name": "x"},
            2,
            "The field 'key' for an _id index must be {_id: 1}, but got { _id: -1 }",
        );
        check(
            doc! {"key": {"a": 1, "b": 1}, "name": "ttl", "expireAfterSeconds": 5},
            67,
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: { key: { a: 1, b: 1 }, name: \"ttl\", expireAfterSeconds: 5 }",
        );
        check(
            doc! {"key": {"p": 1}, "name": "p2", "partialFilterExpression": {"x": {"$ne": 1}}},
            67,
            "Error in specification { key: { p: 1 }, name: \"p2\", partialFilterExpression: { x: { $ne: 1 } }, v: 2 } :: caused by :: Expression not supported in partial index: $not\n    x $eq 1\n",
        );
        check(
            doc! {"key": {"q": 1}, "name": "q3", "v": 3},
            67,
            "Error in specification { key: { q: 1 }, name: \"q3\", v: 3 } :: caused by :: Invalid index specification { key: { q: 1 }, name: \"q3\", v: 3 }; cannot create an index with v=3",
        );
    }
}
