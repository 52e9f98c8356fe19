//! Expressions of clients with the hex digits that they compare a series with in lower case.

use crate::mql::{list, object};
use crate::shapes::hex::{Digits, lowered};
use document::{Array, Doc, DocWriter, Value};

/// Operators that compare their operands.
const COMPARE: &[&str] = &[
    "$cmp",
    "$eq",
    "$gt",
    "$gte",
    "$in",
    "$indexOfArray",
    "$indexOfBytes",
    "$indexOfCP",
    "$lt",
    "$lte",
    "$ne",
    "$setDifference",
    "$setEquals",
    "$setIntersection",
    "$setIsSubset",
    "$setUnion",
];

impl Digits {
    /// The expression with lower-case digits wherever it compares a series with constants. What it says otherwise is untouched.
    pub(crate) fn expression(&self, expression: &Value<'_>) -> Value<'static> {
        match expression {
            Value::Document(doc) if doc.contains("$literal") => expression.clone().into_owned(),
            Value::Document(doc) if doc.contains("$let") => self.with_variables(doc),
            Value::Document(doc) => Value::Document(self.expressions(doc)),
            Value::Array(items) => list(items.iter().map(|item| self.expression(&item))),
            other => other.clone().into_owned(),
        }
    }

    fn expressions(&self, doc: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
        for (name, value) in doc.iter() {
            let value = match &value {
                Value::Array(operands) if COMPARE.contains(&name.as_str()) && self.compares(operands) => {
                    list(operands.iter().map(|operand| self.constant(&operand)))
                }
                value => self.expression(value),
            };
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }

    /// `$let`: what its variables stand for is known inside.
    fn with_variables(&self, doc: &Doc<'_>) -> Value<'static> {
        let Some(Value::Document(spec)) = doc.get("$let") else { return Value::Document(doc.clone().into_owned()) };
        let Some(Value::Document(vars)) = spec.get("vars") else { return Value::Document(doc.clone().into_owned()) };
        let mut inside = self.clone();
        let mut bound = DocWriter::with_capacity(vars.as_bytes().len());
        for (name, value) in vars.iter() {
            inside.bind(name.as_str(), &value, self);
            bound.append(name.as_str(), &self.expression(&value));
        }
        let mut whole = DocWriter::with_capacity(doc.as_bytes().len());
        for (name, value) in spec.iter() {
            match name.as_str() {
                "vars" => whole.append("vars", &Value::Document(std::mem::take(&mut bound).finish())),
                "in" => whole.append("in", &inside.expression(&value)),
                other => whole.append(other, &value),
            };
        }
        object([("$let", Value::Document(whole.finish()))])
    }

    /// From now on a variable stands for an expression: digits, a constant, or what is not known.
    pub(super) fn bind(&mut self, name: &str, value: &Value<'_>, outside: &Digits) {
        self.variables.retain(|own| own != name);
        self.constants.retain(|(own, _)| own != name);
        match value {
            Value::String(text) if outside.is_path(text.as_str()) => self.variables.push(name.to_owned()),
            Value::String(text) if text.as_str().starts_with('$') => {}
            Value::String(_) => self.constants.push((name.to_owned(), value.clone().into_owned())),
            Value::Array(items) if items.iter().all(|item| is_plain(&item)) => {
                self.constants.push((name.to_owned(), value.clone().into_owned()));
            }
            Value::Document(doc) => {
                if let Some(literal) = doc.get("$literal") {
                    self.constants.push((name.to_owned(), literal.into_owned()));
                }
            }
            _ => {}
        }
    }

    fn compares(&self, operands: &Array<'_>) -> bool {
        operands.iter().any(|operand| match &operand {
            Value::String(text) => self.is_path(text.as_str()),
            Value::Array(items) => self.compares(items),
            _ => false,
        })
    }

    /// Whether it is `$key`, a path of hex digits, or a variable that stands for one.
    pub(super) fn is_path(&self, text: &str) -> bool {
        let Some(path) = text.strip_prefix('$') else { return false };
        match path.strip_prefix('$') {
            Some(variable) => match variable.strip_prefix("CURRENT.").or_else(|| variable.strip_prefix("ROOT.")) {
                Some(path) => self.has(path),
                None => self.variables.iter().any(|own| own == variable),
            },
            None => self.has(path),
        }
    }

    /// The constant that a variable stands for.
    fn constant_of(&self, text: &str) -> Option<&Value<'static>> {
        let name = text.strip_prefix("$$")?;
        self.constants.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// An operand: constants in lower case.
    fn constant(&self, operand: &Value<'_>) -> Value<'static> {
        match operand {
            Value::String(text) if text.as_str().starts_with('$') => match self.constant_of(text.as_str()) {
                Some(constant) if literal_in_lower_case(constant) != *constant => {
                    object([("$literal", literal_in_lower_case(constant))])
                }
                _ => operand.clone().into_owned(),
            },
            Value::String(_) => lowered(operand).unwrap_or_else(|| operand.clone().into_owned()),
            Value::Array(items) => list(items.iter().map(|item| self.constant(&item))),
            Value::Document(doc) => match doc.get("$literal") {
                Some(literal) => object([("$literal", literal_in_lower_case(&literal))]),
                None => self.expression(operand),
            },
            other => other.clone().into_owned(),
        }
    }
}

fn is_plain(value: &Value<'_>) -> bool {
    match value {
        Value::String(text) => !text.as_str().starts_with('$'),
        Value::Document(_) | Value::Array(_) => false,
        _ => true,
    }
}

pub(super) fn literal_in_lower_case(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Array(items) => list(items.iter().map(|item| literal_in_lower_case(&item))),
        value => lowered(value).unwrap_or_else(|| value.clone().into_owned()),
    }
}
