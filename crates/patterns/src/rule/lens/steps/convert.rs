//! `convert: { age: { from: string, to: int } }`: a value gets another type. One that does not convert stays as it is.

use super::{ChangedPaths, Conversion, Origin, VersionStep, unknown_among};
use crate::mql::{call, field, object};
use crate::rule::lens::edits::{Edits, is_type};
use document::Value;
use document::value::Path;

/// The types that `$convert` knows, sorted.
const TYPES: &[&str] = &["bool", "date", "decimal", "double", "int", "long", "objectId", "string"];

#[derive(Clone, Debug)]
pub struct Convert {
    pub path: Path,
    pub from: &'static str,
    pub to: &'static str,
}

impl Convert {
    /// The name of a type as `$convert` spells it; `None` if it knows no such type.
    pub fn type_named(name: &str) -> Option<&'static str> {
        TYPES.iter().find(|known| **known == name).copied()
    }

    pub fn types() -> &'static [&'static str] {
        TYPES
    }

    fn converted(&self, from: &str, to: &str) -> Conversion {
        let path = self.path.dotted();
        let convert = object([("input", field(&path)), ("to", Value::from(to)), ("onError", field(&path))]);
        Conversion::one(Edits::when(is_type(&path, from)).set(&self.path, call("$convert", convert)))
    }
}

impl VersionStep for Convert {
    fn up(&self) -> Conversion {
        self.converted(self.from, self.to)
    }

    fn down(&self) -> Conversion {
        self.converted(self.to, self.from)
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(vec![self.path.clone()])
    }

    fn origin(&self, path: &Path) -> Origin {
        unknown_among(path, std::slice::from_ref(&self.path))
    }

    fn destination(&self, path: &Path) -> Origin {
        self.origin(path)
    }

    /// What a value of `from` has and one of `to` cannot say.
    fn losses(&self) -> Vec<String> {
        let lost = match (self.from, self.to) {
            (_, "bool") => "everything but whether it is true",
            ("string", _) => "how the text was written (`07`, `1.50`)",
            ("double" | "decimal", "int" | "long") => "digits behind the point",
            ("decimal" | "long", "double") => "digits that do not fit",
            _ => return Vec::new(),
        };
        vec![format!("of `{}` {lost} is lost from {} to {}", self.path, self.from, self.to)]
    }

    fn converted(&self) -> Option<(&Path, &'static str)> {
        Some((&self.path, self.to))
    }
}
