//! A proposal as YAML.

use super::profile::{KindProfile, Proposal};
use crate::languages::yaml::word;
use document::op::Namespace;

pub(super) fn declaration(ns: &Namespace, proposal: &Proposal) -> String {
    let mut text = format!("database: {}\ncollections:\n  {}:\n", word(&ns.db), word(&ns.collection));
    text.push_str(&format!("    polymorphic:\n      discriminator: {}\n      kinds:\n", word(&proposal.discriminator)));
    proposal.kinds.iter().for_each(|kind| text.push_str(&of_kind(kind)));
    text.push_str("      unknown: reject\n");
    text
}

fn of_kind(kind: &KindProfile) -> String {
    if kind.required.is_empty() && kind.types.is_empty() {
        return format!("        {}: {{}}\n", word(&kind.name));
    }
    let mut text = format!("        {}:\n", word(&kind.name));
    if !kind.required.is_empty() {
        let names: Vec<String> = kind.required.iter().map(|name| word(name)).collect();
        text.push_str(&format!("          required: [{}]\n", names.join(", ")));
    }
    if !kind.types.is_empty() {
        text.push_str("          schema:\n            properties:\n");
        for (name, types) in &kind.types {
            let types = match types.as_slice() {
                [only] => (*only).to_owned(),
                several => format!("[{}]", several.join(", ")),
            };
            text.push_str(&format!("              {}: {{ bsonType: {types} }}\n", word(name)));
        }
    }
    text
}
