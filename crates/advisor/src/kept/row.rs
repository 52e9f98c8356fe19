//! Documents as rows of hashed values, by path: small enough to hold tens of thousands, and equal exactly if the values are.

use crate::values::{hash, number};
use document::{Doc, Value};
use hashbrown::HashMap;

const MOST_LEVELS: usize = 3;
/// Paths of one kind of document beyond these are not compared.
const MOST_PATHS: usize = 200;
/// A document inside a document that has more names has data as names.
const MOST_NAMES: usize = 50;
/// Larger arrays and documents are no copies.
const LARGEST: usize = 16 << 10;

/// A path, by its number.
pub type PathId = u16;

/// The paths that were met, numbered.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    numbers: HashMap<String, PathId>,
    names: Vec<String>,
}

impl Paths {
    pub fn number(&self, path: &str) -> Option<PathId> {
        self.numbers.get(path).copied()
    }

    pub fn name(&self, number: PathId) -> &str {
        self.names.get(usize::from(number)).map_or("", String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (PathId, &str)> {
        (0..).zip(self.names.iter().map(String::as_str))
    }

    fn intern(&mut self, path: &str) -> Option<PathId> {
        if let Some(number) = self.numbers.get(path) {
            return Some(*number);
        }
        let number = PathId::try_from(self.names.len()).ok().filter(|_| self.names.len() < MOST_PATHS)?;
        self.names.push(path.to_owned());
        self.numbers.insert(path.to_owned(), number);
        Some(number)
    }
}

/// What can be done with a value beside comparing it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    Number(f64),
    /// Milliseconds since 1970.
    Date(i64),
    Document,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub path: PathId,
    pub key: u64,
    pub figure: Figure,
}

/// The values of a document that are there: null is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    cells: Vec<Cell>,
}

impl Row {
    pub fn of(doc: &Doc<'_>, paths: &mut Paths) -> Row {
        let mut row = Row::default();
        row.level(doc, "", 1, paths);
        row.cells.sort_by_key(|cell| cell.path);
        row
    }

    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub fn cell(&self, path: PathId) -> Option<&Cell> {
        let place = self.cells.binary_search_by_key(&path, |cell| cell.path).ok()?;
        self.cells.get(place)
    }

    pub fn key(&self, path: PathId) -> Option<u64> {
        self.cell(path).map(|cell| cell.key)
    }

    pub fn number(&self, path: PathId) -> Option<f64> {
        match self.cell(path)?.figure {
            Figure::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn date(&self, path: PathId) -> Option<i64> {
        match self.cell(path)?.figure {
            Figure::Date(millis) => Some(millis),
            _ => None,
        }
    }

    /// Without the paths that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(PathId) -> bool) {
        self.cells.retain(|cell| wanted(cell.path));
        self.cells.shrink_to_fit();
    }

    fn level(&mut self, doc: &Doc<'_>, above: &str, depth: usize, paths: &mut Paths) {
        if depth > 1 && doc.iter().nth(MOST_NAMES).is_some() {
            return;
        }
        for (name, value) in doc.iter().take(MOST_PATHS) {
            let name = name.as_str();
            if value.is_nullish() || name.is_empty() || name.contains(['.', '$']) || name == "_pleach" {
                continue;
            }
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            self.value(&value, &path, depth, paths);
        }
    }

    fn value(&mut self, value: &Value<'_>, path: &str, depth: usize, paths: &mut Paths) {
        let figure = match value {
            Value::Document(inner) => {
                if inner.as_bytes().len() > LARGEST {
                    return;
                }
                if depth < MOST_LEVELS {
                    self.level(inner, path, depth + 1, paths);
                }
                Figure::Document
            }
            Value::Array(items) if items.as_bytes().len() > LARGEST => return,
            Value::DateTime(millis) => Figure::Date(*millis),
            value => number(value).map_or(Figure::Other, Figure::Number),
        };
        let Some(path) = paths.intern(path) else { return };
        self.cells.push(Cell { path, key: hash(value), figure });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn rows_are_equal_if_values_are() {
        let mut paths = Paths::default();
        let one = Row::of(&Doc::from(doc! { "a": 1, "b": { "c": "x", "d": null }, "e": [1, 2] }), &mut paths);
        let two = Row::of(
            &Doc::from(doc! { "e": [1.0, 2_i64], "b": { "c": "x", "d": null }, "a": 1.0, "f": null }),
            &mut paths,
        );
        assert_eq!(one, two);
        let c = paths.number("b.c").unwrap();
        assert!(one.key(c).is_some() && paths.number("b.d").is_none() && paths.number("f").is_none());
        assert_eq!((paths.name(c), one.number(paths.number("a").unwrap())), ("b.c", Some(1.0)));
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let mut paths = Paths::default();
        let mut wide = bson::Document::new();
        (0..10_000).for_each(|n| drop(wide.insert(format!("k{n}"), n)));
        let row = Row::of(&Doc::from(doc! { "_id": 1, "by": wide, "text": "x".repeat(100_000) }), &mut paths);
        let names: Vec<&str> = row.cells().iter().map(|cell| paths.name(cell.path)).collect();
        assert_eq!(names, ["_id", "text"]);
    }
}
