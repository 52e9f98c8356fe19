//! `rename: { phone: phoneNumber }`: a field gets another name.

use super::{ChangedPaths, Conversion, Origin, VersionStep, moved, unknown_among};
use crate::mql::field;
use crate::rule::lens::edits::{Edits, is_present};
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Rename {
    pub from: Path,
    pub to: Path,
}

fn rename(from: &Path, to: &Path) -> Edits {
    let value = field(&from.dotted());
    Edits::when(is_present(&from.dotted())).prune(from).set(to, value)
}

impl VersionStep for Rename {
    fn up(&self) -> Conversion {
        Conversion::one(rename(&self.from, &self.to))
    }

    fn down(&self) -> Conversion {
        Conversion::one(rename(&self.to, &self.from))
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(vec![self.from.clone(), self.to.clone()])
    }

    fn origin(&self, path: &Path) -> Origin {
        match moved(path, &self.to, &self.from) {
            // A path through arrays is another one to a query than to an expression.
            Some(from) if self.from.parts.len() == 1 && self.to.parts.len() == 1 => Origin::At(from),
            _ => unknown_among(path, &[self.from.clone(), self.to.clone()]),
        }
    }

    fn destination(&self, path: &Path) -> Origin {
        match moved(path, &self.from, &self.to) {
            Some(to) if self.from.parts.len() == 1 && self.to.parts.len() == 1 => Origin::At(to),
            _ => unknown_among(path, &[self.from.clone(), self.to.clone()]),
        }
    }

    fn renamed(&self) -> Option<(&Path, &Path)> {
        Some((&self.from, &self.to))
    }

    fn losses(&self) -> Vec<String> {
        Vec::new()
    }
}
