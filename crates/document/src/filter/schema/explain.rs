//! Why a value does not satisfy a schema: `schemaRulesNotSatisfied` and what is inside it.

use super::Schema;
use super::equality::duplicate;
use super::rule::{Additional, Check, Dependency, Rule, accepting, first_bad, is_additional, property};
use crate::error::Result;
use crate::raw::{Array, ArrayWriter, Doc, DocWriter};
use crate::value::{Path, Value};

/// The rules of a schema that a document breaks, explained.
pub(in crate::filter) fn explain(schema: &Schema, doc: &Doc<'_>) -> Result<Doc<'static>> {
    match details(schema, &Value::Document(doc.borrow()))? {
        Value::Document(impossible) => Ok(impossible),
        rules => {
            let mut writer = DocWriter::new();
            writer.append("operatorName", &Value::from("$jsonSchema"));
            describe(schema, &mut writer);
            writer.append("schemaRulesNotSatisfied", &rules);
            Ok(writer.finish())
        }
    }
}

/// The list of broken rules; a document if the schema cannot be satisfied at all.
fn details(schema: &Schema, value: &Value<'_>) -> Result<Value<'static>> {
    match schema.rules.as_slice() {
        [never @ Rule { check: Check::Never, .. }] => Ok(Value::Document(explain_rule(never, value)?)),
        rules => Ok(Value::Array(broken(rules, value)?)),
    }
}

fn describe(schema: &Schema, writer: &mut DocWriter) {
    if let Some(title) = &schema.title {
        writer.append("title", &Value::from(title.as_str()));
    }
    if let Some(description) = &schema.description {
        writer.append("description", &Value::from(description.as_str()));
    }
}

fn broken(rules: &[Rule], value: &Value<'_>) -> Result<Array<'static>> {
    let mut list = ArrayWriter::new();
    for rule in rules {
        if !rule.check.accepts(value)? {
            list.push(&Value::Document(explain_rule(rule, value)?));
        }
    }
    Ok(list.finish())
}

fn int(number: usize) -> Value<'static> {
    i32::try_from(number).map_or_else(|_| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)), Value::Int32)
}

fn long(number: usize) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value<'static> {
    Value::Array(texts.into_iter().map(Value::from).collect())
}

fn missing<'p>(paths: &'p [Path], doc: &Doc<'_>) -> Vec<String> {
    paths.iter().filter(|path| property(doc, path).is_none()).map(|path: &'p Path| path.dotted()).collect()
}

fn explain_rule(rule: &Rule, value: &Value<'_>) -> Result<Doc<'static>> {
    let mut writer = DocWriter::new();
    writer.append("operatorName", &Value::from(rule.keyword));
    if let Some(reason) = plain_reason(&rule.check) {
        writer.append("specifiedAs", &Value::Document(rule.specified.borrow()));
        writer.append("reason", &Value::from(reason));
        match (&rule.check, value) {
            (Check::Enum { possible: false, .. } | Check::Never, _) => {}
            (Check::MinProperties(_) | Check::MaxProperties(_), Value::Document(doc)) => {
                writer.append("numberOfProperties", &int(doc.iter().count()));
            }
            (Check::MinItems(_) | Check::MaxItems(_), Value::Array(items)) => {
                writer.append("consideredValue", value).append("numberOfItems", &int(items.count()));
            }
            (Check::UniqueItems, Value::Array(items)) => {
                writer.append("consideredValue", value);
                writer.append("duplicatedValue", &duplicate(items).unwrap_or(Value::Missing));
            }
            (Check::Type(_), value) => {
                writer.append("consideredValue", value).append("consideredType", &Value::from(value.type_name()));
            }
            (_, value) => {
                writer.append("consideredValue", value);
            }
        }
        return Ok(writer.finish());
    }
    match (&rule.check, value) {
        (Check::Items(schema), Value::Array(items)) => {
            bad_item(schema, items, 0, "At least one item did not match the sub-schema", &mut writer)?;
        }
        (Check::ItemsByPosition(schemas), Value::Array(items)) => {
            let mut list = ArrayWriter::new();
            for (index, (schema, item)) in schemas.iter().zip(items.iter()).enumerate() {
                if !schema.accepts(&item)? {
                    let mut entry = DocWriter::new();
                    entry.append("itemIndex", &long(index));
                    entry.append("details", &details(schema, &item)?);
                    list.push(&Value::Document(entry.finish()));
                }
            }
            writer.append("details", &Value::Array(list.finish()));
        }
        (Check::AdditionalItems { from, allowed }, Value::Array(items)) => match allowed {
            Additional::Forbidden => {
                writer.append("specifiedAs", &Value::Document(rule.specified.borrow()));
                writer.append("reason", &Value::from("found additional items"));
                writer.append("additionalItems", &Value::Array(items.iter().skip(*from).collect()));
            }
            Additional::Schema(schema) => {
                let reason = "At least one additional item did not match the sub-schema";
                bad_item(schema, items, *from, reason, &mut writer)?;
            }
        },
        (Check::AllOf(schemas) | Check::AnyOf(schemas) | Check::OneOf(schemas), value) => {
            alternatives(&rule.check, schemas, value, &mut writer)?;
        }
        (Check::Not(_), _) => {
            writer.append("reason", &Value::from("child expression matched"));
        }
        (check, Value::Document(doc)) => explain_object(rule, check, doc, &mut writer)?,
        _ => {}
    }
    Ok(writer.finish())
}

/// Rules that say what they were, why they failed and on what value.
fn plain_reason(check: &Check) -> Option<&'static str> {
    Some(match check {
        Check::MultipleOf(_) => "considered value is not a multiple of the specified value",
        Check::Maximum { .. } | Check::Minimum { .. } => "comparison failed",
        Check::Pattern(_) => "regular expression did not match",
        Check::MaxLength(_) | Check::MinLength(_) => "specified string length was not satisfied",
        Check::MinItems(_) | Check::MaxItems(_) => "array did not match specified length",
        Check::UniqueItems => "found a duplicate item",
        Check::MinProperties(_) | Check::MaxProperties(_) => "specified number of properties was not satisfied",
        Check::Enum { possible: false, .. } | Check::Never => "expression always evaluates to false",
        Check::Enum { .. } => "value was not found in enum",
        Check::Type(_) => "type did not match",
        _ => return None,
    })
}

