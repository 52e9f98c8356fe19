//! An update of an older client, taken apart: operators on paths that no step since its version concerns mean the same in newest
//! documents and are sent as they are; what the others do is found out on the document that the client sees.

use super::{Change, Lens, Seen};
use crate::mql::document;
use document::filter::Details;
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::{Path, order, show};
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};

/// What a client sees of a document, and where its filter matched in it.
#[derive(Clone, Copy, Debug)]
pub struct SeenDocument<'d> {
    pub newest: &'d Doc<'static>,
    pub seen: &'d Doc<'static>,
    pub details: &'d Details,
}

impl Lens {
    /// Whether the update means the same in newest documents.
    pub fn is_same_update(&self, update: &Update, version: i32) -> bool {
        let Value::Document(spec) = &update.source else { return false };
        !update.is_replacement() && paths(spec).iter().all(|path| !self.changes_since(version, path))
    }

    /// The update of the newest document that does what a client of `version` asks; `None` if that changes nothing.
    pub fn seen_update(
        &self,
        update: &Update,
        of: SeenDocument<'_>,
        version: i32,
        env: &Env,
    ) -> Result<Option<Update>> {
        let is_known = self.version_of(of.newest) == Some(self.newest());
        if !is_known || self.is_same_update(update, version) {
            return Ok(Some(update.clone()));
        }
        if let Some((same, other)) = self.parts(update, version)? {
            let change = self.seen_change(&other, of, version, env)?;
            match together(&same, &change, update)? {
                Some(both) => return Ok(Some(both)),
                None => tracing::trace!("an update of an older client is evaluated as a whole"),
            }
        }
        match self.seen_change(update, of, version, env)? {
            Change::Nothing => Ok(None),
            change => change.update().map(Some),
        }
    }

    /// Operators on paths that are the same, and the rest; `None` if it cannot be divided.
    fn parts(&self, update: &Update, version: i32) -> Result<Option<(Doc<'static>, Update)>> {
        let Value::Document(spec) = &update.source else { return Ok(None) };
        if update.is_replacement() {
            return Ok(None);
        }
        let (mut same, mut other) = (DocWriter::new(), DocWriter::new());
        for (operator, fields) in spec.iter() {
            let Value::Document(fields) = fields else { return Ok(None) };
            let (mut kept, mut rest) = (DocWriter::new(), DocWriter::new());
            for (name, argument) in fields.iter() {
                let one = document([(name.as_str(), argument.clone())]);
                let is_same = paths(&document([(operator.as_str(), Value::Document(one))]))
                    .iter()
                    .all(|path| !self.changes_since(version, path));
                if is_same { &mut kept } else { &mut rest }.append(name.as_str(), &argument);
            }
            for (part, all) in [(kept.finish(), &mut same), (rest.finish(), &mut other)] {
                if !part.is_empty() {
                    all.append(operator.as_str(), &Value::Document(part));
                }
            }
        }
        let (same, other) = (same.finish(), other.finish());
        if same.is_empty() || other.is_empty() {
            return Ok(None);
        }
        let filters = used_filters(&other, update);
        Ok(Some((same, Update::parse(&Value::Document(other), &filters, &mut Names::new())?)))
    }

    /// What an update of the document that a client sees means for the newest one.
    fn seen_change(&self, update: &Update, of: SeenDocument<'_>, version: i32, env: &Env) -> Result<Change> {
        let Applied::Changed(after) = update.apply(of.seen, of.details, env)? else { return Ok(Change::Nothing) };
        let id = |doc: &Doc<'static>| doc.get("_id").unwrap_or(Value::Missing);
        if !order::equal(&id(of.seen), &id(&after)) {
            let message = format!(
                "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
                show::element(&id(&after))
            );
            return Err(Error::new(Code::ImmutableField, message));
        }
        let whole = writes_whole(update);
        let number = |doc: &Doc<'static>| doc.get(&self.field).unwrap_or(Value::Missing);
        if !whole && !order::equal(&number(of.seen), &number(&after)) {
            let message = format!(
                "'{}' is the version of the document, which is {version} to this client; it goes with the document's shape",
                self.field
            );
            return Err(Error::new(Code::ImmutableField, message));
        }
        let seen = Seen { before: of.seen, after: &after, whole };
        let result = self.rewritten(of.newest, seen, version, env)?;
        Ok(match Lens::change(of.newest, &result) {
            // What rules keep is taken out of a whole document, and refused where an operator names it (SEMANTICS R11).
            Change::Paths { .. } if whole => Change::Whole(result),
            change => change,
        })
    }
}

