//! What a constraint asks for, as commands that a person would run once: the validator and the indexes.

use crate::languages::Language;
use crate::languages::javascript::{Flavor, MONGOSH, NODE, capital};
use crate::languages::literals::{quoted, render};
use crate::languages::python::{STYLE, plain};
use crate::mql;
use crate::rule::{Constraint, Rule, ShapeCode};
use document::{Doc, Value};

pub(super) fn code(rule: &Rule, constraint: &dyn Constraint, language: Language) -> ShapeCode {
    let (collection, commands) = (&*rule.host.collection, commands(rule, constraint));
    let (name, text) = match language {
        Language::Mongosh => javascript(collection, &commands, &MONGOSH),
        Language::Node => javascript(collection, &commands, &NODE),
        Language::Python => python(collection, &commands),
    };
    ShapeCode { helpers: String::new(), functions: vec![name], text }
}

/// `collMod` with the validator, `createIndexes` with the indexes.
fn commands(rule: &Rule, constraint: &dyn Constraint) -> Vec<Doc<'static>> {
    let collection = || Value::from(&*rule.host.collection);
    let validator = Value::Document(constraint.validator(&[]));
    let level = ("validationLevel", Value::from("moderate"));
    let mut commands = vec![mql::document([("collMod", collection()), ("validator", validator), level])];
    let (mut specs, mut names): (Vec<Value<'static>>, Vec<String>) = Default::default();
    for need in constraint.needs().indexes {
        // Two kinds may have an index of one key.
        let taken = names.iter().filter(|name| **name == need.name()).count();
        let name = if taken == 0 { need.name() } else { format!("{}_{}", need.name(), taken + 1) };
        names.push(need.name());
        specs.push(Value::Document(need.spec(&name)));
    }
    if !specs.is_empty() {
        commands.push(mql::document([("createIndexes", collection()), ("indexes", mql::list(specs))]));
    }
    commands
}

fn javascript(collection: &str, commands: &[Doc<'static>], flavor: &Flavor) -> (String, String) {
    let Flavor { wait, function, style, command, .. } = flavor;
    let (name, quoted) = (format!("constrain{}", capital(collection)), quoted(collection));
    let create = match wait.is_empty() {
        true => {
            format!("  if (!database.getCollectionNames().includes({quoted})) database.createCollection({quoted});\n")
        }
        false => format!(
            "  const there = await database.listCollections({{ name: {quoted} }}).toArray();\n\
             \x20 if (there.length === 0) await database.createCollection({quoted});\n"
        ),
    };
    let run = |body: &Doc<'static>| {
        format!("  {wait}database.{command}({});\n", render(&Value::Document(body.borrow()), style, 2))
    };
    let run: String = commands.iter().map(run).collect();
    let text = format!(
        "// A validator of your own goes beside it: {{ $and: [yours, this] }}.\n{function} {name}() {{\n{create}{run}}}\n"
    );
    (name, text)
}

fn python(collection: &str, commands: &[Doc<'static>]) -> (String, String) {
    let (name, quoted) = (format!("constrain_{}", plain(collection)), quoted(collection));
    let run = |body: &Doc<'static>| format!("    db.command({})\n", render(&Value::Document(body.borrow()), &STYLE, 4));
    let run: String = commands.iter().map(run).collect();
    let text = format!(
        "# A validator of your own goes beside it: {{ $and: [yours, this] }}.\n\n\ndef {name}():\n\
         \x20   if {quoted} not in db.list_collection_names():\n        db.create_collection({quoted})\n{run}"
    );
    (name, text)
}
