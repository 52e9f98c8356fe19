//! What must change in one host so that its copies are right.

use crate::fields::copy::CopyField;
use crate::fields::copy::sites::{Refers, Site};
use crate::fields::set_paths::{Entry, put};
use crate::mql::object;
use crate::rule::{Rows, key};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::{Path, order};
use document::{Doc, DocWriter, Env, Result, Value};

/// Where copies go in one host, and what goes there.
#[derive(Clone, Debug, Default)]
pub(super) struct Placements {
    /// Concrete paths (`items.0.product`); a missing value means that there is none.
    list: Vec<(Path, Value<'static>)>,
    in_array: bool,
}

impl Placements {
    /// The host with the copies in their places: for an insert.
    pub(super) fn apply(&self, host: &Doc<'_>) -> Result<Doc<'static>> {
        if !self.in_array {
            let entries: Vec<Entry<'_>> =
                self.list.iter().map(|(path, value)| (&path.parts[..], value.borrow())).collect();
            return Ok(if entries.is_empty() { host.clone().into_owned() } else { put(host, &entries) });
        }
        match self.update()? {
            None => Ok(host.clone().into_owned()),
            Some(update) => match update.apply(host, &Default::default(), &Env::fixed())? {
                Applied::Unchanged => Ok(host.clone().into_owned()),
                Applied::Changed(host) => Ok(host),
            },
        }
    }

    /// The same as an update of the host that was looked at; `None` if it is right already.
    fn update(&self) -> Result<Option<Update>> {
        if self.list.is_empty() {
            return Ok(None);
        }
        let (mut set, mut unset) = (DocWriter::new(), DocWriter::new());
        for (path, value) in &self.list {
            match value {
                Value::Missing => unset.append(&path.dotted(), &Value::Int32(1)),
                value => set.append(&path.dotted(), value),
            };
        }
        let some = |doc: Doc<'static>| if doc.is_empty() { Value::Missing } else { Value::Document(doc) };
        let spec = object([("$set", some(set.finish())), ("$unset", some(unset.finish()))]);
        Update::parse(&spec, &[], &mut Names::new()).map(Some)
    }
}

impl CopyField {
    /// What must change in a host so that its copies are right. `before` is the host before the client's write (nothing for an
    /// insert): a rule that says `when_changed: keep` takes the copies of references that were there from it, and so does one
    /// with `when_deleted: keep` where the source has gone. Audit passes the host itself.
    pub(super) fn fill(&self, host: &Doc<'_>, before: Option<&Doc<'_>>, copies: &Rows) -> Result<Placements> {
        let earlier = match before {
            Some(before) if self.is_frozen() || self.outlives() => self.sites(before),
            _ => Default::default(),
        };
        let mut placements = Placements::default();
        for site in self.sites(host) {
            let right = match &site.refers {
                Refers::Refused => return Err(key::refused(self, &self.link.local.path)),
                Refers::Nothing => Value::Missing,
                Refers::One(id) => self.right_copy(id, &site, None, &earlier, copies),
                Refers::Many(ids) => {
                    let each = ids.iter().enumerate().map(|(at, id)| match id {
                        Value::Null => Value::Null,
                        id => self.right_copy(id, &site, Some(at), &earlier, copies),
                    });
                    Value::Array(each.collect())
                }
            };
            if right != site.copy || right.is_missing() != site.copy.is_missing() {
                placements.list.push(self.placement(&site, right));
                placements.in_array |= site.in_array;
            }
        }
        Ok(placements)
    }

    /// The update that makes the copies of a host those of `right`, which refers alike.
    pub(super) fn between(&self, host: &Doc<'_>, right: &Doc<'_>) -> Result<Update> {
        let mut placements = Placements::default();
        for (site, want) in self.sites(host).iter().zip(self.sites(right)) {
            if want.copy != site.copy || want.copy.is_missing() != site.copy.is_missing() {
                placements.list.push(self.placement(site, want.copy.into_owned()));
            }
        }
        match placements.update()? {
            Some(update) => Ok(update),
            None => Update::parse(&object([("$set", object([]))]), &[], &mut Names::new()),
        }
    }

    /// The path and value that put a copy into its place: a null on the way is replaced whole, since nothing can be set in it.
    fn placement(&self, site: &Site<'_>, right: Value<'static>) -> (Path, Value<'static>) {
        let until = match site.null_at {
            Some(at) if !right.is_missing() => at + 1,
            _ => self.place.len(),
        };
        let (way, inside) = self.place.split_at(until.min(self.place.len()));
        let value = inside.iter().rfold(right, |value, part| object([(&*part.name, value)]));
        (Path { parts: site.path.iter().chain(way).cloned().collect() }, value)
    }

    fn right_copy(
        &self,
        id: &Value<'_>,
        site: &Site<'_>,
        at: Option<usize>,
        earlier: &[Site<'_>],
        copies: &Rows,
    ) -> Value<'static> {
        let fresh = copies.get(id);
        let keeps = match fresh {
            Some(_) => self.is_frozen(),
            None => self.outlives(),
        };
        let kept = keeps.then(|| kept_copy(id, site, at, earlier)).flatten();
        kept.or_else(|| fresh.map(|copy| Value::Document(copy.clone()))).unwrap_or(Value::Missing)
    }
}

/// The copy that a reference had before the client's write: the one it still has, else the one at the same place, else any for
/// the same id (elements of arrays move).
fn kept_copy(id: &Value<'_>, site: &Site<'_>, at: Option<usize>, earlier: &[Site<'_>]) -> Option<Value<'static>> {
    let mut candidates: Vec<(bool, Value<'_>)> = Vec::new();
    for old in earlier {
        let same_place = old.path == site.path;
        match (&old.refers, &old.copy) {
            (Refers::One(other), copy @ Value::Document(_)) if order::equal(other, id) => {
                candidates.push((same_place, copy.borrow()));
            }
            (Refers::Many(ids), Value::Array(list)) => {
                for (place, (other, copy)) in ids.iter().zip(list.iter()).enumerate() {
                    if order::equal(other, id) && matches!(copy, Value::Document(_)) {
                        candidates.push((same_place && at == Some(place), copy));
                    }
                }
            }
            _ => {}
        }
    }
    let own = match (at, &site.copy) {
        (Some(at), Value::Array(list)) => list.get(at).unwrap_or(Value::Missing),
        (Some(_), _) => Value::Missing,
        (None, own) => own.borrow(),
    };
    let still = candidates.iter().find(|(_, copy)| *copy == own);
    let found = still.or_else(|| candidates.iter().find(|(same_place, _)| *same_place)).or(candidates.first());
    found.map(|(_, copy)| copy.clone().into_owned())
}
