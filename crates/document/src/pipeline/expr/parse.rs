//! From BSON to [`Expr`]: constants, field paths, variables, objects, and the operators of the registry.

use super::{EXPRESSIONS, Expr};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::{Path, Value};

/// The variables a program may name, and the slot or value of each.
#[derive(Clone, Debug, Default)]
pub struct Names {
    bound: Vec<(String, Binding)>,
    next_slot: usize,
}

#[derive(Clone, Debug)]
enum Binding {
    Slot(usize),
    Constant(Value<'static>),
}

impl Names {
    pub fn new() -> Names {
        Names::default()
    }

    /// Binds a variable whose value is known now: the `let` of a command.
    pub fn bind_constant(&mut self, name: &str, value: Value<'static>) {
        self.bound.push((name.to_owned(), Binding::Constant(value)));
    }

    /// Binds a variable to a new slot, from here until [`Names::release`].
    pub fn bind(&mut self, name: &str) -> usize {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.bound.push((name.to_owned(), Binding::Slot(slot)));
        slot
    }

    /// How many bindings there are: pass to [`Names::release`] to leave a scope.
    pub fn mark(&self) -> usize {
        self.bound.len()
    }

    pub fn release(&mut self, mark: usize) {
        self.bound.truncate(mark);
    }

    fn find(&self, name: &str) -> Option<&Binding> {
        self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, binding)| binding)
    }
}

/// Parses any expression.
pub fn parse(value: &Value<'_>, names: &mut Names) -> Result<Expr> {
    match value {
        Value::String(text) => match text.as_str().strip_prefix('$') {
            Some(path) => parse_path(path, names),
            None => Ok(Expr::Const(value.clone().into_owned())),
        },
        Value::Document(doc) => {
            let mut fields = doc.iter();
            if let Some((name, argument)) = fields.next()
                && name.as_str().starts_with('$')
            {
                if fields.next().is_some() {
                    return Err(Error::new(
                        Code::Location(15983),
                        format!(
                            "an expression specification must contain exactly one field, the name of the expression. Found {} fields in {doc:?}",
                            doc.iter().count()
                        ),
                    ));
                }
                return parse_operator(name.as_str(), &argument, names);
            }
            let mut parsed = Vec::new();
            for (name, value) in doc.iter() {
                Path::field_path(name.as_str())?;
                if name.as_str().contains('.') {
                    return Err(Error::new(
                        Code::Location(16405),
                        "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
                    ));
                }
                parsed.push((name.as_str().into(), parse(&value, names)?));
            }
            Ok(fold_object(parsed))
        }
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

fn fold_object(fields: Vec<(std::sync::Arc<str>, Expr)>) -> Expr {
    if fields.iter().all(|(_, expr)| expr.as_const().is_some_and(|value| !value.is_missing())) {
        let mut writer = crate::raw::DocWriter::new();
        for (name, expr) in &fields {
            if let Some(value) = expr.as_const() {
                writer.append(name, value);
            }
        }
        return Expr::Const(Value::Document(writer.finish()));
    }
    Expr::Object(fields)
}

/// An operator's operand list: an array is the operands, anything else is the only one.
pub fn parse_operand(value: &Value<'_>, names: &mut Names) -> Result<Vec<Expr>> {
    match value {
        Value::Array(array) => array.iter().map(|item| parse(&item, names)).collect(),
        single => Ok(vec![parse(single, names)?]),
    }
}

fn parse_operator(name: &str, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    match EXPRESSIONS.binary_search_by(|def| def.name.cmp(name)).ok().and_then(|at| EXPRESSIONS.get(at)) {
        Some(def) => (def.parse)(argument, names),
        None => Err(Error::new(Code::InvalidPipelineOperator, format!("Unrecognized expression '{name}'"))),
    }
}

/// `path` is what follows the first `$`.
fn parse_path(path: &str, names: &mut Names) -> Result<Expr> {
    let Some(variable) = path.strip_prefix('$') else {
        let path = Path::field_path(path)?;
        return Ok(match names.find("CURRENT") {
            Some(Binding::Slot(slot)) => Expr::Variable { slot: *slot, path: Some(path) },
            _ => Expr::Field(path),
        });
    };
    let (name, rest) = match variable.split_once('.') {
        Some((name, rest)) => (name, Some(Path::field_path(rest)?)),
        None => (variable, None),
    };
    if let Some(binding) = names.find(name) {
        return Ok(match (binding, rest) {
            (Binding::Slot(slot), path) => Expr::Variable { slot: *slot, path },
            (Binding::Constant(value), None) => Expr::Const(value.clone()),
            (Binding::Constant(value), Some(path)) => Expr::Const(super::field(value, &path.parts)),
        });
    }
    match (name, rest) {
        ("ROOT" | "CURRENT", None) => Ok(Expr::Root),
        ("ROOT" | "CURRENT", Some(path)) => Ok(Expr::Field(path)),
        ("REMOVE", _) => Ok(Expr::Const(Value::Missing)),
        ("NOW", None) => Ok(Expr::Now),
        ("CLUSTER_TIME", None) => Ok(Expr::ClusterTime),
        ("", _) => Err(Error::failed_to_parse("empty variable names are not allowed")),
        _ => Err(Error::new(Code::Location(17276), format!("Use of undefined variable: {name}"))),
    }
}
