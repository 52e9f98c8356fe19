//! Subset: the first few child documents, by an order, kept inside their parent.
//!
//! Before: `posts { _id: 7 }`, and a sorted and limited query of `comments` on every page.
//! After: `posts { _id: 7, recent: [{ text: "Well said", date: … }, …] }`.

use crate::declare::block::Block;
use crate::declare::finding::Findings;
use crate::declare::kinds::children::Children;
use crate::declare::kinds::extended_reference::{CLIENT_WRITES_KEY, client_writes};
use crate::declare::kinds::link_keys::{BY_KEY, EACH_KEY, MATCH_KEY};
use crate::declare::kinds::sort_keys::{self, SORT_KEY};
use crate::declare::kinds::{
    DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType, excerpt_fields, lift,
};
use crate::fields::TopField;
use crate::fields::order::SortOrder;
use crate::fields::top::{ItemForm, Window};
use crate::rule::Rule;
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
    lift::KEY,
    MATCH_KEY,
    SORT_KEY,
    KeyDef { name: "where", help: "Which children are shown: a query filter.", shape: ValueType::Filter },
];

const FORMS: &[KeySet] = &[KeySet {
    required: &["from", "by", "sort", "keep"],
    optional: &["fields", "each", "match", "where", "lag", "lift", "client_writes"],
}];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    block.only(KEYS, findings);
    let from = block
        .require("from", "from: <the collection of the children>", findings)
        .and_then(|item| item.collection(&target.host.db, "comments", findings));
    let children = Children::read(block, target, from, true, findings);
    let sort = block.require("sort", "sort: { date: -1 }", findings).and_then(|item| sort_keys::read(&item, findings));
    let keep = block.require("keep", "keep: 5", findings).and_then(|item| item.number(MOST, "5", findings));
    let fields = block
        .get("fields")
        .map_or(Some(None), |item| excerpt_fields::read(&item, &block.key_at("fields"), "item", findings).map(Some));
    let client_writes = client_writes(block, findings);
    let lift = lift::read(block, target, from, children.as_ref(), client_writes, findings);

    let (from, children, sort, keep, fields) = (from?, children?, sort?, keep?, fields?);
    let (client_writes, lift) = (client_writes?, lift?);
    let mut own = DocWriter::new();
    own.append("from", &Value::string(from));
    own.append("by", &children.keys.by());
    own.append("sort", &Value::Document(sort_keys::document(&sort)));
    own.append("keep", &Value::Int32(i32::try_from(keep).unwrap_or(i32::MAX)));
    if let Some(fields) = &fields {
        own.start_document("fields");
        for (name, path) in fields {
            own.append(name, &Value::string(path.dotted()));
        }
        own.end();
    }
    children.write_conditions(&mut own);
    children.keys.write_flags(&mut own);
    if let Some(lift) = &lift {
        own.append("lift", &Value::string(lift.dotted()));
    }
    let window = Window::new(SortOrder::new(sort), keep, ItemForm::new(fields));
    if !window.tells_order() && children.lag.is_none() {
        findings.note(
            &block.key_at("fields"),
            "the items do not hold all fields of `sort`: each new child costs a look at the first children",
            "add the fields of `sort` to `fields`, and a child is put in its place without that",
        );
    }
    let field = block.compiled(TopField::new(target.host_field(), children.into_link(), window), findings)?;
    Some(Rule { lift, ..target.rule(&PATTERN, Arc::new(field), client_writes, own) })
}
