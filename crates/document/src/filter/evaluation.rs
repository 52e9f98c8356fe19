//! `$expr`, `$comment`, `$alwaysTrue`, `$alwaysFalse`, `$sampleRate`.

use super::parse::FilterParser;
use super::{FilterDef, FilterExpr, FilterPlace, Node, WholeTest};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr;
use crate::raw::{Doc, DocWriter};
use crate::value::Value;
use std::sync::Arc;

pub(super) const EXPR: FilterDef = FilterDef {
    name: "$expr",
    help: "Matches documents for which an aggregation expression is true.",
    parse: FilterPlace::Document(|argument, parser| {
        if parser.inside_element {
            return Err(Error::bad_value("$expr can only be applied to the top-level document"));
        }
        expression(argument, parser)
    }),
};

pub(super) const COMMENT: FilterDef = FilterDef {
    name: "$comment",
    help: "Attaches a comment; matches everything.",
    parse: FilterPlace::Document(|_, _| Ok(Node::And(Vec::new()))),
};

pub(super) const ALWAYS_TRUE: FilterDef = FilterDef {
    name: "$alwaysTrue",
    help: "Matches every document.",
    parse: FilterPlace::Document(|argument, _| constant("$alwaysTrue", argument, Node::And(Vec::new()))),
};

pub(super) const ALWAYS_FALSE: FilterDef = FilterDef {
    name: "$alwaysFalse",
    help: "Matches no document.",
    parse: FilterPlace::Document(|argument, _| constant("$alwaysFalse", argument, Node::Or(Vec::new()))),
};

pub(super) const SAMPLE_RATE: FilterDef = FilterDef {
    name: "$sampleRate",
    help: "Matches each document with the given probability.",
    parse: FilterPlace::Document(|argument, _| sample_rate(argument)),
};

fn expression(argument: &Value<'_>, parser: &mut FilterParser<'_>) -> Result<Node> {
    let expr = expr::parse(argument, parser.names).map_err(|error| match parser.names.folding_failed() {
        true => error.context("Failed to optimize expression :: caused by :: "),
        false => error,
    })?;
    Ok(match expr.as_const() {
        Some(value) if value.is_truthy() => Node::And(Vec::new()),
        Some(_) => Node::Or(Vec::new()),
        None => Node::Expr(Arc::new(FilterExpr::new(expr, argument.clone().into_owned()))),
    })
}

fn constant(name: &str, argument: &Value<'_>, node: Node) -> Result<Node> {
    match super::number::integer(name, argument) == Ok(1) {
        true => Ok(node),
        false => Err(Error::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}

fn sample_rate(argument: &Value<'_>) -> Result<Node> {
    if !argument.is_number() {
        return Err(Error::bad_value("argument to $sampleRate must be a numeric type"));
    }
    let rate = super::number::to_double(argument);
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    Ok(Node::Whole(Arc::new(SampleRate(rate))))
}

#[derive(Debug)]
struct SampleRate(f64);

impl WholeTest for SampleRate {
    fn matches(&self, _: &Doc<'_>, env: &Env) -> Result<bool> {
        Ok((env.random)() < self.0)
    }
    fn write(&self, query: &mut DocWriter) {
        query.append("$sampleRate", &Value::Double(self.0));
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::Filter;
    use crate::pipeline::expr::Names;
    use crate::raw::Doc;
    use bson::doc;

    /// A part of a filter is sent in a filter of our own: there it must say the same.
    #[test]
    fn an_expression_is_written_as_it_was() {
        for query in [
            doc! { "$expr": { "$eq": ["$a", 1] } },
            doc! { "$nor": [{ "$expr": { "$gt": ["$a", { "$literal": "$b" }] } }] },
        ] {
            let filter = Filter::parse(&Doc::from(query.clone()), &mut Names::new()).unwrap();
            assert_eq!(filter.root.to_query(), Doc::from(query));
        }
    }
}
