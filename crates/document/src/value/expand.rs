//! The combinations of values that a document has under several paths, arrays taken apart: what sort keys and index
//! keys are made of.
//!
//! A missing field gives null, an empty array undefined, an array its elements (only one level: an array in an array
//! is a value). Paths that lead through the same array are taken apart together; two different arrays are refused. A
//! number in a path is a position if the array has it.

use super::path::Part;
use super::{Value, show};
use crate::code::Code;
use crate::error::Error;
use crate::raw::{Array, Doc};
use smallvec::SmallVec;

/// Whoever receives the combinations.
pub trait Visit<'a> {
    /// One value for each path, never missing; `missing` says for how many of them there was none.
    fn combination(&mut self, values: &[Value<'a>], missing: usize);

    /// An array was taken apart at `component` (counted from 0) of the path number `path`.
    fn array(&mut self, _path: usize, _component: usize) {}
}

/// Why a document has no combinations under some paths.
#[derive(Debug)]
pub enum Refused {
    /// Two of the paths lead to different arrays, of these names.
    Parallel {
        second: String,
        first: String,
    },
    Ambiguous(Error),
}

/// Calls `visit` with every combination; the same one may come several times.
pub fn expand<'a>(doc: &Doc<'a>, paths: &[&[Part]], visit: &mut impl Visit<'a>) -> Result<(), Refused> {
    let open = paths.iter().map(|path| Component { rest: path, value: Value::Null, position: None }).collect();
    Expansion { paths, visit }.document(Some(doc), open, 0)
}

/// Follows `parts` through documents, up to their end or to an array; also what is left of them there.
pub fn walk<'a, 'p>(doc: &Doc<'a>, parts: &'p [Part]) -> (Value<'a>, &'p [Part]) {
    match parts.split_first() {
        None => (Value::Missing, parts),
        Some((first, rest)) => walk_on(doc.get(&first.name), rest),
    }
}

fn walk_on<'a, 'p>(found: Option<Value<'a>>, rest: &'p [Part]) -> (Value<'a>, &'p [Part]) {
    match found {
        None => (Value::Missing, rest),
        Some(Value::Document(inner)) if !rest.is_empty() => walk(&inner, rest),
        Some(value) if rest.is_empty() || matches!(value, Value::Array(_)) => (value, rest),
        Some(_) => (Value::Missing, rest),
    }
}

/// One component of a combination on its way down: what is left of its path, then its value.
#[derive(Clone)]
struct Component<'a, 'p> {
    rest: &'p [Part],
    value: Value<'a>,
    position: Option<Position<'a, 'p>>,
}

/// A path goes on into an array by a number: what it finds there, for elements that have no such field themselves.
#[derive(Clone)]
struct Position<'a, 'p> {
    array: Array<'a>,
    is_array: bool,
    found: Value<'a>,
    rest: &'p [Part],
}

type Components<'a, 'p> = SmallVec<[Component<'a, 'p>; 2]>;

struct Expansion<'v, 'p, V> {
    paths: &'v [&'p [Part]],
    visit: &'v mut V,
}

impl<'a, 'p, V: Visit<'a>> Expansion<'_, 'p, V> {
    /// Takes all components on through `doc` (nothing if the array element is not a document), then through the one
    /// array they meet, if any.
    fn document(
        &mut self,
        doc: Option<&Doc<'a>>,
        mut components: Components<'a, 'p>,
        mut missing: usize,
    ) -> Result<(), Refused> {
        let mut met: Option<(Array<'a>, usize, &'p [Part])> = None;
        let mut through = SmallVec::<[usize; 2]>::new();
        let mut keep_whole = false;
        for (at, component) in components.iter_mut().enumerate() {
            let Some(first) = component.rest.first() else { continue };
            let (found, rest) = match (doc.filter(|doc| doc.contains(&first.name)), component.position.take()) {
                (Some(_), Some(position)) => return Err(Refused::Ambiguous(ambiguous(&first.name, &position.array))),
                (Some(doc), None) => walk(doc, component.rest),
                (None, Some(position)) => {
                    keep_whole |= position.is_array;
                    (position.found, position.rest)
                }
                (None, None) => (Value::Missing, component.rest),
            };
            component.rest = rest;
            match found {
                Value::Array(array) => {
                    let (other, earlier, earlier_rest) = met.get_or_insert_with(|| (array.clone(), at, rest));
                    if other.as_bytes().as_ptr() != array.as_bytes().as_ptr() {
                        let first = self.last_name(*earlier, earlier_rest);
                        return Err(Refused::Parallel { second: self.last_name(at, rest), first });
                    }
                    through.push(at);
                }
                Value::Missing => {
                    (component.rest, component.value) = (&[], Value::Null);
                    missing += 1;
                }
                value => (component.rest, component.value) = (&[], value),
            }
        }
        let Some((array, ..)) = met else {
            let values: SmallVec<[Value<'a>; 4]> = components.into_iter().map(|component| component.value).collect();
            self.visit.combination(&values, missing);
            return Ok(());
        };
        for component in &mut components {
            component.position = position(&array, component.rest);
        }
        for at in &through {
            self.note_array(*at, &components, keep_whole);
        }
        if array.is_empty() {
            fill(&mut components, &through, &Value::Undefined);
            return self.document(None, components, missing);
        }
        for item in array.iter() {
            let value = if keep_whole { Value::Array(array.clone()) } else { item.clone() };
            let mut each = components.clone();
            fill(&mut each, &through, &value);
            match &item {
                Value::Document(doc) => self.document(Some(doc), each, missing)?,
                _ => self.document(None, each, missing)?,
            }
        }
        Ok(())
    }

    /// A position takes one element and so takes nothing apart; nor does an array that is kept whole.
    fn note_array(&mut self, at: usize, components: &Components<'a, 'p>, keep_whole: bool) {
        let (Some(component), Some(path)) = (components.get(at), self.paths.get(at)) else { return };
        if component.position.is_none() && !(keep_whole && component.rest.is_empty()) {
            self.visit.array(at, path.len().saturating_sub(component.rest.len() + 1));
        }
    }

    /// The name of the field where the path number `at` stands when `rest` is left of it.
    fn last_name(&self, at: usize, rest: &[Part]) -> String {
        let path = self.paths.get(at).copied().unwrap_or_default();
        path.len()
            .checked_sub(rest.len() + 1)
            .and_then(|last| path.get(last))
            .map_or_else(String::new, |part| part.name.to_string())
    }
}

/// Sets the components that end at the array.
fn fill<'a>(components: &mut Components<'a, '_>, through: &[usize], value: &Value<'a>) {
    for at in through {
        if let Some(component) = components.get_mut(*at).filter(|component| component.rest.is_empty()) {
            component.value = value.clone();
        }
    }
}

fn position<'a, 'p>(array: &Array<'a>, rest: &'p [Part]) -> Option<Position<'a, 'p>> {
    let (first, after) = rest.split_first()?;
    let element = array.get(first.index?)?;
    let is_array = matches!(element, Value::Array(_));
    let (found, rest) = walk_on(Some(element), after);
    Some(Position { array: array.clone(), is_array, found, rest })
}

fn ambiguous(name: &str, array: &Array<'_>) -> Error {
    let as_document = Doc(array.0.clone());
    Error::new(
        Code::Location(16746),
        format!(
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {}",
            show::document(&as_document)
        ),
    )
}
