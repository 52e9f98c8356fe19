//! The forms an operator's argument takes, and the checks that go with each: how many operands, which named arguments.

use super::{Expr, Names, Operator, Scope, parse, parse_operand};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, Fields};
use crate::value::Value;
use std::fmt::Display;
use std::sync::Arc;

pub type EvalFn = for<'a> fn(&'a [Expr], &mut Scope<'a>) -> Result<Value<'a>>;
pub type ParseFn = fn(&Value<'_>, &mut Names) -> Result<Expr>;

/// How an operator takes its operands. An array is the list of operands, anything else is the only one.
pub enum Form {
    Exactly(usize, EvalFn),
    Between(usize, usize, EvalFn),
    /// Any number, none included.
    Any(EvalFn),
    /// Any number; neighbouring constants are combined when parsing, as MongoDB does.
    Associative(EvalFn),
    /// Any number; constants are combined when parsing and moved to the end, as MongoDB does.
    Commutative(EvalFn),
    /// As `Commutative`, for operators that take a single operand apart if it is an array.
    Summary(EvalFn),
    /// An argument with a structure of its own.
    Special(ParseFn),
}

impl Form {
    pub(super) fn parse(&self, name: &'static str, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
        match self {
            Form::Exactly(count, eval) => {
                let operands = parse_operand(argument, names)?;
                if operands.len() != *count {
                    return fail(
                        16020,
                        format!(
                            "Expression {name} takes exactly {count} arguments. {} were passed in.",
                            operands.len()
                        ),
                    );
                }
                call(name, *eval, operands, names)
            }
            Form::Between(least, most, eval) => {
                let operands = parse_operand(argument, names)?;
                if !(*least..=*most).contains(&operands.len()) {
                    return fail(
                        28667,
                        format!(
                            "Expression {name} takes at least {least} arguments, and at most {most}, but {} were passed in.",
                            operands.len()
                        ),
                    );
                }
                call(name, *eval, operands, names)
            }
            Form::Any(eval) => call(name, *eval, parse_operand(argument, names)?, names),
            Form::Associative(eval) => {
                let operands = flatten(name, 1, parse_operand(argument, names)?);
                if names.is_unfolded() || operands.iter().all(is_constant) {
                    return call(name, *eval, operands, names);
                }
                let operands = combine_neighbours(*eval, operands, names);
                call(name, *eval, operands, names)
            }
            Form::Commutative(eval) => commutative(name, *eval, 1, parse_operand(argument, names)?, names),
            Form::Summary(eval) => commutative(name, *eval, 2, parse_operand(argument, names)?, names),
            Form::Special(parse) => parse(argument, names),
        }
    }
}

/// A call of `eval`, or its result if all operands are constant.
pub(super) fn call(name: &'static str, eval: EvalFn, operands: Vec<Expr>, names: &mut Names) -> Result<Expr> {
    let constant = !names.is_unfolded() && operands.iter().all(is_constant);
    let expr = Expr::Call { name, eval, operands };
    Ok(if constant { fold(expr, names) } else { expr })
}

/// An operator with a structure of its own, or its value if all operands are constant: for those that MongoDB evaluates at once
/// then. It leaves `$map`, `$regexFind` and some others as they are.
pub(super) fn custom(operator: impl Operator + 'static, names: &mut Names) -> Expr {
    let mut constant = !names.is_unfolded();
    operator.operands(&mut |operand| constant &= is_constant(operand));
    let expr = Expr::Custom(Arc::new(operator));
    if constant { fold(expr, names) } else { expr }
}

/// The value of an expression that depends on nothing but constants. If it has none, the error is kept, or the expression.
fn fold(expr: Expr, names: &mut Names) -> Expr {
    let env = Env::fixed();
    let value = expr.eval(&mut Scope::new(Doc::empty(), &env)).map(Value::into_owned);
    match value {
        Ok(value) => Expr::Const(value),
        Err(error) => {
            if names.fold_error(error) {
                Expr::Const(Value::Null)
            } else {
                expr
            }
        }
    }
}

fn is_constant(operand: &Expr) -> bool {
    operand.as_const().is_some()
}

/// Combines the constants and moves them to the end, if there are at least `least` operands.
fn commutative(name: &'static str, eval: EvalFn, least: usize, operands: Vec<Expr>, names: &mut Names) -> Result<Expr> {
    if names.is_unfolded() || operands.len() < least || operands.iter().all(is_constant) {
        return call(name, eval, operands, names);
    }
    let (constants, mut rest): (Vec<_>, Vec<_>) = flatten(name, least, operands).into_iter().partition(is_constant);
    rest.extend(combine_neighbours(eval, constants, names));
    call(name, eval, rest, names)
}

/// `$add` of `$add`s is one `$add`; inner ones of fewer than `least` operands are left.
pub(super) fn flatten(name: &str, least: usize, operands: Vec<Expr>) -> Vec<Expr> {
    let mut flat = Vec::with_capacity(operands.len());
    for operand in operands {
        match operand {
            Expr::Call { name: inner, operands, .. } if inner == name && operands.len() >= least => {
                flat.extend(operands);
            }
            other => flat.push(other),
        }
    }
    flat
}

fn combine_neighbours(eval: EvalFn, operands: Vec<Expr>, names: &mut Names) -> Vec<Expr> {
    let mut combined: Vec<Expr> = Vec::with_capacity(operands.len());
    let mut run: Vec<Expr> = Vec::new();
    let mut flush = |run: &mut Vec<Expr>, combined: &mut Vec<Expr>| {
        if run.len() > 1 {
            let call = Expr::Call { name: "", eval, operands: std::mem::take(run) };
            combined.push(fold(call, names));
        }
        combined.append(run);
    };
    for operand in operands {
        if operand.as_const().is_some() {
            run.push(operand);
        } else {
            flush(&mut run, &mut combined);
            combined.push(operand);
        }
    }
    flush(&mut run, &mut combined);
    combined
}

/// The values of the first `N` operands; an absent optional one is missing. The form has checked their number.
pub(super) fn values<'a, const N: usize>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<[Value<'a>; N]> {
    let mut values = [const { Value::Missing }; N];
    for (value, operand) in values.iter_mut().zip(operands) {
        *value = operand.eval(scope)?;
    }
    Ok(values)
}

