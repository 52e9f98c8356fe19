//! Which field of a document is missing or wrong, from the same details that a server gives with its error.

use super::validator::schema;
use super::{Polymorphic, UnknownKinds};
use crate::mql::document;
use crate::rule::Violation;
use document::filter::{Filter, failure_details};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Doc, Env, Result, Value};

pub(super) fn of(rule: &Polymorphic, doc: &Doc<'_>, kept: &[Path], env: &Env) -> Result<Vec<Violation>> {
    let stored = value_in(doc, &rule.discriminator);
    let wrong = |problem: String| vec![Violation { kind: stored.clone(), field: rule.discriminator.dotted(), problem }];
    let kind = match &stored {
        Value::Missing => return Ok(wrong("is missing".to_owned())),
        Value::String(name) => match (rule.kind(name.as_str()), rule.unknown) {
            (Some(kind), _) => kind,
            (None, UnknownKinds::Accept) => return Ok(Vec::new()),
            (None, UnknownKinds::Reject) => return Ok(wrong(format!("is no kind: the kinds are {}", rule.names()))),
        },
        _ => return Ok(wrong("is not text".to_owned())),
    };
    let Some(schema) = schema(rule, kind, kept) else { return Ok(Vec::new()) };
    let filter = Filter::parse(&document([("$jsonSchema", Value::Document(schema))]), &mut Names::new())?;
    if filter.matches(doc, env)? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    gather(&Value::Document(failure_details(&filter, doc, env)), "", &mut found);
    if found.is_empty() {
        found.push((String::new(), "does not satisfy the schema of its kind".to_owned()));
    }
    found.dedup();
    let field = |field: String| if field.is_empty() { rule.discriminator.dotted() } else { field };
    let violation = |(path, problem)| Violation { kind: stored.clone(), field: field(path), problem };
    Ok(found.into_iter().map(violation).collect())
}

/// The value at a path of nested documents.
fn value_in(doc: &Doc<'_>, path: &Path) -> Value<'static> {
    let below = |value: Value<'static>, name: &str| match value {
        Value::Document(inner) => inner.get(name).map_or(Value::Missing, Value::into_owned),
        _ => Value::Missing,
    };
    path.parts.iter().fold(Value::Document(doc.clone().into_owned()), |value, part| below(value, &part.name))
}

/// The fields that details of a failed schema name, below `prefix`.
fn gather(details: &Value<'_>, prefix: &str, found: &mut Vec<(String, String)>) {
    let path = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match details {
        Value::Array(all) => all.iter().for_each(|one| gather(&one, prefix, found)),
        Value::Document(doc) => {
            if let Some(Value::Array(missing)) = doc.get("missingProperties") {
                let names = missing.iter().filter_map(|name| name.as_str().map(path));
                found.extend(names.map(|name| (name, "is missing".to_owned())));
                return;
            }
            if let Some(Value::Array(more)) = doc.get("additionalProperties") {
                let names = more.iter().filter_map(|name| name.as_str().map(path));
                found.extend(names.map(|name| (name, "is not declared".to_owned())));
                return;
            }
            if let Some(name) = doc.get("propertyName").and_then(|name| name.as_str().map(path)) {
                let before = found.len();
                if let Some(inner) = doc.get("details") {
                    gather(&inner, &name, found);
                }
                if found.len() == before {
                    found.push((name, "is not as the schema says".to_owned()));
                }
                return;
            }
            let lists = ["schemaRulesNotSatisfied", "propertiesNotSatisfied", "schemasNotSatisfied", "details"];
            let inner: Vec<Value<'_>> = lists.iter().filter_map(|name| doc.get(name)).collect();
            if inner.is_empty() {
                let text = |name: &str| doc.get(name).and_then(|text| text.as_str().map(str::to_owned));
                let operator = text("operatorName").unwrap_or_default();
                let reason = text("reason").unwrap_or_else(|| "is not satisfied".to_owned());
                found.push((prefix.to_owned(), format!("{operator}: {reason}")));
            }
            inner.iter().for_each(|inner| gather(inner, prefix, found));
        }
        _ => {}
    }
}
