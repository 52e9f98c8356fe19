//! `indexes: [{ key: { isbn: 1 }, unique: true }]`

use crate::constraints::polymorphic::KindIndex;
use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{KeyDef, ValueType, sort_keys};
use crate::declare::tree::NodeContent;

pub(super) const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "key",
        help: "The fields of the index: from field to 1 (ascending) or -1 (descending).",
        shape: ValueType::Order,
    },
    KeyDef { name: "unique", help: "Whether each value means one document.", shape: ValueType::Flag },
];

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Vec<KindIndex> {
    const EXAMPLE: &str = "[{ key: { isbn: 1 }, unique: true }]";
    let mut all: Vec<KindIndex> = Vec::new();
    let NodeContent::List(items) = &item.node.content else {
        item.expected("a list of indexes", EXAMPLE, findings);
        return all;
    };
    if items.is_empty() {
        findings.error(&item.at, "`indexes` is empty", format!("write `indexes: {EXAMPLE}`, or leave it out"));
    }
    for (index, node) in items.iter().enumerate() {
        let at = item.at.inside(&index.to_string(), node.spot);
        let Some(block) = Block::open(node, at.clone(), "write an index as `{ key: { isbn: 1 } }`", findings) else {
            continue;
        };
        block.only(KEYS, findings);
        let keys =
            block.require("key", "key: { isbn: 1 }", findings).and_then(|item| sort_keys::read_key(&item, findings));
        let unique = block.get("unique").map_or(Some(false), |item| item.flag(findings));
        let (Some(keys), Some(unique)) = (keys, unique) else { continue };
        match all.iter().any(|other| other.keys == keys) {
            true => findings.error(&at, "two indexes have the same key", "keep one of them"),
            false => all.push(KindIndex { keys, unique }),
        }
    }
    all
}
