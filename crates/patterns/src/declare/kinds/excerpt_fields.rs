//! `fields`: what a copy or an item of a window holds of a document, as a list of names or a map from names to paths.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::{At, Findings};
use crate::declare::names;
use crate::declare::tree::NodeContent;
use document::Value;
use document::value::Path;
use std::collections::HashSet;
use std::sync::Arc;

/// `fields: [name, avatar]` or `fields: { name: path.in.source }`; `excerpt` is what they make, for messages.
pub(super) fn read(
    item: &BlockItem<'_>,
    at: &At,
    excerpt: &str,
    findings: &mut Findings,
) -> Option<Vec<(Arc<str>, Path)>> {
    const EXAMPLE: &str = "write `fields: [name, email]` or `fields: { city: address.city }`";
    let mut fields: Vec<(Arc<str>, Path)> = Vec::new();
    let mut seen = HashSet::new();
    let mut sound = true;
    match &item.node.content {
        NodeContent::List(items) if !items.is_empty() => {
            for (index, node) in items.iter().enumerate() {
                let at = item.at.inside(&index.to_string(), node.spot);
                let NodeContent::Scalar(Value::String(_)) = &node.content else {
                    findings.error(&at, format!("`fields` must list names, not {}", node.kind()), EXAMPLE);
                    sound = false;
                    continue;
                };
                let name = BlockItem { node, at: at.clone(), key: "fields" };
                let Some(path) = name.path("[name, email]", findings) else {
                    sound = false;
                    continue;
                };
                let dotted = path.dotted();
                if let [.., last] = path.parts.as_slice()
                    && path.parts.len() > 1
                {
                    findings.error(
                        &at,
                        format!("`{dotted}` is a path: the {excerpt} needs a name for it"),
                        format!("write a map: `fields: {{ {}: {dotted} }}`", last.name),
                    );
                    sound = false;
                } else if !seen.insert(dotted.clone()) {
                    findings.error(&at, format!("`{dotted}` is listed twice"), "keep one of them");
                    sound = false;
                }
                fields.push((dotted.into(), path));
            }
        }
        NodeContent::Map(entries) if !entries.is_empty() => {
            let block = Block { entries, at: at.clone() };
            for field in block.items() {
                if let Err(reason) = names::field(field.key) {
                    findings.error(
                        &block.key_at(field.key),
                        format!("`{}` cannot be a name in the {excerpt}: {reason}", field.key.escape_debug()),
                        "the left side is a plain name, the right side the path in the source: `{ city: address.city }`",
                    );
                    sound = false;
                }
                match field.path("path.in.source", findings) {
                    Some(path) => fields.push((field.key.into(), path)),
                    None => sound = false,
                }
            }
        }
        NodeContent::List(_) | NodeContent::Map(_) => {
            findings.error(at, "`fields` is empty", EXAMPLE);
            sound = false;
        }
        _ => {
            let what = if item.node.is_empty() { "empty" } else { item.node.kind() };
            findings.error(&item.at, format!("`fields` must be a list or a map, not {what}"), EXAMPLE);
            sound = false;
        }
    }
    sound.then_some(fields)
}
