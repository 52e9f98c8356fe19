//! Exact sums and averages (SEMANTICS R8), twice: as expressions that a real MongoDB runs, and natively, with the same results.
//!
//! A state is `{ n, sum, long?, double?, decimal?, nan?, inf?, negInf? }` ([`Numbers`]); the visible value is a function of it:
//! an int while all numbers are ints and it fits, else a long, a double, a decimal, as MongoDB's accumulators have it.

use crate::mql::{call, call_with, cond, literal, object, with};
use crate::rule::numbers::{CHILDREN, COUNTERS, Numbers, StateForm, count, too_many_digits};
use document::Value;
use document::value::decimal_math::Rounding;
use document::value::{Decimal128, Number};

/// What of a state is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Children,
    Sum,
    Mean,
}

/// The visible value of a state.
pub fn visible(shown: Shown, state: &Numbers) -> Value<'static> {
    if shown == Shown::Children {
        return count(state.children);
    }
    if shown == Shown::Mean && state.n <= 0 {
        return Value::Null;
    }
    let special = |double: f64, decimal: Decimal128| match state.decimals > 0 {
        true => Value::Decimal(decimal),
        false => Value::Double(double),
    };
    if state.nans > 0 || state.infinities > 0 && state.negative_infinities > 0 {
        return special(f64::NAN, Decimal128::NAN);
    }
    if state.infinities > 0 {
        return special(f64::INFINITY, Decimal128::INFINITY);
    }
    if state.negative_infinities > 0 {
        return special(f64::NEG_INFINITY, Decimal128::NEGATIVE_INFINITY);
    }
    if shown == Shown::Mean {
        let n = Number::int_or_long(state.n);
        let sum = if state.decimals > 0 { Number::Decimal(state.sum) } else { Number::Double(to_double(state.sum)) };
        return sum.divided_by(n).map_or(Value::Null, Value::from);
    }
    if state.decimals > 0 {
        return Value::Decimal(state.sum);
    }
    match state.sum.to_i64(Rounding::TowardZero) {
        Some(whole) if state.doubles <= 0 && state.longs > 0 => Value::Int64(whole),
        Some(whole) if state.doubles <= 0 => Number::int_or_long(whole).into(),
        _ => Value::Double(to_double(state.sum)),
    }
}

/// The nearest double; what is too large is infinite, what is too small is zero.
fn to_double(sum: Decimal128) -> f64 {
    let double = sum.to_f64();
    if double.abs() < f64::MIN_POSITIVE { 0.0 } else { double }
}

/// The visible value of the state that the expression `state` (a variable or path) gives.
pub fn visible_expression(shown: Shown, state: Value<'_>) -> Value<'static> {
    let part = |name: &str| Value::string(format!("$$s.{name}"));
    if shown == Shown::Children {
        return with([("s", state)], part(CHILDREN));
    }
    let some = |name: &str| call_with("$gt", [part(name), Value::Int32(0)]);
    let special =
        |double: f64, decimal: Decimal128| cond(some("decimal"), Value::Decimal(decimal), Value::Double(double));
    let branch = |case: Value<'static>, then: Value<'static>| object([("case", case), ("then", then)]);
    let convert = |to: &str, otherwise: Value<'static>| {
        let arguments = [("input", part("sum")), ("to", Value::from(to)), ("onError", otherwise)];
        call("$convert", object(arguments))
    };
    let sign = |operator: &str, one: i32, then: f64, otherwise: Value<'static>| {
        cond(call_with(operator, [part("sum"), Value::Int32(one)]), Value::Double(then), otherwise)
    };
    let double =
        convert("double", sign("$gt", 1, f64::INFINITY, sign("$lt", -1, f64::NEG_INFINITY, Value::Double(0.0))));
    let both_infinities = call_with("$and", [some("inf"), some("negInf")]);
    let mut branches = vec![
        branch(call_with("$or", [some("nan"), both_infinities]), special(f64::NAN, Decimal128::NAN)),
        branch(some("inf"), special(f64::INFINITY, Decimal128::INFINITY)),
        branch(some("negInf"), special(f64::NEG_INFINITY, Decimal128::NEGATIVE_INFINITY)),
    ];
    let otherwise = match shown {
        Shown::Sum => {
            let long = convert("long", double.clone());
            branches.push(branch(some("decimal"), part("sum")));
            branches.push(branch(some("double"), double));
            branches.push(branch(some("long"), long.clone()));
            convert("int", long)
        }
        Shown::Mean | Shown::Children => {
            branches.insert(0, branch(call_with("$not", [some("n")]), Value::Null));
            branches.push(branch(some("decimal"), call_with("$divide", [part("sum"), part("n")])));
            call_with("$divide", [double, part("n")])
        }
    };
    let choice = call("$switch", object([("branches", crate::mql::list(branches)), ("default", otherwise)]));
    with([("s", state)], choice)
}

