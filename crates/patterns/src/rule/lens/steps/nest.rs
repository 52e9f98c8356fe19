//! `nest: { phone: { into: phone.number, with: { phone.countryCode: "+1" } } }`: a field moves into a document, beside constants.

use super::{ChangedPaths, Conversion, Origin, VersionStep, moved, overlap, unknown_among};
use crate::mql::{field, literal};
use crate::rule::lens::edits::{Edits, is_present};
use document::Value;
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Nest {
    pub from: Path,
    pub into: Path,
    /// What else the document gets.
    pub with: Vec<(Path, Value<'static>)>,
}

impl Nest {
    fn paths(&self) -> Vec<Path> {
        let with = self.with.iter().map(|(path, _)| path);
        [&self.from, &self.into].into_iter().chain(with).cloned().collect()
    }
}

impl VersionStep for Nest {
    fn up(&self) -> Conversion {
        let from = self.from.dotted();
        let moved = Edits::when(is_present(&from)).unset(&self.from).set(&self.into, field(&from));
        let whole = self.with.iter().fold(moved, |edits, (path, value)| edits.set(path, literal(value.clone())));
        Conversion::one(whole)
    }

    fn down(&self) -> Conversion {
        let into = self.into.dotted();
        let taken = Edits::when(is_present(&into)).prune(&self.into);
        let taken = self.with.iter().fold(taken, |edits, (path, _)| edits.prune(path));
        Conversion::one(taken.set(&self.from, field(&into)))
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(self.paths())
    }

    fn origin(&self, path: &Path) -> Origin {
        let is_constant = self.with.iter().any(|(with, _)| overlap(path, with));
        match moved(path, &self.into, &self.from) {
            Some(from) if self.from.parts.len() == 1 && !is_constant => Origin::At(from),
            _ => unknown_among(path, &self.paths()),
        }
    }

    fn destination(&self, path: &Path) -> Origin {
        match moved(path, &self.from, &self.into) {
            Some(into) if self.from.parts.len() == 1 => Origin::At(into),
            _ => unknown_among(path, &self.paths()),
        }
    }

    fn losses(&self) -> Vec<String> {
        let inside = self.into.parts.len() > 1 && self.from.is_prefix_of(&self.into);
        let others = inside.then(|| format!("what else `{}` holds is not seen by older clients", self.from));
        let with = self
            .with
            .iter()
            .map(|(path, _)| format!("another `{path}` than the declared one is not seen by older clients"));
        with.chain(others).collect()
    }
}
