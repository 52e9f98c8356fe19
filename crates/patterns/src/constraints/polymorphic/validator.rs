//! The validator: the discriminator is there and names a kind, and a document of a kind satisfies that kind's schema. Titles and
//! descriptions name rule, kind and fields: a server repeats them in the details of its error, so that writes can be forwarded.

use super::open::opened;
use super::{DocumentKind, Polymorphic, UnknownKinds};
use crate::mql::{call, call_with, document, list, object};
use document::value::Path;
use document::value::path::Part;
use document::{Doc, DocWriter, Value};

/// `{ $and: [ <the discriminator>, { $or: [ { type: { $ne: "book" } }, { $jsonSchema: <of a book> } ] }, … ] }`
pub(super) fn of(rule: &Polymorphic, kept: &[Path]) -> Doc<'static> {
    let kinds = rule.kinds.iter().filter_map(|kind| {
        let schema = schema(rule, kind, kept)?;
        let other = object([(&*rule.discriminator.dotted(), call("$ne", Value::string(kind.name.clone())))]);
        Some(call_with("$or", [other, call("$jsonSchema", Value::Document(schema))]))
    });
    let parts = std::iter::once(call("$jsonSchema", discriminator(rule))).chain(kinds);
    document([("$and", list(parts))])
}

/// That the discriminator is there, and names a kind.
fn discriminator(rule: &Polymorphic) -> Value<'static> {
    let (names, path) = (rule.names(), &rule.discriminator);
    let (value, description) = match rule.unknown {
        UnknownKinds::Reject => {
            let kinds = list(rule.kinds.iter().map(|kind| Value::string(kind.name.clone())));
            (("enum", kinds), format!("the kind of the document: one of {names}"))
        }
        UnknownKinds::Accept => {
            (("bsonType", Value::from("string")), format!("the kind of the document: {names} or another"))
        }
    };
    let leaf = object([value, ("description", Value::string(description))]);
    let nested = required_at(&path.parts, Some(leaf));
    let title = Value::string(rule.rule.to_string());
    let about = Value::string(format!("`{path}` says which kind of document it is"));
    let mut schema = DocWriter::new();
    schema.append("title", &title).append("description", &about);
    nested.iter().for_each(|(name, value)| {
        schema.append(name.as_str(), &value);
    });
    Value::Document(schema.finish())
}

/// `{ required: [ a ], properties: { a: { bsonType: "object", required: [ b ], properties: { b: leaf } } } }`
fn required_at(parts: &[Part], leaf: Option<Value<'static>>) -> Doc<'static> {
    let Some((first, rest)) = parts.split_first() else { return Doc::empty() };
    let inner = match (rest.is_empty(), leaf) {
        (true, None) => Value::Missing,
        (true, Some(leaf)) => leaf,
        (false, leaf) => {
            let nested = required_at(rest, leaf);
            let mut inner = DocWriter::new();
            inner.append("bsonType", &Value::from("object"));
            nested.iter().for_each(|(name, value)| {
                inner.append(name.as_str(), &value);
            });
            Value::Document(inner.finish())
        }
    };
    let properties = if inner.is_missing() { Value::Missing } else { object([(&*first.name, inner)]) };
    document([("required", list([Value::string(first.name.to_string())])), ("properties", properties)])
}

/// What a document of a kind must be like; `None` if any will do.
pub(super) fn schema(rule: &Polymorphic, kind: &DocumentKind, kept: &[Path]) -> Option<Doc<'static>> {
    if kind.required.is_empty() && kind.schema.is_none() {
        return None;
    }
    let declared = kind.schema.clone().unwrap_or_else(Doc::empty);
    let is_plain = |path: &&Path| path.parts.len() == 1;
    let mut required: Vec<Value<'static>> =
        kind.required.iter().filter(is_plain).map(|path| Value::string(path.dotted())).collect();
    if let Some(Value::Array(own)) = declared.get("required") {
        for name in own.iter().map(Value::into_owned) {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
    let nested = kind.required.iter().filter(|path| path.parts.len() > 1);
    let mut all_of: Vec<Value<'static>> = nested.map(|path| Value::Document(required_at(&path.parts, None))).collect();
    if let Some(Value::Array(own)) = declared.get("allOf") {
        all_of.extend(own.iter().map(Value::into_owned));
    }
    let text = |name: &str| declared.get(name).and_then(|text| text.as_str().map(str::to_owned));
    let title = match text("title") {
        Some(title) => format!("{}: {title}", kind.name),
        None => kind.name.clone(),
    };
    let description = text("description").unwrap_or_else(|| described(rule, kind));
    let mut schema = DocWriter::new();
    schema.append("title", &Value::string(title)).append("description", &Value::string(description));
    if !required.is_empty() {
        schema.append("required", &list(required));
    }
    for (name, value) in declared.iter() {
        if !["title", "description", "required", "allOf"].contains(&name.as_str()) {
            schema.append(name.as_str(), &value);
        }
    }
    if !all_of.is_empty() {
        schema.append("allOf", &list(all_of));
    }
    let own = [Path::new("_id"), Path::new("_pleach"), rule.discriminator.clone()];
    let allowed: Vec<Path> = own.into_iter().chain(kind.required.iter().cloned()).chain(kept.iter().cloned()).collect();
    Some(opened(&schema.finish(), &allowed))
}

/// `products.polymorphic: a document whose type is book has title, isbn`
fn described(rule: &Polymorphic, kind: &DocumentKind) -> String {
    let subject = format!("{}: a document whose {} is {}", rule.rule, rule.discriminator, kind.name);
    let required: Vec<String> = kind.required.iter().map(Path::dotted).collect();
    match required.is_empty() {
        true => format!("{subject} is as its schema says"),
        false => format!("{subject} has {}", required.join(", ")),
    }
}
