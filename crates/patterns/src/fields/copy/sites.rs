//! Where in a host references and their copies are.

use crate::fields::copy::CopyField;
use crate::rule::key;
use crate::rule::obstacle::{Arrays, Obstacle};
use document::pipeline::expr::field;
use document::value::path::Part;
use document::value::{Path, order};
use document::{Doc, Result, Value};
use smallvec::SmallVec;

/// A document in the host (the host itself, or an element of an array) that holds a reference and its copy.
#[derive(Clone, Debug)]
pub(super) struct Site<'h> {
    /// Where it is: concrete, positions included.
    pub(super) path: SmallVec<[Part; 4]>,
    /// Whether the way leads through an array.
    pub(super) in_array: bool,
    pub(super) refers: Refers<'h>,
    /// The copy as it is.
    pub(super) copy: Value<'h>,
    /// What leaves no room for a copy.
    pub(super) obstacle: Option<Obstacle>,
    /// Which part of the copy's path is null, before its end.
    pub(super) null_at: Option<usize>,
}

/// What a site refers to.
#[derive(Clone, Debug)]
pub(super) enum Refers<'h> {
    Nothing,
    One(Value<'h>),
    /// An array of ids; what cannot link is null.
    Many(Vec<Value<'h>>),
    /// An array where the rule takes single values.
    Refused,
}

impl CopyField {
    pub(super) fn sites<'h>(&self, host: &Doc<'h>) -> SmallVec<[Site<'h>; 1]> {
        let mut sites = SmallVec::new();
        self.walk(host, &self.shared, &mut SmallVec::new(), false, &mut sites);
        sites
    }

    fn walk<'h>(
        &self,
        doc: &Doc<'h>,
        shared: &[Part],
        path: &mut SmallVec<[Part; 4]>,
        in_array: bool,
        sites: &mut SmallVec<[Site<'h>; 1]>,
    ) {
        let Some((first, rest)) = shared.split_first() else {
            let (refers, copy) = (self.refers(doc), within(doc, &self.place));
            let obstacle = Obstacle::on_way(doc, &self.place, Arrays::Obstruct);
            let null_at = null_on_way(doc, &self.place);
            sites.push(Site { path: path.clone(), in_array, refers, copy, obstacle, null_at });
            return;
        };
        path.push(first.clone());
        match doc.get(&first.name) {
            Some(Value::Document(inner)) => self.walk(&inner, rest, path, in_array, sites),
            Some(Value::Array(array)) => {
                for (index, item) in array.iter().enumerate() {
                    let Value::Document(inner) = item else { continue };
                    path.push(Part::new(&index.to_string()));
                    self.walk(&inner, rest, path, true, sites);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }

    /// What leaves no room for a copy where the host refers to a source.
    pub(super) fn on_way(&self, host: &Doc<'_>) -> Option<Obstacle> {
        let links = |site: &Site<'_>| matches!(site.refers, Refers::One(_) | Refers::Many(_));
        match self.place.len() {
            // The copy's own place is all there is.
            1 => None,
            _ => self.sites(host).into_iter().filter(links).find_map(|site| site.obstacle),
        }
    }

    fn refers<'h>(&self, doc: &Doc<'h>) -> Refers<'h> {
        match field(&Value::Document(doc.clone()), &self.reference) {
            Value::Array(_) if !self.link.local.each => Refers::Refused,
            Value::Array(ids) => {
                let id = |id: Value<'h>| if key::links(&id) { id } else { Value::Null };
                Refers::Many(ids.iter().map(id).collect())
            }
            value if key::links(&value) => Refers::One(value),
            _ => Refers::Nothing,
        }
    }

    /// Where the rule says `each`: the path of the list.
    pub(super) fn list_of_ids(&self) -> Option<&Path> {
        self.link.local.each.then_some(&self.link.local.path)
    }

    /// The sources that a host refers to, each once. Refuses an array in the link unless the rule says `each`.
    pub(super) fn references(&self, host: &Doc<'_>) -> Result<key::Values> {
        let mut found = key::Values::new();
        let mut add = |refers: Refers<'_>| {
            match refers {
                Refers::Nothing => {}
                Refers::One(value) => key::add(value, &mut found),
                Refers::Many(values) => values.into_iter().for_each(|value| key::add(value, &mut found)),
                Refers::Refused => return Err(key::refused(self, &self.link.local.path)),
            }
            Ok(())
        };
        match self.shared.is_empty() {
            // The host is the one site, and its copy does not matter.
            true => add(self.refers(host))?,
            false => self.sites(host).into_iter().try_for_each(|site| add(site.refers))?,
        }
        Ok(found)
    }
}

impl CopyField {
    /// Whether a host has a copy of the source with this key, or had one before the source went: a reference that was made
    /// after that has none.
    pub(super) fn holds_copy(&self, host: &Doc<'_>, of: &Value<'_>) -> bool {
        self.sites(host).into_iter().any(|site| match (site.refers, site.copy) {
            (Refers::One(value), copy) => order::equal(&value, of) && !copy.is_nullish(),
            (Refers::Many(values), Value::Array(copies)) => {
                values.iter().zip(copies.iter()).any(|(value, copy)| order::equal(value, of) && !copy.is_nullish())
            }
            (Refers::Many(_) | Refers::Nothing | Refers::Refused, _) => false,
        })
    }
}

/// The first part of a path that is null and not its end.
fn null_on_way(doc: &Doc<'_>, parts: &[Part]) -> Option<usize> {
    let (first, rest) = parts.split_first().filter(|(_, rest)| !rest.is_empty())?;
    match doc.get(&first.name)? {
        Value::Document(inner) => null_on_way(&inner, rest).map(|at| at + 1),
        value if value.is_nullish() => Some(0),
        _ => None,
    }
}

/// The value at a path through documents only.
fn within<'h>(doc: &Doc<'h>, parts: &[Part]) -> Value<'h> {
    match parts.split_first() {
        None => Value::Missing,
        Some((last, [])) => doc.get(&last.name).unwrap_or(Value::Missing),
        Some((first, rest)) => match doc.get(&first.name) {
            Some(Value::Document(inner)) => within(&inner, rest),
            _ => Value::Missing,
        },
    }
}
