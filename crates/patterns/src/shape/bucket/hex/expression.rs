//! Expressions of clients with the hex digits that they compare a series with in lower case.

use super::{Digits, lowered};
use crate::mql::{list, object};
use document::{Array, Doc, DocWriter, Value};

/// Operators that compare their operands.
const COMPARE: &[&str] = &["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp", "$in"];

impl Digits {
    /// The expression with lower-case digits wherever it compares a series with constants. What it says otherwise is untouched.
    pub(crate) fn expression(&self, expression: &Value<'_>) -> Value<'static> {
        match expression {
            Value::Document(doc) if doc.contains("$literal") => expression.clone().into_owned(),
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

    fn compares(&self, operands: &Array<'_>) -> bool {
        operands.iter().any(|operand| operand.as_str().is_some_and(|text| self.is_path(text)))
    }

    /// Whether it is `$key`, a path of hex digits.
    pub(super) fn is_path(&self, text: &str) -> bool {
        text.strip_prefix('$').is_some_and(|path| self.has(path.strip_prefix("$CURRENT.").unwrap_or(path)))
    }

    /// An operand: constants in lower case.
    fn constant(&self, operand: &Value<'_>) -> Value<'static> {
        match operand {
            Value::String(text) if text.as_str().starts_with('$') => operand.clone().into_owned(),
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

fn literal_in_lower_case(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Array(items) => list(items.iter().map(|item| literal_in_lower_case(&item))),
        value => lowered(value).unwrap_or_else(|| value.clone().into_owned()),
    }
}
