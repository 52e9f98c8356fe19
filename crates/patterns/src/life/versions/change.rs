//! What a changed declaration of versions means for documents that are stored.
//!
//! A version that is added behind the others is only more to do for the migration. One that is changed or no longer declared is given
//! up: documents that are stored in it, or in a later one, would mean something else. They are brought back first, by the `down` of the
//! steps as they were declared before; meanwhile the last version that both declarations have is the newest. What is declared behind
//! it comes when no such document is left.

use crate::declare::from_catalog;
use crate::life::catalog::Row;
use crate::life::relocate::plan::PlanCommand;
use crate::life::{CatalogRule, plan};
use crate::mql::{list, object};
use crate::rule::lens::VersionSteps;
use crate::rule::{Lens, Rule};
use document::op::Namespace;
use document::{Result, Value};
use std::sync::Arc;

/// What becomes of versions that are declared differently.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum VersionsChange {
    /// Only how documents are migrated.
    Policy,
    /// The number is to be kept under another name.
    OtherField,
    /// Versions are added behind those that there are.
    Added,
    /// All versions behind this one are given up; others may come in their place.
    TakenBack { to: i32 },
}

impl VersionsChange {
    pub(crate) fn of(kept: &Lens, declared: &Lens) -> VersionsChange {
        if kept.field != declared.field {
            return VersionsChange::OtherField;
        }
        let common = declared.common(kept);
        match (common == kept.versions().len(), common == declared.versions().len()) {
            (true, true) => VersionsChange::Policy,
            (true, false) => VersionsChange::Added,
            (false, _) => VersionsChange::TakenBack { to: i32::try_from(common).unwrap_or(i32::MAX - 1) + 1 },
        }
    }
}

/// The lens of a rule as it is kept now.
pub(crate) fn kept(entry: Option<&CatalogRule>) -> Option<&Arc<Lens>> {
    entry.filter(|entry| entry.row.state.is_kept()).and_then(|entry| entry.rule.lens())
}

/// The rule as it is in force: while versions are taken back, the one before them is the newest.
pub(crate) fn in_force(row: &Row, rule: Arc<Rule>) -> Result<Arc<Rule>> {
    let (Some(before), Some(declared)) = (&row.taken_back, rule.lens()) else { return Ok(rule) };
    let before = from_catalog(before)?;
    let Some(before) = before.lens() else { return Ok(rule) };
    let lens = taking_back(before, declared)?;
    Ok(Arc::new(rule.with_lens(lens)))
}

/// What is in force while documents come back from `before` to what it has in common with `declared`.
pub(crate) fn taking_back(before: &Lens, declared: &Lens) -> Result<Lens> {
    let common = declared.common(before);
    let some = |versions: &[VersionSteps]| -> Vec<VersionSteps> { versions.to_vec() };
    let (stay, go) = (declared.versions().get(..common), before.versions().get(common..));
    Lens::taking_back(
        &declared.field,
        some(stay.unwrap_or_default()),
        some(go.unwrap_or_default()),
        declared.migrate.clone(),
    )
}

/// What a person would run instead of the migration: an update for each version that documents may be stored in.
pub(crate) fn commands(host: &Namespace, kept: Option<&Lens>, declared: &Lens) -> Result<Vec<PlanCommand>> {
    let mut steps = Vec::new();
    let mut add = |numbers: Value<'static>, stages: document::Array<'static>| {
        let statement = object([
            ("q", object([(&*declared.field, numbers)])),
            ("u", Value::Array(stages)),
            ("multi", Value::Bool(true)),
        ]);
        let command = plan::updated(host, list([statement]));
        steps.push(PlanCommand { kind: "convert", namespace: host.clone(), command });
    };
    if let Some(kept) = kept.filter(|kept| kept.field == declared.field) {
        let back = taking_back(kept, declared)?;
        for taken in (0..back.taken_back().len()).rev() {
            let number = back.newest() + 1 + i32::try_from(taken).unwrap_or_default();
            add(Value::Int32(number), back.back_stages(taken));
        }
    }
    for version in 1..declared.newest() {
        let numbers = match version {
            1 => crate::mql::call("$in", list([Value::Null, Value::Int32(1)])),
            later => Value::Int32(later),
        };
        add(numbers, declared.up_stages(version));
    }
    Ok(steps)
}
