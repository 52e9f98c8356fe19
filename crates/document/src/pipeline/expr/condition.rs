//! `$cond`, `$ifNull`, `$switch`: only the branch that is taken is evaluated. Constant branches are computed when parsing, taken
//! or not, and constant conditions choose then.

use super::form::{Arguments, call, fail};
use super::{Expr, ExprDef, Form, Names, Operator, Scope, parse, parse_operand};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::Value;
use std::sync::Arc;

pub(super) const COND: ExprDef =
    ExprDef { name: "$cond", help: "One of two expressions, by a condition.", form: Form::Special(parse_cond) };

pub(super) const IF_NULL: ExprDef = ExprDef {
    name: "$ifNull",
    help: "The first operand that is neither null nor missing, else the last.",
    form: Form::Special(parse_if_null),
};

pub(super) const SWITCH: ExprDef = ExprDef {
    name: "$switch",
    help: "The expression of the first case that is true, else the default.",
    form: Form::Special(parse_switch),
};

fn parse_cond(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let operands = match argument {
        Value::Document(_) => {
            let arguments = Arguments::of(argument, 17083, "")?.only(
                &["if", "then", "else"],
                17083,
                "Unrecognized parameter to $cond: ",
            )?;
            let condition = arguments.required("if", 17080, "Missing 'if' parameter to $cond")?;
            let then = arguments.required("then", 17081, "Missing 'then' parameter to $cond")?;
            let otherwise = arguments.required("else", 17082, "Missing 'else' parameter to $cond")?;
            vec![parse(&condition, names)?, parse(&then, names)?, parse(&otherwise, names)?]
        }
        _ => parse_operand(argument, names)?,
    };
    let count = operands.len();
    let Ok([condition, then, otherwise]) = <[Expr; 3]>::try_from(operands) else {
        return fail(16020, format!("Expression $cond takes exactly 3 arguments. {count} were passed in."));
    };
    Ok(match condition.as_const().map(Value::is_truthy) {
        Some(true) => then,
        Some(false) => otherwise,
        None => Expr::Call { name: "$cond", eval: cond, operands: vec![condition, then, otherwise] },
    })
}

fn cond<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [condition, then, otherwise] = operands else { return Ok(Value::Missing) };
    if condition.eval(scope)?.is_truthy() { then.eval(scope) } else { otherwise.eval(scope) }
}

fn parse_if_null(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let operands = parse_operand(argument, names)?;
    if operands.len() < 2 {
        return fail(1_257_300, format!("$ifNull needs at least two arguments, had: {}", operands.len()));
    }
    call("$ifNull", if_null, operands, names)
}

fn if_null<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let Some((last, earlier)) = operands.split_last() else { return Ok(Value::Missing) };
    for operand in earlier {
        let value = operand.eval(scope)?;
        if !value.is_nullish() {
            return Ok(value);
        }
    }
    last.eval(scope)
}

#[derive(Debug)]
struct Switch {
    branches: Vec<(Expr, Expr)>,
    default: Option<Expr>,
}

fn parse_switch(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(
        argument,
        40060,
        format_args!("$switch requires an object as an argument, found: {}", argument.type_name()),
    )?;
    let mut branches = Vec::new();
    let mut default = None;
    for (name, value) in arguments.iter() {
        match name.as_str() {
            "branches" => {
                let Value::Array(array) = &value else {
                    return fail(
                        40061,
                        format!("$switch expected an array for 'branches', found: {}", value.type_name()),
                    );
                };
                for branch in array.iter() {
                    // What comes after a case that is always true is never computed.
                    let decided = branches.iter().any(|(case, _)| is_true(case));
                    branches.push(match decided {
                        true => names.unfolded(|names| parse_branch(&branch, names))?,
                        false => parse_branch(&branch, names)?,
                    });
                }
            }
            "default" => default = Some(parse(&value, names)?),
            other => return fail(40067, format!("$switch found an unknown argument: {other}")),
        }
    }
    if branches.is_empty() {
        return fail(40068, "$switch requires at least one branch");
    }
    Ok(simplify(branches, default, names))
}

fn parse_branch(branch: &Value<'_>, names: &mut Names) -> Result<(Expr, Expr)> {
    let arguments = Arguments::of(
        branch,
        40062,
        format_args!("$switch expected each branch to be an object, found: {}", branch.type_name()),
    )?
    .only(&["case", "then"], 40063, "$switch found an unknown argument to a branch: ")?;
    let case = arguments.required("case", 40064, "$switch requires each branch have a 'case' expression")?;
    let then = arguments.required("then", 40065, "$switch requires each branch have a 'then' expression.")?;
    let case = parse(&case, names)?;
    // What a case that is never true leads to is never computed.
    let never = case.as_const().is_some_and(|value| !value.is_truthy());
    let then = match never {
        true => names.unfolded(|names| parse(&then, names))?,
        false => parse(&then, names)?,
    };
    Ok((case, then))
}

fn is_true(case: &Expr) -> bool {
    case.as_const().is_some_and(Value::is_truthy)
}

/// Drops branches that are never taken; a case that is always true is the default of those before it.
fn simplify(parsed: Vec<(Expr, Expr)>, mut default: Option<Expr>, names: &mut Names) -> Expr {
    let mut branches = Vec::with_capacity(parsed.len());
    for (case, then) in parsed {
        match case.as_const().map(Value::is_truthy) {
            Some(true) => {
                default = Some(then);
                break;
            }
            Some(false) => {}
            None => branches.push((case, then)),
        }
    }
    match (branches.is_empty(), default) {
        (true, Some(default)) => default,
        (true, None) => {
            let message = "Cannot execute a switch statement where all the cases evaluate to false without a default";
            match names.fold_error(Error::new(Code::Location(40069), message)) {
                true => Expr::Const(Value::Null),
                false => Expr::Custom(Arc::new(Switch { branches, default: None })),
            }
        }
        (false, default) => Expr::Custom(Arc::new(Switch { branches, default })),
    }
}

impl Operator for Switch {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        for (case, then) in &self.branches {
            if case.eval(scope)?.is_truthy() {
                return then.eval(scope);
            }
        }
        match &self.default {
            Some(default) => default.eval(scope),
            None => fail(40066, "$switch could not find a matching branch for an input, and no default was specified."),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        for (case, then) in &self.branches {
            visit(case);
            visit(then);
        }
        self.default.iter().for_each(visit);
    }
}
