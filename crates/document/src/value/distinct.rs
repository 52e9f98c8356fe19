//! The different values of a path, arrays on the way and at its end taken apart: what `distinct` answers with.

use super::path::Part;
use super::{Value, key};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

const MAX_BYTES: usize = 16 << 20;

/// Different values by their encoding: in order. Of equal ones the first that came is kept.
#[derive(Debug, Default)]
pub struct Values {
    found: BTreeMap<Vec<u8>, Value<'static>>,
    /// What the reply takes, about.
    bytes: usize,
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `{ values: [ … ] }`, in order.
    pub fn finish(self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        writer.append("values", &Value::Array(self.found.into_values().collect()));
        writer.finish()
    }

    pub fn add(&mut self, value: &Value<'_>) -> Result<()> {
        let mut encoded = Vec::new();
        key::encode(value, &mut encoded);
        if let Entry::Vacant(vacant) = self.found.entry(encoded) {
            self.bytes += vacant.key().len();
            vacant.insert(value.borrow().into_owned());
            if self.bytes > MAX_BYTES {
                return Err(Error::new(Code::Location(17217), "distinct too big, 16mb cap"));
            }
        }
        Ok(())
    }
}

/// A number behind an array is an index; any other name goes into its documents.
pub fn each_value(value: &Value<'_>, parts: &[Part], visit: &mut dyn FnMut(&Value<'_>) -> Result<()>) -> Result<()> {
    match (value, parts.split_first()) {
        (Value::Array(array), None) => array.iter().try_for_each(|item| visit(&item)),
        (value, None) => visit(value),
        (Value::Document(doc), Some((first, rest))) => match doc.get(&first.name) {
            Some(inner) => each_value(&inner, rest, visit),
            None => Ok(()),
        },
        (Value::Array(array), Some((first, rest))) => match first.index {
            Some(index) => array.get(index).map_or(Ok(()), |item| each_value(&item, rest, visit)),
            None => array
                .iter()
                .filter(|item| matches!(item, Value::Document(_)))
                .try_for_each(|item| each_value(&item, parts, visit)),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Path;
    use bson::{Bson, bson, doc};

    #[test]
    fn arrays_are_taken_apart() {
        let check = |path: &str, doc: bson::Document, expected: Bson| {
            let mut values = Values::default();
            let value = Value::Document(Doc::from(doc));
            each_value(&value, &Path::new(path).parts, &mut |value| values.add(value)).unwrap();
            let found = Value::Array(values.found.into_values().collect());
            assert_eq!(found, Value::from(expected), "{path}");
        };
        check("a", doc! {"a": [1, 1.0, [2, 3], null]}, bson!([null, 1, [2, 3]]));
        check("a", doc! {"a": []}, bson!([]));
        check("a", doc! {"b": 1}, bson!([]));
        check("a.b", doc! {"a": [{"b": 1}, {"b": [2, 3]}, 5, {"c": 1}]}, bson!([1, 2, 3]));
        check("a.1", doc! {"a": [5, [6, 7]]}, bson!([6, 7]));
        check("a.0.b", doc! {"a": [{"b": 1}, {"b": 2}]}, bson!([1]));
    }
}
