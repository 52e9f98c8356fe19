//! `repair`: makes every derived value right that is not; of rules that are not applied only if asked for (`once`).

use crate::execute::access::Access;
use crate::execute::rights::namespaces;
use crate::life::apply::Consent;
use crate::life::audit::AuditedRule;
use crate::life::lifecycle;
use crate::life::preview::{Preview, Refusal};
use crate::life::repair::RepairMode;
use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::selection::Selection;
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{Code, Doc, Error, Result};

pub(super) const VERB: Verb = Verb {
    name: "repair",
    help: "Makes every derived value right that is not; with once: true also of rules that are not applied.",
    fields: &["declaration", "rule", "examples", "once", "overwrite", "create_missing"],
    changes: true,
    privileges: RequiredPrivileges(&[
        privilege(Resource::Database, &["find"]),
        privilege(Resource::RuleCollections, &["find"]),
        privilege(Resource::Host, &["update"]),
        privilege(Resource::Buckets, &["update", "insert", "remove"]),
    ]),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let mode = match call.request.flag("once", false)? {
        true => RepairMode::OneTime,
        false => RepairMode::Kept,
    };
    let extent = extent(call, mode)?;
    let Selection { rules, undeclared } = call.selected().await?;
    // Rights come first: a refusal for another reason tells of rules.
    for asked in &rules {
        call.need_to_read(&asked.rule)?;
        let needed = call.request.verb.privileges;
        lifecycle::of(&asked.rule).need_to_repair(needed, &call.rights, &asked.rule)?;
    }
    match mode {
        RepairMode::Kept => {
            refuse_unapplied(&rules)?;
            call.life.start_if_due().await?;
        }
        RepairMode::OneTime => {
            refuse_applied(call, &rules)?;
            refuse_unmeant(call, &rules, extent).await?;
        }
    }
    let report = call.life.repair(&rules, mode, call.request.examples()?, &call.rights).await?;
    if report.is_right() {
        let mut session = Session::default();
        let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
        call.life.all_right(&mut at, &rules).await?;
    }
    Ok(report.leaving_out(undeclared).show())
}

/// How far it may go without asking.
fn extent(call: &Call<'_>, mode: RepairMode) -> Result<Consent> {
    let (overwrite, create_missing) =
        (call.request.flag("overwrite", false)?, call.request.flag("create_missing", false)?);
    if mode == RepairMode::Kept && (overwrite || create_missing) {
        let field = if overwrite { "overwrite" } else { "create_missing" };
        return Err(Error::bad_value(format!(
            "'{field}' goes with 'once': rules that are applied are repaired without it"
        )));
    }
    Ok(Consent { overwrite, create_missing, ..Consent::default() })
}

/// Looks at the data first, as `apply` does: nobody keeps a copy of what is overwritten here.
async fn refuse_unmeant(call: &mut Call<'_>, rules: &[AuditedRule], extent: Consent) -> Result<()> {
    let mut session = Session::default();
    let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
    let rules: Vec<_> = rules.iter().map(|asked| asked.rule.clone()).collect();
    let preview = Preview::of_once(call.life, &mut at, &call.rights, &rules).await?;
    let refused = preview.refusals().map(|(_, refusal)| refusal).filter(|refusal| !refusal.is_waived(extent));
    match Refusal::error("repaired", &refused.collect::<Vec<_>>()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// `rule a is`, or `rule a (and 2 more) is`.
fn named(rules: &[&AuditedRule]) -> Option<String> {
    match rules {
        [] => None,
        [only] => Some(format!("rule {} is", only.rule.name)),
        [first, more @ ..] => Some(format!("rule {} (and {} more) is", first.rule.name, more.len())),
    }
}

/// Values that nobody keeps would be wrong again with the next write.
fn refuse_unapplied(rules: &[AuditedRule]) -> Result<()> {
    let unapplied: Vec<&AuditedRule> = rules.iter().filter(|asked| asked.state.is_none()).collect();
    if let Some(named) = named(&unapplied) {
        let message = format!("{named} declared and not applied: nobody would keep it right");
        return Err(Error::new(Code::OperationFailed, message)
            .with_hint("run `pleach apply` first, or make the values right this once with `pleach repair --once`"));
    }
    let differing: Vec<&AuditedRule> = rules.iter().filter(|asked| asked.differs.is_some()).collect();
    if let Some(named) = named(&differing) {
        let message = format!("{named} applied in another form than the declaration's");
        return Err(Error::new(Code::OperationFailed, message).with_hint(
            "`pleach apply` applies the declaration's form; without a declaration, `pleach repair` repairs by the applied one",
        ));
    }
    Ok(())
}

/// What is kept is repaired by those who keep it, and only a field can be made right without that.
fn refuse_applied(call: &Call<'_>, rules: &[AuditedRule]) -> Result<()> {
    if !call.request.has("declaration") {
        return Err(Error::failed_to_parse("pleach repair with 'once' needs 'declaration'")
            .with_hint("`once` is for rules that are declared and not applied"));
    }
    let applied: Vec<&AuditedRule> = rules.iter().filter(|asked| asked.state.is_some()).collect();
    if let Some(named) = named(&applied) {
        let message = format!("{named} applied, and `once` is for rules that are not");
        return Err(Error::new(Code::OperationFailed, message)
            .with_hint("`pleach repair` without --once repairs them; --rule RULE names one that is not applied"));
    }
    if let Some(error) = rules.iter().find_map(|asked| lifecycle::of(&asked.rule).refuse_once(&asked.rule)) {
        return Err(error);
    }
    if call.life.is_unannounced() {
        let hosts: Vec<_> = rules.iter().map(|asked| &asked.rule.host).collect();
        let concerned =
            call.life.entries().into_iter().find(|entry| namespaces(&entry.rule).iter().any(|ns| hosts.contains(&ns)));
        if let Some(entry) = concerned {
            let message = format!("the rule `{}` is applied and uses the same documents", entry.rule.name);
            return Err(Error::new(Code::OperationFailed, message)
                .with_hint("start `pleach serve --upstream` and send the repair through it with --server URI"));
        }
    }
    Ok(())
}