fn bad_item(
    schema: &Schema,
    items: &Array<'_>,
    from: usize,
    reason: &'static str,
    writer: &mut DocWriter,
) -> Result<()> {
    describe(schema, writer);
    writer.append("reason", &Value::from(reason));
    if let Some((index, item)) = first_bad(schema, items, from)? {
        writer.append("itemIndex", &int(index));
        writer.append("details", &details(schema, &item)?);
    }
    Ok(())
}

fn alternatives(check: &Check, schemas: &[Schema], value: &Value<'_>, writer: &mut DocWriter) -> Result<()> {
    let matching = accepting(schemas, value)?;
    if matches!(check, Check::OneOf(_)) && !matching.is_empty() {
        writer.append("reason", &Value::from("more than one subschema matched"));
        writer.append("matchingSchemaIndexes", &Value::Array(matching.into_iter().map(int).collect()));
        return Ok(());
    }
    let mut list = ArrayWriter::new();
    for (index, schema) in schemas.iter().enumerate().filter(|(index, _)| !matching.contains(index)) {
        let mut entry = DocWriter::new();
        entry.append("index", &int(index));
        describe(schema, &mut entry);
        entry.append("details", &details(schema, value)?);
        list.push(&Value::Document(entry.finish()));
    }
    writer.append("schemasNotSatisfied", &Value::Array(list.finish()));
    Ok(())
}

fn explain_object(rule: &Rule, check: &Check, doc: &Doc<'_>, writer: &mut DocWriter) -> Result<()> {
    match check {
        Check::Properties(properties) => {
            let mut list = ArrayWriter::new();
            for (path, schema) in properties {
                let Some(value) = property(doc, path) else { continue };
                if schema.accepts(&value)? {
                    continue;
                }
                let mut entry = DocWriter::new();
                entry.append("propertyName", &Value::from(path.dotted()));
                describe(schema, &mut entry);
                entry.append("details", &details(schema, &value)?);
                list.push(&Value::Document(entry.finish()));
            }
            writer.append("propertiesNotSatisfied", &Value::Array(list.finish()));
        }
        Check::AdditionalProperties { named, patterns, allowed } => {
            let mut additional = Vec::new();
            for (name, value) in doc.iter() {
                if is_additional(name.as_str(), named, patterns)? {
                    additional.push((name, value));
                }
            }
            match allowed {
                Additional::Forbidden => {
                    writer.append("specifiedAs", &Value::Document(rule.specified.borrow()));
                    writer.append("additionalProperties", &texts(additional.iter().map(|(name, _)| name.as_str())));
                }
                Additional::Schema(schema) => {
                    describe(schema, writer);
                    let reason = "at least one additional property did not match the subschema";
                    writer.append("reason", &Value::from(reason));
                    for (name, value) in &additional {
                        if !schema.accepts(value)? {
                            writer.append("failingProperty", &Value::from(name.as_str()));
                            writer.append("details", &details(schema, value)?);
                            break;
                        }
                    }
                }
            }
        }
        Check::PatternProperties(patterns) => {
            let mut list = ArrayWriter::new();
            for (name, value) in doc.iter() {
                for (regex, schema) in patterns {
                    if !list.is_empty() || !regex.is_match(name.as_bytes())? || schema.accepts(&value)? {
                        continue;
                    }
                    let mut entry = DocWriter::new();
                    entry.append("propertyName", &Value::from(name.as_str()));
                    describe(schema, &mut entry);
                    entry.append("regexMatched", &Value::from(regex.pattern()));
                    entry.append("details", &details(schema, &value)?);
                    list.push(&Value::Document(entry.finish()));
                }
            }
            writer.append("details", &Value::Array(list.finish()));
        }
        Check::Required(paths) => {
            writer.append("specifiedAs", &Value::Document(rule.specified.borrow()));
            writer.append("missingProperties", &texts(missing(paths, doc).iter().map(String::as_str)));
        }
        Check::Dependencies(dependencies) => {
            let mut list = ArrayWriter::new();
            for (path, dependency) in dependencies {
                if property(doc, path).is_none() || dependency.accepts(doc)? {
                    continue;
                }
                let mut entry = DocWriter::new();
                entry.append("conditionalProperty", &Value::from(path.dotted()));
                match dependency {
                    Dependency::Properties(paths) => {
                        entry.append("missingProperties", &texts(missing(paths, doc).iter().map(String::as_str)));
                    }
                    Dependency::Schema(schema) => {
                        entry.append("details", &details(schema, &Value::Document(doc.borrow()))?);
                    }
                }
                list.push(&Value::Document(entry.finish()));
            }
            writer.append("failingDependencies", &Value::Array(list.finish()));
        }
        _ => {}
    }
    Ok(())
}
