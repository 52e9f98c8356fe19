//! Stages that read a collection whose documents have several versions beside their own: `$lookup` and `$unionWith`, inside `$facet`
//! and in pipelines of their own too. What they read is brought to the newest version in front of everything else.

use crate::active::Lenses;
use crate::execute::read::versioned::variables;
use crate::mql::{call, call_with, cond, field, list, object, with};
use crate::rule::Lens;
use document::op::{Aggregate, Context, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// The read with what it joins in the newest version; the same read if it joins nothing of the kind.
pub(super) fn rewritten(lenses: &Lenses, op: ReadOp, context: &Context) -> Result<ReadOp> {
    joined(lenses, None, op, context)
}

/// The read with what it joins as clients of a version see it.
pub(super) fn seen(lenses: &Lenses, version: i32, op: ReadOp, context: &Context) -> Result<ReadOp> {
    joined(lenses, Some(version), op, context)
}

fn joined(lenses: &Lenses, version: Option<i32>, op: ReadOp, context: &Context) -> Result<ReadOp> {
    let ReadOp::Aggregate(aggregate) = op else { return Ok(op) };
    let joins = Joins { lenses, version, db: &aggregate.ns.db };
    let rewritten = match &aggregate.pipeline.source {
        Some(stages) => joins.stages(stages)?,
        None => None,
    };
    let Some(stages) = rewritten else { return Ok(ReadOp::Aggregate(aggregate)) };
    let pipeline = Pipeline::parse(&stages, &mut variables(context)?)?;
    Ok(ReadOp::Aggregate(Aggregate { pipeline, ..aggregate }))
}

struct Joins<'l> {
    lenses: &'l Lenses,
    /// Which version is seen; `None`: the newest, of what is stored.
    version: Option<i32>,
    db: &'l str,
}

