//! A fold's value from scratch, as pipelines over all hosts and their children.

use super::children::{counted, grouped, grouped_by, is_single, key_field, keyed, links, links_but, only};
use super::{Fold, FoldField, Sameness};
use crate::mql::{call, call_with, cond, field, list, literal, object, with};
use crate::rule::LinkKey;
use document::{Array, Value};

/// Where `$lookup` puts what it found.
const FOUND: &str = "_pleach_found";

impl<F: Fold> FoldField<F> {
    /// What makes rows of children.
    pub(super) fn rows(&self) -> Vec<Value<'static>> {
        grouped(&self.link, &self.fold, self.form)
    }

    /// See [`crate::rule::Field::expected`].
    pub(super) fn definition(&self, only_differences: bool) -> Array<'static> {
        let mut stages = match &self.link.foreign {
            LinkKey::Path(by) => self.looked_up(&by.path.dotted()),
            // `$lookup` joins by fields only, so hosts meet all children in one pass.
            LinkKey::Expression(_) => self.meeting(true),
        };
        if only_differences {
            stages.push(self.differing());
        }
        stages.into_iter().collect()
    }

    /// All hosts, each with the children that a `$lookup` by a field finds.
    fn looked_up(&self, by: &str) -> Vec<Value<'static>> {
        let local = self.link.local.path.dotted();
        let mut inner: Vec<Value<'static>> = counted(&self.link).into_iter().collect();
        if !self.link.each_foreign() {
            inner.push(only(is_single(by)));
        }
        match self.fold.shortcut().as_ref().map(|shortcut| (shortcut.branches.as_slice(), shortcut.behind.is_empty())) {
            // The number of children needs all of them.
            Some(([branch], true)) if !self.form.children => inner.extend(branch.iter().cloned()),
            _ => inner.extend(grouped_by(&self.fold, self.form, Value::Null)),
        }
        let lookup = object([
            ("from", Value::from(&*self.link.source.collection)),
            ("localField", Value::from(&*local)),
            ("foreignField", Value::from(by)),
            ("pipeline", list(inner)),
            ("as", Value::from(FOUND)),
        ]);
        // Null and missing never link, although they are joined.
        let row = cond(links(&local), call_with("$arrayElemAt", [field(FOUND), Value::Int32(0)]), Value::Null);
        let of_row = |name: &str, empty: Value<'static>| {
            with([("g", row.borrow())], call_with("$ifNull", [Value::string(format!("$$g.{name}")), literal(empty)]))
        };
        let empty = self.evaluated(None);
        let mut shown = vec![("stored", field(&self.field)), ("expected", of_row("expected", empty.value))];
        if let (Some(path), Some(state)) = (&self.owned.state, empty.state) {
            shown.push(("state", field(&path.dotted())));
            shown.push(("expectedState", of_row("expectedState", Value::Document(state))));
        }
        vec![call("$lookup", lookup), call("$project", object(shown))]
    }

    /// The keys of children that have no host, as rows like those of [`FoldField::rows`].
    pub(super) fn hostless(&self) -> Array<'static> {
        let mut stages = keyed(&self.link);
        stages.push(only(links_but(&key_field(&self.link), &["regex"])));
        stages.extend(self.rows());
        let lookup = object([
            ("from", Value::from(&*self.target.host.collection)),
            ("localField", Value::from("_id")),
            ("foreignField", Value::string(self.link.local.path.dotted())),
            ("pipeline", list([call("$project", object([("_id", Value::Int32(1))]))])),
            ("as", Value::from(FOUND)),
        ]);
        stages.push(call("$lookup", lookup));
        stages.push(call("$match", object([(FOUND, call("$size", Value::Int32(0)))])));
        stages.into_iter().collect()
    }

    /// As [`FoldField::definition`], in one pass over hosts and children: for a user that may not make the index that the other form
    /// needs. Gives hosts whose value differs.
    pub(crate) fn differing_without_index(&self) -> Vec<Value<'static>> {
        self.meeting(false).into_iter().chain([crate::fields::differing()]).collect()
    }

    /// Whether one pass over hosts and children is faster than a look-up for each host: a look-up costs a server as much as reading
    /// several dozen children. One that an index answers does not read them; and only a host that is found by its `_id` is the only
    /// one of its key.
    pub(super) fn meets_cheaply(&self) -> bool {
        self.link.is_by_id() && self.fold.shortcut().is_none()
    }

    /// All hosts as `{ stored, expected, state, expectedState }`, in one pass.
    pub(super) fn met(&self) -> Vec<Value<'static>> {
        self.meeting(true)
    }

    /// All hosts as `{ stored, expected }`: those that link meet their children in one pass, which needs no index; the others
    /// have no children.
    pub(super) fn compared(&self) -> Vec<Vec<Value<'static>>> {
        let links = links(&self.link.local.path.dotted());
        let mut linked = vec![only(links.clone())];
        linked.extend(self.meeting(false));
        let empty = literal(self.evaluated(None).value);
        let shown = object([("stored", field(&self.field)), ("expected", call_with("$ifNull", [empty, Value::Null]))]);
        let others = vec![only(call_with("$not", [links])), call("$project", shown)];
        vec![linked, others]
    }

    /// `{ _id, stored, expected }` of every host that links, on request also `state` and `expectedState`.
    fn meeting(&self, with_state: bool) -> Vec<Value<'static>> {
        let mut children = keyed(&self.link);
        if !self.link.each_foreign() {
            children.push(only(links(&key_field(&self.link))));
        }
        children.extend(self.rows());
        let empty = self.evaluated(None);
        let mut row = vec![("_id", Value::Int32(0)), ("key", Value::from("$_id")), ("expected", Value::Int32(1))];
        let mut host = vec![("id", field("_id")), ("stored", field(&self.field))];
        let mut met = vec![
            ("_id", Value::from("$key")),
            ("hosts", call("$push", Value::from("$host"))),
            ("expected", call("$max", Value::from("$expected"))),
        ];
        let mut compared = vec![
            ("_id", Value::from("$hosts.id")),
            ("stored", Value::from("$hosts.stored")),
            ("expected", call_with("$ifNull", [Value::from("$expected"), literal(empty.value)])),
        ];
        if let (true, Some(path), Some(state)) = (with_state, &self.owned.state, empty.state) {
            row.push(("expectedState", Value::Int32(1)));
            host.push(("state", field(&path.dotted())));
            met.push(("expectedState", call("$max", Value::from("$expectedState"))));
            compared.push(("state", Value::from("$hosts.state")));
            let state = literal(Value::Document(state));
            compared.push(("expectedState", call_with("$ifNull", [Value::from("$expectedState"), state])));
        }
        children.push(call("$project", object(row)));
        let shown = [("_id", Value::Int32(0)), ("key", field(&self.link.local.path.dotted())), ("host", object(host))];
        let union = object([("coll", Value::from(&*self.link.source.collection)), ("pipeline", list(children))]);
        vec![
            call("$project", object(shown)),
            call("$unionWith", union),
            call("$group", object(met)),
            call("$unwind", Value::from("$hosts")),
            call("$project", object(compared)),
        ]
    }

    pub(super) fn differing(&self) -> Value<'static> {
        let differs = |left: Value<'static>, right: Value<'static>| call_with("$ne", [left, right]);
        let mut reasons = vec![differs(field("stored"), field("expected"))];
        if self.fold.sameness() == Sameness::Exact {
            reasons.push(differs(call("$type", field("stored")), call("$type", field("expected"))));
        }
        if self.owned.state.is_some() {
            reasons.push(differs(field("state"), field("expectedState")));
        }
        only(call_with("$or", reasons))
    }
}
