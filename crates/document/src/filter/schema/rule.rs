//! What one keyword asks of a value. Each keyword speaks of one kind of value and lets every other kind pass.

use super::Schema;
use super::equality::{duplicate, same};
use crate::error::Result;
use crate::filter::{Regex, TypeSet};
use crate::raw::{Array, Doc};
use crate::value::path::Part;
use crate::value::{Decimal128, Path, Value, order};
use std::cmp::Ordering;

/// A keyword with its value as written.
#[derive(Debug)]
pub(in crate::filter) struct Rule {
    pub(super) keyword: &'static str,
    /// `{ keyword: value }`, for explaining a failure.
    pub(super) specified: Doc<'static>,
    pub(super) check: Check,
}

#[derive(Debug)]
pub(super) enum Check {
    MultipleOf(Decimal128),
    Maximum {
        limit: Value<'static>,
        exclusive: bool,
    },
    Minimum {
        limit: Value<'static>,
        exclusive: bool,
    },
    Pattern(Regex),
    MaxLength(usize),
    MinLength(usize),
    MinItems(usize),
    MaxItems(usize),
    UniqueItems,
    Items(Schema),
    ItemsByPosition(Vec<Schema>),
    AdditionalItems {
        from: usize,
        allowed: Additional,
    },
    Properties(Vec<(Path, Schema)>),
    AdditionalProperties {
        named: Vec<String>,
        patterns: Vec<Regex>,
        allowed: Additional,
    },
    PatternProperties(Vec<(Regex, Schema)>),
    /// Sorted.
    Required(Vec<Path>),
    MinProperties(usize),
    MaxProperties(usize),
    Dependencies(Vec<(Path, Dependency)>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
    Enum {
        values: Vec<Value<'static>>,
        possible: bool,
    },
    Type(TypeSet),
    /// The whole schema asks a document to be something else.
    Never,
}

#[derive(Debug)]
pub(super) enum Additional {
    Forbidden,
    Schema(Schema),
}

#[derive(Debug)]
pub(super) enum Dependency {
    Properties(Vec<Path>),
    Schema(Schema),
}

impl Check {
    pub(super) fn accepts(&self, value: &Value<'_>) -> Result<bool> {
        Ok(match (self, value) {
            (Check::MultipleOf(divisor), number) if number.is_number() => is_multiple(number, *divisor),
            (Check::Maximum { limit, exclusive }, number) if number.is_number() => {
                within(number, limit, Ordering::Less, *exclusive)
            }
            (Check::Minimum { limit, exclusive }, number) if number.is_number() => {
                within(number, limit, Ordering::Greater, *exclusive)
            }
            (Check::Pattern(regex), Value::String(text)) => regex.is_match(text.as_bytes())?,
            (Check::MaxLength(limit), Value::String(text)) => text.as_str().chars().count() <= *limit,
            (Check::MinLength(limit), Value::String(text)) => text.as_str().chars().count() >= *limit,
            (Check::MinItems(limit), Value::Array(items)) => items.count() >= *limit,
            (Check::MaxItems(limit), Value::Array(items)) => items.count() <= *limit,
            (Check::UniqueItems, Value::Array(items)) => duplicate(items).is_none(),
            (Check::Items(schema), Value::Array(items)) => first_bad(schema, items, 0)?.is_none(),
            (Check::ItemsByPosition(schemas), Value::Array(items)) => {
                for (schema, item) in schemas.iter().zip(items.iter()) {
                    if !schema.accepts(&item)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Check::AdditionalItems { from, allowed }, Value::Array(items)) => match allowed {
                Additional::Forbidden => items.count() <= *from,
                Additional::Schema(schema) => first_bad(schema, items, *from)?.is_none(),
            },
            (Check::Enum { values, .. }, value) => values.iter().any(|allowed| same(allowed, value)),
            (Check::Type(types), value) => types.contains(value),
            (Check::Not(schema), value) => !schema.accepts(value)?,
            (Check::AllOf(schemas), value) => accepting(schemas, value)?.len() == schemas.len(),
            (Check::AnyOf(schemas), value) => !accepting(schemas, value)?.is_empty(),
            (Check::OneOf(schemas), value) => accepting(schemas, value)?.len() == 1,
            (Check::Never, _) => false,
            (_, Value::Document(doc)) => self.accepts_document(doc)?,
            _ => true,
        })
    }

    fn accepts_document(&self, doc: &Doc<'_>) -> Result<bool> {
        Ok(match self {
            Check::Properties(properties) => {
                for (path, schema) in properties {
                    if let Some(value) = property(doc, path)
                        && !schema.accepts(&value)?
                    {
                        return Ok(false);
                    }
                }
                true
            }
            Check::AdditionalProperties { named, patterns, allowed } => {
                for (name, value) in doc.iter() {
                    if !is_additional(name.as_str(), named, patterns)? {
                        continue;
                    }
                    match allowed {
                        Additional::Forbidden => return Ok(false),
                        Additional::Schema(schema) if !schema.accepts(&value)? => return Ok(false),
                        Additional::Schema(_) => {}
                    }
                }
                true
            }
            Check::PatternProperties(patterns) => {
                for (name, value) in doc.iter() {
                    for (regex, schema) in patterns {
                        if regex.is_match(name.as_bytes())? && !schema.accepts(&value)? {
                            return Ok(false);
                        }
                    }
                }
                true
            }
            Check::Required(paths) => paths.iter().all(|path| property(doc, path).is_some()),
            Check::MinProperties(limit) => doc.iter().count() >= *limit,
            Check::MaxProperties(limit) => doc.iter().count() <= *limit,
            Check::Dependencies(dependencies) => {
                for (path, dependency) in dependencies {
                    if property(doc, path).is_some() && !dependency.accepts(doc)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => true,
        })
    }
}

impl Dependency {
    pub(super) fn accepts(&self, doc: &Doc<'_>) -> Result<bool> {
        match self {
            Dependency::Properties(paths) => Ok(paths.iter().all(|path| property(doc, path).is_some())),
            Dependency::Schema(schema) => schema.accepts(&Value::Document(doc.borrow())),
        }
    }
}

/// A property; as in MongoDB, a dot in its name leads into sub-documents.
pub(super) fn property<'a>(doc: &Doc<'a>, path: &Path) -> Option<Value<'a>> {
    fn enter<'a>(doc: &Doc<'a>, parts: &[Part]) -> Option<Value<'a>> {
        let (first, rest) = parts.split_first()?;
        match (doc.get(&first.name)?, rest.is_empty()) {
            (value, true) => Some(value),
            (Value::Document(inner), false) => enter(&inner, rest),
            _ => None,
        }
    }
    enter(doc, &path.parts)
}

