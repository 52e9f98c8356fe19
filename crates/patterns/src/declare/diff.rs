//! What changes from one set of rules to another.

use crate::declare::normal;
use crate::rule::Rule;
use document::{Doc, Value};

/// One rule that is not in both sets as it is in the other.
#[derive(Clone, Debug)]
pub enum RuleDifference<'a> {
    Added(&'a Rule),
    Changed { old: &'a Rule, new: &'a Rule, change: RuleChange },
    Removed(&'a Rule),
}

/// What a changed rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// The values stay what they are; only how they are kept differs.
    Policy,
    /// The values are made anew.
    Rebuild,
}

/// The keys that say how values are kept, not what they are.
const POLICY_KEYS: &[&str] = &["client_writes", "lag", "lift", "when_changed", "when_deleted"];

/// From `old` to `new`: what is new and changed in the order of `new`, then what is gone.
pub fn diff<'a>(old: &'a [Rule], new: &'a [Rule]) -> Vec<RuleDifference<'a>> {
    let same = |a: &Rule, b: &Rule| a.host == b.host && a.name == b.name;
    let mut differences = Vec::new();
    for new in new {
        match old.iter().find(|old| same(old, new)) {
            None => differences.push(RuleDifference::Added(new)),
            Some(old) => {
                if let Some(change) = change(old, new) {
                    differences.push(RuleDifference::Changed { old, new, change });
                }
            }
        }
    }
    differences.extend(old.iter().filter(|old| !new.iter().any(|new| same(old, new))).map(RuleDifference::Removed));
    differences
}

/// What it takes to make one rule of the other; `None` if they are the same.
pub(crate) fn change(old: &Rule, new: &Rule) -> Option<RuleChange> {
    if old.declaration.as_bytes() == new.declaration.as_bytes() {
        return None;
    }
    if let (Some(old), Some(new)) = (old.shape(), new.shape()) {
        return Some(if new.takes_over(&**old) { RuleChange::Policy } else { RuleChange::Rebuild });
    }
    let (Some(was), Some(is)) = (normal::field_block(&old.declaration), normal::field_block(&new.declaration)) else {
        return Some(RuleChange::Rebuild);
    };
    // Copies that were frozen are stale by the new rule.
    let thawed = was.get("when_changed").is_some_and(|it| it.as_str() == Some("keep"))
        && is.get("when_changed").is_some_and(|it| it.as_str() == Some("refresh"));
    // Copies whose source is gone were left as they were, and must not be there by the new rule.
    let kept = |block: &Doc<'_>| block.get("when_deleted").is_some_and(|it| it.as_str() == Some("keep"));
    let let_go = kept(&was) && !kept(&is);
    // An array that is no longer lifted stays as it is; one that is to be lifted is not a matter of upkeep.
    let lifted = |block: &Doc<'_>| block.get("lift").and_then(|path| path.as_str().map(str::to_owned));
    let lifts = lifted(&is).is_some() && lifted(&is) != lifted(&was);
    let value = |block: &Doc<'_>| -> Vec<(String, Vec<u8>)> {
        block
            .iter()
            .filter(|(key, _)| !POLICY_KEYS.contains(&key.as_str()))
            .map(|(key, value)| (key.as_str().to_owned(), bytes(&value)))
            .collect()
    };
    match thawed || let_go || lifts || old.pattern != new.pattern || value(&was) != value(&is) {
        true => Some(RuleChange::Rebuild),
        false => Some(RuleChange::Policy),
    }
}

fn bytes(value: &Value<'_>) -> Vec<u8> {
    let mut writer = document::DocWriter::new();
    writer.append("", value);
    writer.into_buffer()
}
