//! `$sum`, `$avg`, `$count`, `$stdDevPop`, `$stdDevSamp`: what is no number is passed over.

use super::{Accumulator, AccumulatorDef, AccumulatorExpr};
use crate::error::{Error, Result};
use crate::value::Value;
use crate::value::number::Number;
use crate::value::sum::Sum;

pub(super) const AVG: AccumulatorDef = AccumulatorDef {
    name: "$avg",
    help: "The mean of the numbers; null if there are none.",
    parse: AccumulatorExpr::plain::<Average>,
};

pub(super) const COUNT: AccumulatorDef = AccumulatorDef {
    name: "$count",
    help: "The number of documents.",
    parse: |name, argument, names| match argument {
        Value::Document(doc) if doc.is_empty() => AccumulatorExpr::plain::<Total>(name, &Value::Int32(1), names),
        _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    },
};

pub(super) const STD_DEV_POP: AccumulatorDef = AccumulatorDef {
    name: "$stdDevPop",
    help: "The standard deviation of the numbers as a whole population.",
    parse: AccumulatorExpr::plain::<StdDevPop>,
};

pub(super) const STD_DEV_SAMP: AccumulatorDef = AccumulatorDef {
    name: "$stdDevSamp",
    help: "The standard deviation of the numbers as a sample of a population.",
    parse: AccumulatorExpr::plain::<StdDevSamp>,
};

pub(super) const SUM: AccumulatorDef =
    AccumulatorDef { name: "$sum", help: "The sum of the numbers.", parse: AccumulatorExpr::plain::<Total> };

/// `$sum` and `$count`.
#[derive(Debug, Default)]
pub(in crate::pipeline::expr) struct Total(Sum);

impl Accumulator for Total {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        if let Some(number) = Number::of(value) {
            self.0.add(number);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(self.0.total().into())
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}

#[derive(Debug, Default)]
pub(in crate::pipeline::expr) struct Average {
    sum: Sum,
    count: u64,
}

impl Accumulator for Average {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        if let Some(number) = Number::of(value) {
            self.sum.add(number);
            self.count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(if self.count == 0 { Value::Null } else { self.sum.average(self.count).into() })
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}

/// Welford's running variance.
#[derive(Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: &Value<'_>) {
        let Some(number) = Number::of(value) else { return };
        self.count += 1.0;
        let number = number.to_f64();
        let difference = number - self.mean;
        if difference != 0.0 {
            self.mean += difference / self.count;
            self.squares += difference * (number - self.mean);
        }
    }

    /// `less`: 1 for a sample, whose mean is known one value less.
    fn deviation(&self, less: f64) -> Value<'static> {
        let count = self.count - less;
        if count > 0.0 { Value::Double((self.squares / count).sqrt()) } else { Value::Null }
    }
}

#[derive(Debug, Default)]
pub(in crate::pipeline::expr) struct StdDevPop(Spread);

impl Accumulator for StdDevPop {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        self.0.add(value);
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(self.0.deviation(0.0))
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}

#[derive(Debug, Default)]
pub(in crate::pipeline::expr) struct StdDevSamp(Spread);

impl Accumulator for StdDevSamp {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        self.0.add(value);
        Ok(())
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        Ok(self.0.deviation(1.0))
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}
