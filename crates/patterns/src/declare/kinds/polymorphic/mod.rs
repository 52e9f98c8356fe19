//! Polymorphic: documents of several kinds in one collection, each kind with its own required fields, schema and indexes.
//!
//! Before: `{ title: "Emma", isbn: "9" }` beside `{ title: "Radio", brand: "Acme" }`, and nothing says which is which.
//! After: `{ type: "book", title: "Emma", isbn: "9" }`; a `book` without an `isbn` is refused.

mod common;
mod indexes;
mod normal;
mod schema;
mod text;

use crate::constraints::Polymorphic;
use crate::constraints::polymorphic::{DocumentKind, UnknownKinds};
use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType};
use crate::declare::names;
use crate::declare::normal as declared;
use crate::declare::tree::NodeContent;
use crate::rule::{ClientWrites, Kind, Rule};
use common::{KindPart, Parts};
use document::value::Path;
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "polymorphic",
    title: "Polymorphic",
    help: "Checks documents of several kinds in one collection, each kind with its own required fields and indexes.",
    problem: "Things that are read together differ in shape, and nothing says which shapes there are.",
    mechanism: "A discriminator is required, each kind has its own schema, and partial indexes hold only their kind.",
    symptom: "Several similar collections that are searched together, or one collection with fields that only some documents have.",
    when_not: "The kinds are never read together.",
    example: "products:\n  polymorphic:\n    discriminator: type\n    kinds: { book: { required: [title, isbn] } }",
    status: Status::There(Definition { per: Per::Collection, keys: KEYS, forms: FORMS, lower }),
};

const UNKNOWN: &[(&str, UnknownKinds)] = &[("reject", UnknownKinds::Reject), ("accept", UnknownKinds::Accept)];

const INDEXES_KEY: KeyDef = KeyDef {
    name: "indexes",
    help: "Indexes: `{ key: { isbn: 1 }, unique: true }` each; those of a kind hold its documents only.",
    shape: ValueType::List { of: &ValueType::Part { keys: indexes::KEYS, required: &["key"] }, least: 1 },
};

const KIND_KEYS: &[KeyDef] = &[
    INDEXES_KEY,
    KeyDef {
        name: "inherits",
        help: "The part of `common`, or several, that it has as well.",
        shape: ValueType::Either(&[ValueType::Word, ValueType::List { of: &ValueType::Word, least: 1 }]),
    },
    KeyDef {
        name: "required",
        help: "The fields that its documents must have.",
        shape: ValueType::List { of: &ValueType::Path, least: 1 },
    },
    KeyDef { name: "schema", help: "A JSON Schema, as MongoDB's $jsonSchema takes it.", shape: ValueType::Filter },
];

const PART: ValueType = ValueType::Part { keys: KIND_KEYS, required: &[] };

const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "common",
        help: "Parts that several kinds have, under names of their own; a kind `inherits` them.",
        shape: ValueType::Words(&PART),
    },
    KeyDef { name: "discriminator", help: "The field that says which kind a document is of.", shape: ValueType::Path },
    INDEXES_KEY,
    KeyDef { name: "kinds", help: "The kinds, by the value of the discriminator.", shape: ValueType::Words(&PART) },
    KeyDef { name: "text", help: "A text index of all documents: from field to weight.", shape: ValueType::Weights },
    KeyDef {
        name: "unknown",
        help: "Whether documents of other kinds are rejected (the default) or accepted.",
        shape: ValueType::Choice(&["reject", "accept"]),
    },
];

const FORMS: &[KeySet] =
    &[KeySet { required: &["discriminator", "kinds"], optional: &["common", "indexes", "text", "unknown"] }];

/// More kinds than that are data, not kinds: the validator is read with every write.
const MOST_KINDS: usize = 100;

