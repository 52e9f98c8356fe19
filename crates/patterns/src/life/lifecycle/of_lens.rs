//! The life of versions: an index by which old documents are found, and nothing else that must be done before documents are read
//! and written in the newest version, but for versions that are given up. `drop` leaves documents as they are stored.

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Report, count};
use crate::life::catalog::Row;
use crate::life::install;
use crate::life::lifecycle::Lifecycle;
use crate::life::plan::{ApplyStep, Work};
use crate::life::reconcile::set_state;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::plan::PlanCommand;
use crate::life::repair::RepairMode;
use crate::life::verbs::{RequiredPrivileges, Resource};
use crate::life::versions::change::VersionsChange;
use crate::life::versions::{change, figures, readers, take_back};
use crate::life::{CatalogRule, Life, retire};
use crate::rule::state::State;
use crate::rule::{Lens, Rule};
use document::backend::{Answer, Session};
use document::op::Find;
use document::{Code, Doc, Error, Result};
use std::sync::Arc;

pub(super) struct OfLens;

fn of(rule: &Rule) -> Result<&Arc<Lens>> {
    let none = || Error::new(Code::InternalError, format!("rule {} is about no versions", rule.name));
    rule.lens().ok_or_else(none)
}

/// What constraints ask of stored documents depends on the versions that these may have, and so does where the items of an array are.
async fn settle_others(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    life.settle_validators(&mut at, &entry.db).await?;
    for other in life.entries().iter().filter(|other| other.rule.host == entry.rule.host) {
        if other.rule.outlier().is_some() && other.row.state.is_kept() {
            install::install(&mut at, &other.rule, &other.rule.needs()).await?;
        }
    }
    Ok(())
}

impl Lifecycle for OfLens {
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        _: Work,
    ) -> Answer<'a, Work> {
        Box::pin(async move {
            let declared = of(rule)?;
            let Some(kept) = change::kept(entry) else {
                // Nothing is in force yet that would hide the numbers.
                let old = Find { limit: Some(1), ..Find::matching(rule.host.clone(), declared.old()) };
                let rewrites = !at.find(old).await?.is_empty();
                return Ok(Work::Convert { steps: change::commands(&rule.host, None, declared)?, rewrites });
            };
            match VersionsChange::of(kept, declared) {
                VersionsChange::Policy if kept.taken_back().is_empty() => Ok(Work::Keep),
                _ => Ok(Work::Convert { steps: change::commands(&rule.host, Some(kept), declared)?, rewrites: true }),
            }
        })
    }

    fn steps(&self, _: &Access<'_>, rule: &Rule, work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        Ok(match work {
            Work::Convert { steps, .. } => Some(steps.clone()),
            // Documents stay as they are stored.
            Work::Remove => {
                Some(vec![PlanCommand { kind: "remove", namespace: rule.host.clone(), command: Doc::empty() }])
            }
            _ => None,
        })
    }

    fn rewriting(&self) -> &'static str {
        "makes others of documents that are there"
    }

    fn begin<'a>(
        &'a self,
        _: &'a mut Access<'_>,
        known: Option<&'a CatalogRule>,
        step: &'a ApplyStep,
        row: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let Some((known, kept)) = known.and_then(|known| Some((known, change::kept(Some(known))?))) else {
                return Ok(());
            };
            if !kept.taken_back().is_empty() {
                let message = format!("rule {}: documents are just being brought back from a version", step.rule.name);
                return Err(Error::new(Code::ConflictingOperationInProgress, message)
                    .with_hint("wait until `pleach status` shows it as on, then apply the declaration again"));
            }
            if let VersionsChange::TakenBack { .. } = VersionsChange::of(kept, of(&step.rule)?) {
                row.taken_back = Some(known.row.declaration.clone());
            }
            Ok(())
        })
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(async move {
            let lens = of(&entry.rule)?;
            match &entry.row.state {
                State::Maintaining | State::Gathering { .. } => {
                    // No process may still write without knowing the version: to them its documents are none of theirs.
                    life.settled_everywhere(&entry.db).await?;
                    let (mut session, context) = (Session::default(), life.context());
                    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
                    install::ensure_indexes(&mut at, &entry.rule).await?;
                    settle_others(life, entry).await?;
                    if !lens.taken_back().is_empty() {
                        return set_state(life, entry, State::Seeding { position: None }).await;
                    }
                    set_state(life, entry, State::On).await?;
                    tracing::info!(rule = &*entry.rule.name, "on");
                    Ok(())
                }
                State::Seeding { .. } => take_back::take_back(life, entry, lens).await,
                State::On | State::Restoring => Ok(()),
                State::Retiring => {
                    settle_others(life, entry).await?;
                    retire::end(life, entry).await
                }
            }
        })
    }

    /// A document of any version is right: `status` says how many each has.
    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        _: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let (mut session, context) = (Session::default(), life.context());
            let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
            figures.checked = count(&mut at, &asked.rule.host).await?;
            figures.note_if_empty(&asked.rule.host);
            Ok(())
        })
    }

    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        _: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        self.audit(life, asked, figures, report)
    }

    fn refuse_once(&self, rule: &Rule) -> Option<Error> {
        let message = format!("`{}` says how documents are read: there is nothing to make right once", rule.name);
        Some(Error::new(Code::OperationFailed, message).with_hint("--rule RULE names a rule of a field"))
    }

    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            if leaving.restore {
                let message = format!("rule {} has replaced nothing: there is nothing to restore", entry.rule.name);
                return Err(Error::new(Code::OperationFailed, message).with_hint(
                    "`drop` without --restore leaves documents as they are stored; to have them in an older version again, first \
                     apply the declaration without the last steps",
                ));
            }
            retire::begin(life, at, entry, leaving).await?;
            // What is stored is what is read from now on.
            let lenses: Vec<&Lens> = entry.rule.lens().map(|lens| &**lens).into_iter().collect();
            readers::compute_anew(life, at, &entry.db, &entry.rule.host, &lenses).await?;
            life.put_in_force()
        })
    }

    fn status<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
    ) -> Answer<'a, Option<Doc<'static>>> {
        Box::pin(async move {
            match entry.rule.lens() {
                Some(lens) => figures::figures(life, at.context, entry, lens).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::Host, &rule.host)
    }

    /// It writes nothing.
    fn need_to_repair(&self, _: RequiredPrivileges, _: &Rights, _: &Rule) -> Result<()> {
        Ok(())
    }
}
