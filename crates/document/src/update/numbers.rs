//! `$inc`, `$mul`, `$bit`, `$min`, `$max`.

use super::operation::{Change, Operation, Site};
use super::{Argument, Form, UpdateDef};
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::value::{Number, Value, order, show};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const INC: UpdateDef = UpdateDef {
    name: "$inc",
    help: "Adds a number to a field; a missing field counts as zero.",
    form: Form::Operation(|argument, _| arithmetic(argument, Verb::Inc)),
};

pub(super) const MUL: UpdateDef = UpdateDef {
    name: "$mul",
    help: "Multiplies a field by a number; a missing field becomes zero.",
    form: Form::Operation(|argument, _| arithmetic(argument, Verb::Mul)),
};

pub(super) const MIN: UpdateDef = UpdateDef {
    name: "$min",
    help: "Sets a field to a value if that is less than the present one.",
    form: Form::Operation(|argument, _| Ok(Arc::new(Extreme { value: argument.value, wanted: Ordering::Less }))),
};

pub(super) const MAX: UpdateDef = UpdateDef {
    name: "$max",
    help: "Sets a field to a value if that is greater than the present one.",
    form: Form::Operation(|argument, _| Ok(Arc::new(Extreme { value: argument.value, wanted: Ordering::Greater }))),
};

pub(super) const BIT: UpdateDef = UpdateDef {
    name: "$bit",
    help: "Combines an integer with others bit by bit: and, or, xor.",
    form: Form::Operation(bit),
};

#[derive(Debug)]
struct Arithmetic {
    verb: Verb,
    operand: Number,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Inc,
    Mul,
}

fn arithmetic(argument: Argument<'_>, verb: Verb) -> Result<Arc<dyn Operation>> {
    let Some(operand) = argument.value.as_number() else {
        let word = match verb {
            Verb::Inc => "increment",
            Verb::Mul => "multiply",
        };
        return Err(Error::type_mismatch(format!(
            "Cannot {word} with non-numeric argument: {{{}: {}}}",
            argument.field,
            show::element(&argument.value)
        )));
    };
    Ok(Arc::new(Arithmetic { verb, operand }))
}

impl Arithmetic {
    fn name(&self) -> &'static str {
        match self.verb {
            Verb::Inc => "$inc",
            Verb::Mul => "$mul",
        }
    }
}

impl Operation for Arithmetic {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        let Some(number) = current.as_number() else {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.name(),
                site.id_in_braces(),
                site.trail.name,
                current.type_name()
            )));
        };
        let result = match self.verb {
            Verb::Inc => number.checked_plus(self.operand),
            Verb::Mul => number.checked_times(self.operand),
        };
        let result = result.ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to apply {} operations to current value (({}){}) for document {}",
                self.name(),
                if matches!(number, Number::Int32(_)) { "NumberInt" } else { "NumberLong" },
                show::element(current),
                site.id_in_braces()
            ))
        })?;
        Ok(if same_number(number, result) { Change::Keep } else { Change::Rewrite(result.into()) })
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(match self.verb {
            Verb::Inc => self.operand.into(),
            Verb::Mul => Number::Int32(0).times(self.operand).into(),
        }))
    }
}

/// Same type and equal: no change for MongoDB. 0.0 and -0.0 are, 1.0 and 1.00 are, NaN never is.
fn same_number(before: Number, after: Number) -> bool {
    match (before, after) {
        (Number::Int32(a), Number::Int32(b)) => a == b,
        (Number::Int64(a), Number::Int64(b)) => a == b,
        (Number::Double(a), Number::Double(b)) => a == b,
        (Number::Decimal(a), Number::Decimal(b)) => a.compare(b).is_eq() && !a.is_nan(),
        _ => false,
    }
}

#[derive(Debug)]
struct Extreme {
    value: Value<'static>,
    wanted: Ordering,
}

impl Operation for Extreme {
    fn update<'v>(&'v self, current: &Value<'v>, _site: &Site<'_>) -> Result<Change<'v>> {
        let better = order::compare(&self.value, current) == self.wanted;
        Ok(if better { Change::Rewrite(self.value.borrow()) } else { Change::Keep })
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(self.value.borrow()))
    }
}

#[derive(Debug)]
struct Bit(Vec<(Gate, Number)>);

#[derive(Clone, Copy, Debug)]
enum Gate {
    And,
    Or,
    Xor,
}

fn bit(argument: Argument<'_>, _: &mut Names) -> Result<Arc<dyn Operation>> {
    const FORMAT: &str = "{$bit: {field: {and/or/xor: #}}";
    let Value::Document(gates) = &argument.value else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {FORMAT}",
            argument.value.type_name()
        )));
    };
    let mut parsed = Vec::new();
    for (name, operand) in gates.iter() {
        let shown = || format!("{{{name}: {}}}", show::element(&operand));
        let gate = match name.as_str() {
            "and" => Gate::And,
            "or" => Gate::Or,
            "xor" => Gate::Xor,
            other => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{other}' which is an unknown operator: {}",
                    shown()
                )));
            }
        };
        match operand.as_number() {
            Some(number @ (Number::Int32(_) | Number::Int64(_))) => parsed.push((gate, number)),
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {}",
                    operand.type_name(),
                    shown()
                )));
            }
        }
    }
    if parsed.is_empty() {
        return Err(Error::bad_value(format!(
            "You must pass in at least one bitwise operation. The format is: {FORMAT}"
        )));
    }
    Ok(Arc::new(Bit(parsed)))
}

impl Bit {
    fn apply(&self, number: Number) -> Number {
        self.0.iter().fold(number, |number, (gate, operand)| match (number, *operand) {
            (Number::Int32(a), Number::Int32(b)) => Number::Int32(match gate {
                Gate::And => a & b,
                Gate::Or => a | b,
                Gate::Xor => a ^ b,
            }),
            (a, b) => {
                let (a, b) = (a.to_i64_saturated(), b.to_i64_saturated());
                Number::Int64(match gate {
                    Gate::And => a & b,
                    Gate::Or => a | b,
                    Gate::Xor => a ^ b,
                })
            }
        })
    }
}

impl Operation for Bit {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        match current.as_number() {
            Some(number @ (Number::Int32(_) | Number::Int64(_))) => {
                let result = self.apply(number);
                Ok(if same_number(number, result) { Change::Keep } else { Change::Rewrite(result.into()) })
            }
            _ => Err(Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                site.id(),
                site.trail.name,
                current.type_name()
            ))),
        }
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(self.apply(Number::Int32(0)).into()))
    }
}
