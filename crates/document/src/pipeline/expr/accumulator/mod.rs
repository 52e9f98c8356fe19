//! Accumulators: what `$group` (and the window stages) keep per group, fed one value per document.
//!
//! An accumulator is compiled once to an [`AccumulatorExpr`]; each group has a state of its own, an [`Accumulator`]. Several
//! are also expressions over their operands: see [`over_operands`].

mod collect;
mod extreme;
mod number;
mod ranked;

pub(super) use collect::Merged;
pub(super) use extreme::{Max, Min};
pub(super) use number::{Average, StdDevPop, StdDevSamp, Total};
pub(super) use ranked::{Keep, Ranked, check_count, parse_count_and_input};

use super::form::fail;
use super::{Expr, Names, Scope, parse};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Value, show};
use std::fmt::Debug;
use std::sync::Arc;

/// The state of one group.
pub trait Accumulator: Debug + Send {
    fn add(&mut self, value: &Value<'_>) -> Result<()>;
    /// The result so far; missing means null in `$group`. Called once, at the end.
    fn finish(&mut self) -> Result<Value<'static>>;
    /// How many bytes it holds, about.
    fn memory(&self) -> usize;
}

/// One entry of the registry.
pub struct AccumulatorDef {
    pub name: &'static str,
    pub help: &'static str,
    /// Parses the argument: what stands after the name.
    pub parse: fn(&'static str, &Value<'_>, &mut Names) -> Result<AccumulatorExpr>,
}

/// All accumulators, sorted by name.
pub const ACCUMULATORS: &[&AccumulatorDef] = &[
    &collect::ACCUMULATOR,
    &collect::ADD_TO_SET,
    &number::AVG,
    &ranked::BOTTOM,
    &ranked::BOTTOM_N,
    &number::COUNT,
    &extreme::FIRST,
    &ranked::FIRST_N,
    &extreme::LAST,
    &ranked::LAST_N,
    &extreme::MAX,
    &ranked::MAX_N,
    &collect::MERGE_OBJECTS,
    &extreme::MIN,
    &ranked::MIN_N,
    &collect::PUSH,
    &number::STD_DEV_POP,
    &number::STD_DEV_SAMP,
    &number::SUM,
    &ranked::TOP,
    &ranked::TOP_N,
];

/// A compiled accumulator: what is evaluated for each document, and how a group's state starts.
#[derive(Clone, Debug)]
pub struct AccumulatorExpr {
    pub name: &'static str,
    argument: Expr,
    start: Start,
}

#[derive(Clone)]
enum Start {
    Plain(fn() -> Box<dyn Accumulator>),
    /// With the number of values to keep: an expression of the group's key.
    Counted(Expr, Arc<dyn Fn(usize) -> Box<dyn Accumulator> + Send + Sync>),
}

impl Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Start::Plain(_) => f.write_str("Plain"),
            Start::Counted(count, _) => f.debug_tuple("Counted").field(count).finish(),
        }
    }
}

impl AccumulatorExpr {
    /// Parses the specification of one field of `$group`: `{ $sum: "$a" }`.
    pub fn parse(field: &str, spec: &Value<'_>, names: &mut Names) -> Result<AccumulatorExpr> {
        let first = match spec {
            Value::Document(doc) => doc.iter().next().filter(|(name, _)| name.as_str().starts_with('$')),
            _ => None,
        };
        let (Value::Document(doc), Some((name, argument))) = (spec, first) else {
            return fail(40234, format!("The field '{field}' must be an accumulator object"));
        };
        if field.contains('.') {
            return fail(40235, format!("The field name '{field}' cannot contain '.'"));
        }
        if field.starts_with('$') {
            return fail(40236, format!("The field name '{field}' cannot be an operator name"));
        }
        if doc.iter().nth(1).is_some() {
            return fail(40238, format!("The field '{field}' must specify one accumulator"));
        }
        if matches!(argument, Value::Array(_)) {
            return fail(40237, format!("The {name} accumulator is a unary operator"));
        }
        match ACCUMULATORS.binary_search_by(|def| def.name.cmp(name.as_str())).ok().and_then(|at| ACCUMULATORS.get(at))
        {
            Some(def) => (def.parse)(def.name, &argument, names),
            None => fail(15952, format!("unknown group operator '{name}'")),
        }
    }

    fn plain<A: Accumulator + Default + 'static>(
        name: &'static str,
        argument: &Value<'_>,
        names: &mut Names,
    ) -> Result<AccumulatorExpr> {
        let start = Start::Plain(|| Box::new(A::default()));
        Ok(AccumulatorExpr { name, argument: parse(argument, names)?, start })
    }

    /// The state of a new group with that key.
    pub fn start(&self, key: &Value<'_>, env: &Env) -> Result<Box<dyn Accumulator>> {
        match &self.start {
            Start::Plain(make) => Ok(make()),
            Start::Counted(count, make) => {
                let key = match key {
                    Value::Document(doc) => doc.borrow(),
                    _ => Doc::empty(),
                };
                let count = check_count(&count.eval(&mut Scope::new(key, env))?)?;
                Ok(make(count))
            }
        }
    }

    /// Adds one document to a state that this accumulator started.
    pub fn add<'a>(&'a self, state: &mut dyn Accumulator, scope: &mut Scope<'a>) -> Result<()> {
        state.add(&self.argument.eval(scope)?)
    }

    /// What is evaluated for each document.
    pub fn argument(&self) -> &Expr {
        &self.argument
    }

    /// Calls `visit` with each expression that reads the documents.
    pub fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.argument);
    }
}

/// An accumulator as an expression: over the elements of an array if that is its only operand, else over its operands.
pub(super) fn over_operands<'a, A: Accumulator + Default>(
    operands: &'a [Expr],
    scope: &mut Scope<'a>,
) -> Result<Value<'a>> {
    let mut state = A::default();
    match operands {
        [only] => match only.eval(scope)? {
            Value::Array(array) => {
                for value in array.borrow().iter() {
                    state.add(&value)?;
                }
            }
            value => state.add(&value)?,
        },
        several => {
            for operand in several {
                state.add(&operand.eval(scope)?)?;
            }
        }
    }
    state.finish()
}

/// How much one accumulator may hold, as in MongoDB.
const MAX_BYTES: usize = 100 << 20;

fn check_memory(name: &str, bytes: usize) -> Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::ExceededMemoryLimit,
        format!("{name} used too much memory and cannot spill to disk. Memory limit: {MAX_BYTES} bytes"),
    ))
}

/// The bytes a kept value takes, about.
fn bytes_of(value: &Value<'_>) -> usize {
    let payload = match value {
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => text.as_bytes().len(),
        Value::Document(doc) | Value::CodeWithScope { scope: doc, .. } => doc.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::Binary { bytes, .. } => bytes.as_slice().len(),
        Value::Regex { pattern, .. } => pattern.as_bytes().len(),
        _ => 0,
    };
    size_of::<Value<'static>>() + payload
}

/// A copy that shares nothing with the document it came from: a kept value must not keep a whole document alive.
fn keep(value: &Value<'_>) -> Value<'static> {
    value.borrow().into_owned()
}

fn not_an_object(code: i32, name: &str, argument: &Value<'_>) -> Error {
    let message = format!("specification must be an object; found {name}: {}", show::element(argument));
    Error::new(Code::from_number(code), message)
}

#[cfg(test)]
mod tests;
