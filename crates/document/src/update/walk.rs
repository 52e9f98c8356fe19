//! Applying a tree to a document's bytes: finds each path once, asks the operators, collects [`Edits`].
//!
//! Children are taken in the tree's order, not the document's: so errors and new fields come in MongoDB's order.

use super::array_filter::ArrayFilter;
use super::edits::Edits;
use super::operation::{Blocked, Change, Operation, Site, Trail, id_text};
use super::path::index;
use super::tree::{Branch, Child, Node, merge};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Blob, Doc, Element, decode, kind, read_i32, with_index};
use crate::value::{Value, show};
use smallvec::SmallVec;
use std::borrow::Cow;

/// As MongoDB limits it.
const MAX_PADDING: usize = 1_500_000;

pub(super) struct Walk<'w> {
    pub(super) document: &'w Doc<'w>,
    env: &'w Env,
    filters: &'w [ArrayFilter],
    /// Which array element the filter matched.
    position: Option<usize>,
    insert: bool,
    /// Whether `_id` is there and must stay as it is.
    pub(super) protects_id: bool,
    /// Something was added inside `_id`.
    extended_id: bool,
    /// The beginnings of the containers around the current place, outermost first.
    pub(super) containers: SmallVec<[usize; 8]>,
    pub(super) edits: Edits,
}

