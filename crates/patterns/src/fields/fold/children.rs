//! The children of keys, as stages on the source: all of some keys, each with its key, and rows made of them.

use super::{Fold, Grouping};
use crate::fields::ranked::IDS;
use crate::mql::{call, call_with, cond, field, list, object, with};
use crate::rule::numbers::{CHILDREN, StateForm};
use crate::rule::{Link, LinkKey, key};
use document::value::Path;
use document::{Array, Value};

/// Where the key of a child stands behind [`keyed`].
pub(crate) const KEY: &str = "_pleach_key";

/// For so many keys an index is sought; for more all children are read once.
const SOUGHT: usize = 200;

/// How a fold answers one key without reading all its children: by an index that has them in order.
#[derive(Clone, Debug)]
pub struct Shortcut {
    /// Each of them stands behind a `$match` on the key and on `where`, and leaves documents with the key's `expected`
    /// and, if [`Fold::answer`] needs them, `ids` of its children.
    pub branches: Vec<Vec<Value<'static>>>,
    /// The stages behind all branches of all keys: of documents `{ _id: key, expected }` they leave one per key.
    pub behind: Vec<Value<'static>>,
}

/// The children of some keys, each with one of these keys.
pub(crate) fn of_keys(link: &Link, keys: &[Value<'static>]) -> Vec<Value<'static>> {
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
    stages
}

/// The rows of some keys by a shortcut: one seek after the other.
pub(super) fn by_shortcut(link: &Link, keys: &[Value<'static>], shortcut: &Shortcut) -> Array<'static> {
    let several = if keys.len() > 1 { joined(link, keys, &shortcut.branches) } else { None };
    let stages = several.unwrap_or_else(|| {
        let mut seeks = Vec::new();
        for key in keys {
            for branch in &shortcut.branches {
                let mut seek = of_key(link, key);
                seek.extend(counted(link));
                seek.extend(branch.iter().cloned());
                seek.push(row(call("$literal", key.borrow()), ""));
                seeks.push(seek);
            }
        }
        one_after_the_other(link, seeks)
    });
    stages.into_iter().chain(shortcut.behind.iter().cloned()).collect()
}

/// What several pipelines on the source give. A transaction takes no `$unionWith`, so each is a `$lookup` of a document of the
/// source: where there is none, none of them gives anything.
pub(crate) fn one_after_the_other(link: &Link, mut pipelines: Vec<Vec<Value<'static>>>) -> Vec<Value<'static>> {
    if pipelines.len() == 1 {
        return pipelines.pop().unwrap_or_default();
    }
    let (name, rows) = (|at: usize| format!("_pleach_{at}"), "_pleach_rows");
    let of_each = list((0..pipelines.len()).map(|at| field(&name(at))));
    let lookup = |(at, pipeline): (usize, Vec<Value<'static>>)| {
        let source = Value::from(&*link.source.collection);
        let lookup = [("from", source), ("pipeline", list(pipeline)), ("as", Value::string(name(at)))];
        call("$lookup", object(lookup))
    };
    let mut stages = vec![call("$limit", Value::Int32(1)), call("$project", object([("_id", Value::Int32(1))]))];
    stages.extend(pipelines.into_iter().enumerate().map(lookup));
    stages.push(call("$project", object([(rows, call("$concatArrays", of_each))])));
    stages.push(call("$unwind", field(rows)));
    stages.push(call("$replaceWith", field(rows)));
    stages
}

/// The same for many keys, where children have their key at a path: one `$lookup` of all keys for each branch. Returns
/// `None` if the key is computed.
fn joined(link: &Link, keys: &[Value<'static>], branches: &[Vec<Value<'static>>]) -> Option<Vec<Value<'static>>> {
    let by = link.foreign.path()?;
    let path = by.path.dotted();
    let is_its_own = match by.each {
        true => call_with("$in", [Value::from("$$key"), elements(&by.path)]),
        false => is_single(&path),
    };
    let keys = call("$literal", list(keys.iter().map(Value::borrow)));
    let mut stages = vec![
        call("$limit", Value::Int64(1)),
        call("$project", object([("_id", Value::Int32(0)), ("key", keys)])),
        call("$unwind", field("key")),
    ];
    let mut found = Vec::new();
    for (at, branch) in branches.iter().enumerate() {
        let mut seek = vec![only(is_its_own.clone())];
        seek.extend(counted(link));
        seek.extend(branch.iter().cloned());
        let name = format!("found{at}");
        stages.push(call(
            "$lookup",
            object([
                ("from", Value::from(&*link.source.collection)),
                ("localField", Value::from("key")),
                ("foreignField", Value::from(&*path)),
                ("let", object([("key", field("key"))])),
                ("pipeline", list(seek)),
                ("as", Value::from(&*name)),
            ]),
        ));
        found.push(field(&name));
    }
    stages.push(call("$set", object([("found", call_with("$concatArrays", found))])));
    stages.push(call("$unwind", field("found")));
    stages.push(row(field("key"), "found."));
    Some(stages)
}

/// `{ _id: key, expected }`, and `ids` if the answer has them.
fn row(key: Value<'static>, within: &str) -> Value<'static> {
    let shown = |name: &str| field(&format!("{within}{name}"));
    call("$project", object([("_id", key), ("expected", shown("expected")), (IDS, shown(IDS))]))
}

/// The children of one key, by conditions alone: a `$sort` behind them can be served by an index.
pub(crate) fn of_key(link: &Link, key: &Value<'static>) -> Vec<Value<'static>> {
    let equals = |computed: Value<'static>| call_with("$eq", [computed, call("$literal", key.borrow())]);
    let found = std::slice::from_ref(key);
    match &link.foreign {
        LinkKey::Path(by) if by.each => {
            let is_one = call_with("$in", [call("$literal", key.borrow()), elements(&by.path)]);
            vec![key::any_of(&by.path, found), only(is_one)]
        }
        LinkKey::Path(by) => vec![key::any_of(&by.path, found), only(is_single(&by.path.dotted()))],
        LinkKey::Expression(expression) => {
            let seek = expression.seek.iter().map(|seek| call("$match", seek.filter(key)));
            seek.chain([only(equals(expression.total.clone()))]).collect()
        }
    }
}

/// The stages that give each child its key, or one row for each of its keys, where it is not simply a field.
pub(super) fn keyed(link: &Link) -> Vec<Value<'static>> {
    let set = |key: Value<'static>| call("$set", object([(KEY, key)]));
    match &link.foreign {
        LinkKey::Path(by) if by.each => vec![set(elements(&by.path)), call("$unwind", field(KEY))],
        LinkKey::Path(_) => Vec::new(),
        LinkKey::Expression(expression) => vec![set(expression.total.clone())],
    }
}

/// Each value at the path once, arrays on the way and at its end entered: the same as [`key::linked`].
pub(crate) fn elements(path: &Path) -> Value<'static> {
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

/// The keys of a child as a list.
pub(super) fn keys_of_child(link: &Link) -> Value<'static> {
    let one = match &link.foreign {
        LinkKey::Path(by) if by.each => return elements(&by.path),
        LinkKey::Path(by) => field(&by.path.dotted()),
        LinkKey::Expression(expression) => expression.total.clone(),
    };
    let unlinked = list(UNLINKED.map(Value::from));
    let links = call_with("$not", [call_with("$in", [call("$type", Value::from("$$this")), unlinked])]);
    call("$filter", object([("input", list([one])), ("cond", links)]))
}

/// The field that holds a child's key behind [`keyed`].
pub(crate) fn key_field(link: &Link) -> String {
    match link.foreign.path() {
        Some(by) if !by.each => by.path.dotted(),
        _ => KEY.to_owned(),
    }
}

/// `where`, as a stage.
pub(crate) fn counted(link: &Link) -> Option<Value<'static>> {
    link.filter.as_ref().map(|filter| call("$match", Value::Document(filter.source.clone())))
}

/// One row `{ _id: key, expected, expectedState }` per key that has children.
pub(super) fn grouped(link: &Link, fold: &impl Fold, form: StateForm) -> Vec<Value<'static>> {
    let group = grouped_by(fold, form, field(&key_field(link)));
    counted(link).into_iter().chain(group).collect()
}

pub(super) fn grouped_by(fold: &impl Fold, form: StateForm, by: Value<'static>) -> Vec<Value<'static>> {
    let Grouping { before, accumulators, behind } = fold.grouping(form);
    let mut group = vec![("_id", by)];
    if form.children && !accumulators.iter().any(|(name, _)| *name == CHILDREN) {
        group.push((CHILDREN, call("$sum", Value::Int32(1))));
    }
    group.extend(accumulators);
    before.into_iter().chain([call("$group", object(group))]).chain(behind).collect()
}

/// The types that never link.
const UNLINKED: [&str; 4] = ["missing", "null", "undefined", "array"];

/// Whether the value at a path links.
pub(super) fn links(path: &str) -> Value<'static> {
    links_but(path, &[])
}

/// The same, with further types that do not.
pub(super) fn links_but(path: &str, more: &[&'static str]) -> Value<'static> {
    let unlinked = UNLINKED.iter().chain(more).map(|name| Value::from(*name));
    call_with("$not", [call_with("$in", [call("$type", field(path)), list(unlinked)])])
}

/// Whether there is no array at the path: a filter or a `$lookup` would take its elements.
pub(super) fn is_single(path: &str) -> Value<'static> {
    call_with("$not", [call("$isArray", field(path))])
}

/// Has the documents read. Where an index holds all that stages ask for, MongoDB answers from it alone, and gives null for a field that a
/// document does not have.
pub(crate) fn from_documents() -> Value<'static> {
    let absent = object([("$exists", Value::Bool(false))]);
    call("$match", object([("_pleach_absent", absent)]))
}

pub(crate) fn only(condition: Value<'static>) -> Value<'static> {
    call("$match", object([("$expr", condition)]))
}
