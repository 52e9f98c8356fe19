//! The value of a count, sum or average from scratch, as pipelines: of the children of some keys, and of all hosts.

use super::TallyField;
use super::amount::{CHILDREN, StateForm};
use super::exact::{Shown, accumulators, grouped_state, visible_expression};
use crate::mql::{call, call_with, cond, field, list, literal, object, with};
use crate::rule::{Link, LinkKey, key};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Result, Value};

/// A field that keeps a state: what of it is shown, and the numbers that it adds up; none for a count.
#[derive(Clone, Debug)]
pub(super) struct Stateful {
    pub(super) shown: Shown,
    pub(super) path: Option<Path>,
    pub(super) form: StateForm,
}

/// The stages behind a `$match` on keys, compiled.
pub(super) fn compiled(link: &Link, stateful: Option<&Stateful>) -> Result<Pipeline> {
    let stages: Array<'static> = grouping(link, stateful).into_iter().collect();
    Pipeline::parse(&stages, &mut Names::new())
}

/// Where the key of a child stands behind [`keyed`].
const KEY: &str = "_pleach_key";

/// For so many keys an index is sought; for more all children are read once.
const SOUGHT: usize = 200;

/// The children of some keys.
pub(super) fn of_keys(link: &Link, keys: &[Value<'static>]) -> Result<Pipeline> {
    let mut stages = Vec::new();
    match &link.foreign {
        LinkKey::Path(by) => stages.push(key::any_of(&by.path, keys)),
        LinkKey::Expression(expression) => {
            if let Some(seek) = expression.seek.as_ref().filter(|_| keys.len() <= SOUGHT) {
                let each = keys.iter().map(|key| seek.filter(key));
                stages.push(call("$match", call("$or", list(each))));
            }
        }
    }
    let computed = keyed(link);
    if !computed.is_empty() {
        // The elements that were not asked for are taken out behind `$unwind`.
        stages.extend(computed);
        stages.push(key::any_of(&Path::new(KEY), keys));
    }
    let stages: Array<'static> = stages.into_iter().collect();
    Pipeline::parse(&stages, &mut Names::new())
}

/// The stages that give each child its key, or one row for each of its keys, where it is not simply a field.
fn keyed(link: &Link) -> Vec<Value<'static>> {
    let set = |key: Value<'static>| call("$set", object([(KEY, key)]));
    match &link.foreign {
        LinkKey::Path(by) if by.each => vec![set(elements(&by.path)), call("$unwind", field(KEY))],
        LinkKey::Path(_) => Vec::new(),
        LinkKey::Expression(expression) => vec![set(expression.total.clone())],
    }
}

/// Each value at the path once, arrays on the way and at its end entered: the same as [`key::linked`].
fn elements(path: &Path) -> Value<'static> {
    let mut documents = list([Value::from("$$ROOT")]);
    let mut left = path.parts.len();
    for part in &path.parts {
        left -= 1;
        let own = Value::string(format!("$$this.{}", part.name));
        let items = with(
            [("v", own)],
            cond(call("$isArray", Value::from("$$v")), Value::from("$$v"), list([Value::from("$$v")])),
        );
        let all = object([
            ("input", documents),
            ("initialValue", list([])),
            ("in", call_with("$concatArrays", [Value::from("$$value"), items])),
        ]);
        let type_of = call("$type", Value::from("$$this"));
        let is_wanted = match left {
            0 => call_with("$not", [call_with("$in", [type_of, list(UNLINKED.map(Value::from))])]),
            _ => call_with("$eq", [type_of, Value::from("object")]),
        };
        documents = call(
            "$filter",
            object([("input", call("$reduce", all)), ("as", Value::from("this")), ("cond", is_wanted)]),
        );
    }
    call_with("$setUnion", [documents, list([])])
}

/// The field that holds a child's key behind [`keyed`].
fn key_field(link: &Link) -> String {
    match link.foreign.path() {
        Some(by) if !by.each => by.path.dotted(),
        _ => KEY.to_owned(),
    }
}

/// One row `{ _id: key, expected, expectedState }` per key that has children.
fn grouping(link: &Link, stateful: Option<&Stateful>) -> Vec<Value<'static>> {
    let mut stages = Vec::new();
    if let Some(filter) = &link.filter {
        stages.push(call("$match", Value::Document(filter.source.clone())));
    }
    stages.push(call("$group", object(group(stateful, field(&key_field(link))))));
    match stateful {
        None => stages.push(call("$project", object([("expected", Value::from("$n"))]))),
        Some(Stateful { shown, form, .. }) => {
            let state = grouped_state(*form, Value::from("$$ROOT"));
            stages.push(call("$project", object([("expectedState", state)])));
            let value = visible_expression(*shown, Value::from("$expectedState"));
            stages.push(call("$set", object([("expected", value)])));
        }
    }
    stages
}

fn group(stateful: Option<&Stateful>, by: Value<'static>) -> Vec<(&'static str, Value<'static>)> {
    let mut fields = vec![("_id", by)];
    let one_each = || call("$sum", Value::Int32(1));
    match stateful {
        None => fields.push(("n", one_each())),
        Some(stateful) => {
            if stateful.form.children {
                fields.push((CHILDREN, one_each()));
            }
            if let Some(path) = &stateful.path {
                fields.extend(accumulators(&path.dotted()));
            }
        }
    }
    fields
}

