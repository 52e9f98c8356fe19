//! Stages of an older client that read a collection beside their own: what they join is of the client's version too.

use crate::active::Lenses;
use crate::execute::read::facets;
use crate::execute::read::versioned::variables;
use crate::execute::read::versioned_joins::{LOCAL, meets, values};
use crate::mql::{call, field, object};
use crate::rule::Lens;
use document::op::{Aggregate, Context, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// The read with what it joins as clients of the version see it; the same read if it joins nothing of the kind.
pub(super) fn rewritten(lenses: &Lenses, version: i32, op: ReadOp, context: &Context) -> Result<ReadOp> {
    let ReadOp::Aggregate(aggregate) = op else { return Ok(op) };
    let joins = SeenJoins { lenses, version, db: &aggregate.ns.db };
    let rewritten = match &aggregate.pipeline.source {
        Some(stages) => joins.stages(stages)?,
        None => None,
    };
    let Some(stages) = rewritten else { return Ok(ReadOp::Aggregate(aggregate)) };
    let pipeline = Pipeline::parse(&stages, &mut variables(context)?)?;
    Ok(ReadOp::Aggregate(Aggregate { pipeline, ..aggregate }))
}

struct SeenJoins<'l> {
    lenses: &'l Lenses,
    version: i32,
    db: &'l str,
}

impl SeenJoins<'_> {
    /// The stages rewritten; `None` if they say the same.
    fn stages(&self, stages: &Array<'_>) -> Result<Option<Array<'static>>> {
        let mut is_changed = false;
        let mut all = Vec::new();
        for stage in stages.iter() {
            let rewritten = self.stage(&stage)?;
            is_changed |= rewritten.is_some();
            all.push(rewritten.unwrap_or_else(|| stage.into_owned()));
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
                    let message = "$graphLookup does not follow references through documents of an older version";
                    let hint = format!("use $lookup, or ask '{}' for newest documents", self.db);
                    return Err(Error::new(Code::NotImplemented, message).with_hint(hint));
                }
                None => None,
            },
            ("$facet", Value::Document(facets)) => {
                facets::rewritten(facets, |stages| self.stages(stages))?.map(Value::Document)
            }
            _ => None,
        };
        Ok(rewritten.map(|spec| call(name.as_str(), spec)))
    }

    fn lens(&self, name: Option<Value<'_>>) -> Result<Option<&Arc<Lens>>> {
        match name.as_ref().and_then(Value::as_str) {
            Some(name) => self.lenses.at(&Namespace::new(self.db, name), self.version),
            None => Ok(None),
        }
    }

    /// What a pipeline over another collection begins with, and what it goes on with; `None` if it says the same.
    fn inner(&self, lens: Option<&Arc<Lens>>, stages: Option<Value<'_>>) -> Result<Option<Inner>> {
        let own = match stages {
            Some(Value::Array(stages)) => stages.into_owned(),
            _ => Array::empty(),
        };
        let rewritten = self.stages(&own)?;
        if lens.is_none() && rewritten.is_none() {
            return Ok(None);
        }
        let front = lens.map_or_else(Array::empty, |lens| lens.seen_stages(self.version));
        Ok(Some(Inner { front, rest: rewritten.unwrap_or(own) }))
    }

    fn lookup(&self, spec: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let lens = self.lens(spec.get("from"))?;
        let Some(inner) = self.inner(lens, spec.get("pipeline"))? else { return Ok(None) };
        let (local, foreign) = (spec.get("localField"), spec.get("foreignField"));
        let keys = local.as_ref().and_then(Value::as_str).zip(foreign.as_ref().and_then(Value::as_str));
        // Equality with a path that versions change is looked at behind the steps back.
        let is_moved = |foreign: &str| lens.is_some_and(|lens| lens.changes_since(self.version, &Path::new(foreign)));
        let moved = keys.filter(|(_, foreign)| is_moved(foreign));
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 512);
        for (name, value) in spec.iter() {
            match name.as_str() {
                "pipeline" | "let" => {}
                "localField" | "foreignField" if moved.is_some() => {}
                name => _ = writer.append(name, &value),
            }
        }
        let mut variables: Vec<(String, Value<'static>)> = Vec::new();
        if let Some(Value::Document(own)) = spec.get("let") {
            variables.extend(own.iter().map(|(name, value)| (name.to_string(), value.into_owned())));
        }
        let equal = moved.map(|(local, foreign)| {
            variables.push((LOCAL.to_owned(), values(&field(local))));
            call("$match", call("$expr", meets(foreign)))
        });
        if !variables.is_empty() {
            writer.append("let", &object(variables.iter().map(|(name, value)| (name.as_str(), value.clone()))));
        }
        let stages: Array<'static> = inner.front.iter().chain(equal).chain(inner.rest.iter()).collect();
        writer.append("pipeline", &Value::Array(stages));
        Ok(Some(writer.finish()))
    }

    fn union_with(&self, spec: &Value<'_>) -> Result<Option<Value<'static>>> {
        let (coll, own) = match spec {
            Value::Document(spec) => (spec.get("coll"), spec.get("pipeline")),
            name => (Some(name.clone()), None),
        };
        let inner = self.inner(self.lens(coll.clone())?, own)?;
        let coll = coll.unwrap_or(Value::Missing);
        Ok(inner.map(|inner| {
            let stages: Array<'static> = inner.front.iter().chain(inner.rest.iter()).collect();
            object([("coll", coll), ("pipeline", Value::Array(stages))])
        }))
    }
}

/// A pipeline over another collection.
struct Inner {
    front: Array<'static>,
    rest: Array<'static>,
}
