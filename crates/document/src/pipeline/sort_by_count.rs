//! `$sortByCount`: how often each value of an expression occurs, most often first.

use super::expr::accumulator::AccumulatorExpr;
use super::group::{Field, Group};
use super::sort::Sort;
use super::{Parsed, Parser, Place, StageDef, expr};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::op::{SortKey, SortSpec};
use crate::raw::DocWriter;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$sortByCount",
    help: "Counts how often each value of an expression occurs, most often first.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message| Err(Error::new(Code::Location(code), message));
    let malformed = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    match spec {
        Value::Document(doc) => {
            if !doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')) {
                return refuse(40147, malformed);
            }
        }
        Value::String(text) if !text.as_str().starts_with('$') => return refuse(40148, malformed),
        Value::String(_) => {}
        _ => return refuse(40149, "the sortByCount field must be specified as a string or as an object"),
    }
    let key = expr::parse(spec, parser.names)?;
    let mut one = DocWriter::new();
    one.append("$sum", &Value::Int32(1));
    let count = AccumulatorExpr::parse("count", &Value::Document(one.finish()), parser.names)?;
    let group = Group::new(key, vec![Field::new("count", count)]);
    let descending = SortKey { path: Path::new("count"), descending: true };
    Ok(Parsed::Two(Arc::new(group), Arc::new(Sort { spec: SortSpec { keys: vec![descending] }, limit: None })))
}
