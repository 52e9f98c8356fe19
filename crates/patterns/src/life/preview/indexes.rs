//! Which indexes and options of a collection buckets do not use: they go with the plain collection, and come back with it.

use crate::execute::access::Access;
use crate::life::expiry;
use crate::life::preview::RulePreview;
use crate::life::relocate::change::RelocationPlan;
use crate::life::relocate::way_back;
use document::{Result, Value};

/// Names them in a note, if the plain collection is about to make room.
pub(super) async fn look(at: &mut Access<'_>, change: &RelocationPlan, rule_preview: &mut RulePreview) -> Result<()> {
    let host = &rule_preview.rule.host;
    if !change.switchover.renames.iter().any(|(from, _)| **from == *host.collection) {
        return Ok(());
    }
    let collection = &host.collection;
    if let Some(options) = way_back::options(at, host).await? {
        let names: Vec<String> = options.iter().map(|(name, _)| name.to_string()).collect();
        let note =
            format!("options of {collection} that buckets do not have come back with `drop`: {}", names.join(", "));
        rule_preview.notes.push(note);
    }
    let all = expiry::indexes(at, host).await?;
    let names = all.iter().filter_map(|index| index.get("name")).filter_map(|name| match name {
        Value::String(name) if name.as_str() != "_id_" => Some(name.as_str().to_owned()),
        _ => None,
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    let note = match names.as_slice() {
        [] => return Ok(()),
        [name] => format!("the index {name} of {collection} is not used by buckets; it comes back with `drop`"),
        names => format!(
            "{} indexes of {collection} are not used by buckets; they come back with `drop`: {}",
            names.len(),
            names.join(", ")
        ),
    };
    rule_preview.notes.push(note);
    Ok(())
}
