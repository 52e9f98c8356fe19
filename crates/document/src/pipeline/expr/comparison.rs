//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: MongoDB's order over all types; a missing value is below null.

use super::form::values;
use super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::value::{Value, order};
use std::cmp::Ordering;

macro_rules! comparison {
    ($constant:ident, $name:literal, $help:literal, $result:expr) => {
        pub(super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Exactly(2, |operands, scope| {
                let result: fn(Ordering) -> Value<'static> = $result;
                Ok(result(compare(operands, scope)?))
            }),
        };
    };
}

comparison!(CMP, "$cmp", "-1, 0 or 1: how one value sorts to another.", |order| Value::Int32(order as i32));
comparison!(EQ, "$eq", "Whether two values are equal.", |order| Value::Bool(order.is_eq()));
comparison!(GT, "$gt", "Whether one value sorts after another.", |order| Value::Bool(order.is_gt()));
comparison!(GTE, "$gte", "Whether one value is equal to another or sorts after it.", |order| Value::Bool(
    order.is_ge()
));
comparison!(LT, "$lt", "Whether one value sorts before another.", |order| Value::Bool(order.is_lt()));
comparison!(LTE, "$lte", "Whether one value is equal to another or sorts before it.", |order| Value::Bool(
    order.is_le()
));
comparison!(NE, "$ne", "Whether two values are not equal.", |order| Value::Bool(order.is_ne()));

fn compare<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Ordering> {
    let [left, right] = values(operands, scope)?;
    Ok(order::compare(&left, &right))
}
