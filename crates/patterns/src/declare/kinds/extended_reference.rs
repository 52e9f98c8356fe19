//! Extended reference: a copy of some fields of a referenced document, kept fresh.
//!
//! Before: `orders { customerId: 7 }`, and a `$lookup` in `customers` on every read.
//! After: `orders { customerId: 7, customer: { name: "Ada", tier: "gold" } }`.

use crate::declare::block::{Block, print_duration};
use crate::declare::finding::{At, Findings};
use crate::declare::kinds::{
    DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType, excerpt_fields,
};
use crate::fields::CopyField;
use crate::rule::{ClientWrites, KeyPath, Link, LinkKey, Refers, Rule, WhenChanged, WhenDeleted};
use document::op::Namespace;
use document::value::Path;
use document::{DocWriter, Value};
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "extended_reference",
    title: "Extended reference",
    help: "Keeps a copy of some fields of a referenced document beside the reference.",
    problem: "Every read of a document follows its references: a second query or a $lookup for a name and an avatar.",
    mechanism: "The copy is filled when the reference is written, and refreshed in every copy when the source changes.",
    symptom: "The same $lookup, or a second query by id, on almost every read.",
    when_not: "The copied fields change more often than they are read, or a source has very many copies.",
    example: "orders:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name, email, tier] }",
    status: Status::There(Definition { per: Per::Field, keys: KEYS, forms: FORMS, lower }),
};

const WHEN_CHANGED: &[(&str, WhenChanged)] = &[("refresh", WhenChanged::Refresh), ("keep", WhenChanged::Keep)];
const WHEN_DELETED: &[(&str, WhenDeleted)] = &[
    ("keep", WhenDeleted::Keep),
    ("unset", WhenDeleted::Unset),
    ("reject", WhenDeleted::Reject),
    ("cascade", WhenDeleted::Cascade),
];
/// Omitted, the default has no word of its own.
pub(super) const CLIENT_WRITES: &[(&str, ClientWrites)] =
    &[("refuse", ClientWrites::Refuse), ("ignore", ClientWrites::Ignore)];
pub(super) const CLIENT_WRITES_KEY: KeyDef = KeyDef {
    name: "client_writes",
    help: "What happens to a client's write to the field: refuse a differing value, or ignore it silently; omitted, operators on it are refused and whole documents overridden.",
    shape: ValueType::Choice(&["refuse", "ignore"]),
};

const KEYS: &[KeyDef] = &[
    KeyDef { name: "by", help: "The field of this document that holds the reference.", shape: ValueType::Path },
    CLIENT_WRITES_KEY,
    KeyDef {
        name: "each",
        help: "Whether the reference is an array of values, each giving a copy of its own.",
        shape: ValueType::Flag,
    },
    KeyDef {
        name: "fields",
        help: "What is copied: a list of fields, or a map from the name in the copy to the path in the source.",
        shape: ValueType::Fields,
    },
    KeyDef { name: "from", help: "The collection that the reference points to.", shape: ValueType::Collection },
    KeyDef {
        name: "lag",
        help: "How late copies may be refreshed; omitted, they are in the same transaction.",
        shape: ValueType::Duration,
    },
    KeyDef {
        name: "match",
        help: "The field of the source that the reference equals; `_id` if omitted.",
        shape: ValueType::Path,
    },
    KeyDef {
        name: "when_changed",
        help: "Whether copies are refreshed (the default) or keep what they were filled with.",
        shape: ValueType::Choice(&["refresh", "keep"]),
    },
    KeyDef {
        name: "when_deleted",
        help: "Whether deleting the source keeps the copies (the default), unsets them, is rejected while there are any, or cascades to the documents that hold them.",
        shape: ValueType::Choice(&["keep", "unset", "reject", "cascade"]),
    },
];

