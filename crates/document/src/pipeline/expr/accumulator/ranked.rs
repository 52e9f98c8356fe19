//! The accumulators that keep n values: `$firstN`, `$lastN`, `$minN`, `$maxN`, `$topN`, `$bottomN`; and `$top` and `$bottom`,
//! which keep one.

use super::{Accumulator, AccumulatorDef, AccumulatorExpr, Start, bytes_of, check_memory, keep, not_an_object};
use crate::error::Result;
use crate::op::SortSpec;
use crate::pipeline::expr::form::{Arguments, fail};
use crate::pipeline::expr::{Expr, Names, Operator, Scope, field_of_document, parse};
use crate::pipeline::sort_spec;
use crate::raw::Array;
use crate::value::number::Number;
use crate::value::{Value, order, show};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

macro_rules! definition {
    ($constant:ident, $name:literal, $help:literal, $parse:expr) => {
        pub(super) const $constant: AccumulatorDef = AccumulatorDef { name: $name, help: $help, parse: $parse };
    };
}

definition!(BOTTOM, "$bottom", "The output of the document that sorts last.", |name, argument, names| {
    parse_sorted(name, Keep::Greatest, true, argument, names)
});
definition!(BOTTOM_N, "$bottomN", "The outputs of the n documents that sort last.", |name, argument, names| {
    parse_sorted(name, Keep::Greatest, false, argument, names)
});
definition!(FIRST_N, "$firstN", "The values of the first n documents.", |name, argument, names| {
    parse_counted(name, Keep::First, 5_787_801, argument, names)
});
definition!(LAST_N, "$lastN", "The values of the last n documents.", |name, argument, names| {
    parse_counted(name, Keep::Last, 5_787_801, argument, names)
});
definition!(MAX_N, "$maxN", "The n greatest values that are not null, descending.", |name, argument, names| {
    parse_counted(name, Keep::Greatest, 5_787_900, argument, names)
});
definition!(MIN_N, "$minN", "The n least values that are not null, ascending.", |name, argument, names| {
    parse_counted(name, Keep::Least, 5_787_900, argument, names)
});
definition!(TOP, "$top", "The output of the document that sorts first.", |name, argument, names| {
    parse_sorted(name, Keep::Least, true, argument, names)
});
definition!(TOP_N, "$topN", "The outputs of the n documents that sort first.", |name, argument, names| {
    parse_sorted(name, Keep::Least, false, argument, names)
});

/// Which values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pipeline::expr) enum Keep {
    First,
    Last,
    Least,
    Greatest,
}

fn parse_counted(
    name: &'static str,
    which: Keep,
    code: i32,
    argument: &Value<'_>,
    names: &mut Names,
) -> Result<AccumulatorExpr> {
    let (count, argument) = parse_count_and_input(name, code, argument, names)?;
    let make = Arc::new(move |count| -> Box<dyn Accumulator> { Box::new(Ranked::new(name, which, count)) });
    Ok(AccumulatorExpr { name, argument, start: Start::Counted(count, make) })
}

/// `{ n: …, input: … }`; `code` is for what is no object.
pub(in crate::pipeline::expr) fn parse_count_and_input(
    name: &'static str,
    code: i32,
    argument: &Value<'_>,
    names: &mut Names,
) -> Result<(Expr, Expr)> {
    let Value::Document(_) = argument else { return Err(not_an_object(code, name, argument)) };
    let arguments =
        Arguments::of(argument, code, "")?.only(&["input", "n"], 5_787_901, "Unknown argument for 'n' operator: ")?;
    let count = arguments.required("n", 5_787_906, "Missing value for 'n'")?;
    let input = arguments.required("input", 5_787_907, "Missing value for 'input'")?;
    Ok((parse(&count, names)?, parse(&input, names)?))
}

fn parse_sorted(
    name: &'static str,
    which: Keep,
    single: bool,
    argument: &Value<'_>,
    names: &mut Names,
) -> Result<AccumulatorExpr> {
    let Value::Document(_) = argument else { return Err(not_an_object(5_788_001, name, argument)) };
    let arguments = Arguments::of(argument, 5_788_001, "")?;
    let known: &[&str] = if single { &["output", "sortBy"] } else { &["output", "sortBy", "n"] };
    if let Some(unknown) = arguments.unknown(known) {
        return fail(5_788_002, format!("Unknown argument to {name} '{unknown}'"));
    }
    let count = match single {
        true => Expr::Const(Value::Int32(1)),
        false => parse(&arguments.required("n", 5_788_003, "Missing value for 'n'")?, names)?,
    };
    let output = arguments.required("output", 5_788_004, "Missing value for 'output'")?;
    let Value::Document(sort) = arguments.required("sortBy", 5_788_005, "Missing value for 'sortBy'")? else {
        return fail(10065, "invalid parameter: expected an object (sortBy)");
    };
    let sort = Arc::new(sort_spec::parse(&sort)?);
    let argument = Expr::Custom(Arc::new(Keyed { sort: sort.clone(), output: parse(&output, names)? }));
    let make = Arc::new(move |count| -> Box<dyn Accumulator> {
        Box::new(Sorted { ranked: Ranked::new(name, which, count), sort: sort.clone(), single })
    });
    Ok(AccumulatorExpr { name, argument, start: Start::Counted(count, make) })
}

