//! `$replaceOne` and `$replaceAll`: strings with parts replaced.

use super::form::{Arguments, fail};
use super::text::string_of;
use super::{Expr, ExprDef, Form, Names, Operator, Scope};
use crate::error::Result;
use crate::value::{Value, show};
use std::sync::Arc;

pub(super) const REPLACE_ALL: ExprDef = ExprDef {
    name: "$replaceAll",
    help: "A string with every occurrence of another replaced.",
    form: Form::Special(|argument, names| parse("$replaceAll", usize::MAX, argument, names)),
};
pub(super) const REPLACE_ONE: ExprDef = ExprDef {
    name: "$replaceOne",
    help: "A string with the first occurrence of another replaced.",
    form: Form::Special(|argument, names| parse("$replaceOne", 1, argument, names)),
};

#[derive(Debug)]
struct Replace {
    name: &'static str,
    most: usize,
    input: Expr,
    find: Expr,
    replacement: Expr,
}

fn parse(name: &'static str, most: usize, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (51751, "requires an object as an argument, found: ");
    let arguments = Arguments::named(name, argument, no_object, &["input", "find", "replacement"], 51750)?;
    let mut required = |argument: &str, code| {
        arguments.required_expr(argument, code, format_args!("{name} requires '{argument}' to be specified"), names)
    };
    let (input, find, replacement) =
        (required("input", 51749)?, required("find", 51748)?, required("replacement", 51747)?);
    Ok(Expr::Custom(Arc::new(Replace { name, most, input, find, replacement })))
}

impl Operator for Replace {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let (input, find) = (self.input.eval(scope)?, self.find.eval(scope)?);
        let replacement = self.replacement.eval(scope)?;
        for (value, argument, code) in
            [(&input, "input", 51746), (&find, "find", 51745), (&replacement, "replacement", 51744)]
        {
            if !value.is_nullish() && string_of(value).is_none() {
                let shown = show::computed(value);
                return fail(code, format!("{} requires that '{argument}' be a string, found: {shown}", self.name));
            }
        }
        match (string_of(&input), string_of(&find), string_of(&replacement)) {
            (Some(input), Some(find), Some(replacement)) => {
                let replaced = input.replacen(find, replacement, self.most);
                scope.check_size(replaced.len())?;
                Ok(replaced.into())
            }
            _ => Ok(Value::Null),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        [&self.input, &self.find, &self.replacement].into_iter().for_each(visit);
    }
}