pub(super) fn is_additional(name: &str, named: &[String], patterns: &[Regex]) -> Result<bool> {
    if named.iter().any(|known| known == name) {
        return Ok(false);
    }
    for pattern in patterns {
        if pattern.is_match(name.as_bytes())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first element, from an index on, that a schema does not accept.
pub(super) fn first_bad<'a>(schema: &Schema, items: &Array<'a>, from: usize) -> Result<Option<(usize, Value<'a>)>> {
    for (index, item) in items.iter().enumerate().skip(from) {
        if !schema.accepts(&item)? {
            return Ok(Some((index, item)));
        }
    }
    Ok(None)
}

/// The numbers of the schemas that accept the value.
pub(super) fn accepting(schemas: &[Schema], value: &Value<'_>) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for (index, schema) in schemas.iter().enumerate() {
        if schema.accepts(value)? {
            found.push(index);
        }
    }
    Ok(found)
}

/// NaN is within no limit but NaN.
fn within(number: &Value<'_>, limit: &Value<'_>, side: Ordering, exclusive: bool) -> bool {
    let nan = |value: &Value<'_>| match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal(number) => number.is_nan(),
        _ => false,
    };
    match order::compare(number, limit) {
        Ordering::Equal => !exclusive,
        found => found == side && !nan(number) && !nan(limit),
    }
}

fn is_multiple(number: &Value<'_>, divisor: Decimal128) -> bool {
    let Some(dividend) = to_decimal(number) else { return false };
    let mut context = dec::Context::<dec::Decimal128>::default();
    let remainder = context.rem(dividend.to_dec(), divisor.to_dec());
    remainder.is_zero()
}

/// As MongoDB turns numbers into decimals: doubles to fifteen digits, so that 0.3 is three tenths.
pub(super) fn to_decimal(number: &Value<'_>) -> Option<Decimal128> {
    match number {
        Value::Int32(number) => Some(Decimal128::from_i64(i64::from(*number))),
        Value::Int64(number) => Some(Decimal128::from_i64(*number)),
        Value::Double(number) if number.is_nan() => Some(Decimal128::NAN),
        Value::Double(number) if number.is_infinite() => Some(match *number > 0.0 {
            true => Decimal128::INFINITY,
            false => Decimal128::NEGATIVE_INFINITY,
        }),
        Value::Double(number) => format!("{number:.14e}").parse().ok(),
        Value::Decimal(number) => Some(*number),
        _ => None,
    }
}
