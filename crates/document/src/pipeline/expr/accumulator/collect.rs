//! `$push`, `$addToSet`, `$mergeObjects`; and `$accumulator`, which is refused.

use super::{Accumulator, AccumulatorDef, AccumulatorExpr, bytes_of, check_memory, keep};
use crate::error::{Error, Result};
use crate::pipeline::expr::form::fail;
use crate::raw::{ArrayWriter, DocWriter};
use crate::value::{Value, key, show};
use hashbrown::HashSet;
use indexmap::IndexMap;

pub(super) const ACCUMULATOR: AccumulatorDef = AccumulatorDef {
    name: "$accumulator",
    help: "Not supported: it runs JavaScript.",
    parse: |_, _, _| Err(Error::not_implemented("The accumulator $accumulator")),
};

pub(super) const ADD_TO_SET: AccumulatorDef = AccumulatorDef {
    name: "$addToSet",
    help: "An array of the distinct values, in the order they first came.",
    parse: AccumulatorExpr::plain::<Distinct>,
};

pub(super) const MERGE_OBJECTS: AccumulatorDef = AccumulatorDef {
    name: "$mergeObjects",
    help: "One object with the fields of all; a later value replaces an earlier one.",
    parse: AccumulatorExpr::plain::<Merged>,
};

pub(super) const PUSH: AccumulatorDef = AccumulatorDef {
    name: "$push",
    help: "An array of all values; what is missing is left out.",
    parse: AccumulatorExpr::plain::<Pushed>,
};

/// The bytes of the array, written as the values come.
#[derive(Default)]
struct Pushed(ArrayWriter);

impl std::fmt::Debug for Pushed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pushed({} values)", self.0.count())
    }
}

impl Accumulator for Pushed {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        if value.is_missing() {
            return Ok(());
        }
        self.0.push(value);
        check_memory("$push", self.0.len())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(Value::Array(std::mem::take(&mut self.0).finish()))
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.len()
    }
}

#[derive(Default)]
struct Distinct {
    values: ArrayWriter,
    /// By their keys: equal values of different types are one.
    seen: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    key: Vec<u8>,
    bytes: usize,
}

impl std::fmt::Debug for Distinct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Distinct({} values)", self.seen.len())
    }
}

impl Accumulator for Distinct {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        if value.is_missing() {
            return Ok(());
        }
        self.key.clear();
        key::encode(value, &mut self.key);
        if self.seen.contains(self.key.as_slice()) {
            return Ok(());
        }
        self.bytes += self.key.len() + size_of::<Box<[u8]>>();
        self.seen.insert(self.key.as_slice().into());
        self.values.push(value);
        check_memory("$addToSet", self.values.len())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(Value::Array(std::mem::take(&mut self.values).finish()))
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.values.len() + self.bytes
    }
}

/// `$mergeObjects`, as an accumulator and as an expression.
#[derive(Debug, Default)]
pub(in crate::pipeline::expr) struct Merged {
    fields: IndexMap<Box<str>, Value<'static>, foldhash::fast::RandomState>,
    bytes: usize,
}

impl Accumulator for Merged {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        let doc = match value {
            Value::Document(doc) => doc.borrow(),
            other if other.is_nullish() => return Ok(()),
            other => {
                return fail(
                    40400,
                    format!(
                        "$mergeObjects requires object inputs, but input {} is of type {}",
                        show::computed(other),
                        other.type_name()
                    ),
                );
            }
        };
        for (name, value) in doc.iter() {
            self.bytes += bytes_of(&value) + name.as_bytes().len();
            match self.fields.get_mut(name.as_str()) {
                Some(field) => *field = keep(&value),
                None => {
                    self.fields.insert(name.as_str().into(), keep(&value));
                }
            }
        }
        check_memory("$mergeObjects", self.bytes)
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        let mut writer = DocWriter::new();
        for (name, value) in std::mem::take(&mut self.fields) {
            writer.append(&name, &value);
        }
        Ok(Value::Document(writer.finish()))
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
