//! From BSON to [`Expr`]: constants, field paths, variables, objects, and the operators of the registry.

use super::form::fail;
use super::names::{Binding, check_readable};
use super::registry::INTERNAL;
use super::{EXPRESSIONS, Expr, Names};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::path::check_field_name;
use crate::value::{Path, Value, show};
use std::sync::Arc;

/// Parses any expression. What depends on constants only is evaluated at once.
pub fn parse(value: &Value<'_>, names: &mut Names) -> Result<Expr> {
    names.within(|names| parse_any(value, names))
}

fn parse_any(value: &Value<'_>, names: &mut Names) -> Result<Expr> {
    match value {
        Value::String(text) => match text.as_str().strip_prefix('$') {
            Some(path) => parse_path(path, names),
            None => Ok(Expr::Const(value.clone().into_owned())),
        },
        Value::Document(doc) => parse_document(doc, names),
        Value::Array(array) => {
            let items = array.iter().map(|item| parse(&item, names)).collect::<Result<Vec<_>>>()?;
            if items.iter().all(|item| item.as_const().is_some()) {
                return Ok(Expr::Const(Value::Array(items.iter().filter_map(Expr::as_const).cloned().collect())));
            }
            Ok(Expr::Array(items))
        }
        _ => Ok(Expr::Const(value.clone().into_owned())),
    }
}

fn parse_document(doc: &Doc<'_>, names: &mut Names) -> Result<Expr> {
    let mut fields = doc.iter();
    if let Some((name, argument)) = fields.next()
        && name.as_str().starts_with('$')
    {
        if fields.next().is_some() {
            return fail(
                15983,
                format!("An object representing an expression must have exactly one field: {}", show::document(doc)),
            );
        }
        return parse_operator(name.as_str(), &argument, names);
    }
    let mut parsed: Vec<(Arc<str>, Expr)> = Vec::new();
    for (name, value) in doc.iter() {
        let name = name.as_str();
        check_field_name(name)?;
        if parsed.iter().any(|(earlier, _)| &**earlier == name) {
            return fail(16406, format!("duplicate field name specified in object literal: {}", show::document(doc)));
        }
        parsed.push((name.into(), parse(&value, names)?));
    }
    let places = parsed.iter().any(|(name, _)| names.leaves_place(name));
    Ok(fold_object(parsed, places))
}

fn fold_object(fields: Vec<(Arc<str>, Expr)>, places: bool) -> Expr {
    if fields.iter().all(|(_, expr)| expr.as_const().is_some()) {
        let mut writer = DocWriter::new();
        for (name, expr) in &fields {
            if let Some(value) = expr.as_const() {
                writer.append_or_place(name, value, places);
            }
        }
        return Expr::Const(Value::Document(writer.finish()));
    }
    Expr::Object { fields, places }
}

/// An operator's operand list: an array is the operands, anything else is the only one.
pub fn parse_operand(value: &Value<'_>, names: &mut Names) -> Result<Vec<Expr>> {
    match value {
        Value::Array(array) => array.iter().map(|item| parse(&item, names)).collect(),
        single => Ok(vec![parse(single, names)?]),
    }
}

fn parse_operator(name: &str, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let listed = EXPRESSIONS.binary_search_by(|def| def.name.cmp(name)).ok().and_then(|at| EXPRESSIONS.get(at));
    match listed.or_else(|| INTERNAL.iter().find(|def| def.name == name)) {
        Some(def) => def.form.parse(def.name, argument, names),
        None => Err(Error::new(Code::InvalidPipelineOperator, format!("Unrecognized expression '{name}'"))),
    }
}

/// `path` is what follows the first `$`.
fn parse_path(path: &str, names: &mut Names) -> Result<Expr> {
    if path.is_empty() {
        return fail(16872, "'$' by itself is not a valid FieldPath");
    }
    let Some(variable) = path.strip_prefix('$') else {
        let path = Path::field_path(path)?;
        return Ok(match names.find("CURRENT") {
            Some(Binding::Slot(slot)) => Expr::Variable { slot: *slot, path: Some(path) },
            _ => Expr::Field(path),
        });
    };
    let (name, rest) = match variable.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (variable, None),
    };
    check_readable(name)?;
    match name {
        "JS_SCOPE" | "IS_MR" => return fail(51144, format!("Builtin variable '$${name}' is not available")),
        "SEARCH_META" => {
            return fail(6_347_903, "Can't access $$SEARCH_META without a $search stage earlier in the pipeline");
        }
        _ => {}
    }
    let binding = names.find(name);
    if binding.is_none() && !matches!(name, "ROOT" | "CURRENT" | "REMOVE" | "NOW" | "CLUSTER_TIME") {
        return fail(17276, format!("Use of undefined variable: {name}"));
    }
    let rest = match rest {
        Some("") => return fail(40353, "FieldPath must not end with a '.'."),
        Some(rest) => Some(Path::field_path(rest)?),
        None => None,
    };
    Ok(match (binding, name, rest) {
        (Some(Binding::Slot(slot)), _, path) => Expr::Variable { slot: *slot, path },
        (Some(Binding::Constant(value)), _, None) => Expr::Const(value.clone()),
        (Some(Binding::Constant(value)), _, Some(path)) => Expr::Const(super::field(value, &path.parts)),
        (None, "NOW", None) => Expr::Now,
        (None, "CLUSTER_TIME", None) => Expr::ClusterTime,
        (None, "ROOT" | "CURRENT", None) => Expr::Root,
        (None, "ROOT" | "CURRENT", Some(path)) => Expr::Field(path),
        // $$REMOVE is missing; the others are scalars and have no fields.
        _ => Expr::Const(Value::Missing),
    })
}
