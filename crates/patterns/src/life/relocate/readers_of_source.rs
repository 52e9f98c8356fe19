//! Fields that are kept from a collection which changes its form. Most moves leave logical documents as they are, and the fields
//! with them. Where times are cut or `_id`s are made of series and time, as declared, the fields are seeded again.

use crate::execute::access::Access;
use crate::life::relocate::switchover;
use crate::life::{CatalogRule, Life};
use crate::rule::Rule;
use crate::rule::State;
use document::{Code, Error, Result};

/// The rules in force that keep fields from the rule's logical documents.
fn readers(life: &Life, rule: &Rule) -> Vec<CatalogRule> {
    let reads = |entry: &CatalogRule| entry.rule.link().is_some_and(|link| link.source == rule.host);
    life.entries().into_iter().filter(|entry| reads(entry) && entry.row.state.is_kept()).collect()
}

/// Fails if the logical documents cannot go, or be left to themselves, because a field is kept from them.
pub(crate) fn refuse_if_read(life: &Life, rule: &Rule, what: &str) -> Result<()> {
    let Some(reader) = readers(life, rule).into_iter().next() else { return Ok(()) };
    let (reader, described) = (&reader.rule.name, reader.rule.described());
    let message = format!("rule {} is not dropped {what}: rule {reader} ({described}) reads its readings", rule.name);
    Err(Error::new(Code::OperationFailed, message).with_hint(format!("drop {reader} first")))
}

/// Lets the fields be seeded again, if the move has changed logical documents.
pub(super) async fn seed_again(life: &Life, at: &mut Access<'_>, entry: &CatalogRule) -> Result<()> {
    let changes = entry.places.first().is_some_and(|place| place.shape.changes_documents());
    if !entry.row.replaced.restore && !changes {
        return Ok(());
    }
    for reader in readers(life, &entry.rule) {
        let mut row = reader.row.clone();
        (row.state, row.done) = (State::Maintaining, 0);
        switchover::save(life, at, CatalogRule { row, reached: None, ..reader }).await?;
    }
    Ok(())
}
