//! A copy of some fields of the one linked source document, kept in the host: plain, per element of an array of
//! sub-documents (`items.product` by `items.productId`), or an array of copies for an array of ids (`each: true`).
//!
//! A copy exists exactly while its source does (a source that has none of the fields gives `{}`); an id without a source
//! has no copy, and null at its place in an array of copies. [`sites`] finds where in a host references and copies are,
//! [`fill`] what must change there, [`spread`] is one statement for all hosts of a source, [`expected`] the definition.

mod expected;
mod fill;
mod sites;
mod spread;
#[cfg(test)]
mod tests;

pub use fill::{Copies, Placements};
pub use spread::Spread;

use crate::link::{Query, key};
use crate::mql::{call, document, field, object};
use crate::rule::{Fold, Link, Rule, Upkeep, WhenChanged, WhenDeleted};
use document::filter::Filter;
use document::op::{Capture, Find, Namespace};
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::project::Projection;
use document::value::Path;
use document::value::path::Part;
use document::{Array, Doc, DocWriter, Error, Result, Value};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// An extended reference, compiled.
#[derive(Debug)]
pub struct CopyProgram {
    rule: Arc<Rule>,
    link: Link,
    fields: Vec<(Arc<str>, Path)>,
    /// What the reference's path and the copy's path have in common: arrays there hold one copy per element.
    shared: Vec<Part>,
    /// The rest of the reference's path …
    reference: Vec<Part>,
    /// … and of the copy's.
    place: Vec<Part>,
    /// What comes behind the `$match` on keys in [`CopyProgram::sources`].
    copying: Pipeline,
    watched_source: Capture,
    watched_host: Vec<Path>,
}

/// What a changed source document means for the hosts that refer to it.
#[derive(Clone, Debug)]
pub enum SourceChange {
    /// Inserted, or given this key: dangling references are filled (R28).
    Appeared { key: Value<'static>, copy: Doc<'static> },
    /// A copied field changed; never for a rule that says `when_changed: keep`.
    Changed { key: Value<'static>, copy: Doc<'static> },
    /// Deleted, or no longer with this key: `when_deleted` applies.
    Vanished { key: Value<'static> },
}

impl CopyProgram {
    pub fn new(rule: &Arc<Rule>) -> Result<CopyProgram> {
        let Upkeep::Link(link) = &rule.upkeep else { return Err(no_copy(rule)) };
        let Fold::One { fields } = &link.fold else { return Err(no_copy(rule)) };
        let (by, at) = (&link.local.path.parts, &rule.field.parts);
        let most = by.len().min(at.len()).saturating_sub(1);
        let common = by.iter().zip(at).take(most).take_while(|(by, at)| by.name == at.name).count();
        let (shared, reference) = by.split_at(common);
        let place = at.get(common..).unwrap_or_default();
        let mut sources = vec![link.foreign.path.clone()];
        sources.extend(fields.iter().map(|(_, path)| path.clone()));
        let copying: Array<'static> = std::iter::once(copying_stage(link, fields)).collect();
        Ok(CopyProgram {
            fields: fields.clone(),
            shared: shared.to_vec(),
            reference: reference.to_vec(),
            place: place.to_vec(),
            copying: Pipeline::parse(&copying, &mut Names::new())?,
            watched_source: Capture::Paths(sources),
            watched_host: vec![link.local.path.clone(), rule.field.clone()],
            rule: Arc::clone(rule),
            link: link.clone(),
        })
    }

    pub fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    pub fn name(&self) -> &str {
        &self.rule.name
    }

    pub fn watched_source(&self) -> &Capture {
        &self.watched_source
    }

    pub fn watched_host(&self) -> &[Path] {
        &self.watched_host
    }

    /// Whether a copy stays as it was made.
    pub fn is_frozen(&self) -> bool {
        self.link.when_changed == WhenChanged::Keep
    }

    /// Whether a host holds one copy, never in an array.
    pub fn is_plain(&self) -> bool {
        self.shared.is_empty() && !self.link.local.each
    }

    /// The stage that makes `{ _id: key, copy }` of a source.
    pub fn stage(&self) -> Value<'static> {
        copying_stage(&self.link, &self.fields)
    }

