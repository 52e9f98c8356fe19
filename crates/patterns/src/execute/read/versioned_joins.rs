//! Stages that read a collection whose documents have several versions beside their own: `$lookup`, `$graphLookup` and `$unionWith`, inside `$facet`
//! and in pipelines of their own too. What they read is brought to the newest version in front of everything else.

use crate::active::Lenses;
use crate::active::known_views::ClientViews;
use crate::execute::read::facets;
use crate::execute::read::versioned::variables;
use crate::execute::read::{newest_documents, versioned_views};
use crate::mql::{call, call_with, cond, field, list, object, with};
use crate::rule::Lens;
use document::backend::Facts;
use document::filter::Filter;
use document::op::{Aggregate, Context, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// The read with what it joins in the newest version; the same read if it joins nothing of the kind.
pub(super) fn rewritten(
    lenses: &Lenses,
    views: &ClientViews,
    op: ReadOp,
    context: &Context,
    facts: Facts,
) -> Result<ReadOp> {
    let ReadOp::Aggregate(aggregate) = op else { return Ok(op) };
    let joins = Joins { lenses, views, db: &aggregate.ns.db, runs_our_code: facts.runs_our_code };
    let rewritten = match &aggregate.pipeline.source {
        Some(stages) => joins.stages(stages)?,
        None => None,
    };
    let Some(stages) = rewritten else { return Ok(ReadOp::Aggregate(aggregate)) };
    let mut names = variables(context)?;
    for (collection, lens) in lenses.in_database(&aggregate.ns.db).filter(|_| facts.runs_our_code) {
        names.read_through(collection, newest_documents::stage(lens));
    }
    let pipeline = Pipeline::parse(&stages, &mut names)?;
    Ok(ReadOp::Aggregate(Aggregate { pipeline, ..aggregate }))
}

struct Joins<'l> {
    lenses: &'l Lenses,
    views: &'l ClientViews,
    db: &'l str,
    runs_our_code: bool,
}

impl Joins<'_> {
    /// The stages rewritten; `None` if they say the same.
    fn stages(&self, stages: &Array<'_>) -> Result<Option<Array<'static>>> {
        let mut is_changed = false;
        let mut all = Vec::new();
        for stage in stages.iter() {
            is_changed |= self.stage(&stage, &mut all)?;
        }
        Ok(is_changed.then(|| all.into_iter().collect()))
    }

    /// Adds what the stage becomes; returns whether that is something else.
    fn stage(&self, stage: &Value<'_>, all: &mut Vec<Value<'static>>) -> Result<bool> {
        let Value::Document(fields) = stage else { return Ok(false) };
        let Some((name, spec)) = fields.iter().next() else { return Ok(false) };
        let rewritten = match (name.as_str(), &spec) {
            ("$lookup", Value::Document(spec)) => self.lookup(spec)?.map(Value::Document),
            ("$unionWith", spec) => self.union_with(spec)?,
            ("$graphLookup", Value::Document(spec)) if self.is_view(spec.get("from")) => {
                let message = "$graphLookup does not follow references through a view of documents of several versions";
                let hint = "name the collection beneath the view, and use restrictSearchWithMatch";
                return Err(Error::new(Code::NotImplemented, message).with_hint(hint));
            }
            // Its parsed form reads through the lens: what it says stays.
            ("$graphLookup", Value::Document(spec)) if self.runs_our_code => {
                self.lens(spec.get("from")).map(|_| Value::Document(spec.clone().into_owned()))
            }
            ("$graphLookup", Value::Document(spec)) => match self.lens(spec.get("from")) {
                Some(lens) => {
                    all.extend(graph_lookup(lens, spec)?);
                    return Ok(true);
                }
                None => None,
            },
            ("$facet", Value::Document(facets)) => {
                facets::rewritten(facets, |stages| self.stages(stages))?.map(Value::Document)
            }
            _ => None,
        };
        let is_changed = rewritten.is_some();
        all.push(rewritten.map_or_else(|| stage.clone().into_owned(), |spec| call(name.as_str(), spec)));
        Ok(is_changed)
    }

    fn lens(&self, name: Option<Value<'_>>) -> Option<&Arc<Lens>> {
        self.lenses.of(&Namespace::new(self.db, name?.as_str()?))
    }

    fn is_view(&self, name: Option<Value<'_>>) -> bool {
        let named = name.and_then(|name| name.as_str().map(|name| Namespace::new(self.db, name)));
        named.is_some_and(|named| versioned_views::beneath(self.lenses, self.views, &named).is_some())
    }

    /// What is read for a name: the collection, and the stages that stand in front of everything else. `None` if that is the
    /// collection as it is.
    fn read(&self, name: &Option<Value<'_>>) -> Result<Option<(String, Array<'static>)>> {
        let Some(name) = name.as_ref().and_then(Value::as_str) else { return Ok(None) };
        let named = Namespace::new(self.db, name);
        let beneath = versioned_views::beneath(self.lenses, self.views, &named);
        let (on, own) = beneath.unwrap_or_else(|| (named.clone(), Array::empty()));
        let own = self.stages(&own)?.unwrap_or(own);
        let lens = self.lenses.of(&on);
        let stages: Array<'static> =
            lens.iter().flat_map(|lens| lens.view().iter()).chain(own.iter()).map(Value::into_owned).collect();
        Ok((on != named || lens.is_some()).then(|| (on.collection.to_string(), stages)))
    }

    fn lookup(&self, spec: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let read = self.read(&spec.get("from"))?;
        let own = match spec.get("pipeline") {
            Some(Value::Array(stages)) => stages.into_owned(),
            _ => Array::empty(),
        };
        let rewritten = self.stages(&own)?;
        if read.is_none() && rewritten.is_none() {
            return Ok(None);
        }
        let own = rewritten.unwrap_or(own);
        let (local, foreign) = (spec.get("localField"), spec.get("foreignField"));
        let keys = local.as_ref().and_then(Value::as_str).zip(foreign.as_ref().and_then(Value::as_str));
        // Equality with a path that stages change is looked at behind them.
        let is_view =
            read.as_ref().is_some_and(|(on, _)| spec.get("from").is_some_and(|from| from.as_str() != Some(on)));
        let lens = self.lens(spec.get("from"));
        let moved = keys.filter(|(_, foreign)| is_view || lens.is_some_and(|lens| lens.changes(&Path::new(foreign))));
        let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 512);
        for (name, value) in spec.iter() {
            match (name.as_str(), &read) {
                ("pipeline" | "let", _) => {}
                ("localField" | "foreignField", _) if moved.is_some() => {}
                ("from", Some((on, _))) => {
                    writer.append("from", &Value::from(on.as_str()));
                }
                (name, _) => {
                    writer.append(name, &value);
                }
            }
        }
        let mut variables: Vec<(String, Value<'static>)> = Vec::new();
        if let Some(Value::Document(own)) = spec.get("let") {
            variables.extend(own.iter().map(|(name, value)| (name.to_string(), value.into_owned())));
        }
        let front = read.map(|(_, stages)| stages).unwrap_or_else(Array::empty);
        let equal = moved.map(|(local, foreign)| {
            variables.push((LOCAL.to_owned(), values(&field(local))));
            call("$match", call("$expr", meets(foreign)))
        });
        let inner = front.iter().chain(equal).chain(own.iter()).collect();
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
        let (read, rewritten) = (self.read(&coll)?, self.stages(&own)?);
        if read.is_none() && rewritten.is_none() {
            return Ok(None);
        }
        let own = rewritten.unwrap_or(own);
        let (coll, front) = match read {
            Some((on, stages)) => (Value::string(on), stages),
            None => (coll.map_or(Value::Missing, Value::into_owned), Array::empty()),
        };
        let inner: Array<'static> = front.iter().chain(own.iter()).collect();
        Ok(Some(object([("coll", coll), ("pipeline", Value::Array(inner))])))
    }
}