const FORMS: &[KeySet] = &[KeySet {
    required: &["from", "by", "fields"],
    optional: &["match", "each", "when_changed", "when_deleted", "lag", "client_writes"],
}];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    block.only(KEYS, findings);
    let database = &target.host.db;
    let from = block
        .require("from", "from: <the collection that is copied from>", findings)
        .and_then(|item| item.collection(database, "customers", findings));
    let by = block
        .require("by", "by: <the field that holds the reference>", findings)
        .and_then(|item| item.path("customerId", findings));
    let foreign = match block.get("match") {
        Some(item) => item.path("email", findings),
        None => Some(Path::new("_id")),
    };
    let fields = block
        .require("fields", "fields: [name]", findings)
        .and_then(|item| excerpt_fields::read(&item, &block.key_at("fields"), "copy", findings));
    let each = block.get("each").map_or(Some(false), |item| item.flag(findings));
    let when_changed =
        block.get("when_changed").map_or(Some(WhenChanged::Refresh), |item| item.choice(WHEN_CHANGED, findings));
    let when_deleted =
        block.get("when_deleted").map_or(Some(WhenDeleted::Keep), |item| item.choice(WHEN_DELETED, findings));
    let lag = block.get("lag").map_or(Some(None), |item| item.duration(findings).map(Some));
    let client_writes = client_writes(block, findings);

    let by = by.filter(|by| {
        possible_by(by, each, target, &block.get("by").map_or(block.at.clone(), |item| item.at), findings)
    });
    if let (Some(from), Some(by), Some(foreign)) = (from, &by, &foreign)
        && *from == *target.host.collection
        && by == foreign
    {
        findings.error(
            &block.key_at("by"),
            format!("every document of `{from}` would refer to itself: `by` and `match` are both `{by}`"),
            "name the field that holds the reference in `by`, or use `computed` with `expr` for values of the same document",
        );
    }
    if lag.flatten().is_some() && when_changed == Some(WhenChanged::Keep) {
        findings.warning(
            &block.key_at("lag"),
            "`lag` does nothing here: copies that keep their values are never refreshed",
            "leave out `lag`, or write `when_changed: refresh`",
        );
    }

    let (from, by, foreign, fields, each) = (from?, by?, foreign?, fields?, each?);
    let (when_changed, when_deleted, lag, client_writes) = (when_changed?, when_deleted?, lag?, client_writes?);
    let mut own = DocWriter::new();
    own.append("from", &Value::string(from));
    own.append("by", &Value::string(by.dotted()));
    own.append("match", &Value::string(foreign.dotted()));
    own.start_document("fields");
    for (name, path) in &fields {
        own.append(name, &Value::string(path.dotted()));
    }
    own.end();
    own.append("when_changed", &Value::string(word(WHEN_CHANGED, when_changed)));
    own.append("when_deleted", &Value::string(word(WHEN_DELETED, when_deleted)));
    if each {
        own.append("each", &Value::Bool(true));
    }
    if let Some(lag) = lag {
        own.append("lag", &Value::string(print_duration(lag)));
    }
    let link = Link {
        local: KeyPath { path: by, each },
        source: Namespace::new(database, from),
        foreign: LinkKey::Path(KeyPath::new(foreign)),
        refers: Refers::Host,
        filter: None,
        lag,
        when_changed,
        when_deleted,
        create: false,
    };
    let field = block.compiled(CopyField::new(target.host_field(), link, fields), findings)?;
    Some(target.rule(&PATTERN, Arc::new(field), client_writes, own))
}

/// What `client_writes` says; `None` if it is wrong.
pub(super) fn client_writes(block: &Block<'_>, findings: &mut Findings) -> Option<ClientWrites> {
    block.get("client_writes").map_or(Some(ClientWrites::Override), |item| item.choice(CLIENT_WRITES, findings))
}

pub(super) fn word<T: PartialEq>(choices: &[(&'static str, T)], wanted: T) -> &'static str {
    choices.iter().find(|(_, meaning)| *meaning == wanted).map(|(word, _)| *word).unwrap_or_default()
}

/// Whether a document could satisfy it.
fn possible_by(by: &Path, each: Option<bool>, target: &DeclaredField, at: &At, findings: &mut Findings) -> bool {
    let field = &target.field;
    let (message, hint) = if by.is_prefix_of(field) || field.is_prefix_of(by) {
        (
            format!("`by: {by}` lies in the field that the rule fills, `{field}`"),
            format!("keep the reference beside the copy: `by: {field}Id`"),
        )
    } else if by.first() == "_id" && each == Some(true) {
        (
            "`_id` is never an array, so `each: true` has nothing to walk".to_owned(),
            "leave out `each`, or name the array in `by`".to_owned(),
        )
    } else if by.parts.iter().any(|part| part.index.is_some()) {
        (
            format!("`by: {by}` names a position in an array"),
            "name the array's field: each element is followed by itself".to_owned(),
        )
    } else {
        return true;
    };
    findings.error(at, message, hint);
    false
}
