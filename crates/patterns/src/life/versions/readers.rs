//! Fields that read what versions change: another version makes other documents of what is stored, without a write. They are computed
//! anew (SEMANTICS R19).

use crate::execute::access::Access;
use crate::life::apply::Consent;
use crate::life::plan::{ApplyPlan, ApplyStep, Work};
use crate::life::{CatalogRule, Life};
use crate::rule::order::reads;
use crate::rule::{Lens, Rule};
use document::Result;
use document::op::Namespace;
use std::sync::Arc;

/// Whether the rule computes something from paths of the collection that one of these changes.
pub(crate) fn reads_changed(rule: &Rule, host: &Namespace, lenses: &[&Lens]) -> bool {
    let is_changed = |path: &document::value::Path| lenses.iter().any(|lens| lens.changes(path));
    reads(rule).iter().any(|read| read.namespace == *host && read.path.as_ref().is_none_or(is_changed))
}

/// Adds to a plan that fields are computed anew whose documents become others by it.
pub(crate) fn add(plan: &mut ApplyPlan, entries: &[CatalogRule], rules: &[Rule]) {
    let mut read_anew = Vec::new();
    for step in &plan.steps {
        let Some(lens) = step.rule.lens() else { continue };
        if !matches!(step.work, Work::Convert { rewrites: true, .. } | Work::Remove) {
            continue;
        }
        let same = |entry: &&CatalogRule| entry.rule.host == step.rule.host && entry.rule.name == step.rule.name;
        let kept = entries.iter().find(same).and_then(|entry| entry.rule.lens());
        let lenses: Vec<&Lens> = [Some(lens), kept].into_iter().flatten().map(|lens| &**lens).collect();
        read_anew.extend(rules.iter().filter(|rule| reads_changed(rule, &step.rule.host, &lenses)));
    }
    for rule in rules.iter().filter(|rule| read_anew.iter().any(|read| std::ptr::eq(*read, *rule))) {
        let is_its = |step: &&mut ApplyStep| step.rule.host == rule.host && step.rule.name == rule.name;
        let is_work = |step: &&mut ApplyStep| !matches!(step.work, Work::Index(_) | Work::Expiry(_));
        match plan.steps.iter_mut().filter(is_its).find(is_work) {
            Some(step) if matches!(step.work, Work::Keep) => step.work = Work::Rebuild,
            Some(_) => {}
            None => plan.steps.push(ApplyStep { rule: Arc::new(rule.clone()), work: Work::Rebuild }),
        }
    }
}

/// Has the fields of the database computed anew that read what these change.
pub(crate) async fn compute_anew(
    life: &Life,
    at: &mut Access<'_>,
    db: &str,
    host: &Namespace,
    lenses: &[&Lens],
) -> Result<()> {
    let is_concerned =
        |entry: &CatalogRule| *entry.db == *db && entry.row.state.is_kept() && reads_changed(&entry.rule, host, lenses);
    let concerned = life.entries().into_iter().filter(is_concerned);
    let steps: Vec<ApplyStep> = concerned.map(|entry| ApplyStep { rule: entry.rule, work: Work::Rebuild }).collect();
    match steps.is_empty() {
        true => Ok(()),
        false => life.write_down(at, db, &ApplyPlan { steps }, Consent::default()).await,
    }
}
