//! Filters of clients with the hex digits in them in lower case.

use crate::mql::{list, object};
use crate::shapes::hex::{Digits, lowered, lowered_fields};
use document::{Array, Doc, DocWriter, Value};

/// Operators that compare with one value …
const COMPARE: &[&str] = &["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];
/// … and with a list of values.
const COMPARE_EACH: &[&str] = &["$in", "$nin", "$all"];

impl Digits {
    /// The query with its digits in lower case.
    pub(crate) fn query(&self, query: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(query.as_bytes().len() + 16);
        for (name, value) in query.iter() {
            let value = match (name.as_str(), &value) {
                ("$and" | "$or" | "$nor", Value::Array(queries)) => self.queries(queries),
                ("$expr", expression) => self.expression(expression),
                ("_id", condition) if !self.of_id.is_empty() => self.condition(condition, &|id| self.id(id)),
                (path, condition) if self.has(path) => self.condition(condition, &digits),
                _ => value.into_owned(),
            };
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }

    fn queries(&self, queries: &Array<'_>) -> Value<'static> {
        list(queries.iter().map(|query| match query {
            Value::Document(query) => Value::Document(self.query(&query)),
            other => other.into_owned(),
        }))
    }

    /// What stands beside a path: a value, or operators.
    fn condition(&self, condition: &Value<'_>, lower: &Lower<'_>) -> Value<'static> {
        match condition {
            Value::Document(operators) if is_operators(operators) => Value::Document(self.operators(operators, lower)),
            Value::String(_) if self.both => object([("$in", list(self.cases(condition, lower)))]),
            value => lower(value),
        }
    }

    fn operators(&self, operators: &Doc<'_>, lower: &Lower<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(operators.as_bytes().len() + 16);
        for (name, argument) in operators.iter() {
            let (name, argument) = match (name.as_str(), &argument) {
                ("$eq", Value::String(_)) if self.both => ("$in", list(self.cases(&argument, lower))),
                ("$ne", Value::String(_)) if self.both => ("$nin", list(self.cases(&argument, lower))),
                (operator, value) if COMPARE.contains(&operator) => (name.as_str(), lower(value)),
                (operator, Value::Array(values)) if COMPARE_EACH.contains(&operator) => {
                    let both = self.both && operator != "$all";
                    let each = values.iter().flat_map(|value| match both {
                        true => self.cases(&value, lower),
                        false => vec![lower(&value)],
                    });
                    (name.as_str(), list(each))
                }
                ("$not", negated) => (name.as_str(), self.condition(negated, lower)),
                ("$regex", Value::Regex { .. }) => (name.as_str(), lower(&argument)),
                ("$options", Value::String(options)) => {
                    (name.as_str(), Value::string(of_either_case(options.as_str())))
                }
                _ => (name.as_str(), argument.clone().into_owned()),
            };
            writer.append(name, &argument);
        }
        if matches!(operators.get("$regex"), Some(Value::String(_))) && !operators.contains("$options") {
            writer.append("$options", &Value::from("i"));
        }
        writer.finish()
    }

    /// A value in all the cases that a document may have it in.
    fn cases(&self, value: &Value<'_>, lower: &Lower<'_>) -> Vec<Value<'static>> {
        let Value::String(text) = value else { return vec![lower(value)] };
        let upper = Value::string(text.as_str().to_ascii_uppercase());
        vec![lower(value), upper, value.clone().into_owned()]
    }

    /// A derived `_id` as it is given back.
    fn id(&self, id: &Value<'_>) -> Value<'static> {
        match id {
            Value::Document(id) => {
                let is_hex = |name: &str| self.of_id.iter().any(|field| field == name);
                Value::Document(lowered_fields(id, &is_hex).unwrap_or_else(|| id.clone().into_owned()))
            }
            other => other.clone().into_owned(),
        }
    }
}

type Lower<'f> = dyn Fn(&Value<'_>) -> Value<'static> + 'f;

/// Digits in lower case; a pattern finds either case.
fn digits(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Regex { pattern, options } => {
            Value::Regex { pattern: pattern.clone().into_owned(), options: of_either_case(options.as_str()).into() }
        }
        value => lowered(value).unwrap_or_else(|| value.clone().into_owned()),
    }
}

/// A pattern's options, sorted as BSON wants them, with the one that makes cases alike.
fn of_either_case(options: &str) -> String {
    let mut letters: Vec<char> = options.chars().filter(|letter| *letter != 'i').chain(['i']).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

fn is_operators(doc: &Doc<'_>) -> bool {
    doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$'))
}
