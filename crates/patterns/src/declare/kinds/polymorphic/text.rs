//! `text: { title: 10, description: 1 }`: the fields of a text index, with their weights.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::names;
use document::value::Path;

/// As MongoDB bounds a weight.
const MOST: u32 = 99_999;

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Vec<(Path, i32)> {
    let mut all = Vec::new();
    let what = "write fields and their weights: `{ title: 10, description: 1 }`";
    let Some(block) = Block::open(item.node, item.at.clone(), what, findings) else { return all };
    for item in block.items() {
        let weight = item.number(MOST, "10", findings);
        match names::path(item.key) {
            Ok(path) => {
                all.extend(weight.and_then(|weight| i32::try_from(weight).ok()).map(|weight| (path, weight)));
            }
            Err(reason) => {
                let message = format!("`{}` cannot be searched: {reason}", item.key.escape_debug());
                findings.error(&block.key_at(item.key), message, "name a field that holds text");
            }
        }
    }
    all
}
