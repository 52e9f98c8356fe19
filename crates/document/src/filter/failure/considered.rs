//! The values that an operator looked at, as details show them.

use crate::error::Result;
use crate::filter::{Leaves, walk};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value};

/// What was found at a path, in order.
pub(super) struct Considered {
    values: Vec<Value<'static>>,
    /// Whether the path led anywhere; the first place it leads to decides.
    pub(super) found: bool,
}

impl Considered {
    pub(super) fn at(doc: &Doc<'_>, path: &str, leaves: Leaves) -> Result<Considered> {
        let path = Path::new(path);
        let mut considered = Considered { values: Vec::new(), found: false };
        walk(doc, &path.parts, Leaves::ArrayOnly, &mut |value, _| {
            considered.found = !value.is_missing();
            Ok(true)
        })?;
        walk(doc, &path.parts, leaves, &mut |value, _| {
            if !value.is_missing() {
                considered.values.push(value.clone().into_owned());
            }
            Ok(false)
        })?;
        Ok(considered)
    }

    /// `consideredValue: 5` or `consideredValues: [ 1, 2 ]`.
    pub(super) fn write_values(&self, writer: &mut DocWriter) {
        match self.values.as_slice() {
            [only] => writer.append("consideredValue", only),
            values => writer.append("consideredValues", &Value::Array(values.iter().map(Value::borrow).collect())),
        };
    }

    /// `consideredType: "int"` or `consideredTypes: [ "int", "string" ]`, sorted.
    pub(super) fn write_types(&self, writer: &mut DocWriter) {
        let mut types: Vec<&str> = self.values.iter().map(Value::type_name).collect();
        types.sort_unstable();
        types.dedup();
        match types.as_slice() {
            [] => {}
            [only] => {
                writer.append("consideredType", &Value::from(*only));
            }
            types => {
                writer.append("consideredTypes", &Value::Array(types.iter().map(|name| Value::from(*name)).collect()));
            }
        }
    }

    pub(super) fn any_of_type(&self, names: &[&str]) -> bool {
        self.values.iter().any(|value| names.contains(&value.type_name()))
    }
}
