//! What a validator must say so that it allows a field: the smallest change of a `$jsonSchema`.

use crate::life::preview::relax::relaxed_schema;
use crate::mql::{call, document, list, object};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::{Doc, DocWriter, Env, Value};

/// A field that must be allowed.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) path: Vec<String>,
    /// A value that it may have; an empty document stands for any document, a missing value for any value.
    pub(super) value: Value<'static>,
    /// The value stands for all of its type.
    pub(super) any: bool,
    /// There may be documents without it.
    pub(super) optional: bool,
}

/// Whether subschemas (`anyOf` …) are changed too: only where nothing else helps, for one of them may allow the field already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaScope {
    Own,
    Subschemas,
}

/// The validator with every `$jsonSchema` in it changed so that it allows the field.
pub(super) fn allowing(validator: &Doc<'_>, wanted: &Wanted, scope: SchemaScope) -> Doc<'static> {
    let mut out = DocWriter::new();
    for (name, value) in validator.iter() {
        let value = match (name.as_str(), &value) {
            ("$jsonSchema", Value::Document(schema)) => Value::Document(
                allowed(schema, &wanted.path, wanted, scope).unwrap_or_else(|| schema.clone().into_owned()),
            ),
            ("$and", Value::Array(clauses)) => list(clauses.iter().map(|clause| match clause {
                Value::Document(clause) => Value::Document(allowing(&clause, wanted, scope)),
                other => other.into_owned(),
            })),
            (name, Value::Document(test)) if *wanted.path.join(".") == *name => of_type(test, &wanted.value),
            _ => value.into_owned(),
        };
        out.append(name.as_str(), &value);
    }
    out.finish()
}

/// `{ field: { $type: … } }` with the value's type beside the others.
fn of_type(test: &Doc<'_>, value: &Value<'static>) -> Value<'static> {
    let fields = test.iter().map(|(name, operand)| match name.as_str() {
        "$type" if !accepts(&document([("v", call("$type", operand.borrow()))]), value) => {
            (name.as_str().to_owned(), with_type(&operand, value))
        }
        name => (name.to_owned(), operand.into_owned()),
    });
    let fields: Vec<(String, Value<'static>)> = fields.collect();
    object(fields.iter().map(|(name, value)| (&**name, value.borrow())))
}

/// The schema changed so that it allows the path; `None` if it does.
fn allowed(schema: &Doc<'_>, path: &[String], wanted: &Wanted, scope: SchemaScope) -> Option<Doc<'static>> {
    let (first, rest) = path.split_first()?;
    let value = &wanted.value;
    let mut changed: Option<Doc<'static>> = None;
    let mut change = |name: &str, value: Value<'static>| {
        let before = changed.take().unwrap_or_else(|| schema.clone().into_owned());
        changed = Some(with(&before, name, &value));
    };
    if scope == SchemaScope::Subschemas {
        for name in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = schema.get(name) {
                let parts = parts.iter().map(|part| match part {
                    Value::Document(part) => {
                        Value::Document(allowed(&part, path, wanted, scope).unwrap_or_else(|| part.into_owned()))
                    }
                    other => other.into_owned(),
                });
                change(name, list(parts));
            }
        }
    }
    // The path leads through an array.
    if let Some(Value::Document(items)) = schema.get("items")
        && let Some(items) = allowed(&items, path, wanted, scope)
    {
        change("items", Value::Document(items));
    }
    if let Some(Value::Array(required)) = schema.get("required")
        && wanted.optional
        && rest.is_empty()
        && required.iter().any(|name| name.as_str() == Some(first))
    {
        let others: Vec<_> = required.iter().filter(|name| name.as_str() != Some(first)).collect();
        // An empty list is no schema.
        change("required", if others.is_empty() { Value::Missing } else { list(others) });
    }
    let properties = match schema.get("properties") {
        Some(Value::Document(properties)) => properties.into_owned(),
        _ => Doc::empty(),
    };
    let own = match properties.get(first) {
        Some(Value::Document(own)) if rest.is_empty() => widened(&own, wanted, scope),
        Some(Value::Document(own)) => allowed(&own, rest, wanted, scope),
        Some(_) => None,
        None if is_patterned(schema, first) => None,
        None => match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Some(described(rest, value)),
            Some(Value::Document(others)) if rest.is_empty() && !satisfies(&others, value) => {
                Some(described(rest, value))
            }
            _ => None,
        },
    };
    if let Some(own) = own {
        change("properties", Value::Document(with(&properties, first, &Value::Document(own))));
    }
    changed.filter(|changed| changed.as_bytes() != schema.as_bytes())
}