impl<'w> Walk<'w> {
    pub(super) fn new(document: &'w Doc<'w>, filters: &'w [ArrayFilter], insert: bool, env: &'w Env) -> Walk<'w> {
        let protects_id = !insert || document.contains("_id");
        Walk {
            document,
            env,
            filters,
            position: None,
            insert,
            protects_id,
            extended_id: false,
            containers: SmallVec::new(),
            edits: Edits::new(),
        }
    }

    pub(super) fn at_position(mut self, position: Option<usize>) -> Walk<'w> {
        self.position = position;
        self
    }

    /// The changed document; `None` if nothing changes.
    pub(super) fn run(mut self, root: &Branch) -> Result<Option<Doc<'static>>> {
        self.container(0, kind::DOCUMENT, root, None)?;
        if self.edits.is_empty() {
            return Ok(None);
        }
        let extended_id = self.extended_id && self.protects_id;
        let changed = self.edits.splice(self.document.as_bytes()).ok_or_else(|| {
            Error::new(Code::ConflictingUpdateOperators, "Update created a conflict: two paths name the same element")
        })?;
        if extended_id {
            return Err(Error::new(
                Code::ImmutableField,
                format!("Updating the path '_id' to {} would modify the immutable field '_id'", id_text(&changed)),
            ));
        }
        Ok(Some(changed))
    }

    pub(super) fn bytes(&self) -> &'w [u8] {
        self.document.as_bytes()
    }

    /// The children of the document or array that begins at `start`.
    fn container(&mut self, start: usize, kind: u8, branch: &Branch, trail: Option<&Trail<'_>>) -> Result<()> {
        let children = self.children(branch, trail)?;
        self.containers.push(start);
        if kind == kind::ARRAY {
            self.array(start, &children, trail)?;
        } else {
            self.fields(start, &children, trail)?;
        }
        self.containers.pop();
        Ok(())
    }

    fn children<'b>(&self, branch: &'b Branch, trail: Option<&Trail<'_>>) -> Result<Cow<'b, [Child]>> {
        if branch.positional.is_none() {
            return Ok(Cow::Borrowed(&branch.children));
        }
        let position = self
            .position
            .ok_or_else(|| Error::bad_value("The positional operator did not find the match needed from the query."))?;
        Ok(Cow::Owned(branch.with_position(position, &trail.map(Trail::path).unwrap_or_default())?))
    }

    fn fields(&mut self, start: usize, children: &[Child], trail: Option<&Trail<'_>>) -> Result<()> {
        let bytes = self.bytes();
        let mut found: SmallVec<[Option<Element>; 4]> = SmallVec::from_elem(None, children.len());
        let (mut at, mut wanted) = (start + 4, children.len());
        while wanted > 0
            && let Some(element) = Element::at(bytes, at)
        {
            at = element.end;
            let name = bytes.get(element.name.clone()).unwrap_or_default();
            for ((child, _), slot) in children.iter().zip(found.iter_mut()) {
                if slot.is_none() && child.as_bytes() == name {
                    *slot = Some(element.clone());
                    wanted -= 1;
                }
            }
        }
        for ((name, node), element) in children.iter().zip(found) {
            let here = Trail { parent: trail, name, in_array: false };
            let before = self.edits.count();
            match element {
                Some(element) => self.existing(node, &element, &here)?,
                None => {
                    let from = self.edits.scratch.len();
                    if self.create(node, &here)? {
                        self.insert_at_end(start, from);
                    }
                }
            }
            let top_level = trail.is_none() && !self.insert;
            if top_level && name.starts_with('$') && self.edits.count() > before && self.edits.last_writes() {
                return Err(dollar_prefixed(name));
            }
        }
        Ok(())
    }

    fn array(&mut self, start: usize, children: &[Child], trail: Option<&Trail<'_>>) -> Result<()> {
        let bytes = self.bytes();
        let mut found: SmallVec<[Option<Element>; 4]> = SmallVec::from_elem(None, children.len());
        let (mut at, mut length) = (start + 4, 0);
        while let Some(element) = Element::at(bytes, at) {
            at = element.end;
            for ((child, _), slot) in children.iter().zip(found.iter_mut()) {
                if index(child) == Some(length) {
                    *slot = Some(element.clone());
                }
            }
            length += 1;
        }
        for ((name, node), element) in children.iter().zip(found) {
            let here = Trail { parent: trail, name, in_array: true };
            match (element, index(name)) {
                (Some(element), _) => self.existing(node, &element, &here)?,
                (None, Some(index)) if index >= length => {
                    if self.pad_and_create(start, length, index, node, &here)? {
                        length = index + 1;
                    }
                }
                // Not an index, or one that an earlier spelling has just filled.
                (None, _) => {
                    let array = Value::Array(crate::raw::Array::trusted(bytes.get(start..).unwrap_or_default()));
                    self.blocked(node, &here, name, trail.map_or("", |trail| trail.name), &array)?;
                }
            }
        }
        Ok(())
    }

    /// Nulls up to `index`, then the new element.
    fn pad_and_create(
        &mut self,
        start: usize,
        length: usize,
        index: usize,
        node: &Node,
        here: &Trail<'_>,
    ) -> Result<bool> {
        let from = self.edits.scratch.len();
        let too_many = index - length > MAX_PADDING;
        if !too_many {
            for place in length..index {
                self.edits.scratch.append_at(place, &Value::Null);
            }
        }
        // The element's name is the index as arrays write it, whatever the path wrote.
        let created = with_index(index, |name| self.create(node, &Trail { name, ..*here }))?;
        if !created {
            self.edits.scratch.rewind(from);
        } else if too_many {
            return Err(Error::new(
                Code::CannotBackfillArray,
                format!("can't backfill more than {MAX_PADDING} elements"),
            ));
        } else {
            self.insert_at_end(start, from);
        }
        Ok(created)
    }

    fn insert_at_end(&mut self, container: usize, from: usize) {
        let length = read_i32(self.bytes(), container).and_then(|length| usize::try_from(length).ok());
        let end = container + length.unwrap_or_default().saturating_sub(1);
        self.edits.replace(end..end, from, &self.containers);
    }

    /// A node whose path leads to something.
    fn existing(&mut self, node: &Node, element: &Element, here: &Trail<'_>) -> Result<()> {
        match node {
            Node::Operation(operation) => self.operate(&**operation, element, here),
            Node::Rename(source) => self.rename_onto(source, element, here),
            Node::Reserved => Ok(()),
            Node::Branch(branch) if matches!(element.kind, kind::DOCUMENT | kind::ARRAY) => {
                self.container(element.start, element.kind, branch, Some(here))
            }
            Node::Branch(branch) => {
                let value = self.value(element);
                for (name, node) in self.children(branch, Some(here))?.iter() {
                    let child = Trail { parent: Some(here), name, in_array: false };
                    self.blocked(node, &child, name, here.name, &value)?;
                }
                Ok(())
            }
            Node::Elements(list) => self.elements(list, element, here),
        }
    }

    /// `$[]` and `$[id]`: every element that one of the filters accepts.
    fn elements(&mut self, list: &[(Option<usize>, Node)], array: &Element, here: &Trail<'_>) -> Result<()> {
        if array.kind != kind::ARRAY {
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {}: {}",
                here.name,
                show::element(&self.value(array))
            )));
        }
        self.containers.push(array.start);
        let (mut at, mut place) = (array.start + 4, 0);
        while let Some(element) = Element::at(self.bytes(), at) {
            at = element.end;
            let mut chosen: Option<Cow<'_, Node>> = None;
            for (filter, node) in list {
                let filter = filter.and_then(|place| self.filters.get(place));
                if let Some(filter) = filter
                    && !filter.matches(&self.value(&element), self.env)?
                {
                    continue;
                }
                chosen = Some(match chosen {
                    None => Cow::Borrowed(node),
                    Some(other) => Cow::Owned(merge(&other, node, &format!("{}.{place}", here.path()))?),
                });
            }
            if let Some(node) = chosen {
                with_index(place, |name| {
                    self.existing(&node, &element, &Trail { parent: Some(here), name, in_array: true })
                })?;
            }
            place += 1;
        }
        self.containers.pop();
        Ok(())
    }

    fn operate(&mut self, operation: &dyn Operation, element: &Element, here: &Trail<'_>) -> Result<()> {
        if operation.only_on_insert() && !self.insert {
            return Ok(());
        }
        let current = self.value(element);
        let site = Site { env: self.env, document: self.document, trail: here };
        let from = self.edits.scratch.len();
        // An element's bytes begin with its type, which stands before the name.
        let whole = element.name.start - 1..element.end;
        let name = self.name(element);
        match operation.update(&current, &site)? {
            Change::Keep => return Ok(()),
            Change::Remove if here.in_array => {
                self.edits.scratch.append(name, &Value::Null);
            }
            Change::Remove => {}
            Change::Rewrite(value) => {
                self.edits.scratch.append(name, &value);
            }
            Change::Set(value) => {
                self.edits.scratch.append(name, &value);
                if self.edits.scratch.written().get(from..) == self.bytes().get(whole.clone()) {
                    self.edits.scratch.rewind(from);
                    return Ok(());
                }
            }
            Change::Append(values) => {
                self.refuse_change_of_id(here)?;
                let length = crate::raw::Array::trusted(self.bytes().get(element.start..).unwrap_or_default()).count();
                for (place, value) in values.iter().enumerate() {
                    self.edits.scratch.append_at(length + place, value);
                }
                self.containers.push(element.start);
                self.insert_at_end(element.start, from);
                self.containers.pop();
                return Ok(());
            }
        }
        self.refuse_change_of_id(here)?;
        self.edits.replace(whole, from, &self.containers);
        Ok(())
    }

    /// Writes what a node makes where there is nothing; false if it makes nothing.
    fn create(&mut self, node: &Node, here: &Trail<'_>) -> Result<bool> {
        let created = match node {
            Node::Operation(operation) if operation.only_on_insert() && !self.insert => false,
            Node::Operation(operation) => {
                let site = Site { env: self.env, document: self.document, trail: here };
                match operation.create(&site)? {
                    Some(value) => {
                        self.edits.scratch.append(here.name, &value);
                        true
                    }
                    None => false,
                }
            }
            Node::Rename(source) => self.rename_new(source, here)?,
            Node::Reserved => false,
            Node::Branch(branch) => {
                let from = self.edits.scratch.len();
                self.edits.scratch.start_document(here.name);
                let mut any = false;
                for (name, child) in self.children(branch, Some(here))?.iter() {
                    any |= self.create(child, &Trail { parent: Some(here), name, in_array: false })?;
                }
                if any {
                    self.edits.scratch.end();
                } else {
                    self.edits.scratch.rewind(from);
                }
                any
            }
            Node::Elements(_) => return Err(must_exist(here)),
        };
        self.extended_id |= created && here.first() == "_id";
        Ok(created)
    }

    /// A node whose path is cut off by `value` (named `blocker`), at the step `part`.
    fn blocked(&mut self, node: &Node, here: &Trail<'_>, part: &str, blocker: &str, value: &Value<'_>) -> Result<()> {
        let cannot_create = || {
            path_not_viable(format!("Cannot create field '{part}' in element {{{blocker}: {}}}", show::element(value)))
        };
        match node {
            Node::Operation(operation) if operation.only_on_insert() && !self.insert => Ok(()),
            Node::Operation(operation) => match operation.when_blocked() {
                Blocked::Ignored => Ok(()),
                Blocked::CannotCreate => Err(cannot_create()),
                Blocked::CannotTraverse => Err(path_not_viable(format!(
                    "Cannot use the part ({part}) of ({}) to traverse the element ({{{blocker}: {}}})",
                    here.path(),
                    show::element(value)
                ))),
            },
            Node::Rename(source) => match self.rename_source(source)? {
                None => Ok(()),
                Some(_) if matches!(value, Value::Array(_)) => {
                    Err(self.rename_in_array("destination", here.path(), blocker))
                }
                Some(_) => Err(cannot_create()),
            },
            Node::Reserved => Ok(()),
            Node::Branch(branch) => {
                for (name, child) in self.children(branch, Some(here))?.iter() {
                    let trail = Trail { parent: Some(here), name, in_array: false };
                    self.blocked(child, &trail, part, blocker, value)?;
                }
                Ok(())
            }
            Node::Elements(_) => Err(must_exist(here)),
        }
    }

    pub(super) fn find(&self, container: usize, wanted: impl Fn(&[u8], usize) -> bool) -> Option<Element> {
        let bytes = self.bytes();
        let (mut at, mut place) = (container + 4, 0);
        while let Some(element) = Element::at(bytes, at) {
            if wanted(bytes.get(element.name.clone()).unwrap_or_default(), place) {
                return Some(element);
            }
            at = element.end;
            place += 1;
        }
        None
    }

    pub(super) fn value(&self, element: &Element) -> Value<'w> {
        decode(element.kind, &Blob::Borrowed(self.bytes().get(element.start..element.end).unwrap_or_default()))
    }

    fn name(&self, element: &Element) -> &'w str {
        self.bytes().get(element.name.clone()).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    pub(super) fn refuse_change_of_id(&self, here: &Trail<'_>) -> Result<()> {
        if self.protects_id && here.first() == "_id" { Err(immutable(&here.path())) } else { Ok(()) }
    }
}

pub(super) fn path_not_viable(message: String) -> Error {
    Error::new(Code::PathNotViable, message)
}

fn must_exist(here: &Trail<'_>) -> Error {
    Error::bad_value(format!("The path '{}' must exist in the document in order to apply array updates.", here.path()))
}

pub(super) fn immutable(path: &str) -> Error {
    Error::new(
        Code::ImmutableField,
        format!("Performing an update on the path '{path}' would modify the immutable field '_id'"),
    )
}

pub(super) fn dollar_prefixed(name: &str) -> Error {
    Error::new(
        Code::DollarPrefixedFieldName,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}