/// What a real MongoDB gets for a `$graphLookup`: it follows references between stored documents, and what it has found is read
/// again in the newest version. That is the same as long as no version changes what it goes by.
fn graph_lookup(lens: &Lens, spec: &Doc<'_>) -> Result<Vec<Value<'static>>> {
    let text = |name: &str| spec.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let restriction = match spec.get("restrictSearchWithMatch") {
        Some(Value::Document(filter)) => Filter::parse(&filter, &mut Names::new())?.reads(),
        _ => Some(Vec::new()),
    };
    let connects = ["connectFromField", "connectToField"].into_iter().filter_map(text).map(|name| Path::new(&name));
    let goes_by: Option<Vec<Path>> = restriction.map(|paths| paths.into_iter().chain(connects).collect());
    if goes_by.is_none_or(|paths| paths.iter().any(|path| lens.changes(path))) {
        let message = "a real MongoDB follows $graphLookup through stored documents, and in older ones the fields that it goes by are elsewhere";
        return Err(Error::new(Code::NotImplemented, message)
            .with_hint("when `pleach status` counts no older documents any more, drop the versions rule; or follow the references with $lookup"));
    }
    let (Some(from), Some(found)) = (text("from"), text("as")) else {
        return Ok(vec![call("$graphLookup", Value::Document(spec.clone().into_owned()))]);
    };
    let is_found = call_with("$in", [field("_id"), Value::string(format!("$${FOUND}._id"))]);
    let mut again = vec![call("$match", call("$expr", is_found))];
    again.extend(lens.view().iter());
    if let Some(depth) = text("depthField") {
        let is_this = call_with("$eq", [Value::from("$$this._id"), field("_id")]);
        let same = object([("input", Value::string(format!("$${FOUND}"))), ("cond", is_this)]);
        let first = call("$first", call("$filter", same));
        let number = with([("it", first)], Value::string(format!("$$it.{depth}")));
        again.push(call("$set", object([(depth.as_str(), number)])));
    }
    let variables = object([(FOUND, field(&found))]);
    let lookup = object([
        ("from", Value::string(from)),
        ("localField", Value::string(format!("{found}._id"))),
        ("foreignField", Value::from("_id")),
        ("let", variables),
        ("pipeline", list(again)),
        ("as", Value::string(found)),
    ]);
    Ok(vec![call("$graphLookup", Value::Document(spec.clone().into_owned())), call("$lookup", lookup)])
}

/// The variable that holds what `$graphLookup` has found.
const FOUND: &str = "pleach_found";

/// The variable that holds the values of `localField`.
pub(super) const LOCAL: &str = "pleach_local";

/// What `$lookup` compares: the items of an array and the array itself, or the one value; nothing is null.
pub(super) fn values(path: &Value<'static>) -> Value<'static> {
    let found = || Value::from("$$found");
    let own = call_with("$ifNull", [path.clone(), Value::Null]);
    let all = call_with("$concatArrays", [found(), list([found()])]);
    with([("found", own)], cond(call("$isArray", found()), all, list([found()])))
}

/// Whether the foreign path has a value among the local ones.
pub(super) fn meets(foreign: &str) -> Value<'static> {
    let common = call_with("$setIntersection", [values(&field(foreign)), Value::string(format!("$${LOCAL}"))]);
    call_with("$gt", [call("$size", common), Value::Int32(0)])
}
