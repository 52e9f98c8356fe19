//! Code for fields of computed keys (roll-ups, `each`): the database computes the keys of a child whenever it is read.

use crate::languages::javascript::Flavor;
use crate::languages::literals::{Style, quoted, render};
use crate::languages::python::{self, plain};
use crate::mql::{call, object};
use crate::print::{Kept, Work, concerned};
use crate::rule::KeyedRecipe;
use document::Value;

/// What such rules need in Python …
pub(super) const PYTHON: &str = "\n\ndef keys_of(child, rule):\n\
\x20   return child[\"_keys\"][rule] if child else []\n\
\n\
\n\
def has_children(state):\n\
\x20   if not isinstance(state, dict):\n\
\x20       return False\n\
\x20   return bool(state.get(\"children\")) or any(has_children(inner) for inner in state.values())\n\
\n\
\n\
def remove_empty(session, collection, key, own):\n\
\x20   host = collection.find_one({\"_id\": key}, session=session)\n\
\x20   if set(host) <= own and not has_children(host.get(\"_pleach\")):\n\
\x20       collection.delete_one({\"_id\": key}, session=session)\n";

/// … and in JavaScript.
pub(super) fn javascript(flavor: &Flavor) -> String {
    let Flavor { wait, function, option, .. } = flavor;
    format!(
        "const keysOf = (child, rule) => child ? child._keys[rule] : [];\n\
         const hasChildren = (state) => state !== null && typeof state === \"object\" && (Number(state.children) > 0 || Object.values(state).some(hasChildren));\n\
         {function} removeEmpty(session, hosts, key, own) {{\n\
         \x20 const host = {wait}hosts.findOne({{ _id: key }}{option});\n\
         \x20 const isOwn = Object.keys(host).every((name) => own.includes(name));\n\
         \x20 if (isOwn && !hasChildren(host._pleach ?? null)) {wait}hosts.deleteOne({{ _id: key }}{option});\n}}\n"
    )
}

pub(super) fn is_needed(kept: &[Kept]) -> bool {
    kept.iter().any(|rule| recipe(rule).is_some())
}

fn recipe(rule: &Kept) -> Option<&KeyedRecipe> {
    match &rule.work {
        Work::Keyed { recipe, .. } => Some(recipe),
        _ => None,
    }
}

/// The name under which a child has the keys of a rule.
fn key_name(rule: &Kept) -> String {
    rule.words.join("_")
}

/// The stage that gives a child its keys; `None` if no rule that reads the collection computes any.
fn keys_stage(kept: &[Kept], collection: &str) -> Option<Value<'static>> {
    let (_, sourced) = concerned(kept, collection);
    let keys: Vec<(String, Value<'static>)> =
        sourced.iter().filter_map(|rule| Some((key_name(rule), recipe(rule)?.keys.clone()))).collect();
    let all = object(keys.iter().map(|(name, keys)| (&**name, keys.borrow())));
    (!keys.is_empty()).then(|| call("$set", object([("_keys", all)])))
}

/// The fields that rules have in the documents of a collection, by their first name.
fn own_names(kept: &[Kept], collection: &str) -> Vec<String> {
    let (hosted, _) = concerned(kept, collection);
    let first = |rule: &&Kept| rule.field.split('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> =
        ["_id", "_pleach"].map(str::to_owned).into_iter().chain(hosted.iter().map(first)).collect();
    names.dedup();
    names
}

/// How a document is read before and after it is written: with its keys.
pub(super) fn python_reader(kept: &[Kept], collection: &str) -> Option<String> {
    let stage = render(&keys_stage(kept, collection)?, &python::STYLE, 8);
    let (stored, plain) = (format!("db[{}]", quoted(collection)), plain(collection));
    Some(format!(
        "\n\ndef find_{plain}(session, filter):\n\
         \x20   stages = [\n        {{\"$match\": filter}},\n        {{\"$limit\": 1}},\n        {stage},\n    ]\n\
         \x20   return next(iter({stored}.aggregate(stages, session=session)), None)\n"
    ))
}

/// What both languages say of a rule.
struct Words<'k> {
    recipe: &'k KeyedRecipe,
    /// The names of the rule's functions.
    keep: String,
    fill: String,
    rows: String,
    stages: String,
    keyed: String,
    empty: String,
    /// Paths, in quotes.
    local: String,
    key: String,
    own: String,
    /// Where children make the host: the functions that fill a new one, and the fields that do not keep an empty one.
    fills: Vec<String>,
    names: String,
}

