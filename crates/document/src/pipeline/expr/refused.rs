//! Operators that MongoDB knows and this server does not have: refused by name, never taken for a typing error.

use super::form::{Arguments, fail};
use super::{Expr, ExprDef, Form, Names, misc};
use crate::error::{Error, Result};
use crate::value::Value;

pub(super) const FUNCTION: ExprDef =
    ExprDef { name: "$function", help: "Not supported: it runs JavaScript.", form: Form::Special(parse_function) };

macro_rules! refused {
    ($constant:ident, $name:literal, $help:literal) => {
        pub(super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Special(|_, _| Err(Error::not_implemented(concat!("The expression ", $name)))),
        };
    };
}

refused!(TO_HASHED_INDEX_KEY, "$toHashedIndexKey", "Not supported: there are no hashed indexes.");

/// The functions that views over buckets call in a real MongoDB, which has no operator for hex digits before 8.0.
const HEX_DIGITS: &[&str] = &["function(b) { return b.hex() }", "function(b) { return b.hex().toUpperCase() }"];

/// Mistakes get MongoDB's errors; what is right is refused, except for the one function that dumps of views have.
fn parse_function(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(
        argument,
        31260,
        format_args!("$function requires an object as an argument, found: {}", argument.type_name()),
    )?;
    let body = arguments.required("body", 31261, "The body function must be specified.")?;
    if body.as_str().is_some_and(|body| body.starts_with('$')) {
        return fail(31432, "The body function must be a constant expression");
    }
    if !matches!(body, Value::String(_) | Value::Code(_)) {
        return fail(31262, "The body function must evaluate to type string or code");
    }
    let Value::Array(operands) = arguments.required("args", 31263, "The args field must be specified.")? else {
        return fail(31266, "The args field must be of type array");
    };
    if arguments.required("lang", 31418, "The lang field must be specified.")?.as_str() != Some("js") {
        return fail(31419, "Currently the only supported language specifier is 'js'.");
    }
    match body.as_str().is_some_and(|body| HEX_DIGITS.contains(&body)) {
        true => misc::HEX.form.parse(misc::HEX.name, &Value::Array(operands.borrow()), names),
        false => Err(Error::not_implemented("The expression $function")),
    }
}