/// Whether the client wrote the document as a whole.
fn writes_whole(update: &Update) -> bool {
    match &update.source {
        Value::Array(stages) => stages.iter().any(|stage| match stage {
            Value::Document(stage) => ["$replaceRoot", "$replaceWith"].iter().any(|name| stage.contains(name)),
            _ => false,
        }),
        _ => update.is_replacement() || update.whole,
    }
}

/// Those of an update's `arrayFilters` that some of its operators use.
fn used_filters(spec: &Doc<'_>, update: &Update) -> Vec<Doc<'static>> {
    let mut used = Vec::new();
    for (_, fields) in spec.iter() {
        let Value::Document(fields) = fields else { continue };
        for (path, _) in fields.iter() {
            let names = path.as_str().split('.').filter_map(|part| part.strip_prefix("$[")?.strip_suffix(']'));
            used.extend(names.map(str::to_owned));
        }
    }
    let is_used = |filter: &&Doc<'static>| named_item(filter).is_some_and(|name| used.contains(&name));
    update.array_filters.iter().filter(is_used).cloned().collect()
}

/// The item that one of `arrayFilters` is about: the first part of its paths.
fn named_item(filter: &Doc<'_>) -> Option<String> {
    let (name, value) = filter.iter().next()?;
    match (name.as_str(), value) {
        (operator, Value::Array(all)) if operator.starts_with('$') => match all.iter().next()? {
            Value::Document(first) => named_item(&first),
            _ => None,
        },
        (path, _) => path.split('.').next().map(str::to_owned),
    }
}

/// One update of both; `None` if they get in each other's way.
fn together(same: &Doc<'static>, change: &Change, asked: &Update) -> Result<Option<Update>> {
    let spec = match change {
        Change::Whole(_) => return Ok(None),
        Change::Nothing => same.clone(),
        Change::Paths { set, unset } => {
            let named: Vec<Path> = paths(same);
            let changed = set.iter().map(|(path, _)| path).chain(unset).map(|path| Path::new(path));
            for path in changed {
                if named.iter().any(|other| super::steps::overlap(other, &path)) {
                    return Ok(None);
                }
            }
            let own = match change.update()?.source {
                Value::Document(own) => own,
                _ => return Ok(None),
            };
            let mut writer = DocWriter::with_capacity(same.as_bytes().len() + own.as_bytes().len());
            for (operator, fields) in same.iter() {
                let fields = match (fields, own.get(operator.as_str())) {
                    (Value::Document(fields), Some(Value::Document(more))) => {
                        let both = fields.iter().chain(more.iter()).map(|(name, value)| (name.to_string(), value));
                        let both: Vec<(String, Value<'_>)> = both.collect();
                        Value::Document(document(both.iter().map(|(name, value)| (name.as_str(), value.clone()))))
                    }
                    (fields, _) => fields.into_owned(),
                };
                writer.append(operator.as_str(), &fields);
            }
            for (operator, fields) in own.iter().filter(|(operator, _)| !same.contains(operator.as_str())) {
                writer.append(operator.as_str(), &fields);
            }
            writer.finish()
        }
    };
    Update::parse(&Value::Document(spec), &used_filters(same, asked), &mut Names::new()).map(Some)
}

/// The paths that operators name, up to where they go into an array.
fn paths(spec: &Doc<'_>) -> Vec<Path> {
    let mut paths = Vec::new();
    for (operator, fields) in spec.iter() {
        let Value::Document(fields) = fields else { continue };
        for (name, argument) in fields.iter() {
            paths.push(steady(name.as_str()));
            if operator.as_str() == "$rename" {
                paths.extend(argument.as_str().map(steady));
            }
        }
    }
    paths
}

fn steady(dotted: &str) -> Path {
    let path = Path::new(dotted);
    let steady = path.parts.iter().take_while(|part| part.index.is_none() && !part.name.starts_with('$'));
    Path { parts: steady.cloned().collect() }
}
