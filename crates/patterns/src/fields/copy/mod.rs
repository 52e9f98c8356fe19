//! A copy of some fields of the one linked source document, kept in the host: plain, per element of an array of
//! sub-documents (`items.product` by `items.productId`), or an array of copies for an array of ids (`each: true`).
//!
//! A copy exists exactly while its source does (a source that has none of the fields gives `{}`); an id without a source
//! has no copy, and null at its place in an array of copies. [`sites`] finds where in a host references and copies are,
//! [`fill`] what must change there, [`spread`] is one statement for all hosts of a source, [`expected`] the definition.

mod expected;
mod field;
mod fill;
pub(crate) mod registered;
mod sites;
mod spread;
#[cfg(test)]
mod tests;

use crate::fields::excerpt::Excerpt;
use crate::mql::{call, call_with, cond, document, field, object};
use crate::rule::field::HostStages;
use crate::rule::{Delta, Effect, HostField, KeyPath, Link, LinkKey, Reads, WhenChanged, WhenDeleted, key};
use document::filter::Filter;
use document::op::{Capture, Find};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::path::Part;
use document::value::{Path, order};
use document::{Array, Doc, Error, Result, Value};
use std::sync::{Arc, OnceLock};

/// An extended reference.
#[derive(Debug)]
pub struct CopyField {
    target: HostField,
    link: Link,
    /// What the reference equals in a source: its `_id`, or what `match` says.
    matched: KeyPath,
    /// What a copy holds of its source.
    excerpt: Excerpt,
    /// What the reference's path and the copy's path have in common: arrays there hold one copy per element.
    shared: Vec<Part>,
    /// The rest of the reference's path …
    reference: Vec<Part>,
    /// … and of the copy's.
    place: Vec<Part>,
    /// What comes behind the `$match` on keys in [`Field::query`], compiled when it is first asked for: a declaration of thousands
    /// of fields is checked without it.
    copying: OnceLock<Pipeline>,
    reads: Reads,
    /// The name of the copy in pipelines.
    variable: String,
    stages: HostStages,
}

impl CopyField {
    pub fn new(target: HostField, link: Link, fields: Vec<(Arc<str>, Path)>) -> Result<CopyField> {
        let LinkKey::Path(matched) = link.foreign.clone() else {
            return Err(Error::bad_value("a copy is found by a field of its source, not by an expression"));
        };
        let common = link.shared_with(&target.path);
        let (shared, reference) = link.local.path.parts.split_at(common);
        let place = target.path.parts.get(common..).unwrap_or_default();
        let mut sources = vec![matched.path.clone()];
        let excerpt = Excerpt::new(fields);
        sources.extend(excerpt.paths().cloned());
        let variable = crate::fields::variable(&target.path);
        let copy = format!("$${variable}");
        let is_gone = call_with("$eq", [Value::from(&*copy), Value::Null]);
        let stages = match target.path.parts.split_first() {
            Some((first, rest @ [_, ..])) => {
                let (at, copy) = (format!("${}", first.name), Value::string(copy));
                let set = cond(is_gone, spread::take(&at, rest), spread::put_where_free(&at, rest, &copy));
                HostStages::whole(first.name.to_string(), set)
            }
            _ => {
                let set = cond(is_gone, Value::from("$$REMOVE"), Value::from(&*copy));
                HostStages::new(vec![(target.path.dotted(), set)], None)
            }
        };
        Ok(CopyField {
            shared: shared.to_vec(),
            reference: reference.to_vec(),
            place: place.to_vec(),
            copying: OnceLock::new(),
            reads: Reads { source: Capture::Paths(sources), host: vec![link.local.path.clone()] },
            stages,
            variable,
            excerpt,
            target,
            link,
            matched,
        })
    }

    fn copying(&self) -> Result<Pipeline> {
        if let Some(compiled) = self.copying.get() {
            return Ok(compiled.clone());
        }
        let stages: Array<'static> = std::iter::once(self.copying_stage()).collect();
        let compiled = Pipeline::parse(&stages, &mut Names::new())?;
        Ok(self.copying.get_or_init(|| compiled).clone())
    }

    /// Whether a copy stays as it was made.
    fn is_frozen(&self) -> bool {
        self.link.when_changed == WhenChanged::Keep
    }

    /// Whether a host holds one copy, never in an array.
    fn is_plain(&self) -> bool {
        self.shared.is_empty() && !self.link.local.each
    }

    /// Whether a copy stays when its source has gone.
    fn outlives(&self) -> bool {
        self.link.when_deleted == WhenDeleted::Keep
    }

    /// The value that hosts refer to a source by: its `_id`, or what `match` says.
    fn source_key(&self, source: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(source, &self.matched).values.into_iter().next()
    }

    /// The copy that a source gives.
    fn copy(&self, source: &Doc<'_>) -> Doc<'static> {
        self.excerpt.of(source)
    }

    /// What becomes of the hosts of a source that was deleted, or no longer has its key.
    fn vanished(&self) -> Effect {
        match self.link.when_deleted {
            WhenDeleted::Keep => Effect::Nothing,
            WhenDeleted::Unset => Effect::Update(Delta::Unset),
            WhenDeleted::Reject => Effect::Refuse,
            WhenDeleted::Cascade => Effect::Delete,
        }
    }

    /// The shortest way to documents by their `_id`, whose copies are then made here; `None` if that is not what hosts refer to.
    fn by_id(&self, keys: &[Value<'_>]) -> Result<Option<Find>> {
        let path = &self.matched.path;
        if path.parts.len() != 1 || path.first() != "_id" {
            return Ok(None);
        }
        let filter = match keys {
            [one @ (Value::Document(_) | Value::Regex { .. })] => Filter::equality("_id", one),
            [one] => Filter::parse(&document([("_id", one.borrow())]), &mut Names::new())?,
            many => Filter::among("_id", many.iter().map(|key| key.clone().into_owned()).collect()),
        };
        let mut names = vec!["_id"];
        for path in self.excerpt.paths() {
            if !names.contains(&path.first()) {
                names.push(path.first());
            }
        }
        let shown = document(names.into_iter().map(|name| (name, Value::Int32(1))));
        Ok(Some(Find {
            projection: Some(Arc::new(Projection::parse_find(&shown, &filter, &mut Names::new())?)),
            limit: Some(keys.len() as u64),
            ..Find::matching(self.link.source.clone(), filter)
        }))
    }

    /// Whether a host refers as before and has the copies that it had.
    fn is_untouched(&self, host: &Doc<'_>, before: &Doc<'_>, references: &key::Values) -> bool {
        let at = |doc: &Doc<'_>, path: &Path| document::value::expand::walk(doc, &path.parts).0.into_owned();
        let first = |doc: &Doc<'_>| doc.get(self.target.path.first()).map_or(Value::Missing, Value::into_owned);
        let earlier = self.references(before).unwrap_or_default();
        // Each id is listed once there, but has a copy at each of its places.
        let same_places = |path: &Path| at(before, path) == at(host, path);
        self.list_of_ids().is_none_or(same_places)
            && earlier.len() == references.len()
            && earlier.iter().zip(references).all(|(a, b)| order::equal(a, b))
            && at(before, &self.target.path) == at(host, &self.target.path)
            && first(before) == first(host)
    }

    /// Makes `{ _id: key, copy }` of a source.
    fn copying_stage(&self) -> Value<'static> {
        let shown = object([("_id", field(&self.matched.path.dotted())), ("copy", self.excerpt.expression())]);
        call("$project", shown)
    }
}
