//! The definition of copies: a pipeline on the host's collection.

use crate::fields::copy::CopyField;
use crate::fields::copy::spread::below;
use crate::mql::{call, call_with, cond, field, list, object, with};
use crate::rule::field::ComparisonPipeline;
use document::value::path::Part;
use document::{Array, Value};

/// Where the sources of a host are found.
const FOUND: &str = "_pleach_found";

impl CopyField {
    /// See [`crate::rule::Field::expected`]. Copies in arrays are shown as arrays, null where there is none.
    pub(super) fn definition(&self, only_differences: bool) -> Array<'static> {
        let stored = self.seen(&|variable| below(variable, &self.place));
        let expected = self.seen(&|variable| self.right(variable));
        let mut stages = self.looked_up([("stored", stored), ("expected", expected)]);
        if only_differences {
            let differs = call_with("$ne", [Value::from("$stored"), Value::from("$expected")]);
            stages.push(call("$match", object([("$expr", differs)])));
        }
        stages.into_iter().collect()
    }

    /// `{ _id, stored, expected, sourceless }` of each host of a plain copy, as it would be after seeding: an array in the reference
    /// leaves the host alone, and `sourceless` says that a copy stays for want of its source.
    fn comparison_stages(&self) -> Vec<Value<'static>> {
        let (reference, stored) = (below("$$ROOT", &self.reference), below("$$ROOT", &self.place));
        let expected = cond(call("$isArray", reference.clone()), stored.clone(), self.right("$$ROOT"));
        let is_single = call_with("$not", [call("$isArray", reference.clone())]);
        let is_source = call_with("$eq", [Value::from("$$f.key"), reference]);
        let filter = object([("input", field(FOUND)), ("as", Value::from("f")), ("cond", is_source)]);
        let sourceless = call_with("$and", [is_single, call_with("$eq", [call("$filter", filter), list([])])]);
        self.looked_up([("stored", stored), ("expected", expected), ("sourceless", sourceless)])
    }

    /// All hosts of a plain copy as they would be after seeding: each pair of reference and copy is looked at once, however many hosts
    /// have it.
    pub(super) fn compared(&self) -> ComparisonPipeline {
        let (local, place) = (self.link.local.path.dotted(), self.target.path.dotted());
        if local == "_id" {
            return ComparisonPipeline { stages: self.comparison_stages(), hosts: Value::Int32(1) };
        }
        let pair = object([("ref", field(&local)), ("copy", field(&place))]);
        // The number stays in `_id`: the definition keeps nothing else.
        let id =
            [("ref", "$_id.ref"), ("copy", "$_id.copy"), ("n", "$n")].map(|(name, path)| (name, Value::from(path)));
        let as_host = [("_id", object(id)), (&*local, Value::from("$_id.ref")), (&*place, Value::from("$_id.copy"))];
        let mut stages = vec![
            call("$group", object([("_id", pair), ("n", call("$sum", Value::Int32(1)))])),
            call("$project", object(as_host)),
        ];
        stages.extend(self.comparison_stages());
        ComparisonPipeline { stages, hosts: field("_id.n") }
    }

    /// Each host with its sources in [`FOUND`], then what is shown of it.
    fn looked_up<const N: usize>(&self, shown_of_host: [(&str, Value<'static>); N]) -> Vec<Value<'static>> {
        let foreign = self.matched.path.dotted();
        let shown = object([("_id", Value::Int32(0)), ("key", field(&foreign)), ("copy", self.excerpt.expression())]);
        let lookup = object([
            ("from", Value::from(&*self.link.source.collection)),
            ("localField", Value::string(self.link.local.path.dotted())),
            ("foreignField", Value::from(&*foreign)),
            ("pipeline", list([call("$project", shown)])),
            ("as", Value::from(FOUND)),
        ]);
        vec![call("$lookup", lookup), call("$project", object(shown_of_host))]
    }

    /// What goes before and behind the stages that tell right from wrong so that each pair of reference and copy is looked at
    /// once, however many hosts have it: the pairs, as if they were hosts; and the hosts of those that are left. Nothing where
    /// hosts hold several copies, or each refers by its own `_id`.
    pub(super) fn by_pairs(&self) -> Option<(Vec<Value<'static>>, Vec<Value<'static>>)> {
        if !self.is_plain() || self.link.local.path.first() == "_id" {
            return None;
        }
        let (local, place) = (self.link.local.path.dotted(), self.target.path.dotted());
        let pair = object([("ref", field(&local)), ("copy", field(&place))]);
        let as_host = object([(&*local, Value::from("$_id.ref")), (&*place, Value::from("$_id.copy"))]);
        let before = vec![call("$group", object([("_id", pair)])), call("$project", as_host)];
        let same = |path: &str, other: &str| call_with("$eq", [field(path), Value::string(format!("$${other}"))]);
        let both = call_with("$and", [same(&local, "ref"), same(&place, "copy")]);
        let of_pair =
            list([call("$match", object([("$expr", both)])), call("$project", object([("_id", Value::Int32(1))]))]);
        let lookup = object([
            ("from", Value::from(&*self.target.host.collection)),
            ("localField", Value::from("_id.ref")),
            ("foreignField", Value::from(&*local)),
            ("let", object([("ref", Value::from("$_id.ref")), ("copy", Value::from("$_id.copy"))])),
            ("pipeline", of_pair),
            ("as", Value::from(FOUND)),
        ]);
        let behind = vec![
            call("$lookup", lookup),
            call("$unwind", field(FOUND)),
            call("$project", object([("_id", field(&format!("{FOUND}._id")))])),
        ];
        Some((before, behind))
    }

    /// What `leaf` gives at each site: a value, or an array where the way leads through one.
    fn seen(&self, leaf: &dyn Fn(&str) -> Value<'static>) -> Value<'static> {
        match self.shared.split_first() {
            None => leaf("$$ROOT"),
            Some((first, rest)) => each_value(field(&first.name), rest, 0, leaf),
        }
    }

    /// The copy, or array of copies, that should be at a site.
    fn right(&self, variable: &str) -> Value<'static> {
        let (ids, stored) = (below(variable, &self.reference), below(variable, &self.place));
        let single = self.right_for(ids.clone(), stored.clone());
        if !self.link.local.each {
            return cond(call("$isArray", ids), Value::from("$$REMOVE"), single);
        }
        let at = |array: Value<'static>| call_with("$arrayElemAt", [array, Value::from("$$i")]);
        let list_of = cond(call("$isArray", stored.clone()), stored, list([]));
        let element = self.right_for(at(ids.clone()), at(list_of));
        let places = call_with("$range", [Value::Int32(0), call("$size", ids.clone())]);
        let each =
            object([("input", places), ("as", Value::from("i")), ("in", call_with("$ifNull", [element, Value::Null]))]);
        cond(call("$isArray", ids), call("$map", each), single)
    }

    /// The copy for one id: none if it cannot link.
    fn right_for(&self, id: Value<'static>, stored: Value<'static>) -> Value<'static> {
        let same = call_with("$eq", [Value::from("$$f.key"), Value::from("$$id")]);
        let filter = object([("input", field(FOUND)), ("as", Value::from("f")), ("cond", same)]);
        let found = call_with("$arrayElemAt", [call("$filter", filter), Value::Int32(0)]);
        let is_there = |value: &str| call_with("$eq", [call("$type", Value::from(value)), Value::from("object")]);
        let gone = Value::from("$$REMOVE");
        // What is there stays: a frozen copy, or one whose source has gone.
        let kept = |otherwise: Value<'static>| cond(is_there("$$stored"), Value::from("$$stored"), otherwise);
        let fresh = Value::from("$$source.copy");
        let with_source = if self.is_frozen() { kept(fresh) } else { fresh.into_owned() };
        let without = if self.outlives() { kept(gone.clone()) } else { gone.clone() };
        let unlinked = ["missing", "null", "undefined", "array"].map(Value::from);
        let links = call_with("$not", [call_with("$in", [call("$type", Value::from("$$id")), list(unlinked)])]);
        let chosen = with([("source", found)], cond(is_there("$$source"), with_source, without));
        with([("id", id), ("stored", stored)], cond(links, chosen, gone))
    }
}

fn each_value(
    at: Value<'static>,
    shared: &[Part],
    depth: usize,
    leaf: &dyn Fn(&str) -> Value<'static>,
) -> Value<'static> {
    let element = format!("e{depth}");
    let variable = format!("$${element}");
    let inner = match shared.split_first() {
        None => leaf(&variable),
        Some((first, rest)) => each_value(Value::string(format!("{variable}.{}", first.name)), rest, depth + 1, leaf),
    };
    let is_object = crate::fields::copy::spread::is_object(Value::from(&*variable));
    let site = cond(is_object, inner, Value::from("$$REMOVE"));
    let mapped = object([("input", at.clone()), ("as", Value::from(&*element)), ("in", site.clone())]);
    let alone = with([(&*element, at.clone())], site);
    cond(call("$isArray", at), call("$map", mapped), alone)
}
