//! What one version changes, step by step. A step is a small change of documents that goes both ways; each kind is one file.

mod convert;
mod default;
mod drop;
mod join;
mod nest;
mod pipelines;
mod rename;
mod split;
mod text_parts;
mod wrap;

pub use convert::Convert;
pub use default::Default;
pub use drop::Drop;
pub use join::Join;
pub use nest::Nest;
pub use pipelines::{Pipelines, stages_of};
pub use rename::Rename;
pub use split::Split;
pub use wrap::Wrap;

use super::edits::Edits;
use document::Value;
use document::value::Path;
use std::fmt::Debug;

/// One change of documents between two versions. A document that lacks what the step is about is left alone.
pub trait VersionStep: Debug + Send + Sync {
    /// Makes a document of the older version one of the newer.
    fn up(&self) -> Conversion;

    /// Makes a document of the newer version one of the older.
    fn down(&self) -> Conversion;

    /// Every path, of either version, that may not hold the same in both.
    fn changed(&self) -> ChangedPaths;

    /// Where a path of the newer version was in the older one.
    fn origin(&self, path: &Path) -> Origin;

    /// Where what an older client sees at a path is in the newer version.
    fn destination(&self, path: &Path) -> Origin;

    /// The old and the new name of a field, if the step gives it another and does nothing else.
    fn renamed(&self) -> Option<(&Path, &Path)> {
        None
    }

    /// The path that gets a value with the step where there was none, if that is all that the step does.
    fn added(&self) -> Option<&Path> {
        None
    }

    /// What no way leads back to, in words: `a "name" of …`. Empty if nothing is lost.
    fn losses(&self) -> Vec<String>;

    /// The path whose value should have this type when the step is done, and does not if it could not be converted.
    fn converted(&self) -> Option<(&Path, &'static str)> {
        None
    }
}

/// A change of one document, as an update.
#[derive(Clone, Debug)]
pub enum Conversion {
    Edits(Vec<EditStage>),
    /// Stages of an update that somebody wrote.
    Stages(Vec<Value<'static>>),
}

/// Edits that are one stage.
#[derive(Clone, Debug)]
pub struct EditStage(pub(super) Edits);

impl Conversion {
    fn none() -> Conversion {
        Conversion::Edits(Vec::new())
    }

    fn one(edits: Edits) -> Conversion {
        Conversion::Edits(vec![EditStage(edits)])
    }
}

/// Which paths a step changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedPaths {
    Paths(Vec<Path>),
    /// It may change any.
    Everything,
}

/// Where the value at a path of the newer version was.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Under the same path.
    Same,
    /// Under this path with the same value, or under the same path if there was nothing.
    At(Path),
    /// Under the same path, and if there was nothing it comes with the step.
    SameOrAdded,
    /// Under the same path, as the only item of an array that was made of it.
    Wrapped,
    /// No condition on the older documents says the same.
    Unknown,
}

/// Whether one path leads to the other.
pub(crate) fn overlap(a: &Path, b: &Path) -> bool {
    a.is_prefix_of(b) || b.is_prefix_of(a)
}

/// The path `to` and what `path` has behind `from`; `None` if it does not lie there.
fn moved(path: &Path, from: &Path, to: &Path) -> Option<Path> {
    let rest = from.is_prefix_of(path).then(|| path.parts.get(from.parts.len()..).unwrap_or_default())?;
    Some(Path { parts: to.parts.iter().chain(rest).cloned().collect() })
}

/// [`Origin::Unknown`] if the path has to do with one of these.
fn unknown_among(path: &Path, changed: &[Path]) -> Origin {
    match changed.iter().any(|other| overlap(path, other)) {
        true => Origin::Unknown,
        false => Origin::Same,
    }
}
