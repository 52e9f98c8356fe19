//! Aggregation expressions: parsed once to an [`Expr`], evaluated per document over raw bytes.
//!
//! Variables are resolved to slots when parsing ([`Names`]), so evaluation looks nothing up by name. A family of
//! operators is one file; each operator is a constant [`ExprDef`] listed in [`EXPRESSIONS`].

pub mod accumulator;
mod arithmetic;
mod array;
mod boolean;
mod comparison;
mod condition;
mod convert;
mod date;
mod form;
mod mathematics;
pub(crate) mod misc;
mod names;
mod object;
mod parse;
mod refused;
mod regex;
mod registry;
mod replace;
mod scope;
mod set;
mod string;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod trigonometry;
mod trim;
mod variable;

pub use form::{EvalFn, Form, ParseFn};
pub use names::{Names, check_bindable};
pub use parse::{parse, parse_operand};
pub use registry::EXPRESSIONS;
pub use scope::Scope;

use crate::error::Result;
use crate::raw::{ArrayWriter, Doc, DocWriter};
use crate::text::carried;
use crate::value::path::Part;
use crate::value::{Path, Value};
use std::fmt::Debug;
use std::sync::Arc;

/// A compiled expression.
#[derive(Debug, Clone)]
pub enum Expr {
    Const(Value<'static>),
    /// `$a.b`, from the root document.
    Field(Path),
    /// `$$name` or `$$name.a.b`, by slot.
    Variable {
        slot: usize,
        path: Option<Path>,
    },
    /// `$$ROOT`.
    Root,
    /// `$$NOW` and `$$CLUSTER_TIME`.
    Now,
    ClusterTime,
    Object {
        fields: Vec<(Arc<str>, Expr)>,
        /// Whether a field without value leaves its place ([`crate::pipeline`]'s `places`).
        places: bool,
    },
    Array(Vec<Expr>),
    /// An operator that needs nothing but its evaluated or unevaluated operands.
    Call {
        name: &'static str,
        eval: EvalFn,
        operands: Vec<Expr>,
    },
    /// An operator with a structure of its own: `$let`, `$switch`, `$dateToString` …
    Custom(Arc<dyn Operator>),
}

/// An operator that is more than a function of its operands.
pub trait Operator: Debug + Send + Sync {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>>;
    /// Calls `visit` with each direct operand; for finding which fields an expression reads.
    fn operands(&self, visit: &mut dyn FnMut(&Expr));
}

/// One entry of the registry.
pub struct ExprDef {
    pub name: &'static str,
    pub help: &'static str,
    /// What stands after its name, and how it is evaluated.
    pub form: Form,
}

impl Expr {
    pub fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        match self {
            Expr::Const(value) => Ok(value.borrow()),
            Expr::Field(path) => Ok(field_of_document(&scope.root, &path.parts)),
            Expr::Variable { slot, path: None } => Ok(scope.get(*slot)),
            Expr::Variable { slot, path: Some(path) } => Ok(field(&scope.get(*slot), &path.parts)),
            Expr::Root => Ok(Value::Document(carried::unloaded(&scope.root))),
            Expr::Now => Ok(Value::DateTime(scope.env.now)),
            Expr::ClusterTime => Ok(Value::Timestamp(scope.env.cluster_time)),
            Expr::Object { fields, places } => {
                let mut writer = DocWriter::new();
                for (name, expr) in fields {
                    writer.append_or_place(name, &expr.eval(scope)?, *places);
                }
                scope.check_size(writer.len())?;
                Ok(Value::Document(writer.finish()))
            }
            Expr::Array(items) => {
                let mut writer = ArrayWriter::new();
                for item in items {
                    writer.push(&item.eval(scope)?);
                }
                scope.check_size(writer.len())?;
                Ok(Value::Array(writer.finish()))
            }
            Expr::Call { eval, operands, .. } => eval(operands, scope),
            Expr::Custom(operator) => operator.eval(scope),
        }
    }

    /// The constant it is, if it is one.
    pub fn as_const(&self) -> Option<&Value<'static>> {
        match self {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Calls `visit` with each direct operand.
    pub fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Expr::Const(_) | Expr::Field(_) | Expr::Variable { .. } | Expr::Root | Expr::Now | Expr::ClusterTime => {}
            Expr::Object { fields, .. } => fields.iter().for_each(|(_, expr)| visit(expr)),
            Expr::Array(items) => items.iter().for_each(visit),
            Expr::Call { operands, .. } => operands.iter().for_each(visit),
            Expr::Custom(operator) => operator.operands(visit),
        }
    }

    /// The root paths it reads; `None` if it reads the whole document.
    pub fn reads(&self) -> Option<Vec<Path>> {
        fn walk(expr: &Expr, paths: &mut Vec<Path>, whole: &mut bool) {
            match expr {
                Expr::Field(path) => paths.push(path.clone()),
                Expr::Root => *whole = true,
                other => other.operands(&mut |operand| walk(operand, paths, whole)),
            }
        }
        let (mut paths, mut whole) = (Vec::new(), false);
        walk(self, &mut paths, &mut whole);
        (!whole).then_some(paths)
    }
}

/// `parts` from a document, as expressions walk paths: an array on the way gives the array of what its documents give.
/// Numbers in the path are field names, never array positions.
pub fn field_of_document<'a>(doc: &Doc<'a>, parts: &[Part]) -> Value<'a> {
    match parts.split_first() {
        None => Value::Document(doc.clone()),
        Some((first, rest)) => match doc.get(&first.name) {
            None => Value::Missing,
            Some(value) if rest.is_empty() => value,
            Some(value) => field(&value, rest),
        },
    }
}

/// As [`field_of_document`], from any value.
pub fn field<'a>(value: &Value<'a>, parts: &[Part]) -> Value<'a> {
    if parts.is_empty() {
        return value.clone();
    }
    match value {
        Value::Document(doc) => field_of_document(doc, parts),
        Value::Array(array) => {
            let mut writer = ArrayWriter::new();
            for item in array.iter() {
                // Scalars and arrays directly inside an array have no fields and drop out.
                let Value::Document(doc) = item else { continue };
                let found = field_of_document(&doc, parts);
                if !found.is_missing() {
                    writer.push(&found);
                }
            }
            Value::Array(writer.finish())
        }
        _ => Value::Missing,
    }
}
