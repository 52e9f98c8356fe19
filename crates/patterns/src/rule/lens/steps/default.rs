//! `default: { status: active }`: what lacks the field gets a value.

use super::{ChangedPaths, Conversion, Origin, VersionStep, overlap};
use crate::mql::literal;
use crate::rule::lens::edits::{Edits, is_absent};
use document::Value;
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Default {
    pub path: Path,
    pub value: Value<'static>,
}

impl VersionStep for Default {
    fn up(&self) -> Conversion {
        let absent = Edits::when(is_absent(&self.path.dotted()));
        Conversion::one(absent.set(&self.path, literal(self.value.clone())))
    }

    /// Older clients see the value too: whether the document had none before is not known any more.
    fn down(&self) -> Conversion {
        Conversion::none()
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(vec![self.path.clone()])
    }

    fn origin(&self, path: &Path) -> Origin {
        match overlap(path, &self.path) {
            true if *path == self.path && path.parts.len() == 1 => Origin::SameOrAdded,
            true => Origin::Unknown,
            false => Origin::Same,
        }
    }

    /// Where it always was.
    fn destination(&self, _: &Path) -> Origin {
        Origin::Same
    }

    fn added(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn losses(&self) -> Vec<String> {
        Vec::new()
    }
}
