//! Subset: the first few child documents, by an order, kept inside their parent.
//!
//! Before: `posts { _id: 7 }`, and a sorted and limited query of `comments` on every page.
//! After: `posts { _id: 7, recent: [{ text: "Well said", date: … }, …] }`.

use crate::declare::block::{Block, print_duration};
use crate::declare::finding::Findings;
use crate::declare::kinds::extended_reference::{CLIENT_WRITES, CLIENT_WRITES_KEY, client_writes, word};
use crate::declare::kinds::link_keys::{BY_KEY, EACH_KEY, Keys, MATCH_KEY};
use crate::declare::kinds::sort_keys::{self, SORT_KEY};
use crate::declare::kinds::{
    DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType, excerpt_fields,
};
use crate::declare::{normal, programs};
use crate::fields::TopField;
use crate::fields::order::SortOrder;
use crate::fields::top::{ItemForm, Window};
use crate::rule::{ClientWrites, Kind, Link, Refers, Rule, WhenChanged, WhenDeleted};
use document::op::Namespace;
use document::{DocWriter, Value};
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "subset",
    title: "Subset",
    help: "Keeps the first few child documents, by an order, inside their parent.",
    problem: "A page shows the five newest comments, and the document holds all of them or needs a second query.",
    mechanism: "The window is kept right under every write of a child; the whole list stays in its own collection, with an index that serves it in order.",
    symptom: "An array that grows without bound, or a sorted and limited second query on almost every read.",
    when_not: "Readers want all of the children, or the children change all the time.",
    example: "posts:\n  subset:\n    recent:\n      from: comments\n      by: postId\n      sort: { date: -1 }\n      keep: 5\n      fields: [text, date]",
    status: Status::There(Definition { per: Per::Field, keys: KEYS, forms: FORMS, lower }),
};

/// A window is read and written with its parent: more belongs into a query.
const MOST: u32 = 1_000;

const KEYS: &[KeyDef] = &[
    BY_KEY,
    CLIENT_WRITES_KEY,
    EACH_KEY,
    KeyDef {
        name: "fields",
        help: "What an item shows of its child: a list of fields, or a map from the name in the item to the path in the child; the whole child if omitted.",
        shape: ValueType::Fields,
    },
    KeyDef { name: "from", help: "The collection of the children.", shape: ValueType::Collection },
    KeyDef {
        name: "keep",
        help: "How many children are shown: at most 1,000.",
        shape: ValueType::Number { most: MOST },
    },
    KeyDef {
        name: "lag",
        help: "How late the window may be; omitted, it is right in the same transaction.",
        shape: ValueType::Duration,
    },
    KeyDef { name: "lift", help: "An array of this document that becomes the children.", shape: ValueType::NotYet },
    MATCH_KEY,
    SORT_KEY,
    KeyDef { name: "where", help: "Which children are shown: a query filter.", shape: ValueType::Filter },
];

const FORMS: &[KeySet] = &[KeySet {
    required: &["from", "by", "sort", "keep"],
    optional: &["fields", "each", "match", "where", "lag", "client_writes"],
}];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    block.only(KEYS, findings);
    if block.get("lift").is_some() {
        let hint = "move the array's items into a collection of their own, and leave out `lift`";
        findings.error(&block.key_at("lift"), "`lift` is not there yet", hint);
    }
    let database = &target.host.db;
    let from = block
        .require("from", "from: <the collection of the children>", findings)
        .and_then(|item| item.collection(database, "comments", findings));
    let keys = Keys::read(block, target, from, findings);
    if let Some(keys) = &keys {
        keys.require_served(block, findings);
    }
    let sort = block.require("sort", "sort: { date: -1 }", findings).and_then(|item| sort_keys::read(&item, findings));
    let keep = block.require("keep", "keep: 5", findings).and_then(|item| item.number(MOST, "5", findings));
    let fields = block
        .get("fields")
        .map_or(Some(None), |item| excerpt_fields::read(&item, &block.key_at("fields"), "item", findings).map(Some));
    let filter = block.get("where").map_or(Some(None), |item| programs::filter(&item, findings).map(Some));
    let lag = block.get("lag").map_or(Some(None), |item| item.duration(findings).map(Some));
    let client_writes = client_writes(block, findings);

    let (from, keys, sort, keep, fields) = (from?, keys?, sort?, keep?, fields?);
    let (filter, lag, client_writes) = (filter?, lag?, client_writes?);
    let mut own = DocWriter::new();
    own.append("from", &Value::string(from));
    own.append("by", &keys.by());
    own.append("sort", &Value::Document(sort_keys::document(&sort)));
    own.append("keep", &Value::Int32(i32::try_from(keep).unwrap_or(i32::MAX)));
    if let Some(fields) = &fields {
        own.start_document("fields");
        for (name, path) in fields {
            own.append(name, &Value::string(path.dotted()));
        }
        own.end();
    }
    if let Some(filter) = &filter {
        own.append("where", &Value::Document(filter.source.borrow()));
    }
    if let Some(lag) = lag {
        own.append("lag", &Value::string(print_duration(lag)));
    }
    keys.write_flags(&mut own);
    if client_writes != ClientWrites::Override {
        own.append("client_writes", &Value::string(word(CLIENT_WRITES, client_writes)));
    }
    let window = Window::new(SortOrder::new(sort), keep, ItemForm::new(fields));
    if !window.tells_order() && lag.is_none() {
        findings.note(
            &block.key_at("fields"),
            "the items do not hold all fields of `sort`: each new child costs a look at the first children",
            "add the fields of `sort` to `fields`, and a child is put in its place without that",
        );
    }
    let link = Link {
        local: keys.local,
        source: Namespace::new(database, from),
        foreign: keys.foreign,
        refers: Refers::Source,
        filter,
        lag,
        when_changed: WhenChanged::Refresh,
        when_deleted: WhenDeleted::Keep,
        create: false,
    };
    let field = block.compiled(TopField::new(target.host_field(), link, window), findings)?;
    Some(Rule {
        name: target.name.clone(),
        pattern: PATTERN.name,
        host: target.host.clone(),
        field: target.field.clone(),
        kind: Kind::Field(Arc::new(field)),
        client_writes,
        declaration: normal::field_rule(&target.host, PATTERN.name, &target.field, own.finish()),
    })
}
