//! Accumulators as expressions: `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp`, `$mergeObjects` over their
//! operands or over one array; `$firstN`, `$lastN`, `$minN`, `$maxN` of an array.

use super::accumulator::{
    Accumulator, Average, Keep, Max, Merged, Min, Ranked, StdDevPop, StdDevSamp, Total, check_count, over_operands,
    parse_count_and_input,
};
use super::form::fail;
use super::{Expr, ExprDef, Form, Names, Operator, Scope};
use crate::error::Result;
use crate::value::Value;
use std::sync::Arc;

pub(super) const AVG: ExprDef = ExprDef {
    name: "$avg",
    help: "The mean of the numbers among the operands, or in an array.",
    form: Form::Any(over_operands::<Average>),
};

pub(super) const FIRST_N: ExprDef = ExprDef {
    name: "$firstN",
    help: "The first n elements of an array.",
    form: Form::Special(|argument, names| parse_n("$firstN", 5_787_801, Keep::First, argument, names)),
};

pub(super) const LAST_N: ExprDef = ExprDef {
    name: "$lastN",
    help: "The last n elements of an array.",
    form: Form::Special(|argument, names| parse_n("$lastN", 5_787_801, Keep::Last, argument, names)),
};

pub(super) const MAX: ExprDef = ExprDef {
    name: "$max",
    help: "The greatest of the operands, or of an array's elements.",
    form: Form::Summary(over_operands::<Max>),
};

pub(super) const MAX_N: ExprDef = ExprDef {
    name: "$maxN",
    help: "The n greatest elements of an array, descending.",
    form: Form::Special(|argument, names| parse_n("$maxN", 5_787_900, Keep::Greatest, argument, names)),
};

pub(super) const MERGE_OBJECTS: ExprDef = ExprDef {
    name: "$mergeObjects",
    help: "One object with the fields of all operands; a later value replaces an earlier one.",
    form: Form::Any(over_operands::<Merged>),
};

pub(super) const MIN: ExprDef = ExprDef {
    name: "$min",
    help: "The least of the operands, or of an array's elements.",
    form: Form::Summary(over_operands::<Min>),
};

pub(super) const MIN_N: ExprDef = ExprDef {
    name: "$minN",
    help: "The n least elements of an array, ascending.",
    form: Form::Special(|argument, names| parse_n("$minN", 5_787_900, Keep::Least, argument, names)),
};

pub(super) const STD_DEV_POP: ExprDef = ExprDef {
    name: "$stdDevPop",
    help: "The standard deviation of the numbers among the operands as a whole population.",
    form: Form::Any(over_operands::<StdDevPop>),
};

pub(super) const STD_DEV_SAMP: ExprDef = ExprDef {
    name: "$stdDevSamp",
    help: "The standard deviation of the numbers among the operands as a sample.",
    form: Form::Any(over_operands::<StdDevSamp>),
};

pub(super) const SUM: ExprDef = ExprDef {
    name: "$sum",
    help: "The sum of the numbers among the operands, or in an array.",
    form: Form::Summary(over_operands::<Total>),
};

#[derive(Debug)]
struct Counted {
    name: &'static str,
    which: Keep,
    count: Expr,
    input: Expr,
}

fn parse_n(name: &'static str, code: i32, which: Keep, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let (count, input) = names.unfolded(|names| parse_count_and_input(name, code, argument, names))?;
    Ok(Expr::Custom(Arc::new(Counted { name, which, count, input })))
}

impl Operator for Counted {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let count = check_count(&self.count.eval(scope)?)?;
        let Value::Array(array) = self.input.eval(scope)? else { return fail(5_788_200, "Input must be an array") };
        let mut kept = Ranked::new(self.name, self.which, count);
        for value in array.borrow().iter() {
            kept.add(&value)?;
        }
        kept.finish()
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.count);
        visit(&self.input);
    }
}