/// MongoDB has at most 64 indexes in a collection, and one of them is that of `_id`.
const MOST_INDEXES: usize = 63;

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    let before = findings.errors();
    block.only(KEYS, findings);
    let discriminator = block
        .require("discriminator", "discriminator: <the field that says the kind>", findings)
        .and_then(|item| discriminator(&item, findings));
    let parts =
        block.get("common").map_or_else(Parts::default, |item| Parts::read(&item, discriminator.as_ref(), findings));
    let kinds = block
        .require("kinds", "kinds: { book: { required: [title] } }", findings)
        .map(|item| kinds(&item, discriminator.as_ref(), &parts, findings));
    parts.unused(findings);
    let unknown = block.get("unknown").map_or(Some(UnknownKinds::Reject), |item| item.choice(UNKNOWN, findings));
    let indexes = block.get("indexes").map(|item| indexes::read(&item, findings)).unwrap_or_default();
    let text = block.get("text").map(|item| text::read(&item, findings)).unwrap_or_default();
    if findings.errors() > before {
        return None;
    }
    let rule = Polymorphic {
        rule: target.name.clone(),
        host: target.host.clone(),
        discriminator: discriminator?,
        kinds: kinds?,
        unknown: unknown?,
        indexes,
        text,
    };
    let count = rule.indexes.len() + rule.kinds.iter().map(|kind| kind.indexes.len()).sum::<usize>();
    if count + usize::from(!rule.text.is_empty()) > MOST_INDEXES {
        let message = format!("{count} indexes: a collection has at most {MOST_INDEXES} beside that of `_id`");
        findings.error(&block.at, message, "share indexes: declare them beside `kinds` instead of in each kind");
        return None;
    }
    Some(Rule {
        name: target.name.clone(),
        pattern: PATTERN.name,
        host: target.host.clone(),
        field: target.field.clone(),
        lift: None,
        client_writes: ClientWrites::Override,
        declaration: declared::collection_rule(&target.host, PATTERN.name, normal::block(&rule)),
        kind: Kind::Constraint(Arc::new(rule)),
    })
}

/// A field that clients write and that never is an array's element.
fn discriminator(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Path> {
    let path = item.path("type", findings)?;
    let reason = match path.first() {
        "_id" => "`_id` never changes, so a document could not change its kind",
        _ if path.parts.iter().any(|part| part.index.is_some()) => "a document has one kind, not one for each element",
        _ => return Some(path),
    };
    findings.error(
        &item.at,
        format!("`discriminator: {path}`: {reason}"),
        "name a field of its own: `discriminator: type`",
    );
    None
}

fn kinds(
    item: &BlockItem<'_>,
    discriminator: Option<&Path>,
    parts: &Parts,
    findings: &mut Findings,
) -> Vec<DocumentKind> {
    let what = "name the kinds, each with what its documents must have";
    let Some(block) = Block::open(item.node, item.at.clone(), what, findings) else { return Vec::new() };
    if block.entries.len() > MOST_KINDS {
        let message = format!("{} kinds: at most {MOST_KINDS} can be told apart", block.entries.len());
        findings.error(&block.at, message, "a value with so many forms is an ordinary field: leave it out");
        return Vec::new();
    }
    let mut kinds = Vec::new();
    for item in block.items() {
        if item.key.is_empty() || item.key.contains('\0') {
            findings.error(&block.key_at(item.key), "a kind needs a name", "name it as the discriminator does: `book`");
            continue;
        }
        let own = KindPart::read(&block, &item, discriminator, findings);
        kinds.push(parts.combined(item.key, &own, findings));
    }
    kinds
}

/// `required: [title, isbn]`
fn required(item: &BlockItem<'_>, discriminator: Option<&Path>, findings: &mut Findings) -> Vec<Path> {
    const EXAMPLE: &str = "[title]";
    let mut all: Vec<Path> = Vec::new();
    let NodeContent::List(items) = &item.node.content else {
        item.expected("a list of fields", EXAMPLE, findings);
        return all;
    };
    if items.is_empty() {
        findings.error(&item.at, "`required` is empty", "name a field, or leave it out");
    }
    for (index, node) in items.iter().enumerate() {
        let own = BlockItem { node, at: item.at.inside(&index.to_string(), node.spot), key: item.key };
        let Some(text) = own.text("a field", EXAMPLE, findings) else { continue };
        let wrong = match names::path(text) {
            Err(reason) => Some((format!("`{}` cannot be required: {reason}", text.escape_debug()), "name a field")),
            Ok(path) if path.first() == "_pleach" => {
                Some((format!("`{path}`: `_pleach` holds Pleach's own state"), "name a field of your own"))
            }
            Ok(path) if Some(&path) == discriminator => {
                Some((format!("`{path}` is the discriminator: every document has it"), "leave it out of `required`"))
            }
            Ok(path) if path.parts.iter().any(|part| part.index.is_some()) => Some((
                format!("`{path}` names a position in an array"),
                "require the array's field, and say in `schema` what its elements are",
            )),
            Ok(path) if all.contains(&path) => Some((format!("`{path}` is there twice"), "keep one of them")),
            Ok(path) => {
                all.push(path);
                None
            }
        };
        if let Some((message, hint)) = wrong {
            findings.error(&own.at, message, hint);
        }
    }
    all
}
