//! From a schema document to rules; everything MongoDB refuses is refused with its words.

mod arrays;
mod objects;
mod types;

use super::Schema;
use super::equality::same;
use super::rule::{Check, Rule, to_decimal};
use crate::error::{Error, Result};
use crate::filter::number::non_negative;
use crate::filter::{Regex, TypeSet};
use crate::raw::{Doc, DocWriter};
use crate::value::Value;
use types::{json_type, types};

const KNOWN: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "encrypt",
    "encryptMetadata",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Keywords of JSON Schema that MongoDB knows and does not have.
const UNSUPPORTED: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

/// A schema for whole documents.
pub(in crate::filter) fn parse(source: &Doc<'_>) -> Result<Schema> {
    schema(source, Of::Document)
}

/// What a schema describes: keywords for other kinds of values say nothing of a whole document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Document,
    Anything,
}

fn mismatch<T>(message: String) -> Result<T> {
    Err(Error::type_mismatch(message))
}

fn unparsable<T>(message: String) -> Result<T> {
    Err(Error::failed_to_parse(message))
}

fn schema(source: &Doc<'_>, of: Of) -> Result<Schema> {
    check_keywords(source)?;
    let mut parse = Parse { source, of, types: None, rules: Vec::new() };
    let title = parse.text("title")?;
    let description = parse.text("description")?;
    let stated = parse.stated_type()?;
    parse.types = stated.as_ref().map(|(_, types)| *types);
    parse.numbers()?;
    parse.strings()?;
    parse.arrays()?;
    parse.objects()?;
    parse.logic()?;
    if let Some((keyword, types)) = stated {
        if of == Of::Document && !types.contains(&Value::Document(Doc::empty())) {
            let mut specified = DocWriter::new();
            specified.append("$jsonSchema", &Value::Document(source.borrow()));
            let never = Rule { keyword: "$jsonSchema", specified: specified.finish(), check: Check::Never };
            return Ok(Schema { title: None, description: None, rules: vec![never] });
        }
        parse.add(keyword, Check::Type(types));
    }
    Ok(Schema { title, description, rules: parse.rules })
}

fn check_keywords(source: &Doc<'_>) -> Result<()> {
    let mut seen: Vec<&'static str> = Vec::new();
    for (name, _) in source.iter() {
        let name = name.as_str();
        let Some(known) = KNOWN.iter().find(|known| **known == name) else {
            return unparsable(match UNSUPPORTED.contains(&name) {
                true => format!("$jsonSchema keyword '{name}' is not currently supported"),
                false => format!("Unknown $jsonSchema keyword: {name}"),
            });
        };
        if seen.contains(known) {
            return unparsable(format!("Duplicate $jsonSchema keyword: {name}"));
        }
        if name.starts_with("encrypt") {
            return Err(Error::not_implemented(format!("the $jsonSchema keyword '{name}'")));
        }
        seen.push(known);
    }
    Ok(())
}

struct Parse<'s> {
    source: &'s Doc<'s>,
    of: Of,
    types: Option<TypeSet>,
    rules: Vec<Rule>,
}

