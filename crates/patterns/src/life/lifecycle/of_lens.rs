//! The life of versions: an index by which old documents are found, and nothing else that must be done before documents are read
//! and written in the newest version. `drop` leaves documents as they are stored.

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Note, Presence, Report};
use crate::life::catalog::Row;
use crate::life::install;
use crate::life::lifecycle::Lifecycle;
use crate::life::plan::{ApplyStep, Work};
use crate::life::reconcile::set_state;
use crate::life::relocate::drop::Leaving;
use crate::life::repair::RepairMode;
use crate::life::verbs::{RequiredPrivileges, Resource};
use crate::life::{CatalogRule, Life, migration, retire};
use crate::rule::Rule;
use crate::rule::state::State;
use document::backend::{Answer, Session};
use document::{Code, Doc, Error, Result};

pub(super) struct OfLens;

impl Lifecycle for OfLens {
    fn plan<'a>(&'a self, _: &'a mut Access<'_>, _: Option<&'a CatalogRule>, _: &'a Rule, _: Work) -> Answer<'a, Work> {
        Box::pin(async { Ok(Work::Keep) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a mut Access<'_>,
        _: Option<&'a CatalogRule>,
        _: &'a ApplyStep,
        _: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(async move {
            match &entry.row.state {
                State::Maintaining | State::Gathering { .. } | State::Seeding { .. } => {
                    let (mut session, context) = (Session::default(), life.context());
                    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
                    install::ensure_indexes(&mut at, &entry.rule).await?;
                    set_state(life, entry, State::On).await?;
                    tracing::info!(rule = &*entry.rule.name, "on");
                    Ok(())
                }
                State::On | State::Restoring => Ok(()),
                State::Retiring => retire::end(life, entry).await,
            }
        })
    }

    /// A document of any version is right.
    fn audit<'a>(
        &'a self,
        _: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        _: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
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

    fn lacks(&self, presence: &Presence, asked: &AuditedRule, rights: &Rights) -> Option<Note> {
        let host = &asked.rule.host;
        (!presence.has(host)).then(|| presence.no_collection(host, rights))
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

    fn adopt(&self, _: &Rights, _: &Rule, row: &mut Row) -> Result<()> {
        row.shape = None;
        Ok(())
    }

    fn restore<'a>(&'a self, _: &'a mut Access<'_>, _: &'a CatalogRule, _: &'a mut Row) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn status<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
    ) -> Answer<'a, Option<Doc<'static>>> {
        Box::pin(async move {
            match entry.rule.lens() {
                Some(lens) => migration::figures(life, at.context, entry, lens).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::ConstrainedCollection, &rule.host)
    }

    /// It writes nothing.
    fn need_to_repair(&self, _: RequiredPrivileges, _: &Rights, _: &Rule) -> Result<()> {
        Ok(())
    }
}