/// The state at the expression `state` and the amounts in the variable `delta` together; an error that names the rule if the sum is
/// not exact ([`crate::rule::numbers::translated`]).
pub fn next_state(form: StateForm, state: Value<'_>, delta: &str, rule: &str) -> Value<'static> {
    let old = |name: &str| call_with("$ifNull", [Value::string(format!("$$s.{name}")), Value::Int32(0)]);
    let more = |name: &str| Value::string(format!("$${delta}.{name}"));
    let sum = {
        let total = || Value::from("$$t");
        let undone = |taken: Value<'static>, left: Value<'static>| {
            call_with("$eq", [call_with("$subtract", [total(), taken]), left])
        };
        let exact = call_with("$and", [undone(old("sum"), more("sum")), undone(more("sum"), old("sum"))]);
        // The words depend on the document, so that nobody evaluates them ahead of time.
        let words = call_with(
            "$concat",
            [literal(Value::string(format!("{}: ", too_many_digits(rule)))), call("$toString", total())],
        );
        with([("t", call_with("$add", [old("sum"), more("sum")]))], cond(exact, total(), call("$toInt", words)))
    };
    let added = |name: &str| call_with("$add", [old(name), more(name)]);
    with([("s", state)], object(state_fields(form, sum, added)))
}

/// The fields of a state, those that are zero left out.
fn state_fields(
    form: StateForm,
    sum: Value<'static>,
    counter: impl Fn(&str) -> Value<'static>,
) -> Vec<(&'static str, Value<'static>)> {
    let mut fields = Vec::new();
    if form.children {
        fields.push((CHILDREN, counter(CHILDREN)));
    }
    if !form.numbers {
        return fields;
    }
    fields.extend([("n", counter("n")), ("sum", sum)]);
    for name in COUNTERS {
        let shown =
            cond(call_with("$eq", [Value::from("$$c"), Value::Int32(0)]), Value::from("$$REMOVE"), Value::from("$$c"));
        fields.push((name, with([("c", counter(name))], shown)));
    }
    fields
}

/// The accumulators of a `$group` that make a state of the values at `path`; see [`grouped_state`].
pub fn accumulators(path: &str) -> Vec<(&'static str, Value<'static>)> {
    let value = || Value::string(format!("${path}"));
    let is_type = |name: &str| call_with("$eq", [call("$type", value()), Value::from(name)]);
    let is = |special: f64| call_with("$eq", [value(), Value::Double(special)]);
    let counted = |condition: Value<'static>| call("$sum", cond(condition, Value::Int32(1), Value::Int32(0)));
    let specials = crate::mql::list([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Value::Double));
    let finite =
        call_with("$and", [call("$isNumber", value()), call_with("$not", [call_with("$in", [value(), specials])])]);
    vec![
        ("n", counted(call("$isNumber", value()))),
        ("sum", call("$sum", cond(finite, call("$toDecimal", value()), Value::Decimal(Decimal128::ZERO)))),
        ("long", counted(is_type("long"))),
        ("double", counted(is_type("double"))),
        ("decimal", counted(is_type("decimal"))),
        ("nan", counted(is(f64::NAN))),
        ("inf", counted(is(f64::INFINITY))),
        ("negInf", counted(is(f64::NEG_INFINITY))),
    ]
}

/// The state from what [`accumulators`] gave, at the expression `group`; a missing group is the empty state.
pub fn grouped_state(form: StateForm, group: Value<'_>) -> Value<'static> {
    let part = |name: &str| call_with("$ifNull", [Value::string(format!("$$g.{name}")), Value::Int32(0)]);
    let zero = Value::Decimal(Decimal128::ZERO);
    let sum = call_with("$ifNull", [Value::from("$$g.sum"), zero]);
    with([("g", group)], object(state_fields(form, sum, part)))
}
