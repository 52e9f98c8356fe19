//! Dotted paths: `a.b.0.c`, split once when a program is compiled.

use crate::code::Code;
use crate::error::{Error, Result};
use std::sync::Arc;

/// One step of a path: a field name that may also be an array index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    pub name: Arc<str>,
    /// The index, if the name is one: digits only, no leading zero.
    pub index: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    pub parts: Vec<Part>,
}

/// Names that begin with `$` and yet are fields: the parts of a DBRef, and what MongoDB's own stages leave behind.
const DOLLAR_FIELDS: &[&str] = &["$db", "$id", "$recordId", "$ref", "$sortKey"];

/// Whether a name stands for an operator, not for a field.
pub fn is_operator_name(name: &str) -> bool {
    name.starts_with('$') && !DOLLAR_FIELDS.contains(&name)
}

/// Checks one name of a field path, as it stands between two dots.
pub fn check_field_name(name: &str) -> Result<()> {
    let refuse = |code, message| Err(Error::new(Code::Location(code), message));
    if name.is_empty() {
        return refuse(15998, "FieldPath field names may not be empty strings.");
    }
    if is_operator_name(name) {
        return refuse(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if name.contains('\0') {
        return refuse(16411, "FieldPath field names may not contain '\0'.");
    }
    if name.contains('.') {
        return refuse(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
    }
    Ok(())
}

impl Path {
    /// Splits at dots. Empty names are kept: filters may name them, writers refuse them.
    pub fn new(dotted: &str) -> Path {
        Path { parts: dotted.split('.').map(Part::new).collect() }
    }

    /// As [`Path::new`], refusing what MongoDB refuses in a field path of an expression or sort.
    pub fn field_path(dotted: &str) -> Result<Path> {
        if dotted.is_empty() {
            return Err(Error::new(Code::Location(40352), "FieldPath cannot be constructed with empty string"));
        }
        if dotted.ends_with('.') {
            return Err(Error::new(Code::Location(40353), "FieldPath must not end with a '.'."));
        }
        for part in dotted.split('.') {
            check_field_name(part)?;
        }
        if dotted.split('.').count() > crate::raw::MAX_DEPTH {
            return Err(Error::new(Code::Overflow, "FieldPath is too long"));
        }
        Ok(Path::new(dotted))
    }

    pub fn dotted(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(|part| &*part.name).collect();
        names.join(".")
    }

    pub fn first(&self) -> &str {
        self.parts.first().map(|part| &*part.name).unwrap_or_default()
    }

    /// Whether `self` is `other` or leads to it.
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        other.parts.get(..self.parts.len()) == Some(&self.parts)
    }
}

impl Part {
    pub fn new(name: &str) -> Part {
        let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let index = (digits && (name == "0" || !name.starts_with('0'))).then(|| name.parse().ok()).flatten();
        Part { name: name.into(), index }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.dotted())
    }
}