impl Joins<'_> {
    /// The stages rewritten; `None` if they say the same.
    fn stages(&self, stages: &Array<'_>) -> Result<Option<Array<'static>>> {
        let mut is_changed = false;
        let mut all = Vec::new();
        for stage in stages.iter() {
            match self.stage(&stage)? {
                Some(rewritten) => {
                    is_changed = true;
                    all.push(rewritten);
                }
                None => all.push(stage.into_owned()),
            }
        }
        Ok(is_changed.then(|| all.into_iter().collect()))
    }

    fn stage(&self, stage: &Value<'_>) -> Result<Option<Value<'static>>> {
        let Value::Document(stage) = stage else { return Ok(None) };
        let Some((name, spec)) = stage.iter().next() else { return Ok(None) };
        let rewritten = match (name.as_str(), &spec) {
            ("$lookup", Value::Document(spec)) => self.lookup(spec)?.map(Value::Document),
            ("$unionWith", spec) => self.union_with(spec)?,
            ("$graphLookup", Value::Document(spec)) => match self.lens(spec.get("from"))? {
                Some(_) => {
                    let message = "$graphLookup does not go through documents of several versions";
                    return Err(Error::new(Code::NotImplemented, message)
                        .with_hint("use $lookup, or wait until the collection is migrated and drop its versions"));
                }
                None => None,
            },
            ("$facet", Value::Document(facets)) => self.facets(facets)?.map(Value::Document),
            _ => None,
        };
        Ok(rewritten.map(|spec| call(name.as_str(), spec)))
    }

    fn lens(&self, name: Option<Value<'_>>) -> Result<Option<&Arc<Lens>>> {
        let Some(ns) = name.as_ref().and_then(Value::as_str).map(|name| Namespace::new(self.db, name)) else {
            return Ok(None);
        };
        match self.version {
            Some(version) => self.lenses.at(&ns, version),
            None => Ok(self.lenses.of(&ns)),
        }
    }

    /// What stands in front of a pipeline over that collection.
    fn view(&self, lens: &Lens) -> Array<'static> {
        self.version.map_or_else(|| lens.view().clone(), |version| lens.seen_stages(version))
    }

    fn changes(&self, lens: &Lens, path: &Path) -> bool {
        self.version.map_or_else(|| lens.changes(path), |version| lens.changes_since(version, path))
    }

    /// A pipeline over another collection; `None` if it says the same.
    fn inner(&self, lens: Option<&Arc<Lens>>, stages: &Array<'_>) -> Result<Option<Array<'static>>> {
        let rewritten = self.stages(stages)?;
        let Some(lens) = lens else { return Ok(rewritten) };
        let rest = rewritten.unwrap_or_else(|| stages.clone().into_owned());
        Ok(Some(self.view(lens).iter().chain(rest.iter()).collect()))
    }

    fn lookup(&self, spec: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let lens = self.lens(spec.get("from"))?;
        let own = match spec.get("pipeline") {
            Some(Value::Array(stages)) => stages.into_owned(),
            _ => Array::empty(),
        };
        let Some(mut inner) = self.inner(lens, &own)? else { return Ok(None) };
        let (local, foreign) = (spec.get("localField"), spec.get("foreignField"));
        let keys = local.as_ref().and_then(Value::as_str).zip(foreign.as_ref().and_then(Value::as_str));
        // Equality with a path that versions change is looked at when documents are brought up.
        let moved = keys.filter(|(_, foreign)| lens.is_some_and(|lens| self.changes(lens, &Path::new(foreign))));
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 512);
        for (name, value) in spec.iter() {
            match name.as_str() {
                "pipeline" | "let" => {}
                "localField" | "foreignField" if moved.is_some() => {}
                _ => {
                    writer.append(name.as_str(), &value);
                }
            }
        }
        let mut variables: Vec<(String, Value<'static>)> = Vec::new();
        if let Some(Value::Document(own)) = spec.get("let") {
            variables.extend(own.iter().map(|(name, value)| (name.to_string(), value.into_owned())));
        }
        if let (Some((local, foreign)), Some(lens)) = (moved, lens) {
            variables.push((LOCAL.to_owned(), values(&field(local))));
            let equal = call("$match", call("$expr", meets(foreign)));
            let up = self.view(lens).count();
            inner = inner.iter().take(up).chain([equal]).chain(inner.iter().skip(up)).collect();
        }
        if !variables.is_empty() {
            writer.append("let", &object(variables.iter().map(|(name, value)| (name.as_str(), value.clone()))));
        }
        writer.append("pipeline", &Value::Array(inner));
        Ok(Some(writer.finish()))
    }

    fn union_with(&self, spec: &Value<'_>) -> Result<Option<Value<'static>>> {
        let (coll, own) = match spec {
            Value::Document(spec) => (
                spec.get("coll"),
                match spec.get("pipeline") {
                    Some(Value::Array(stages)) => stages.into_owned(),
                    _ => Array::empty(),
                },
            ),
            name => (Some(name.clone()), Array::empty()),
        };
        let inner = self.inner(self.lens(coll.clone())?, &own)?;
        let coll = coll.unwrap_or(Value::Missing);
        Ok(inner.map(|inner| object([("coll", coll), ("pipeline", Value::Array(inner))])))
    }

    fn facets(&self, facets: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let mut writer = DocWriter::with_capacity(facets.as_bytes().len() + 256);
        let mut is_changed = false;
        for (name, stages) in facets.iter() {
            let rewritten = match &stages {
                Value::Array(inner) => self.stages(inner)?,
                _ => None,
            };
            is_changed |= rewritten.is_some();
            writer.append(name.as_str(), &rewritten.map_or(stages, Value::Array));
        }
        Ok(is_changed.then(|| writer.finish()))
    }
}

/// The variable that holds the values of `localField`.
const LOCAL: &str = "pleach_local";

/// What `$lookup` compares: the items of an array and the array itself, or the one value; nothing is null.
fn values(path: &Value<'static>) -> Value<'static> {
    let found = || Value::from("$$found");
    let own = call_with("$ifNull", [path.clone(), Value::Null]);
    let all = call_with("$concatArrays", [found(), list([found()])]);
    with([("found", own)], cond(call("$isArray", found()), all, list([found()])))
}

/// Whether the foreign path has a value among the local ones.
fn meets(foreign: &str) -> Value<'static> {
    let common = call_with("$setIntersection", [values(&field(foreign)), Value::string(format!("$${LOCAL}"))]);
    call_with("$gt", [call("$size", common), Value::Int32(0)])
}
