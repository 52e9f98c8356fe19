//! `$rename`: a value moves to another path. Neither path may go through an array.

use super::operation::{Trail, id_text};
use super::path::index;
use super::walk::{Walk, immutable, path_not_viable};
use crate::error::{Error, Result};
use crate::raw::{Element, kind};
use crate::value::{Path, Value, show};
use smallvec::SmallVec;

/// The containers around the element to rename, and the element.
type Source = (SmallVec<[usize; 8]>, Element);

impl Walk<'_> {
    pub(super) fn rename_onto(&mut self, source: &Path, target: &Element, here: &Trail<'_>) -> Result<()> {
        let Some((containers, element)) = self.rename_source(source)? else { return Ok(()) };
        if let Some(array) = here.array_on_the_way() {
            return Err(self.rename_in_array("destination", here.path(), array));
        }
        self.refuse_change_of_id(here)?;
        let from = self.edits.scratch.len();
        let bytes = self.bytes().get(element.start..element.end).unwrap_or_default();
        self.edits.scratch.append_raw(here.name, element.kind, bytes);
        self.edits.replace(target.name.start - 1..target.end, from, &self.containers);
        self.remove_source(source, &containers, &element)
    }

    pub(super) fn rename_new(&mut self, source: &Path, here: &Trail<'_>) -> Result<bool> {
        let Some((containers, element)) = self.rename_source(source)? else { return Ok(false) };
        if let Some(array) = here.array_on_the_way() {
            return Err(self.rename_in_array("destination", here.path(), array));
        }
        // The removal first: it writes nothing, so what is being created stays in one piece.
        self.remove_source(source, &containers, &element)?;
        let bytes = self.bytes().get(element.start..element.end).unwrap_or_default();
        self.edits.scratch.append_raw(here.name, element.kind, bytes);
        Ok(true)
    }

    fn remove_source(&mut self, source: &Path, containers: &[usize], element: &Element) -> Result<()> {
        if source.first() == "_id" && self.protects_id {
            return Err(immutable(&source.dotted()));
        }
        let nothing = self.edits.scratch.len();
        self.edits.replace(element.name.start - 1..element.end, nothing, containers);
        Ok(())
    }

    /// The element to rename with the containers around it; `None` if it is not there.
    pub(super) fn rename_source(&self, source: &Path) -> Result<Option<Source>> {
        let mut containers: SmallVec<[usize; 8]> = SmallVec::new();
        let mut above: Option<(&str, Element)> = None;
        let mut array = None;
        for part in &source.parts {
            let (start, container) =
                above.as_ref().map_or((0, kind::DOCUMENT), |(_, element)| (element.start, element.kind));
            let found = match container {
                kind::DOCUMENT => self.find(start, |name, _| name == part.name.as_bytes()),
                kind::ARRAY => self.find(start, |_, place| index(&part.name) == Some(place)),
                _ => None,
            };
            if container == kind::ARRAY && array.is_none() {
                array = above.as_ref().map(|(name, _)| *name);
            }
            let cut_off = container != kind::DOCUMENT && (container != kind::ARRAY || index(&part.name).is_none());
            match found {
                Some(element) => {
                    containers.push(start);
                    above = Some((&part.name, element));
                }
                None if cut_off => {
                    let (name, element) =
                        above.as_ref().map(|(name, element)| (*name, self.value(element))).unwrap_or(("", Value::Null));
                    return Err(path_not_viable(format!(
                        "cannot use the part ({name} of {source}) to traverse the element ({{{name}: {}}})",
                        show::element(&element)
                    )));
                }
                None => return Ok(None),
            }
        }
        if let Some(array) = array {
            return Err(self.rename_in_array("source", source.dotted(), array));
        }
        Ok(above.map(|(_, element)| (containers, element)))
    }

    pub(super) fn rename_in_array(&self, which: &str, path: String, array: &str) -> Error {
        Error::bad_value(format!(
            "The {which} field cannot be an array element, '{path}' in doc with {} has an array field called '{array}'",
            id_text(self.document)
        ))
    }
}