/// A property's schema that also takes the value; `None` if it does.
fn widened(own: &Doc<'_>, wanted: &Wanted, scope: SchemaScope) -> Option<Doc<'static>> {
    let value = &wanted.value;
    let is_any = wanted.any || matches!(value, Value::Document(doc) if doc.is_empty());
    let has_its_type = || {
        ["bsonType", "type"].iter().all(|name| match own.get(name) {
            Some(types) => satisfies(&document([(*name, types)]), value),
            None => true,
        })
    };
    if satisfies(own, value) || (is_any && has_its_type()) {
        return None;
    }
    let mut wider = own.clone().into_owned();
    for name in ["bsonType", "type"] {
        if let Some(types) = own.get(name)
            && !satisfies(&document([(name, types.borrow())]), value)
        {
            wider = with(&wider, name, &with_type(&types, value));
        }
    }
    if let Value::Document(fields) = value {
        for (name, value) in fields.iter() {
            let path = [name.as_str().to_owned()];
            let wanted = Wanted { path: path.to_vec(), value: value.into_owned(), any: false, optional: false };
            wider = allowed(&wider, &path, &wanted, scope).unwrap_or(wider);
        }
    }
    match is_any || satisfies(&wider, value) {
        true => Some(wider),
        false => Some(relaxed_schema(&wider, &|schema| !satisfies(&schema, value))),
    }
}

/// A schema for what a rule keeps.
fn described(rest: &[String], value: &Value<'static>) -> Doc<'static> {
    let kind = if rest.is_empty() { kind(value) } else { "object" };
    match kind {
        "null" | "missing" => Doc::empty(),
        kind => document([("bsonType", Value::from(kind))]),
    }
}

fn with_type(types: &Value<'_>, value: &Value<'static>) -> Value<'static> {
    let mut all: Vec<Value<'static>> = match types {
        Value::Array(types) => types.iter().map(Value::into_owned).collect(),
        one => vec![one.clone().into_owned()],
    };
    all.push(Value::from(kind(value)));
    list(all)
}

/// The type as schemas and `$type` name it. A number may become another number.
fn kind(value: &Value<'_>) -> &'static str {
    match value {
        value if value.is_number() => "number",
        Value::Document(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::DateTime(_) => "date",
        Value::ObjectId(_) => "objectId",
        Value::Null => "null",
        other => other.type_name(),
    }
}

fn satisfies(schema: &Doc<'_>, value: &Value<'static>) -> bool {
    let property = object([("v", Value::Document(schema.borrow()))]);
    accepts(&document([("$jsonSchema", object([("properties", property)]))]), value)
}

/// Whether a filter on the field `v` takes the value. What cannot be read is not judged.
fn accepts(filter: &Doc<'_>, value: &Value<'static>) -> bool {
    let Ok(filter) = Filter::parse(filter, &mut Names::new()) else { return true };
    filter.matches(&document([("v", value.borrow())]), &Env::fixed()).unwrap_or(true)
}

fn is_patterned(schema: &Doc<'_>, name: &str) -> bool {
    let Some(Value::Document(patterns)) = schema.get("patternProperties") else { return false };
    let matches = |pattern: &str| {
        let filter = document([("v", call("$regex", Value::from(pattern)))]);
        Filter::parse(&filter, &mut Names::new())
            .and_then(|filter| filter.matches(&document([("v", Value::from(name))]), &Env::fixed()))
            .unwrap_or(false)
    };
    patterns.iter().any(|(pattern, _)| matches(pattern.as_str()))
}

/// The document with the field; in its place if it has it.
fn with(doc: &Doc<'_>, name: &str, value: &Value<'_>) -> Doc<'static> {
    let mut out = DocWriter::new();
    for (other, old) in doc.iter() {
        match other.as_str() == name {
            // A missing value is left out.
            true => out.append(name, value),
            false => out.append(other.as_str(), &old),
        };
    }
    if !doc.contains(name) {
        out.append(name, value);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    #[track_caller]
    fn check(validator: bson::Document, path: &str, value: Bson, expected: bson::Document) {
        let path = path.split('.').map(str::to_owned).collect();
        let wanted = Wanted { path, value: Value::from(value), any: false, optional: false };
        let changed = allowing(&Doc::from(validator), &wanted, SchemaScope::Own);
        assert_eq!(bson::Document::try_from(&changed).unwrap(), expected);
    }

    #[test]
    fn a_schema_is_changed_as_little_as_can_be() {
        let closed = |properties: bson::Document| {
            doc! { "$jsonSchema": { "properties": properties, "additionalProperties": false } }
        };
        let id = || doc! { "_id": {} };
        let with_copy = doc! { "_id": {}, "customer": { "bsonType": "object" } };
        check(closed(id()), "customer", bson!({ "name": "Ada" }), closed(with_copy.clone()));
        check(closed(with_copy.clone()), "customer", bson!({ "name": "Ada" }), closed(with_copy));
        check(
            closed(doc! { "n": { "bsonType": "string" } }),
            "n",
            bson!(1),
            closed(doc! { "n": { "bsonType": ["string", "number"] } }),
        );
        check(
            closed(doc! { "c": { "bsonType": "object", "properties": { "name": {} }, "additionalProperties": false } }),
            "c",
            bson!({ "name": "Ada", "mail": "a" }),
            closed(
                doc! { "c": { "bsonType": "object", "properties": { "name": {}, "mail": { "bsonType": "string" } }, "additionalProperties": false } },
            ),
        );
        let item = |properties: bson::Document| {
            closed(
                doc! { "items": { "bsonType": "array", "items": { "bsonType": "object", "properties": properties, "additionalProperties": false } } },
            )
        };
        check(item(doc! {}), "items.product", bson!({}), item(doc! { "product": { "bsonType": "object" } }));
        check(doc! { "n": { "$type": "string" } }, "n", bson!(1), doc! { "n": { "$type": ["string", "number"] } });
        check(doc! { "a": { "$gt": 1 } }, "n", bson!(1), doc! { "a": { "$gt": 1 } });
        let patterned = doc! { "$jsonSchema": { "patternProperties": { "^n": {} }, "additionalProperties": false } };
        check(patterned.clone(), "n", bson!(1), patterned);
    }
}
