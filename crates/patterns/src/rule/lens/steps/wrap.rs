//! `wrap: [email]`: a value becomes an array of one. Older clients see and set its first item.

use super::{ChangedPaths, Conversion, Origin, VersionStep, overlap};
use crate::mql::{call_with, cond, field, list};
use crate::rule::lens::edits::{Edits, is_present, is_type};
use document::Value;
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Wrap {
    pub path: Path,
}

impl VersionStep for Wrap {
    fn up(&self) -> Conversion {
        let path = self.path.dotted();
        Conversion::one(Edits::when(is_present(&path)).set(&self.path, list([field(&path)])))
    }

    fn down(&self) -> Conversion {
        let path = self.path.dotted();
        let first = call_with("$arrayElemAt", [field(&path), Value::Int32(0)]);
        let is_empty = call_with("$eq", [field(&path), list([])]);
        let seen = cond(is_empty, Value::from("$$REMOVE"), first);
        Conversion::one(Edits::when(is_type(&path, "array")).set(&self.path, seen))
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(vec![self.path.clone()])
    }

    fn origin(&self, path: &Path) -> Origin {
        match overlap(path, &self.path) {
            true if *path == self.path && path.parts.len() == 1 => Origin::Wrapped,
            true => Origin::Unknown,
            false => Origin::Same,
        }
    }

    fn destination(&self, path: &Path) -> Origin {
        self.origin(path)
    }

    fn losses(&self) -> Vec<String> {
        vec![format!("items of `{}` behind the first are not seen by older clients", self.path)]
    }
}