impl<'k> Words<'k> {
    /// `None` if the rule is not about computed keys.
    fn of(
        kept: &[Kept],
        rule: &'k Kept,
        style: &Style,
        indent: usize,
        name: &impl Fn(&str, &Kept) -> String,
    ) -> Option<Words<'k>> {
        let Work::Keyed { recipe, local } = &rule.work else { return None };
        let array = |array: &document::Array<'static>| render(&Value::Array(array.borrow()), style, 0);
        let (hosted, _) = concerned(kept, &rule.host);
        let names: Vec<String> = own_names(kept, &rule.host).iter().map(|name| quoted(name)).collect();
        Some(Words {
            recipe,
            keep: name("keep", rule),
            fill: name("fill", rule),
            rows: name("rows", rule),
            stages: array(&recipe.stages),
            keyed: array(&recipe.keyed),
            empty: render(&Value::Document(recipe.empty.borrow()), style, indent),
            local: quoted(local),
            key: quoted(&recipe.key),
            own: quoted(&key_name(rule)),
            fills: if recipe.create { hosted.iter().map(|other| name("fill", other)).collect() } else { Vec::new() },
            names: names.join(", "),
        })
    }

    /// What is written, from the parts of a row.
    fn set(&self, part: impl Fn(&str) -> String) -> String {
        let set = self.recipe.set.iter().map(|(path, of)| format!("{}: {}", quoted(path), part(of)));
        set.collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn python_rule(kept: &[Kept], rule: &Kept, name: impl Fn(&str, &Kept) -> String) -> Option<String> {
    let words = Words::of(kept, rule, &python::STYLE, 4, &name)?;
    let set = words.set(|part| format!("rows[0][{}]", quoted(part)));
    let (host, source) = (quoted(&rule.host), quoted(rule.source.as_deref().unwrap_or_default()));
    let (stages_name, keyed_name) = (name("stages_of", rule).to_uppercase(), name("keyed", rule).to_uppercase());
    let Words { recipe, keep, fill, rows, stages, keyed, empty, local, key, own, fills, names } = words;
    let (make, remove) = match recipe.create {
        false => (String::new(), String::new()),
        true => {
            let all: String =
                fills.iter().map(|fill| format!("            {fill}(session, {{\"_id\": key}})\n")).collect();
            (
                format!(
                    "        if host is None and {rows}(session, key):\n\
                     \x20           db[{host}].insert_one({{\"_id\": key}}, session=session)\n{all}"
                ),
                format!("            remove_empty(session, db[{host}], key, {{{names}}})\n"),
            )
        }
    };
    Some(format!(
        "{stages_name} = {stages}\n{keyed_name} = {keyed}\n\n\n\
         def {rows}(session, key):\n\
         \x20   stages = [*{keyed_name}, {{\"$match\": {{{key}: key}}}}, *{stages_name}]\n\
         \x20   return list(db[{source}].aggregate(stages, session=session))\n\
         \n\n\
         def {keep}(session, before, after):\n\
         \x20   for key in keys_of(before, {own}) + keys_of(after, {own}):\n\
         \x20       host = db[{host}].find_one({{{local}: key}}, session=session)\n{make}\
         \x20       if host:\n\
         \x20           {fill}(session, host)\n{remove}\
         \n\n\
         def {fill}(session, host, before=None):\n\
         \x20   key = at(host, {local})\n\
         \x20   rows = {rows}(session, key) if links(key) else []\n\
         \x20   values = {{{set}}} if rows else {empty}\n\
         \x20   db[{host}].update_one({{\"_id\": host[\"_id\"]}}, {{\"$set\": values}}, session=session)\n"
    ))
}

pub(super) fn javascript_reader(kept: &[Kept], collection: &str, capital: &str, flavor: &Flavor) -> Option<String> {
    let Flavor { wait, function, option, style, .. } = flavor;
    let stage = render(&keys_stage(kept, collection)?, style, 4);
    let stored = format!("collection({})", quoted(collection));
    Some(format!(
        "\n{function} find{capital}(session, filter) {{\n\
         \x20 const stages = [\n    {{ $match: filter }},\n    {{ $limit: 1 }},\n    {stage},\n  ];\n\
         \x20 return ({wait}{stored}.aggregate(stages{option}).toArray())[0];\n}}\n"
    ))
}

pub(super) fn javascript_rule(
    kept: &[Kept],
    rule: &Kept,
    flavor: &Flavor,
    name: impl Fn(&str, &Kept) -> String,
) -> Option<String> {
    let Flavor { wait, function, option, style, .. } = flavor;
    let words = Words::of(kept, rule, style, 2, &name)?;
    let set = words.set(|part| format!("row.{part}"));
    let host = format!("collection({})", quoted(&rule.host));
    let source = format!("collection({})", quoted(rule.source.as_deref().unwrap_or_default()));
    let (stages_name, keyed_name) = (name("stagesOf", rule), name("keyed", rule));
    let Words { recipe, keep, fill, rows, stages, keyed, empty, local, key, own, fills, names } = words;
    let (make, remove) = match recipe.create {
        false => (String::new(), String::new()),
        true => {
            let all: String =
                fills.iter().map(|fill| format!("      {wait}{fill}(session, {{ _id: key }});\n")).collect();
            (
                format!(
                    "    if (!host && ({wait}{rows}(session, key)).length > 0) {{\n\
                     \x20     {wait}{host}.insertOne({{ _id: key }}{option});\n{all}    }}\n"
                ),
                format!("    if (host) {wait}removeEmpty(session, {host}, key, [{names}]);\n"),
            )
        }
    };
    Some(format!(
        "const {stages_name} = {stages};\nconst {keyed_name} = {keyed};\n\
         {function} {rows}(session, key) {{\n\
         \x20 const stages = [...{keyed_name}, {{ $match: {{ {key}: key }} }}, ...{stages_name}];\n\
         \x20 return {wait}{source}.aggregate(stages{option}).toArray();\n}}\n\
         {function} {keep}(session, before, after) {{\n\
         \x20 for (const key of [...keysOf(before, {own}), ...keysOf(after, {own})]) {{\n\
         \x20   const host = {wait}{host}.findOne({{ {local}: key }}{option});\n{make}\
         \x20   if (host) {wait}{fill}(session, host);\n{remove}\
         \x20 }}\n}}\n\
         {function} {fill}(session, host, before) {{\n\
         \x20 const key = at(host, {local});\n\
         \x20 const [row] = links(key) ? {wait}{rows}(session, key) : [];\n\
         \x20 const set = row ? {{ {set} }} : {empty};\n\
         \x20 {wait}{host}.updateOne({{ _id: host._id }}, {{ $set: set }}{option});\n}}\n"
    ))
}
