//! What follows from changed documents: rules level by level, so that a derived change is a change for the next rule
//! (SEMANTICS R29).

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::{effects, host_fields, outlier, roll_up};
use document::Result;
use document::op::Change;
use std::sync::Arc;

pub(crate) async fn react(attempt: &mut Attempt<'_>, changes: Changes) -> Result<()> {
    from_level(attempt, changes, 0).await
}

/// What follows from changes that one rule itself made to its hosts: only rules behind it can read them.
pub(crate) async fn after_rule(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>, changed: Vec<Change>) -> Result<()> {
    let is_here = |level: &Vec<Arc<ActiveRule>>| level.iter().any(|other| Arc::ptr_eq(other, kept));
    let level = attempt.rules.levels().iter().position(is_here);
    let mut changes = Changes::default();
    match kept.makes_hosts() {
        true => {
            let made: Vec<Change> = changed.iter().filter(|change| change.before.is_none()).cloned().collect();
            changes.derived_or_made(&kept.rule.host, changed);
            host_fields::fill_made(attempt, &kept.rule.host, &made, &mut changes).await?;
        }
        false => changes.derived(&kept.rule.host, changed),
    }
    from_level(attempt, changes, level.map_or(0, |level| level + 1)).await
}

async fn from_level(attempt: &mut Attempt<'_>, mut changes: Changes, mut first: usize) -> Result<()> {
    let rules = attempt.rules.clone();
    while !changes.is_empty() {
        roll_up::refuse_deletes(attempt, &changes)?;
        outlier::follow_deletes(attempt, &mut changes).await?;
        for level in rules.levels().iter().skip(first) {
            // First what the client did to the hosts' own fields, then what changes for other documents.
            host_fields::restore(attempt, level, &mut changes).await?;
            effects::spread(attempt, level, &mut changes).await?;
        }
        // What a delete takes with it concerns all rules, whatever their level.
        attempt.forget_evaluated();
        effects::cascade(attempt).await?;
        changes = std::mem::take(&mut attempt.cascaded);
        first = 0;
    }
    Ok(())
}