/// The value of an operator's only operand.
pub(super) fn only<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    operands.first().map_or(Ok(Value::Missing), |operand| operand.eval(scope))
}

/// An error that MongoDB gives only a number.
pub(super) fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::from_number(code), message))
}

/// The named arguments of an operator: `{ input: …, as: …, in: … }`.
pub(super) struct Arguments<'v>(Doc<'v>);

impl<'v> Arguments<'v> {
    /// `otherwise` says what is wrong with an argument that is no object.
    pub(super) fn of(argument: &Value<'v>, code: i32, otherwise: impl Display) -> Result<Arguments<'v>> {
        match argument {
            Value::Document(doc) => Ok(Arguments(doc.clone())),
            _ => fail(code, otherwise.to_string()),
        }
    }

    /// The arguments of the operator `name`, which knows none but `known`. What is no object is refused by the first code and
    /// words, followed by its type; another name by `unknown`.
    pub(super) fn named(
        name: &str,
        argument: &Value<'v>,
        no_object: (i32, &str),
        known: &[&str],
        unknown: i32,
    ) -> Result<Arguments<'v>> {
        let (code, words) = no_object;
        Arguments::of(argument, code, format_args!("{name} {words}{}", argument.type_name()))?.only(
            known,
            unknown,
            &format!("{name} found an unknown argument: "),
        )
    }

    /// All arguments as they stand.
    pub(super) fn iter(&self) -> Fields<'v> {
        self.0.iter()
    }

    /// The first name that is not in `known`.
    pub(super) fn unknown(&self, known: &[&str]) -> Option<String> {
        let unknown = self.0.iter().find(|(name, _)| !known.contains(&name.as_str()));
        unknown.map(|(name, _)| name.as_str().to_owned())
    }

    /// Refuses every name not in `known`; the name follows `message`.
    pub(super) fn only(self, known: &[&str], code: i32, message: &str) -> Result<Arguments<'v>> {
        match self.unknown(known) {
            Some(name) => fail(code, format!("{message}{name}")),
            None => Ok(self),
        }
    }

    /// The last argument of that name, as MongoDB takes it.
    pub(super) fn get(&self, name: &str) -> Option<Value<'v>> {
        self.0.iter().filter(|(found, _)| found.as_str() == name).last().map(|(_, value)| value)
    }

    pub(super) fn required(&self, name: &str, code: i32, message: &str) -> Result<Value<'v>> {
        self.get(name).map_or_else(|| fail(code, message), Ok)
    }

    /// The expression that must be given for `name`; else `message` says so.
    pub(super) fn required_expr(
        &self,
        name: &str,
        code: i32,
        message: impl Display,
        names: &mut Names,
    ) -> Result<Expr> {
        match self.expr(name, names)? {
            Some(expr) => Ok(expr),
            None => fail(code, message.to_string()),
        }
    }

    /// The expression given for `name`, if it is given.
    pub(super) fn expr(&self, name: &str, names: &mut Names) -> Result<Option<Expr>> {
        self.get(name).map(|value| parse(&value, names)).transpose()
    }
}
