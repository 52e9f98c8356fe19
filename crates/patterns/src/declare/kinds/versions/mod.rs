//! Schema versioning: documents of several shapes in one collection, read and written in one.
//!
//! Before: `users { _id, phone: "555" }` of an old client beside `users { _id, phone: { countryCode: "+1", number: "555" } }`, and
//! code that checks for both.
//! After: every read gives the second shape, whatever is stored, and a background migration rewrites the rest.

mod migrate;
mod steps;
#[cfg(test)]
mod tests;

use crate::declare::block::Block;
use crate::declare::finding::Findings;
use crate::declare::kinds::{DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType};
use crate::declare::normal as declared;
use crate::mql::{document, list};
use crate::rule::lens::Lens;
use crate::rule::{ClientWrites, Kind, Rule};
use document::Value;
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "versions",
    title: "Schema versioning",
    help: "Lets documents of older and newer shapes live in one collection, each client reading and writing one shape.",
    problem: "A change of the schema needs a migration of all documents before the first client may use it.",
    mechanism: "Steps describe each change both ways; reads give the newest shape, and a background migration rewrites the rest.",
    symptom: "Old documents after a schema change, and code that checks for both shapes.",
    when_not: "The collection is small enough to be rewritten while nobody writes to it.",
    example: "users:\n  versions:\n    field: schemaVersion\n    steps: [{ rename: { phone: phoneNumber } }]",
    status: Status::There(Definition { per: Per::Collection, keys: KEYS, forms: FORMS, lower }),
};

const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "field",
        help: "The top-level field that holds a document's version number; a document without it has version 1.",
        shape: ValueType::Name,
    },
    KeyDef {
        name: "migrate",
        help: "How stored documents are brought to the newest version: after a read, in the background, when and how fast.",
        shape: ValueType::Part { keys: migrate::KEYS, required: &[] },
    },
    KeyDef {
        name: "steps",
        help: "What each version changes, the first entry from 1 to 2: rename, nest, split, join, convert, default, drop, wrap, or up and down.",
        shape: ValueType::List {
            of: &ValueType::Either(&[ValueType::Operators, ValueType::List { of: &ValueType::Operators, least: 1 }]),
            least: 1,
        },
    },
];

const FORMS: &[KeySet] = &[KeySet { required: &["field", "steps"], optional: &["migrate"] }];

pub(crate) fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    let before = findings.errors();
    block.only(KEYS, findings);
    let field = block.require("field", "field: schemaVersion", findings).and_then(|item| {
        let path = item.path("schemaVersion", findings)?;
        if path.parts.len() > 1 || path.first() == "_id" {
            findings.error(
                &item.at,
                format!("`field: {path}` cannot hold a version number: it is a top-level field of its own"),
                "write `field: schemaVersion`",
            );
            return None;
        }
        Some(path)
    });
    let versions = block
        .require("steps", "steps: [{ rename: { phone: phoneNumber } }]", findings)
        .and_then(|item| steps::read(&item, field.as_ref(), findings));
    let migrate = match block.get("migrate") {
        Some(item) => migrate::read(&item, findings),
        None => Some(crate::rule::lens::Migrate::default()),
    };
    let (field, versions, migrate) = (field?, versions?, migrate?);
    if findings.errors() > before {
        return None;
    }
    let normal = document([
        ("field", Value::from(field.first())),
        ("steps", list(versions.iter().map(|version| list(version.declared.iter().cloned())))),
        ("migrate", migrate::normal(&migrate)),
    ]);
    let steps = versions.into_iter().map(|version| version.steps).collect();
    let lens = block.compiled(Lens::new(field.first(), steps, migrate), findings)?;
    Some(Rule {
        name: target.name.clone(),
        pattern: PATTERN.name,
        host: target.host.clone(),
        field: target.field.clone(),
        lift: None,
        client_writes: ClientWrites::Override,
        declaration: declared::collection_rule(&target.host, PATTERN.name, normal),
        kind: Kind::Lens(Arc::new(lens)),
    })
}
