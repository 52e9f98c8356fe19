//! `$and`, `$or`, `$not`. A constant that decides is the whole answer, before anything else is evaluated.

use super::form::{call, flatten, only};
use super::{EvalFn, Expr, ExprDef, Form, Names, Scope, parse_operand};
use crate::error::Result;
use crate::value::Value;

pub(super) const AND: ExprDef = ExprDef {
    name: "$and",
    help: "Whether all operands are true; those after the first false one are not evaluated.",
    form: Form::Special(|argument, names| parse_junction("$and", false, and, argument, names)),
};

pub(super) const NOT: ExprDef = ExprDef {
    name: "$not",
    help: "Whether an operand is false.",
    form: Form::Exactly(1, |operands, scope| Ok(Value::Bool(!only(operands, scope)?.is_truthy()))),
};

pub(super) const OR: ExprDef = ExprDef {
    name: "$or",
    help: "Whether an operand is true; those after the first true one are not evaluated.",
    form: Form::Special(|argument, names| parse_junction("$or", true, or, argument, names)),
};

fn parse_junction(
    name: &'static str,
    deciding: bool,
    eval: EvalFn,
    argument: &Value<'_>,
    names: &mut Names,
) -> Result<Expr> {
    let mut operands = flatten(name, 1, parse_operand(argument, names)?);
    if names.is_unfolded() {
        return call(name, eval, operands, names);
    }
    let decides = |operand: &Expr| operand.as_const().is_some_and(|value| value.is_truthy() == deciding);
    if operands.iter().any(decides) {
        return Ok(Expr::Const(Value::Bool(deciding)));
    }
    operands.retain(|operand| operand.as_const().is_none());
    call(name, eval, operands, names)
}

fn and<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    for operand in operands {
        if !operand.eval(scope)?.is_truthy() {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn or<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    for operand in operands {
        if operand.eval(scope)?.is_truthy() {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
