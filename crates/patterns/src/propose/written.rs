//! A step together with its words in a declaration.

use crate::mql::{call, list, object};
use crate::rule::lens::steps::{Convert, Default, Drop, Join, Nest, Pipelines, Rename, Split, Wrap};
use crate::rule::lens::{Lens, Migrate, VersionStep};
use document::value::Path;
use document::{Doc, DocWriter, Env, Value};
use std::sync::Arc;

/// The number of documents that steps are tried on; no client's field is called so.
const NUMBER: &str = "_pleach_version";

#[derive(Clone, Debug)]
pub(super) struct WrittenStep {
    pub(super) step: Arc<dyn VersionStep>,
    pub(super) declared: Value<'static>,
}

fn written(step: impl VersionStep + 'static, word: &str, argument: Value<'_>) -> WrittenStep {
    WrittenStep { step: Arc::new(step), declared: call(word, argument) }
}

fn names<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Value<'static> {
    list(paths.into_iter().map(|path| Value::string(path.dotted())))
}

pub(super) fn rename(from: &Path, to: &Path) -> WrittenStep {
    let argument = object([(&*from.dotted(), Value::string(to.dotted()))]);
    written(Rename { from: from.clone(), to: to.clone() }, "rename", argument)
}

pub(super) fn nest(from: &Path, into: &Path, with: &[(Path, Value<'static>)]) -> WrittenStep {
    let constants: Vec<(String, Value<'static>)> =
        with.iter().map(|(path, value)| (path.dotted(), value.clone())).collect();
    let constants = match constants.is_empty() {
        true => Value::Missing,
        false => object(constants.iter().map(|(path, value)| (&**path, value.borrow()))),
    };
    let inner = object([("into", Value::string(into.dotted())), ("with", constants)]);
    let step = Nest { from: from.clone(), into: into.clone(), with: with.to_vec() };
    written(step, "nest", object([(&*from.dotted(), inner)]))
}

pub(super) fn split(from: &Path, into: &[Path], on: &str) -> WrittenStep {
    let inner = object([("into", names(into)), ("on", Value::string(on))]);
    let step = Split { from: from.clone(), into: into.to_vec(), on: on.to_owned() };
    written(step, "split", object([(&*from.dotted(), inner)]))
}

pub(super) fn join(into: &Path, from: &[Path], with: &str) -> WrittenStep {
    let inner = object([("from", names(from)), ("with", Value::string(with))]);
    let step = Join { into: into.clone(), from: from.to_vec(), with: with.to_owned() };
    written(step, "join", object([(&*into.dotted(), inner)]))
}

pub(super) fn convert(path: &Path, from: &'static str, to: &'static str) -> WrittenStep {
    let inner = object([("from", Value::from(from)), ("to", Value::from(to))]);
    written(Convert { path: path.clone(), from, to }, "convert", object([(&*path.dotted(), inner)]))
}

pub(super) fn default(path: &Path, value: Value<'static>) -> WrittenStep {
    let argument = object([(&*path.dotted(), value.borrow())]);
    written(Default { path: path.clone(), value }, "default", argument)
}

pub(super) fn drop(path: &Path) -> WrittenStep {
    written(Drop { path: path.clone() }, "drop", names([path]))
}

pub(super) fn wrap(path: &Path) -> WrittenStep {
    written(Wrap { path: path.clone() }, "wrap", names([path]))
}

/// Stages upward, nothing downward.
pub(super) fn upward(stages: Vec<Value<'static>>) -> WrittenStep {
    let declared = object([("up", list(stages.iter().cloned())), ("down", list([]))]);
    WrittenStep { step: Arc::new(Pipelines { up: stages, down: Vec::new() }), declared }
}

/// What the steps make of documents; `None` if they cannot be taken.
pub(super) fn applied_to<'d>(
    steps: &[WrittenStep],
    docs: impl Iterator<Item = &'d Doc<'static>>,
) -> Option<Vec<Doc<'static>>> {
    let steps = steps.iter().map(|written| written.step.clone()).collect();
    let lens = Lens::new(NUMBER, vec![steps], Migrate::default()).ok()?;
    docs.map(|doc| through(&lens, doc)).collect()
}

fn through(lens: &Lens, doc: &Doc<'_>) -> Option<Doc<'static>> {
    let up = lens.up(doc, &Env::fixed()).ok()??;
    let mut own = DocWriter::new();
    for (name, value) in up.iter().filter(|(name, _)| name.as_str() != NUMBER) {
        own.append(name.as_str(), &value);
    }
    Some(own.finish())
}

/// The types between which values can be converted.
pub(super) fn convertible(from: &str, to: &str) -> Option<(&'static str, &'static str)> {
    Some((Convert::type_named(from)?, Convert::type_named(to)?)).filter(|(from, to)| from != to)
}
