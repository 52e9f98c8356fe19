//! `$let` and `$literal`.

use super::form::{Arguments, fail};
use super::{Expr, ExprDef, Form, Names, Operator, Scope, check_bindable, parse};
use crate::error::Result;
use crate::value::Value;
use std::sync::Arc;

pub(super) const CONST: ExprDef = ExprDef {
    name: "$const",
    help: "The same as $literal.",
    form: Form::Special(|argument, _| Ok(Expr::Const(argument.clone().into_owned()))),
};

pub(super) const LET: ExprDef = ExprDef {
    name: "$let",
    help: "Binds variables and evaluates an expression that uses them.",
    form: Form::Special(parse_let),
};

pub(super) const LITERAL: ExprDef = ExprDef {
    name: "$literal",
    help: "Gives its argument as it stands, without evaluating it.",
    form: Form::Special(|argument, _| Ok(Expr::Const(argument.clone().into_owned()))),
};

#[derive(Debug)]
struct Let {
    variables: Vec<(usize, Expr)>,
    body: Expr,
}

fn parse_let(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 16874, "$let only supports an object as its argument")?.only(
        &["vars", "in"],
        16875,
        "Unrecognized parameter to $let: ",
    )?;
    let vars = arguments.required("vars", 16876, "Missing 'vars' parameter to $let")?;
    let body = arguments.required("in", 16877, "Missing 'in' parameter to $let")?;
    let Value::Document(vars) = vars else {
        return fail(10065, "invalid parameter: expected an object (vars)");
    };
    // The variables do not see each other.
    let mut variables = Vec::new();
    for (name, value) in vars.iter() {
        check_bindable(name.as_str())?;
        variables.push((name, parse(&value, names)?));
    }
    let mark = names.mark();
    let variables = variables.into_iter().map(|(name, expr)| (names.bind(name.as_str()), expr)).collect();
    let body = parse(&body, names);
    names.release(mark);
    Ok(Expr::Custom(Arc::new(Let { variables, body: body? })))
}

impl Operator for Let {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        for (slot, expr) in &self.variables {
            let value = expr.eval(scope)?;
            scope.set(*slot, value);
        }
        self.body.eval(scope)
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        self.variables.iter().for_each(|(_, expr)| visit(expr));
        visit(&self.body);
    }
}