/// The n of the accumulators and expressions that keep n values.
pub(in crate::pipeline::expr) fn check_count(value: &Value<'_>) -> Result<usize> {
    let not_integral =
        |code| fail(code, format!("Value for 'n' must be of integral type, but found {}", show::computed(value)));
    let Some(number) = Number::of(value) else { return not_integral(5_787_902) };
    let Some(count) = number.to_i64_truncated() else {
        return fail(31109, format!("Can't coerce out of range value {} to long", show::computed(value)));
    };
    if number.as_i64_exact().is_none() {
        return not_integral(5_787_903);
    }
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => fail(5_787_908, format!("'n' must be greater than 0, found {count}")),
    }
}

/// The n values that are kept: in the order they came, or ascending with equal ones in the order they came.
#[derive(Debug)]
pub(in crate::pipeline::expr) struct Ranked {
    name: &'static str,
    which: Keep,
    count: usize,
    values: VecDeque<Value<'static>>,
    bytes: usize,
}

impl Ranked {
    pub(in crate::pipeline::expr) fn new(name: &'static str, which: Keep, count: usize) -> Ranked {
        Ranked { name, which, count, values: VecDeque::new(), bytes: 0 }
    }

    fn offer(&mut self, value: &Value<'_>, compare: impl Fn(&Value<'_>, &Value<'_>) -> Ordering) -> Result<()> {
        if self.values.len() >= self.count {
            let replaces = |rival: Option<&Value<'_>>, order| rival.is_some_and(|rival| compare(value, rival) == order);
            let out = match self.which {
                Keep::First => return Ok(()),
                Keep::Last => self.values.pop_front(),
                Keep::Least if replaces(self.values.back(), Ordering::Less) => self.values.pop_back(),
                Keep::Greatest if replaces(self.values.front(), Ordering::Greater) => self.values.pop_front(),
                Keep::Least | Keep::Greatest => return Ok(()),
            };
            self.bytes = self.bytes.saturating_sub(out.as_ref().map_or(0, bytes_of));
        }
        let at = match self.which {
            Keep::First | Keep::Last => self.values.len(),
            Keep::Least | Keep::Greatest => {
                self.values.partition_point(|kept| compare(kept, value) != Ordering::Greater)
            }
        };
        let value = if value.is_missing() { Value::Null } else { keep(value) };
        self.bytes += bytes_of(&value);
        self.values.insert(at, value);
        check_memory(self.name, self.bytes)
    }
}

impl Accumulator for Ranked {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        match self.which {
            Keep::Least | Keep::Greatest if value.is_nullish() => Ok(()),
            _ => self.offer(value, order::compare),
        }
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        let values = std::mem::take(&mut self.values);
        Ok(Value::Array(match self.which {
            Keep::Greatest => values.into_iter().rev().collect(),
            _ => values.into_iter().collect(),
        }))
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}

/// `$top` and its like: each value is an array of the sort key's values and, last, the output.
#[derive(Debug)]
struct Sorted {
    ranked: Ranked,
    sort: Arc<SortSpec>,
    single: bool,
}

impl Accumulator for Sorted {
    fn add(&mut self, value: &Value<'_>) -> Result<()> {
        let sort = self.sort.clone();
        self.ranked.offer(value, |a, b| compare_keys(&sort, a, b))
    }

    fn finish(&mut self) -> Result<Value<'static>> {
        let place = self.sort.keys.len();
        let mut outputs = std::mem::take(&mut self.ranked.values).into_iter().map(|value| match value {
            Value::Array(values) => values.get(place).unwrap_or(Value::Null),
            _ => Value::Null,
        });
        Ok(if self.single { outputs.next().unwrap_or(Value::Null) } else { Value::Array(outputs.collect()) })
    }

    fn memory(&self) -> usize {
        self.ranked.memory()
    }
}

fn compare_keys(sort: &SortSpec, left: &Value<'_>, right: &Value<'_>) -> Ordering {
    let (Value::Array(left), Value::Array(right)) = (left, right) else { return Ordering::Equal };
    let (left, right) = (left.borrow(), right.borrow());
    for ((key, a), b) in sort.keys.iter().zip(left.iter()).zip(right.iter()) {
        match order::compare(&a, &b) {
            Ordering::Equal => {}
            order => return if key.descending { order.reverse() } else { order },
        }
    }
    Ordering::Equal
}

/// Evaluates to the array that [`Sorted`] takes.
#[derive(Debug)]
struct Keyed {
    sort: Arc<SortSpec>,
    output: Expr,
}

impl Operator for Keyed {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        // Unlike in `$sort`, an array is compared as a whole; only an empty one counts as undefined here too.
        let root = scope.root.clone();
        let key = self.sort.keys.iter().map(|key| match field_of_document(&root, &key.path.parts) {
            Value::Array(array) if array.is_empty() => Value::Undefined,
            value => value,
        });
        let mut values: Vec<Value<'a>> = key.collect();
        values.push(self.output.eval(scope)?);
        Ok(Value::Array(values.into_iter().collect::<Array<'static>>()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        self.sort.keys.iter().for_each(|key| visit(&Expr::Field(key.path.clone())));
        visit(&self.output);
    }
}
