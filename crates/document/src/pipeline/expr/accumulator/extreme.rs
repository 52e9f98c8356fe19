//! `$min`, `$max` (null and missing are passed over), `$first`, `$last`.

use super::{Accumulator, AccumulatorDef, AccumulatorExpr, bytes_of, keep};
use crate::error::Result;
use crate::value::{Value, order};
use std::cmp::Ordering;

pub(super) const FIRST: AccumulatorDef = AccumulatorDef {
    name: "$first",
    help: "The value of the group's first document.",
    parse: AccumulatorExpr::plain::<First>,
};

pub(super) const LAST: AccumulatorDef = AccumulatorDef {
    name: "$last",
    help: "The value of the group's last document.",
    parse: AccumulatorExpr::plain::<Last>,
};

pub(super) const MAX: AccumulatorDef = AccumulatorDef {
    name: "$max",
    help: "The greatest value that is not null; null if there is none.",
    parse: AccumulatorExpr::plain::<Max>,
};

pub(super) const MIN: AccumulatorDef = AccumulatorDef {
    name: "$min",
    help: "The least value that is not null; null if there is none.",
    parse: AccumulatorExpr::plain::<Min>,
};

/// The value that all later ones must beat.
#[derive(Debug, Default)]
struct Best(Option<Value<'static>>);

impl Best {
    fn offer(&mut self, value: &Value<'_>, better: Ordering) {
        if value.is_nullish() {
            return;
        }
        if self.0.as_ref().is_none_or(|best| order::compare(value, best) == better) {
            self.0 = Some(keep(value));
        }
    }

    fn take(&mut self) -> Value<'static> {
        self.0.take().unwrap_or(Value::Null)
    }

    fn memory(&self) -> usize {
        self.0.as_ref().map_or(size_of::<Self>(), bytes_of)
    }
}

macro_rules! best {
    ($state:ident, $better:expr) => {
        #[derive(Debug, Default)]
        pub(in crate::pipeline::expr) struct $state(Best);

        impl Accumulator for $state {
            fn add(&mut self, value: &Value<'_>) -> Result<()> {
                self.0.offer(value, $better);
                Ok(())
            }

            fn finish(&mut self) -> Result<Value<'static>> {
                Ok(self.0.take())
            }

            fn memory(&self) -> usize {
                self.0.memory()
            }
        }
    };
}

best!(Max, Ordering::Greater);
best!(Min, Ordering::Less);

#[derive(Debug, Default)]
struct First(Option<Value<'static>>);

impl Accumulator for First {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        if self.0.is_none() {
            self.0 = Some(keep(value));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(self.0.take().unwrap_or(Value::Missing))
    }

    fn memory(&self) -> usize {
        self.0.as_ref().map_or(size_of::<Self>(), bytes_of)
    }
}

#[derive(Debug, Default)]
struct Last(Option<Value<'static>>);

impl Accumulator for Last {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        self.0 = Some(keep(value));
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(self.0.take().unwrap_or(Value::Missing))
    }

    fn memory(&self) -> usize {
        self.0.as_ref().map_or(size_of::<Self>(), bytes_of)
    }
}
