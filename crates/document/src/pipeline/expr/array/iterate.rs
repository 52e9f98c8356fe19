//! Going through an array with a variable bound to each element: `$map`, `$filter`, `$reduce`.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::pipeline::expr::form::{Arguments, fail};
use crate::pipeline::expr::{Expr, ExprDef, Form, Names, Operator, Scope, check_bindable, parse};
use crate::raw::{Array, ArrayWriter, MAX_DEPTH};
use crate::value::number::Number;
use crate::value::{Value, show};
use std::sync::Arc;

pub(in crate::pipeline::expr) const FILTER: ExprDef = ExprDef {
    name: "$filter",
    help: "The elements of an array for which a condition is true.",
    form: Form::Special(parse_filter),
};

pub(in crate::pipeline::expr) const MAP: ExprDef = ExprDef {
    name: "$map",
    help: "An array of what an expression gives for each element.",
    form: Form::Special(parse_map),
};

pub(in crate::pipeline::expr) const REDUCE: ExprDef = ExprDef {
    name: "$reduce",
    help: "One value, computed from an array element by element.",
    form: Form::Special(parse_reduce),
};

/// Binds the variable that `as` names (`this` if absent), parses `body` with it, and unbinds it.
fn parse_with_element(arguments: &Arguments<'_>, body: &Value<'_>, names: &mut Names) -> Result<(usize, Expr)> {
    let variable = match arguments.get("as") {
        None => Value::from("this"),
        Some(name) => name,
    };
    let variable = variable.as_str().unwrap_or_default();
    check_bindable(variable)?;
    let mark = names.mark();
    let slot = names.bind(variable);
    let body = parse(body, names);
    names.release(mark);
    Ok((slot, body?))
}

#[derive(Debug)]
struct Map {
    input: Expr,
    slot: usize,
    body: Expr,
}

fn parse_map(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 16878, "$map only supports an object as its argument")?.only(
        &["input", "as", "in"],
        16879,
        "Unrecognized parameter to $map: ",
    )?;
    let input = arguments.required("input", 16880, "Missing 'input' parameter to $map")?;
    let body = arguments.required("in", 16882, "Missing 'in' parameter to $map")?;
    let input = parse(&input, names)?;
    let (slot, body) = parse_with_element(&arguments, &body, names)?;
    Ok(Expr::Custom(Arc::new(Map { input, slot, body })))
}

impl Operator for Map {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let array = match self.input.eval(scope)? {
            Value::Array(array) => array,
            value if value.is_nullish() => return Ok(Value::Null),
            value => return fail(16883, format!("input to $map must be an array not {}", value.type_name())),
        };
        let mut writer = ArrayWriter::new();
        for item in array.iter() {
            scope.step()?;
            scope.set(self.slot, item);
            writer.push(&self.body.eval(scope)?);
            scope.check_size(writer.len())?;
        }
        Ok(Value::Array(writer.finish()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.body);
    }
}

#[derive(Debug)]
struct Filter {
    input: Expr,
    slot: usize,
    condition: Expr,
    limit: Option<Expr>,
}

fn parse_filter(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 28646, "$filter only supports an object as its argument")?.only(
        &["input", "as", "cond", "limit"],
        28647,
        "Unrecognized parameter to $filter: ",
    )?;
    let input = arguments.required("input", 28648, "Missing 'input' parameter to $filter")?;
    let condition = arguments.required("cond", 28650, "Missing 'cond' parameter to $filter")?;
    let input = parse(&input, names)?;
    let limit = arguments.expr("limit", names)?;
    let (slot, condition) = parse_with_element(&arguments, &condition, names)?;
    Ok(Expr::Custom(Arc::new(Filter { input, slot, condition, limit })))
}

impl Filter {
    fn limit<'a>(&'a self, scope: &mut Scope<'a>) -> Result<usize> {
        let Some(limit) = &self.limit else { return Ok(usize::MAX) };
        let value = limit.eval(scope)?;
        if value.is_nullish() {
            return Ok(usize::MAX);
        }
        let Some(limit) = Number::of(&value).and_then(Number::as_i32_exact) else {
            return fail(
                327_391,
                format!("$filter: limit must be represented as a 32-bit integral value: {}", show::computed(&value)),
            );
        };
        match usize::try_from(limit) {
            Ok(limit) if limit > 0 => Ok(limit),
            _ => fail(327_392, format!("$filter: limit must be greater than 0: {limit}")),
        }
    }
}

impl Operator for Filter {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let array = match self.input.eval(scope)? {
            Value::Array(array) => array,
            value if value.is_nullish() => return Ok(Value::Null),
            value => return fail(28651, format!("input to $filter must be an array not {}", value.type_name())),
        };
        let limit = self.limit(scope)?;
        let mut writer = ArrayWriter::new();
        for item in array.iter() {
            scope.step()?;
            scope.set(self.slot, item.clone());
            if self.condition.eval(scope)?.is_truthy() {
                writer.push(&item);
                if writer.count() >= limit {
                    break;
                }
            }
        }
        Ok(Value::Array(writer.finish()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.condition);
        self.limit.iter().for_each(visit);
    }
}

#[derive(Debug)]
struct Reduce {
    input: Expr,
    initial: Expr,
    this: usize,
    value: usize,
    body: Expr,
}

fn parse_reduce(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (40075, "requires an object as an argument, found: ");
    let arguments = Arguments::named("$reduce", argument, no_object, &["input", "initialValue", "in"], 40076)?;
    let input = arguments.required("input", 40077, "$reduce requires 'input' to be specified")?;
    let initial = arguments.required("initialValue", 40078, "$reduce requires 'initialValue' to be specified")?;
    let body = arguments.required("in", 40079, "$reduce requires 'in' to be specified")?;
    let input = parse(&input, names)?;
    let initial = parse(&initial, names)?;
    let mark = names.mark();
    let (this, value) = (names.bind("this"), names.bind("value"));
    let body = parse(&body, names);
    names.release(mark);
    Ok(Expr::Custom(Arc::new(Reduce { input, initial, this, value, body: body? })))
}

impl Operator for Reduce {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let array = match self.input.eval(scope)? {
            Value::Array(array) => array,
            value if value.is_nullish() => return Ok(Value::Null),
            value => {
                return fail(
                    40080,
                    format!("$reduce requires that 'input' be an array, found: {}", show::computed(&value)),
                );
            }
        };
        let mut result = self.initial.eval(scope)?;
        for (turn, item) in array.iter().enumerate() {
            scope.step()?;
            scope.set(self.this, item);
            scope.set(self.value, result);
            result = self.body.eval(scope)?;
            // A turn may nest its result deeper by as much as the expression is deep: look often enough.
            if turn % 4 == 3 {
                check_depth(&result)?;
            }
        }
        Ok(result)
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.initial);
        visit(&self.body);
    }
}

/// What is nested too deep can be neither sent nor stored, and walking it could exhaust the stack.
fn check_depth(value: &Value<'_>) -> Result<()> {
    fn fits(value: &Value<'_>, levels: usize) -> bool {
        let nested = |array: &Array<'_>| levels > 0 && array.iter().all(|item| fits(&item, levels - 1));
        match value {
            Value::Array(array) => nested(&array.borrow()),
            Value::Document(doc) => nested(&Array(doc.borrow().0)),
            _ => true,
        }
    }
    if fits(value, MAX_DEPTH) {
        return Ok(());
    }
    Err(Error::new(
        Code::Overflow,
        format!("cannot convert document to BSON because it exceeds the limit of {MAX_DEPTH} levels of nesting"),
    ))
}
