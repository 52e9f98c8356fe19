//! `$group`: one document for each distinct key, with accumulators over the documents that have it.
//!
//! Groups are found by the order-preserving encoding of their key, in which equal values of different types are the same
//! bytes; the first value seen is the `_id`. A document of a known group costs no allocation here. Nothing is spilled to
//! disk: beyond the memory limit it is an error.

use super::expr::accumulator::{Accumulator, AccumulatorExpr};
use super::expr::{self, Expr, Scope};
use super::rows::drain;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::path::check_field_name;
use crate::value::{Path, Value, key};
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::ops::Range;
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
    key: Key,
    fields: Vec<Field>,
}

impl Group {
    pub(super) fn new(key: Expr, fields: Vec<Field>) -> Group {
        Group { key: Key::One(key), fields }
    }
}

#[derive(Debug)]
enum Key {
    One(Expr),
    /// `{ a: "$x", b: "$y" }`: the document is made only for a new group.
    Fields(Vec<(Arc<str>, Expr)>),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    pub(super) accumulator: AccumulatorExpr,
    /// What it holds does not depend on what it was given, so that its memory need not be asked for each time.
    constant_size: bool,
}

impl Field {
    pub(super) fn new(name: &str, accumulator: AccumulatorExpr) -> Field {
        let constant_size = matches!(accumulator.name, "$sum" | "$avg" | "$count" | "$stdDevPop" | "$stdDevSamp");
        Field { name: name.into(), accumulator, constant_size }
    }

    /// MongoDB's groups have another code than its expressions for one thing.
    fn as_in_a_group(&self, error: Error) -> Error {
        match (self.accumulator.name, error.code()) {
            ("$mergeObjects", Code::Location(40400)) => {
                Error::new(Code::Location(5_911_200), "$mergeObjects only supports objects")
            }
            _ => error,
        }
    }
}

/// The evaluated key of one document: one value, or one for each field.
type KeyValues<'a> = SmallVec<[Value<'a>; 4]>;

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

    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<KeyValues<'a>> {
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
    fn to_id(&self, values: KeyValues<'_>) -> Value<'static> {
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
        let env = run.env.clone();
        Ok(Box::new(Grouping { stage: self, input: Some(input), env, groups: Groups::default(), next: 0 }))
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

struct Grouping {
    stage: Arc<Group>,
    input: Option<Rows>,
    env: Env,
    groups: Groups,
    next: usize,
}

impl Stream for Grouping {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            let (stage, groups, env) = (&self.stage, &mut self.groups, &self.env);
            drain(&mut *input, env, |doc| groups.add(stage, &doc, env))?;
        }
        let at = self.next;
        self.next += 1;
        self.groups.finish(&self.stage, at)
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

#[derive(Default)]
struct Groups {
    /// Places in `groups`, by the hash of their keys.
    table: HashTable<usize>,
    hasher: foldhash::fast::RandomState,
    /// All encoded keys, one behind the other.
    keys: Vec<u8>,
    groups: Vec<GroupEntry>,
    /// The states of all groups, as many for each as there are fields.
    states: Vec<Box<dyn Accumulator>>,
    /// The key of the document at hand; kept for its storage.
    buffer: Vec<u8>,
    /// What identifiers and states hold.
    bytes: usize,
}

struct GroupEntry {
    key: Range<usize>,
    id: Value<'static>,
}

impl Groups {
    fn add(&mut self, stage: &Group, doc: &Doc<'_>, env: &Env) -> Result<()> {
        let mut scope = Scope::new(doc.borrow(), env);
        let values = stage.key.eval(&mut scope)?;
        self.buffer.clear();
        for value in &values {
            key::encode(value, &mut self.buffer);
        }
        let at = self.find_or_start(stage, values, env)?;
        let first = at * stage.fields.len();
        let states = self.states.get_mut(first..first + stage.fields.len()).unwrap_or_default();
        for (field, state) in stage.fields.iter().zip(states) {
            if field.constant_size {
                field.accumulator.add(&mut **state, &mut scope)?;
                continue;
            }
            let before = state.memory();
            field.accumulator.add(&mut **state, &mut scope).map_err(|error| field.as_in_a_group(error))?;
            self.bytes = (self.bytes + state.memory()).saturating_sub(before);
        }
        self.check_memory(env.memory_limit)
    }

    /// The group of the key in `buffer`.
    fn find_or_start(&mut self, stage: &Group, values: KeyValues<'_>, env: &Env) -> Result<usize> {
        let Groups { table, hasher, keys, groups, buffer, .. } = self;
        let hash = hasher.hash_one(buffer.as_slice());
        let key_of = |at: &usize| groups.get(*at).and_then(|group| keys.get(group.key.clone()));
        if let Some(at) = table.find(hash, |at| key_of(at) == Some(buffer.as_slice())) {
            return Ok(*at);
        }
        let (at, id) = (groups.len(), stage.key.to_id(values));
        let mut held = size_of::<GroupEntry>() + id_bytes(&id);
        for field in &stage.fields {
            let state = field.accumulator.start(&id, env)?;
            held += size_of::<Box<dyn Accumulator>>() + state.memory();
            self.states.push(state);
        }
        table.insert_unique(hash, at, |at| {
            hasher.hash_one(groups.get(*at).and_then(|group| keys.get(group.key.clone())).unwrap_or_default())
        });
        groups.push(GroupEntry { key: keys.len()..keys.len() + buffer.len(), id });
        keys.extend_from_slice(buffer);
        self.bytes += held;
        Ok(at)
    }

    fn check_memory(&self, limit: usize) -> Result<()> {
        if self.bytes + self.keys.len() <= limit {
            return Ok(());
        }
        Err(Error::new(
            Code::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!(
                "Exceeded memory limit for $group, but didn't allow external sort. \
                 The embedded store does not group on disk; the limit is {limit} bytes"
            ),
        ))
    }

    /// The document of a group; nothing behind the last.
    fn finish(&mut self, stage: &Group, at: usize) -> Result<Option<Doc<'static>>> {
        let Some(group) = self.groups.get(at) else { return Ok(None) };
        let mut writer = DocWriter::new();
        writer.append("_id", &group.id);
        let first = at * stage.fields.len();
        let states = self.states.get_mut(first..first + stage.fields.len()).unwrap_or_default();
        for (field, state) in stage.fields.iter().zip(states) {
            writer.append(&field.name, &null_if_missing(state.finish()?));
        }
        Ok(Some(writer.finish()))
    }
}

fn id_bytes(id: &Value<'_>) -> usize {
    match id {
        Value::String(text) => text.as_bytes().len(),
        Value::Document(doc) => doc.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::Binary { bytes, .. } => bytes.as_slice().len(),
        _ => 0,
    }
}