    /// Whether a copy stays when its source has gone.
    fn outlives(&self) -> bool {
        self.link.when_deleted == WhenDeleted::Keep
    }

    /// The value that hosts refer to a source by: its `_id`, or what `match` says.
    pub fn source_key(&self, source: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(source, &self.link.foreign).values.into_iter().next()
    }

    /// The copy that a source gives.
    pub fn copy(&self, source: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::new();
        for (name, path) in &self.fields {
            writer.append(name, &field_of_document(source, &path.parts));
        }
        writer.finish()
    }

    pub fn source_change(&self, before: Option<&Doc<'_>>, after: Option<&Doc<'_>>) -> SmallVec<[SourceChange; 2]> {
        let old = before.and_then(|doc| Some((self.source_key(doc)?, doc)));
        let new = after.and_then(|doc| Some((self.source_key(doc)?, self.copy(doc))));
        match (old, new) {
            (None, None) => SmallVec::new(),
            (None, Some((key, copy))) => smallvec![SourceChange::Appeared { key, copy }],
            (Some((key, _)), None) => smallvec![SourceChange::Vanished { key }],
            (Some((old_key, _)), Some((key, copy))) if !document::value::order::equal(&old_key, &key) => {
                smallvec![SourceChange::Vanished { key: old_key }, SourceChange::Appeared { key, copy }]
            }
            (Some((_, before)), Some((key, copy))) => match self.is_frozen() || self.copy(before) == copy {
                true => SmallVec::new(),
                false => smallvec![SourceChange::Changed { key, copy }],
            },
        }
    }

    /// Reads the copies of some keys: rows for [`Copies::add_row`].
    pub fn sources(&self, keys: &[Value<'_>]) -> Result<Query> {
        let head: Array<'static> = std::iter::once(key::any_of(&self.link.foreign.path, keys)).collect();
        let head = Pipeline::parse(&head, &mut Names::new())?;
        Ok(Query { ns: self.link.source.clone(), pipeline: head.then(self.copying.clone()) })
    }

    /// The sources of some keys themselves: [`Copies::add_source`] takes the copies of them here. Where nothing is sent over a
    /// network this is cheaper than [`CopyProgram::sources`].
    pub fn whole_sources(&self, keys: &[Value<'static>]) -> (Namespace, Filter) {
        let path = self.link.foreign.path.dotted();
        let filter = match keys {
            [one] => Filter::equality(&path, one),
            all => Filter::among(&path, all.to_vec()),
        };
        (self.link.source.clone(), filter)
    }

    /// The same as the shortest way to documents by their `_id`, whose copies are then made here; nothing if that is not what hosts
    /// refer to.
    pub fn source_documents(&self, keys: &[Value<'_>]) -> Result<Option<Find>> {
        let path = &self.link.foreign.path;
        if path.parts.len() != 1 || path.first() != "_id" {
            return Ok(None);
        }
        let filter = match keys {
            [one @ (Value::Document(_) | Value::Regex { .. })] => Filter::equality("_id", one),
            [one] => Filter::parse(&document([("_id", one.borrow())]), &mut Names::new())?,
            many => {
                let ids = many.iter().map(|key| key.clone().into_owned()).collect();
                Filter::among("_id", ids)
            }
        };
        let mut names = vec!["_id"];
        for (_, path) in &self.fields {
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

    /// The hosts that refer to a key.
    pub fn hosts(&self, key: &Value<'_>) -> Filter {
        Filter::equality(&self.link.local.path.dotted(), key)
    }
}

fn copying_stage(link: &Link, fields: &[(Arc<str>, Path)]) -> Value<'static> {
    let shown = object([("_id", field(&link.foreign.path.dotted())), ("copy", copy_expression(fields))]);
    call("$project", shown)
}

/// The copy as an expression over the source. As an operator: a plain document would be a nested projection.
fn copy_expression(fields: &[(Arc<str>, Path)]) -> Value<'static> {
    let copied = fields.iter().map(|(name, path)| (&**name, field(&path.dotted())));
    call("$mergeObjects", Value::Document(document(copied)))
}

fn no_copy(rule: &Rule) -> Error {
    Error::bad_value(format!("rule {} keeps no copy", rule.name))
}
