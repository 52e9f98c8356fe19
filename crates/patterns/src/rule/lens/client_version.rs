//! Documents as clients of an older version see and write them (`shop@1`, SEMANTICS R19, R34): the outer place of the lens.
//!
//! A client of version k sees a newest document through the steps back to k. What it writes goes through the steps up again, and only
//! what differs by its write is taken over: what version k does not show stays as it is.

use super::difference::{Change, merged, of_documents};
use super::{Conversion, Lens, VersionStep, only_where, pipeline_of, steps};
use crate::mql::{call, call_with, cond, field, object};
use crate::rule::lens::steps::ChangedPaths;
use document::filter::Details;
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::Path;
use document::{Array, Doc, DocWriter, Env, Result, Value};
use std::sync::Arc;

/// What a client's write makes of the document that it sees.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'d> {
    pub before: &'d Doc<'static>,
    pub after: &'d Doc<'static>,
    /// Whether it wrote the document as a whole: then what it does not know is not left out on purpose.
    pub whole: bool,
}

impl Lens {
    /// Whether clients of that version see, or write, something else at the path than the newest documents have.
    pub fn changes_since(&self, version: i32, path: &Path) -> bool {
        let changes = |step: &Arc<dyn VersionStep>| match step.changed() {
            ChangedPaths::Everything => true,
            ChangedPaths::Paths(paths) => paths.iter().any(|changed| steps::overlap(changed, path)),
        };
        path.first() == &*self.field || self.from(version).flatten().any(changes)
    }

    /// The stages that show a newest document to clients of a version, in MQL. One whose number is not known passes unchanged.
    pub fn seen_stages(&self, version: i32) -> Array<'static> {
        let number = call_with("$ifNull", [field(&self.field), Value::Int32(1)]);
        let is_newest = call_with("$eq", [number, Value::Int32(self.newest())]);
        let mut stages = Vec::new();
        for step in self.from(version).flatten().collect::<Vec<_>>().into_iter().rev() {
            match step.down() {
                Conversion::Edits(edits) => stages.extend(edits.iter().map(|edits| edits.0.stage(Some(&is_newest)))),
                Conversion::Stages(own) => stages.extend(only_where(&is_newest, own)),
            }
        }
        let number = cond(is_newest, Value::Int32(version), field(&self.field));
        stages.push(call("$set", object([(&*self.field, number)])));
        stages.into_iter().collect()
    }

    /// The newest document as clients of a version see it.
    pub fn seen(&self, newest: &Doc<'static>, version: i32, env: &Env) -> Result<Doc<'static>> {
        Ok(self.down(newest, version, env)?.unwrap_or_else(|| newest.clone()))
    }

    /// A whole document that a client of a version writes, in the newest one. Its own number counts, if it has one.
    pub fn brought(&self, doc: &Doc<'static>, version: i32, env: &Env) -> Result<Doc<'static>> {
        let from = match doc.get(&self.field) {
            None | Some(Value::Null | Value::Missing) => version,
            Some(_) => match self.version_of(doc) {
                Some(own) => own,
                None => return Ok(doc.clone()),
            },
        };
        match pipeline_of(&self.ups, from) {
            Some(up) => up.transform(doc, env),
            None => Ok(self.stamped(doc)),
        }
    }

    /// The newest document after a client of a version made `after` of what it saw as `before`.
    pub fn rewritten(&self, newest: &Doc<'static>, seen: Seen<'_>, version: i32, env: &Env) -> Result<Doc<'static>> {
        if self.version_of(newest) != Some(self.newest()) {
            return Ok(seen.after.clone());
        }
        let before = self.brought(seen.before, version, env)?;
        let mut after = self.brought(seen.after, version, env)?;
        if seen.whole {
            after = self.with_added(newest, seen.after, after, version, env)?;
        }
        let result = merged(newest, &before, &after);
        self.shown_right(result, &after, version, env)
    }

    /// A field that came with a later version is not left out on purpose by a client that writes whole documents.
    fn with_added(
        &self,
        newest: &Doc<'static>,
        written: &Doc<'static>,
        after: Doc<'static>,
        version: i32,
        env: &Env,
    ) -> Result<Doc<'static>> {
        let mut set = DocWriter::new();
        for path in self.from(version).flatten().filter_map(|step| step.added()) {
            if at(written, path).is_none()
                && let Some(kept) = at(newest, path)
            {
                set.append(&path.dotted(), &kept);
            }
        }
        let set = call("$set", Value::Document(set.finish()));
        let update = Update::parse(&set, &[], &mut Names::new())?;
        match update.apply(&after, &Details::default(), env)? {
            Applied::Changed(changed) => Ok(changed),
            Applied::Unchanged => Ok(after),
        }
    }

    /// What a client wrote it must read again. Where that and what it does not see cannot both be had, what it wrote wins, for as few
    /// fields as possible.
    fn shown_right(&self, result: Doc<'static>, after: &Doc<'static>, version: i32, env: &Env) -> Result<Doc<'static>> {
        let wanted = self.seen(after, version, env)?;
        let is_right =
            |doc: &Doc<'static>| Ok::<bool, document::Error>(same_content(&self.seen(doc, version, env)?, &wanted));
        if is_right(&result)? {
            return Ok(result);
        }
        let differs = |name: &str| result.get(name) != after.get(name) && self.changes_since(version, &Path::new(name));
        let mut names: Vec<String> = Vec::new();
        for (name, _) in result.iter().chain(after.iter()) {
            if differs(name.as_str()) && !names.iter().any(|other| other == name.as_str()) {
                names.push(name.to_string());
            }
        }
        for name in &names {
            let one = with_fields_of(&result, after, std::slice::from_ref(name));
            if is_right(&one)? {
                return Ok(one);
            }
        }
        let all = with_fields_of(&result, after, &names);
        Ok(if is_right(&all)? { all } else { result })
    }

    /// What is to be sent to make one newest document of another.
    pub fn change(newest: &Doc<'static>, result: &Doc<'static>) -> Change {
        of_documents(newest, result)
    }
}

fn at(doc: &Doc<'static>, path: &Path) -> Option<Value<'static>> {
    let mut parts = path.parts.iter();
    let mut value = doc.get(&parts.next()?.name)?.into_owned();
    for part in parts {
        let Value::Document(inner) = &value else { return None };
        let found = inner.get(&part.name)?.into_owned();
        value = found;
    }
    Some(value)
}

/// `doc` with these fields as `other` has them.
fn with_fields_of(doc: &Doc<'static>, other: &Doc<'static>, names: &[String]) -> Doc<'static> {
    let is_taken = |name: &str| names.iter().any(|taken| taken == name);
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + other.as_bytes().len());
    for (name, value) in doc.iter() {
        match is_taken(name.as_str()) {
            true => _ = other.get(name.as_str()).map(|value| writer.append(name.as_str(), &value).len()),
            false => _ = writer.append(name.as_str(), &value),
        }
    }
    for (name, value) in other.iter().filter(|(name, _)| is_taken(name.as_str()) && !doc.contains(name.as_str())) {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}

/// Whether documents have the same fields, in whatever order.
fn same_content(a: &Doc<'_>, b: &Doc<'_>) -> bool {
    a.iter().count() == b.iter().count()
        && a.iter().all(|(name, value)| match (&value, b.get(name.as_str())) {
            (Value::Document(a), Some(Value::Document(b))) => same_content(a, &b),
            (a, Some(b)) => *a == b,
            (_, None) => false,
        })
}
