//! Outlier: the first items of an array stay embedded, the rest of the few huge ones goes to an overflow collection.
//!
//! Before: `users { _id: 7, followers: [ … 2 000 000 ids … ] }`.
//! After: `users { _id: 7, followers: [ the first 500 ], hasOverflow: true, followerCount: 2000000 }`, and
//! `follower_overflow { userId: 7, followerId: …, index: 500 }`.

use crate::declare::block::Block;
use crate::declare::finding::Findings;
use crate::declare::kinds::{DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType};
use crate::declare::normal;
use crate::rule::outlier::INDEX;
use crate::rule::{ClientWrites, Kind, Outlier, Rule};
use document::op::Namespace;
use document::{DocWriter, Value};
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "outlier",
    title: "Outlier",
    help: "Keeps the first items of an array embedded and moves the rest of the few huge ones to an overflow collection.",
    problem: "A few documents are a hundred times larger than the others and slow down every read that meets them.",
    mechanism: "Items past the limit are written to the overflow collection in the same transaction as a flag and a count.",
    symptom: "A few documents whose array is far longer than the average, near the limit of 16 MB.",
    when_not: "Most documents are large: then the array is better off in a collection of its own.",
    example: "users:\n  outlier:\n    followers: { keep: 500, overflow: follower_overflow }",
    status: Status::There(Definition { per: Per::Field, keys: KEYS, forms: FORMS, lower }),
};

/// More items belong into a collection of their own.
const MOST_ITEMS: u32 = 100_000;

/// A little less than MongoDB allows a document.
const MOST_BYTES: u32 = 15 << 20;

const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "count",
        help: "The field that holds how many items the whole array has; `<array>Count` if omitted.",
        shape: ValueType::Name,
    },
    KeyDef {
        name: "flag",
        help: "The field that is true while items are in the overflow; `hasOverflow` if omitted.",
        shape: ValueType::Name,
    },
    KeyDef {
        name: "item",
        help: "The field of an overflow document that holds the item; `value` if omitted.",
        shape: ValueType::Name,
    },
    KeyDef {
        name: "keep",
        help: "How many items stay embedded; 0 is allowed.",
        shape: ValueType::Amount { most: MOST_ITEMS },
    },
    KeyDef {
        name: "keep_bytes",
        help: "How many bytes of items stay embedded at most.",
        shape: ValueType::Number { most: MOST_BYTES },
    },
    KeyDef { name: "overflow", help: "The collection of the other items.", shape: ValueType::Collection },
    KeyDef {
        name: "owner",
        help: "The field of an overflow document that holds the `_id` of its host; `parent` if omitted.",
        shape: ValueType::Name,
    },
    KeyDef { name: "unique", help: "Whether no item may be in an array twice.", shape: ValueType::Flag },
];

const FORMS: &[KeySet] = &[KeySet {
    required: &["keep", "overflow"],
    optional: &["keep_bytes", "owner", "item", "flag", "count", "unique"],
}];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    block.only(KEYS, findings);
    let database = &target.host.db;
    let field = target.field.dotted();
    let is_top_level = target.field.parts.len() == 1;
    if !is_top_level {
        let message =
            format!("`{field}` lies inside of another field: an outlier array is a field of the document itself");
        findings.error(&block.at, message, "move the array to the first level of its document");
    }
    let keep = block.require("keep", "keep: 500", findings).and_then(|item| item.amount(MOST_ITEMS, "500", findings));
    let keep_bytes =
        block.get("keep_bytes").map_or(Some(None), |item| item.number(MOST_BYTES, "1000000", findings).map(Some));
    let overflow = block
        .require("overflow", "overflow: <the collection of the other items>", findings)
        .and_then(|item| item.collection(database, "follower_overflow", findings));
    let name = |key: &str, default: &str, findings: &mut Findings| match block.get(key) {
        Some(item) => {
            let text = item.text("the name of a field", default, findings)?;
            match crate::declare::names::field(text) {
                Ok(()) if text != "_id" => Some(text.to_owned()),
                Ok(()) => {
                    findings.error(&item.at, format!("`{key}: _id`: that is a field of its own"), "take another name");
                    None
                }
                Err(reason) => {
                    let hint = format!("write it as in `{key}: {default}`");
                    findings.error(&item.at, format!("`{key}: {}`: {reason}", text.escape_debug()), hint);
                    None
                }
            }
        }
        None => Some(default.to_owned()),
    };
    let owner = name("owner", "parent", findings);
    let item = name("item", "value", findings);
    let flag = name("flag", "hasOverflow", findings);
    let count = name("count", &format!("{field}Count"), findings);
    let unique = block.get("unique").map_or(Some(false), |item| item.flag(findings));
    let (keep, keep_bytes, overflow, owner, item) = (keep?, keep_bytes?, overflow?, owner?, item?);
    let (flag, count, unique) = (flag?, count?, unique?);
    let before = findings.errors();
    let mut taken = |key: &str, name: &str, others: &[&str]| {
        if others.contains(&name) {
            let message = format!("`{key}: {name}` is the name of another field there");
            findings.error(&block.key_at(key), message, "give each its own name");
        }
    };
    taken("owner", &owner, &[INDEX]);
    taken("item", &item, &[INDEX, &owner]);
    taken("flag", &flag, &[&field]);
    taken("count", &count, &[&field, &flag]);
    if *overflow == *target.host.collection || *overflow == *target.name {
        let message = format!("`overflow: {overflow}` is where the array itself is read");
        findings.error(&block.key_at("overflow"), message, "give the other items a collection of their own");
    }
    if findings.errors() > before || !is_top_level {
        return None;
    }
    findings.note(
        &block.at,
        format!("filters on `{field}` look into both parts; ranges, whole arrays, numeric paths, projections and expressions see the embedded items"),
        format!("read all items as documents from `{}.{field}`", target.host.collection),
    );
    let outlier = Outlier {
        host: target.host.clone(),
        field,
        keep: usize::try_from(keep).unwrap_or(usize::MAX),
        keep_bytes: keep_bytes.and_then(|bytes| usize::try_from(bytes).ok()),
        overflow: Namespace::new(database, overflow),
        owner,
        item,
        flag,
        count,
        unique,
    };
    let mut own = DocWriter::new();
    own.append("keep", &Value::Int32(i32::try_from(keep).unwrap_or(i32::MAX)));
    if let Some(bytes) = keep_bytes {
        own.append("keep_bytes", &Value::Int32(i32::try_from(bytes).unwrap_or(i32::MAX)));
    }
    own.append("overflow", &Value::string(overflow));
    for (key, name) in
        [("owner", &outlier.owner), ("item", &outlier.item), ("flag", &outlier.flag), ("count", &outlier.count)]
    {
        own.append(key, &Value::from(&**name));
    }
    if unique {
        own.append("unique", &Value::Bool(true));
    }
    Some(Rule {
        name: target.name.clone(),
        pattern: PATTERN.name,
        host: target.host.clone(),
        field: target.field.clone(),
        kind: Kind::Outlier(Arc::new(outlier)),
        client_writes: ClientWrites::Override,
        lift: None,
        declaration: normal::field_rule(&target.host, PATTERN.name, &target.field, own.finish()),
    })
}