impl<'s> Parse<'s> {
    fn get(&self, keyword: &str) -> Option<Value<'s>> {
        self.source.get(keyword)
    }

    fn add(&mut self, keyword: &'static str, check: Check) {
        self.add_with(keyword, &[], check);
    }

    /// `also` are further keywords that the rule takes in.
    fn add_with(&mut self, keyword: &'static str, also: &[&str], check: Check) {
        let mut specified = DocWriter::new();
        for keyword in std::iter::once(&keyword).chain(also) {
            specified.append(keyword, &self.get(keyword).unwrap_or(Value::Missing));
        }
        self.rules.push(Rule { keyword, specified: specified.finish(), check });
    }

    /// Whether a keyword for values of this kind can say anything.
    fn concerns(&self, alias: &str) -> bool {
        let kind = TypeSet::of_alias(alias).unwrap_or_default();
        let possible = match self.of {
            Of::Document => alias == "object",
            Of::Anything => true,
        };
        possible && self.types.is_none_or(|types| types.meets(kind))
    }

    fn text(&self, keyword: &str) -> Result<Option<String>> {
        match self.get(keyword) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
            Some(_) => mismatch(format!("$jsonSchema keyword '{keyword}' must be of type string")),
        }
    }

    fn flag(&self, keyword: &str) -> Result<bool> {
        match self.get(keyword) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => mismatch(format!("$jsonSchema keyword '{keyword}' must be a boolean")),
        }
    }

    fn count(&self, keyword: &str) -> Result<Option<usize>> {
        match self.get(keyword) {
            None => Ok(None),
            Some(value) => {
                let count = non_negative(keyword, &value).map_err(Error::failed_to_parse)?;
                Ok(Some(usize::try_from(count).unwrap_or(usize::MAX)))
            }
        }
    }

    fn stated_type(&self) -> Result<Option<(&'static str, TypeSet)>> {
        match (self.get("type"), self.get("bsonType")) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                unparsable("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'".to_owned())
            }
            (Some(value), None) => Ok(Some(("type", types("type", &value, json_type)?))),
            (None, Some(value)) => {
                let alias = |alias: &str| TypeSet::parse(&Value::from(alias));
                Ok(Some(("bsonType", types("bsonType", &value, alias)?)))
            }
        }
    }

    fn numbers(&mut self) -> Result<()> {
        if let Some(value) = self.get("multipleOf") {
            let Some(divisor) = to_decimal(&value) else {
                return mismatch("$jsonSchema keyword 'multipleOf' must be a number".to_owned());
            };
            if divisor.is_zero() || (divisor.is_negative() && !divisor.is_nan()) {
                return unparsable("$jsonSchema keyword 'multipleOf' must have a positive value".to_owned());
            }
            if self.concerns("number") {
                if divisor.is_nan() {
                    return Err(Error::bad_value("divisor cannot be NaN"));
                }
                if divisor.is_infinite() {
                    return Err(Error::bad_value("divisor cannot be infinite"));
                }
                self.add("multipleOf", Check::MultipleOf(divisor));
            }
        }
        if let Some((limit, exclusive)) = self.limit("maximum", "exclusiveMaximum")? {
            let also: &[&str] = if exclusive { &["exclusiveMaximum"] } else { &[] };
            self.add_with("maximum", also, Check::Maximum { limit, exclusive });
        }
        if let Some((limit, exclusive)) = self.limit("minimum", "exclusiveMinimum")? {
            let also: &[&str] = if exclusive { &["exclusiveMinimum"] } else { &[] };
            self.add_with("minimum", also, Check::Minimum { limit, exclusive });
        }
        Ok(())
    }

    fn limit(&self, keyword: &str, exclusive: &str) -> Result<Option<(Value<'static>, bool)>> {
        match self.get(keyword) {
            None if self.get(exclusive).is_some() => {
                unparsable(format!("$jsonSchema keyword '{keyword}' must be a present if {exclusive} is present"))
            }
            None => Ok(None),
            Some(value) if !value.is_number() => mismatch(format!("$jsonSchema keyword '{keyword}' must be a number")),
            Some(value) => {
                let exclusive = self.flag(exclusive)?;
                Ok(self.concerns("number").then(|| (value.into_owned(), exclusive)))
            }
        }
    }

    fn strings(&mut self) -> Result<()> {
        let concerned = self.concerns("string");
        if let Some(value) = self.get("pattern") {
            let Value::String(pattern) = value else {
                return mismatch("$jsonSchema keyword 'pattern' must be a string".to_owned());
            };
            if concerned {
                self.add("pattern", Check::Pattern(Regex::compile(pattern.as_str(), "")?));
            }
        }
        if let Some(limit) = self.count("maxLength")?.filter(|_| concerned) {
            self.add("maxLength", Check::MaxLength(limit));
        }
        if let Some(limit) = self.count("minLength")?.filter(|_| concerned) {
            self.add("minLength", Check::MinLength(limit));
        }
        Ok(())
    }

    fn logic(&mut self) -> Result<()> {
        for (keyword, check) in
            [("allOf", Check::AllOf as fn(Vec<Schema>) -> Check), ("anyOf", Check::AnyOf), ("oneOf", Check::OneOf)]
        {
            if let Some(value) = self.get(keyword) {
                let schemas = self.alternatives(keyword, &value)?;
                self.add(keyword, check(schemas));
            }
        }
        match self.get("not") {
            None => {}
            Some(Value::Document(inner)) => {
                let inner = schema(&inner, self.of)?;
                self.add("not", Check::Not(Box::new(inner)));
            }
            Some(other) => {
                return mismatch(format!(
                    "$jsonSchema keyword 'not' must be an object, but found an element of type {}",
                    other.type_name()
                ));
            }
        }
        let Some(value) = self.get("enum") else { return Ok(()) };
        let Value::Array(items) = value else {
            return mismatch(format!(
                "$jsonSchema keyword 'enum' must be an array, but found an element of type {}",
                value.type_name()
            ));
        };
        let values: Vec<Value<'static>> = items.iter().map(Value::into_owned).collect();
        if values.is_empty() {
            return unparsable("$jsonSchema keyword 'enum' cannot be an empty array".to_owned());
        }
        if values.iter().enumerate().any(|(at, value)| values.iter().take(at).any(|earlier| same(earlier, value))) {
            return unparsable("$jsonSchema keyword 'enum' array cannot contain duplicate values.".to_owned());
        }
        let possible = self.of == Of::Anything || values.iter().any(|value| matches!(value, Value::Document(_)));
        self.add("enum", Check::Enum { values, possible });
        Ok(())
    }

    fn alternatives(&self, keyword: &str, value: &Value<'_>) -> Result<Vec<Schema>> {
        let Value::Array(items) = value else {
            return mismatch(format!("$jsonSchema keyword '{keyword}' must be an array"));
        };
        if items.is_empty() {
            return Err(Error::bad_value(format!("$jsonSchema keyword '{keyword}' must be a non-empty array")));
        }
        let parse = |item| match item {
            Value::Document(inner) => schema(&inner, self.of),
            other => mismatch(format!(
                "$jsonSchema keyword '{keyword}' must be an array of objects, but found an element of type {}",
                other.type_name()
            )),
        };
        items.iter().map(parse).collect()
    }
}
