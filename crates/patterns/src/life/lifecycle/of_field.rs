//! The life of a field: kept by writers from the first moment on, seeded, on; at the end its traces are removed from the hosts.

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Note, Presence, Report, count};
use crate::life::catalog::Row;
use crate::life::lifecycle::Lifecycle;
use crate::life::plan::{ApplyStep, Work};
use crate::life::preview::all_references_dangle;
use crate::life::reconcile::set_state;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::plan::PlanCommand;
use crate::life::repair::RepairMode;
use crate::life::replaced::{Lifted, Progress, amount};
use crate::life::verbs::{RequiredPrivileges, Resource};
use crate::life::{
    CatalogRule, Life, audit_upstream, install, lift, plan, replaced, retire, seed, seed_source, unkeyed,
};
use crate::rule::Rule;
use crate::rule::state::State;
use document::backend::{Answer, Session};
use document::{Code, Error, Result};

pub(super) struct OfField;

impl Lifecycle for OfField {
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        work: Work,
    ) -> Answer<'a, Work> {
        Box::pin(async move {
            let lifted =
                entry.filter(|entry| entry.row.state.is_kept()).and_then(|entry| entry.row.replaced.lifted.as_ref());
            match lifted.is_some_and(Lifted::is_done) || !lift::waiting_items::are_there(at, rule).await? {
                true => Ok(work),
                false => Ok(Work::Lift),
            }
        })
    }

    fn steps(&self, _: &Access<'_>, rule: &Rule, work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        Ok(matches!(work, Work::Lift).then(|| plan::lifting(rule)))
    }

    fn begin<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        known: Option<&'a CatalogRule>,
        step: &'a ApplyStep,
        row: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let rule = &step.rule;
            row.total = plan::documents(at, &rule.host).await?;
            if rule.lift.is_some() && !row.replaced.lifted.as_ref().is_some_and(Lifted::is_done) {
                // Each host is walked to twice.
                row.total *= 2;
            }
            if known.is_some_and(|known| known.row.state.is_kept()) {
                return Ok(());
            }
            if let Some(known) = known
                && let Some(since) = known.row.replaced.since
            {
                let lifted = known.row.replaced.lifted.as_ref();
                amount::leave(at, &known.rule, since, known.row.seeded_to().as_ref(), lifted).await?;
            }
            // Whatever is there now is from before it.
            row.replaced = Progress { since: Some(replaced::begin(at, rule).await?), ..Progress::default() };
            Ok(())
        })
    }

    /// Whoever seeds the rule has saved its position meanwhile.
    fn take_over(&self, now: &Row, row: &mut Row) {
        (row.state, row.replaced) = (now.state.clone(), now.replaced.clone());
        (row.done, row.total) = (now.done, now.total);
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(async move {
            match &entry.row.state {
                State::Maintaining => {
                    if entry.rule.lift.is_some() && !entry.is_lifting() {
                        lift::announce(life)?;
                    }
                    // No process may still write without knowing the rule.
                    life.settled_everywhere(&entry.db).await?;
                    if entry.is_lifting() {
                        return lift::lift(life, entry).await;
                    }
                    if entry.rule.link().is_some_and(|link| link.create) {
                        return seed_source::begin(life, entry).await;
                    }
                    set_state(life, entry, State::Seeding { position: None }).await
                }
                State::Gathering { .. } => match seed_source::seed(life, entry).await? {
                    true => set_state(life, entry, State::Seeding { position: None }).await,
                    false => Ok(()),
                },
                State::Seeding { .. } => {
                    seed::seed(life, entry).await?;
                    if entry.row.tidy {
                        retire::tidy(life, entry).await?;
                    }
                    set_state(life, entry, State::On).await?;
                    tracing::info!(rule = &*entry.rule.name, "on");
                    Ok(())
                }
                State::On | State::Restoring => Ok(()),
                State::Retiring => retire::retire(life, entry).await,
            }
        })
    }

    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            match life.audits_in_snapshots() {
                true => life.compare(asked, figures, report).await?,
                false => audit_upstream::audit(life, asked, figures, report).await?,
            }
            note_extent(life, asked, figures).await
        })
    }

    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        mode: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            life.repair_rule(asked, mode, figures, report).await?;
            note_extent(life, asked, figures).await
        })
    }

    fn refuse_once(&self, rule: &Rule) -> Option<Error> {
        let array = rule.lift.as_ref()?;
        let message =
            format!("`{}` lifts `{array}`: its items would be lost if only the window were made right", rule.name);
        let hint = "`pleach apply` moves the items; --rule RULE names another rule";
        Some(Error::new(Code::OperationFailed, message).with_hint(hint))
    }

    fn lacks(&self, presence: &Presence, asked: &AuditedRule, rights: &Rights) -> Option<Note> {
        let rule = &asked.rule;
        // The documents of a roll-up are made with their children.
        if !presence.has(&rule.host) && !rule.link().is_some_and(|link| link.create) {
            return Some(presence.no_collection(&rule.host, rights));
        }
        if let Some(array) = rule.lift.as_ref().filter(|_| asked.kept().is_none()) {
            return Some(Note::NotLifted { array: array.dotted() });
        }
        let source = &rule.link()?.source;
        (presence.is_of(&source.db) && !presence.has(source))
            .then(|| Note::NoSource { source: source.clone(), near: presence.near(source, rights) })
    }

    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()> {
        Box::pin(retire::begin(life, at, entry, leaving))
    }

    fn restore<'a>(&'a self, at: &'a mut Access<'_>, entry: &'a CatalogRule, row: &'a mut Row) -> Answer<'a, ()> {
        Box::pin(async move {
            install::ensure_indexes(at, &entry.rule).await?;
            row.total = plan::documents(at, &entry.rule.host).await?;
            Ok(())
        })
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::Host, &rule.host)
    }

    /// What moves between hosts and children, by `apply` into these and by `drop --restore` back.
    fn need_to_lift(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        match (&rule.lift, rule.link()) {
            (Some(_), Some(link)) => needed.need(rights, Resource::LiftedItems, &link.source),
            _ => Ok(()),
        }
    }
}

/// Notes what was not compared, that there was nothing, and that no reference led anywhere.
async fn note_extent(life: &Life, asked: &AuditedRule, figures: &mut Figures) -> Result<()> {
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    if asked.is_seeding() {
        let all = count(&mut at, &asked.rule.host).await?;
        let unchecked = all.saturating_sub(figures.checked + figures.unchecked);
        figures.unchecked += unchecked;
        if unchecked > 0 {
            figures.notes.push(Note::Seeding { checked: figures.checked, unchecked: figures.unchecked });
        }
    } else if figures.checked > 0 && !figures.lacks_source() {
        figures.notes.extend(all_references_dangle(&mut at, &asked.rule).await?.map(Note::AllReferencesDangle));
    }
    if let Some(array) = asked.rule.lift.as_ref().filter(|_| !asked.rule.lifts_own_field() && !asked.is_seeding()) {
        let documents = lift::waiting_items::hosts(&mut at, &asked.rule).await?;
        figures.notes.extend((documents > 0).then(|| Note::ItemsInArray { array: array.dotted(), documents }));
    }
    if let (Some(link), false) = (asked.rule.link(), figures.lacks_source()) {
        let unkeyed = unkeyed::count(&mut at, &asked.rule).await?;
        figures.notes.extend(unkeyed.and_then(|unkeyed| unkeyed.text(link)).map(Note::Unkeyed));
    }
    figures.note_if_empty(&asked.rule.host);
    Ok(())
}
