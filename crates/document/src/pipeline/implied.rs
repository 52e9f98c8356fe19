//! What `$expr` says that an index can use: `{ $expr: { $eq: ["$a", <something known>] } }` implies a condition on `a`.
//!
//! The implied condition lets more through than the expression does (a filter looks into arrays), so it stands beside it.

use super::expr::{Expr, Scope};
use crate::env::Env;
use crate::error::Result;
use crate::filter::{Filter, Node};
use crate::raw::Doc;
use crate::value::{Path, Value};

/// The fields that must equal something that does not depend on the document, according to the filter's expressions.
pub(super) fn equalities(filter: &Filter) -> Vec<(Path, Expr)> {
    let mut found = Vec::new();
    filter.root.each_required(&mut |node| {
        if let Node::Expr(expr) = node {
            collect(expr, &mut found);
        }
    });
    found
}

fn collect(expr: &Expr, found: &mut Vec<(Path, Expr)>) {
    let Expr::Call { name, operands, .. } = expr else { return };
    match (*name, operands.as_slice()) {
        ("$and", operands) => operands.iter().for_each(|operand| collect(operand, found)),
        ("$eq", [Expr::Field(path), known] | [known, Expr::Field(path)]) if is_known(known) => {
            found.push((path.clone(), known.clone()));
        }
        _ => {}
    }
}

/// Whether it is a constant or a variable: the same for all documents, and cheap.
fn is_known(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(_) | Expr::Variable { .. } | Expr::Now | Expr::ClusterTime)
}

/// What the filter's expressions say of fields and constants.
pub(super) fn constants(filter: &Filter) -> Filter {
    let mut known = equalities(filter);
    known.retain(|(_, expr)| expr.as_const().is_some());
    self::filter(&known, &Env::fixed()).unwrap_or_else(|_| Filter::all())
}

/// The equalities as a filter, with the values they have now.
pub(super) fn filter(equalities: &[(Path, Expr)], env: &Env) -> Result<Filter> {
    let mut nodes = Vec::new();
    for (path, known) in equalities {
        let value = match known.eval(&mut Scope::new(Doc::empty(), env))? {
            // An array may equal what a path gathers from several elements, which a filter would not see.
            Value::Array(_) | Value::Undefined => continue,
            Value::Missing => Value::Null,
            value => value.into_owned(),
        };
        nodes.push(Node::Field { path: path.clone(), test: crate::filter::Test::Eq(value) });
    }
    Ok(match nodes.is_empty() {
        true => Filter::all(),
        false => Filter::from_node(Node::all_of(nodes)),
    })
}
