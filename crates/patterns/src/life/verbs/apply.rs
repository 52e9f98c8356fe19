//! `apply`: makes the rules what a declaration says, and waits for it unless asked not to.

use crate::execute::access::Access;
use crate::life::apply::Consent;
use crate::life::preview::Preview;
use crate::life::verbs::privileges::{MOVE, RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "apply",
    help: "Makes the rules what a declaration says: indexes, seeding, removal; waits for it unless told not to.",
    fields: &["declaration", "remove", "with_data", "overwrite", "create_missing", "wait", "verbose"],
    changes: true,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

pub(crate) const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[
    privilege(Resource::Database, &["find"]),
    privilege(Resource::RuleCollections, &["find"]),
    privilege(Resource::Catalog, &["insert", "update", "remove"]),
    privilege(Resource::IndexedCollection, &["createIndex"]),
    privilege(Resource::ExpiringCollection, &["collMod"]),
    privilege(Resource::Host, &["update"]),
    privilege(Resource::LiftedItems, &["find", "insert"]),
    privilege(Resource::MovedCollections, MOVE),
    privilege(Resource::ConstrainedCollection, &["collMod"]),
]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let declaration = call.declaration_to_read()?;
    let mut session = Session::default();
    let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
    let changes = call.life.plan(&mut at, &declaration.database, &declaration.rules).await?;
    let extent = Consent {
        remove: call.request.flag("remove", false)?,
        with_data: call.request.flag("with_data", false)?,
        overwrite: call.request.flag("overwrite", false)?,
        create_missing: call.request.flag("create_missing", false)?,
        additions_only: false,
    };
    let (wait, verbose) = (call.request.flag("wait", true)?, call.request.flag("verbose", false)?);
    changes.need_to_make(&call.rights, &declaration.database)?;
    let shown = if verbose { Some(changes.show(&mut at, &Preview::default()).await?) } else { None };
    let applied = call.life.apply_for(&call.rights, &declaration, extent).await?;
    if wait {
        call.life.settle(&declaration.database).await?;
    }
    let status = call.life.status(&mut at, Some(&declaration.database), &call.rights).await?;
    let Some(plan) = shown else { return Ok(summary(&declaration.database, &applied.preview, &status)) };
    let mut answer = DocWriter::new();
    for (name, value) in plan.iter().filter(|(name, _)| name.as_str() == "steps") {
        answer.append(name.as_str(), &value);
    }
    answer.append("planned", &applied.preview.show());
    let removed: Vec<Value<'static>> = applied.preview.removed().map(Value::Document).collect();
    if !removed.is_empty() {
        answer.append("removed", &Value::Array(removed.into_iter().collect()));
    }
    status.iter().for_each(|(name, value)| {
        answer.append(name.as_str(), &value);
    });
    Ok(answer.finish())
}

/// `{ database, changed, rules: [ { rule, work, state, corrected, filled, removed, left, dangling, notes } ] }`: what a person reads. A rule
/// that was removed has the `fields` that went with it, and from how many `documents`.
fn summary(db: &str, preview: &Preview, status: &Doc<'static>) -> Doc<'static> {
    let row = |value: Value<'_>| match value {
        Value::Document(row) => Some(row.into_owned()),
        _ => None,
    };
    let kept: Vec<Doc<'static>> = match status.get("rules") {
        Some(Value::Array(rules)) => rules.iter().filter_map(row).collect(),
        _ => Vec::new(),
    };
    let mut rules = ArrayWriter::new();
    let mut changed = 0;
    for rule_preview in &preview.rules {
        let mut rule = DocWriter::new();
        rule.append("rule", &Value::from(&*rule_preview.rule.name)).append("work", &Value::from(rule_preview.work));
        changed += i32::from(rule_preview.work != "none");
        let is_it =
            |row: &&Doc<'static>| row.get("rule").is_some_and(|name| name.as_str() == Some(&*rule_preview.rule.name));
        let row = kept.iter().find(is_it);
        let state = row.and_then(|row| row.get("state")).unwrap_or_else(|| Value::from("removed"));
        rule.append("state", &state);
        if rule_preview.work != "none" {
            // What seeding counted while it worked.
            if let Some(Value::Document(seeded)) = row.and_then(|row| row.get("seeded")) {
                seeded.iter().for_each(|(name, number)| {
                    rule.append(name.as_str(), &number);
                });
            }
            if let Some(problem) = row.and_then(|row| row.get("problem")) {
                rule.append("problem", &problem);
            }
        }
        let shown = rule_preview.show();
        for name in ["dangling", "fields", "documents", "notes"] {
            if let Some(value) = shown.get(name) {
                rule.append(name, &value);
            }
        }
        rules.push(&Value::Document(rule.finish()));
    }
    let mut answer = DocWriter::new();
    answer.append("database", &Value::from(db)).append("changed", &Value::Int32(changed));
    answer.append("rules", &Value::Array(rules.finish()));
    answer.finish()
}
