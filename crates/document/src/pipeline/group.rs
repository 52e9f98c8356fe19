//! `$group`: one document for each distinct key, with accumulators over the documents that have it.
//!
//! Groups are found by the order-preserving encoding of their key, in which equal values of different types are the same
//! bytes; the first value seen is the `_id`. [`super::grouping`] runs it.

use super::expr::accumulator::AccumulatorExpr;
use super::expr::{self, Expr, Scope};
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, grouping};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::DocWriter;
use crate::value::path::check_field_name;
use crate::value::{Path, Value};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$group",
    help: "Gives one document for each distinct key, with accumulated values.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let fail = |code, message: &str| Err(Error::new(Code::Location(code), message));
    let Value::Document(spec) = spec else { return fail(15947, "a group's fields must be specified in an object") };
    let (mut key, mut fields) = (None, Vec::new());
    for (name, value) in spec.iter() {
        match name.as_str() {
            "_id" if key.is_some() => return fail(15948, "a group's _id may only be specified once"),
            "_id" => key = Some(Key::parse(&value, parser)?),
            // Said by a router to a shard; alone it changes nothing.
            "$doingMerge" => {}
            name => fields.push(Field::new(name, AccumulatorExpr::parse(name, &value, parser.names)?)),
        }
    }
    match key {
        Some(key) => Parsed::one(Group { key, fields }),
        None => fail(15955, "a group specification must include an _id"),
    }
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: Key,
    pub(super) fields: Vec<Field>,
}

impl Group {
    pub(super) fn new(key: Expr, fields: Vec<Field>) -> Group {
        Group { key: Key::One(key), fields }
    }
}

#[derive(Debug)]
pub(super) enum Key {
    One(Expr),
    /// `{ a: "$x", b: "$y" }`: the document is made only for a new group.
    Fields(Vec<(Arc<str>, Expr)>),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    pub(super) accumulator: AccumulatorExpr,
    /// What it holds does not depend on what it was given, so that its memory need not be asked for each time.
    pub(super) constant_size: bool,
}

impl Field {
    pub(super) fn new(name: &str, accumulator: AccumulatorExpr) -> Field {
        let constant_size = matches!(accumulator.name, "$sum" | "$avg" | "$count" | "$stdDevPop" | "$stdDevSamp");
        Field { name: name.into(), accumulator, constant_size }
    }

    /// MongoDB's groups have another code than its expressions for one thing.
    pub(super) fn as_in_a_group(&self, error: Error) -> Error {
        match (self.accumulator.name, error.code()) {
            ("$mergeObjects", Code::Location(40400)) => {
                Error::new(Code::Location(5_911_200), "$mergeObjects only supports objects")
            }
            _ => error,
        }
    }
}

/// The evaluated key of one document: one value, or one for each field.
pub(super) type KeyValues<'a> = SmallVec<[Value<'a>; 4]>;

impl Key {
    fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Key> {
        let Value::Document(doc) = spec else { return expr::parse(spec, parser.names).map(Key::One) };
        if doc.is_empty() || doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')) {
            return expr::parse(spec, parser.names).map(Key::One);
        }
        let mut fields = Vec::new();
        for (name, value) in doc.iter() {
            if value.is_number() || matches!(value, Value::Bool(_)) {
                let message = "$group does not support inclusion-style expressions";
                return Err(Error::new(Code::Location(17390), message));
            }
            check_field_name(name.as_str())?;
            fields.push((Arc::from(name.as_str()), expr::parse(&value, parser.names)?));
        }
        Ok(Key::Fields(fields))
    }

    pub(super) fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<KeyValues<'a>> {
        let mut values = KeyValues::new();
        match self {
            Key::One(expr) => values.push(null_if_missing(expr.eval(scope)?)),
            // As in MongoDB, only with several fields is a missing one left out.
            Key::Fields(fields) if fields.len() == 1 => {
                for (_, expr) in fields {
                    values.push(null_if_missing(expr.eval(scope)?));
                }
            }
            Key::Fields(fields) => {
                for (_, expr) in fields {
                    values.push(expr.eval(scope)?);
                }
            }
        }
        Ok(values)
    }

    /// The `_id` of the group whose key that is.
    pub(super) fn to_id(&self, values: KeyValues<'_>) -> Value<'static> {
        match self {
            Key::One(_) => values.into_iter().next().unwrap_or(Value::Null).into_owned(),
            Key::Fields(fields) => {
                let mut writer = DocWriter::new();
                for ((name, _), value) in fields.iter().zip(&values) {
                    writer.append(name, value);
                }
                Value::Document(writer.finish())
            }
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Key::One(expr) => visit(expr),
            Key::Fields(fields) => fields.iter().for_each(|(_, expr)| visit(expr)),
        }
    }
}

pub(super) fn null_if_missing(value: Value<'_>) -> Value<'_> {
    if value.is_missing() { Value::Null } else { value }
}

impl Stage for Group {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(grouping::start(self, input, &run.env))
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = Some(Vec::new());
        let mut add = |expr: &Expr| match (&mut needed, expr.reads()) {
            (Some(needed), Some(paths)) => needed.extend(paths),
            (needed, _) => *needed = None,
        };
        self.key.operands(&mut add);
        self.fields.iter().for_each(|field| field.accumulator.operands(&mut add));
        needed
    }
}
