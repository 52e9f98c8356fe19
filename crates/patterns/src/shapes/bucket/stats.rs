//! Figures over a bucket's own readings: as MongoDB's expressions compute them, and as code that gives the same.

use crate::mql::{call, call_with, cond, field, object, with};
use crate::shapes::bucket::{Readings, Stat};
use document::value::sum::Sum;
use document::value::{Number, order};
use document::{Doc, DocWriter, Value};
use std::cmp::Ordering;

impl Stat {
    pub const ALL: [Stat; 6] = [Stat::Avg, Stat::Count, Stat::Last, Stat::Max, Stat::Min, Stat::Sum];

    /// What a declaration calls it.
    pub fn name(self) -> &'static str {
        match self {
            Stat::Avg => "avg",
            Stat::Count => "count",
            Stat::Last => "last",
            Stat::Max => "max",
            Stat::Min => "min",
            Stat::Sum => "sum",
        }
    }

    /// The stored name of the figure over a field: `minTemp`.
    pub fn of(self, of: &str) -> String {
        let mut letters = of.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        self.name().chars().chain(first).chain(letters).collect()
    }

    /// As an expression over `$readings`.
    fn expression(self, readings: &Readings, of: &str) -> Value<'static> {
        let values = || field(&format!("readings.{of}"));
        let is_value =
            |path: String| call_with("$ne", [call_with("$ifNull", [Value::from(path), Value::Null]), Value::Null]);
        match self {
            Stat::Avg => call("$avg", values()),
            Stat::Max => call("$max", values()),
            Stat::Min => call("$min", values()),
            Stat::Sum => call("$sum", values()),
            Stat::Count => {
                let filter = object([("input", values()), ("cond", is_value("$$this".to_owned()))]);
                call("$size", call("$filter", filter))
            }
            Stat::Last => {
                let offset = &readings.unit.name;
                let later = call_with(
                    "$gte",
                    [Value::from(format!("$$this.{offset}")), Value::from(format!("$$value.{offset}"))],
                );
                let better = call_with("$and", [is_value(format!("$$this.{of}")), later]);
                let last = call(
                    "$reduce",
                    object([
                        ("input", field("readings")),
                        ("initialValue", Value::Null),
                        ("in", cond(better, Value::from("$$this"), Value::from("$$value"))),
                    ]),
                );
                with([("last", last)], call_with("$ifNull", [Value::from(format!("$$last.{of}")), Value::Null]))
            }
        }
    }
}

impl Readings {
    /// `{ minTemp: { $min: "$readings.temp" }, … }`
    pub(crate) fn stats_expression(&self) -> Value<'static> {
        let mut stats = DocWriter::new();
        for (of, figures) in &self.stats {
            for figure in figures {
                stats.append(&figure.of(of), &figure.expression(self, of));
            }
        }
        Value::Document(stats.finish())
    }

    /// The same of these readings, as fields of the open document.
    pub(super) fn write_stats(&self, writer: &mut DocWriter, readings: &[Doc<'_>]) {
        for (of, figures) in &self.stats {
            let mut all = Figures::default();
            for reading in readings {
                if let Some(value) = reading.borrow().get(of)
                    && !value.is_nullish()
                {
                    all.add(&value, &reading.borrow().get(&self.unit.name).unwrap_or(Value::Missing));
                }
            }
            for figure in figures {
                writer.append(&figure.of(of), &all.get(*figure));
            }
        }
    }
}

/// All figures over one field. Null and missing are never added.
#[derive(Default)]
struct Figures<'r> {
    values: i32,
    numbers: u64,
    sum: Sum,
    min: Option<Value<'r>>,
    max: Option<Value<'r>>,
    last: Option<(Value<'r>, Value<'r>)>,
}

impl<'r> Figures<'r> {
    fn add(&mut self, value: &Value<'r>, offset: &Value<'r>) {
        let beats = |best: &Option<Value<'r>>, better: Ordering| {
            best.as_ref().is_none_or(|best| order::compare(value, best) == better)
        };
        self.values += 1;
        if let Some(number) = Number::of(value) {
            self.numbers += 1;
            self.sum.add(number);
        }
        if beats(&self.min, Ordering::Less) {
            self.min = Some(value.clone());
        }
        if beats(&self.max, Ordering::Greater) {
            self.max = Some(value.clone());
        }
        if self.last.as_ref().is_none_or(|(_, last)| order::compare(offset, last) != Ordering::Less) {
            self.last = Some((value.clone(), offset.clone()));
        }
    }

    fn get(&self, figure: Stat) -> Value<'_> {
        let or_null = |value: Option<&Value<'r>>| value.map_or(Value::Null, |value| value.clone());
        match figure {
            Stat::Avg if self.numbers == 0 => Value::Null,
            Stat::Avg => self.sum.average(self.numbers).into(),
            Stat::Sum => self.sum.total().into(),
            Stat::Count => Value::Int32(self.values),
            Stat::Min => or_null(self.min.as_ref()),
            Stat::Max => or_null(self.max.as_ref()),
            Stat::Last => or_null(self.last.as_ref().map(|(value, _)| value)),
        }
    }
}
