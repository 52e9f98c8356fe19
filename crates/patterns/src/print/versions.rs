//! Code for documents of several versions: the updates that migrate them, run once, and a read that sees all as the newest.

use crate::languages::Language;
use crate::languages::javascript::{Flavor, MONGOSH, NODE, capital};
use crate::languages::literals::{quoted, render};
use crate::languages::python::{STYLE, plain};
use crate::mql::{self, call};
use crate::rule::{Lens, Rule, ShapeCode};
use document::{Doc, Value};

pub(super) fn code(rule: &Rule, lens: &Lens, language: Language) -> ShapeCode {
    let collection = &*rule.host.collection;
    let (functions, text) = match language {
        Language::Mongosh => javascript(collection, lens, &MONGOSH),
        Language::Node => javascript(collection, lens, &NODE),
        Language::Python => python(collection, lens),
    };
    ShapeCode { helpers: String::new(), functions, text }
}

/// For each older version the filter that finds its documents, and the update that makes them the newest.
fn updates(lens: &Lens) -> impl Iterator<Item = (Doc<'static>, Value<'static>)> + '_ {
    (1..lens.newest()).map(|version| {
        let numbers = match version {
            1 => call("$in", mql::list([Value::Null, Value::Int32(1)])),
            later => Value::Int32(later),
        };
        (mql::document([(&*lens.field, numbers)]), Value::Array(lens.up_stages(version)))
    })
}

fn javascript(collection: &str, lens: &Lens, flavor: &Flavor) -> (Vec<String>, String) {
    let Flavor { wait, function, style, .. } = flavor;
    let name = |word: &str| format!("{word}{}", capital(collection));
    let (index, migrate, find) = (name("indexVersionsOf"), name("migrate"), name("findNewest"));
    let called = quoted(collection);
    let own = match wait.is_empty() {
        true => format!("database.getCollection({called})"),
        false => format!("database.collection({called})"),
    };
    let shown = |value: &Value<'_>| render(value, style, 2);
    let run: String = updates(lens)
        .map(|(filter, update)| {
            format!("  {wait}{own}.updateMany({}, {});\n", shown(&Value::Document(filter)), shown(&update))
        })
        .collect();
    let view = shown(&Value::Array(lens.view().clone()));
    let text = format!(
        "// Once, after the last program that writes an older version is gone; again if one was not.\n\
         {function} {migrate}() {{\n{run}}}\n\n\
         // Old documents are found by it.\n\
         {function} {index}() {{\n  {wait}{own}.createIndex({{ {field}: 1 }});\n}}\n\n\
         // Every document as version {newest}, whatever is stored. A filter on a changed field uses no index before all are migrated.\n\
         {function} {find}(filter = {{}}) {{\n\
         \x20 const newest = {view};\n\
         \x20 return {own}.aggregate([...newest, {{ $match: filter }}]).toArray();\n}}\n",
        newest = lens.newest(),
        field = quoted(&lens.field)
    );
    (vec![index, migrate, find], text)
}

fn python(collection: &str, lens: &Lens) -> (Vec<String>, String) {
    let name = |word: &str| format!("{word}_{}", plain(collection));
    let (index, migrate, find) = (name("index_versions_of"), name("migrate"), name("find_newest"));
    let own = format!("db[{}]", quoted(collection));
    let shown = |value: &Value<'_>| render(value, &STYLE, 4);
    let run: String = updates(lens)
        .map(|(filter, update)| {
            format!("    {own}.update_many({}, {})\n", shown(&Value::Document(filter)), shown(&update))
        })
        .collect();
    let view = shown(&Value::Array(lens.view().clone()));
    let text = format!(
        "# Once, after the last program that writes an older version is gone; again if one was not.\n\
         def {migrate}():\n{run}\n\n\
         # Old documents are found by it.\n\
         def {index}():\n    {own}.create_index({field})\n\n\n\
         # Every document as version {newest}, whatever is stored. A filter on a changed field uses no index before all are migrated.\n\
         def {find}(filter=None):\n    newest = {view}\n    return list({own}.aggregate([*newest, {{\"$match\": filter or {{}}}}]))\n",
        newest = lens.newest(),
        field = quoted(&lens.field)
    );
    (vec![index, migrate, find], text)
}