impl TallyField {
    /// What makes a row of the children of a key: the stages behind a `$match` on it.
    pub(super) fn grouping_stages(&self) -> Array<'static> {
        grouping(&self.link, self.stateful.as_ref()).into_iter().collect()
    }

    /// See [`crate::rule::Field::expected`].
    pub(super) fn definition(&self, only_differences: bool) -> Array<'static> {
        let LinkKey::Path(by) = &self.link.foreign else { return self.met(only_differences) };
        let found = "_pleach_found";
        let (local, by) = (self.link.local.path.dotted(), by.path.dotted());
        let mut inner = Vec::new();
        if let Some(filter) = &self.link.filter {
            inner.push(call("$match", Value::Document(filter.source.clone())));
        }
        if !self.link.each_foreign() {
            // A `$lookup` would join per element.
            let single = call_with("$not", [call("$isArray", field(&by))]);
            inner.push(call("$match", object([("$expr", single)])));
        }
        inner.push(call("$group", object(group(self.stateful.as_ref(), Value::Null))));
        let lookup = object([
            ("from", Value::from(&*self.link.source.collection)),
            ("localField", Value::from(&*local)),
            ("foreignField", Value::from(&*by)),
            ("pipeline", list(inner)),
            ("as", Value::from(found)),
        ]);
        // Null and missing never link, although they are joined.
        let row = cond(links(&local), call_with("$arrayElemAt", [field(found), Value::Int32(0)]), Value::Null);
        let mut shown = vec![("stored", field(&self.field))];
        match (&self.stateful, &self.owned.state) {
            (Some(stateful), Some(state)) => {
                shown.push(("state", field(&state.dotted())));
                shown.push(("expectedState", grouped_state(stateful.form, row)));
            }
            _ => {
                let n = with([("g", row)], call_with("$ifNull", [Value::from("$$g.n"), Value::Int32(0)]));
                shown.push(("expected", n));
            }
        }
        let mut stages = vec![call("$lookup", lookup), call("$project", object(shown))];
        if let Some(Stateful { shown, .. }) = &self.stateful {
            let value = visible_expression(*shown, Value::from("$expectedState"));
            stages.push(call("$set", object([("expected", value)])));
        }
        if only_differences {
            stages.push(self.differing());
        }
        stages.into_iter().collect()
    }

    /// The same by a computed key: `$lookup` joins by fields only, so hosts meet all children in one pass.
    fn met(&self, only_differences: bool) -> Array<'static> {
        let mut stages = self.meeting(true);
        if only_differences {
            stages.push(self.differing());
        }
        stages.into_iter().collect()
    }

    /// The keys of children that have no host, as rows like those of [`grouping`].
    pub(super) fn without_host(&self) -> Array<'static> {
        let found = "_pleach_found";
        let mut stages = keyed(&self.link);
        stages.push(only(links_but(&key_field(&self.link), &["regex"])));
        stages.extend(grouping(&self.link, self.stateful.as_ref()));
        let lookup = object([
            ("from", Value::from(&*self.target.host.collection)),
            ("localField", Value::from("_id")),
            ("foreignField", Value::string(self.link.local.path.dotted())),
            ("pipeline", list([call("$project", object([("_id", Value::Int32(1))]))])),
            ("as", Value::from(found)),
        ]);
        stages.push(call("$lookup", lookup));
        stages.push(call("$match", object([(found, call("$size", Value::Int32(0)))])));
        stages.into_iter().collect()
    }

    /// As [`TallyField::definition`], in one pass over hosts and children: for who may not make the index that the other form
    /// needs. Gives hosts whose value differs.
    pub(super) fn differing_without_index(&self) -> Vec<Value<'static>> {
        self.meeting(false).into_iter().chain([crate::fields::differing()]).collect()
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
        children.extend(grouping(&self.link, self.stateful.as_ref()));
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

    fn differing(&self) -> Value<'static> {
        let differs = |left: &str, right: &str| call_with("$ne", [field(left), field(right)]);
        let type_of = |path: &str| call("$type", field(path));
        let types = call_with("$ne", [type_of("stored"), type_of("expected")]);
        let mut reasons = vec![differs("stored", "expected"), types];
        if self.stateful.is_some() {
            reasons.push(differs("state", "expectedState"));
        }
        only(call_with("$or", reasons))
    }
}

/// The types that never link.
const UNLINKED: [&str; 4] = ["missing", "null", "undefined", "array"];

/// Whether the value at a path links.
fn links(path: &str) -> Value<'static> {
    links_but(path, &[])
}

/// The same, with further types that do not.
fn links_but(path: &str, more: &[&'static str]) -> Value<'static> {
    let unlinked = UNLINKED.iter().chain(more).map(|name| Value::from(*name));
    call_with("$not", [call_with("$in", [call("$type", field(path)), list(unlinked)])])
}

fn only(condition: Value<'static>) -> Value<'static> {
    call("$match", object([("$expr", condition)]))
}
