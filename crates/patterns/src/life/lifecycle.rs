//! What happens to a rule over time, one implementation for each kind of rule. What is the same for all kinds is with the verbs and with
//! the background work that call it.

#[cfg(test)]
mod constraint_tests;
mod of_constraint;
mod of_field;
mod of_lens;
mod of_outlier;
mod of_shape;

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Note, Presence, Report};
use crate::life::catalog::Row;
use crate::life::plan::{ApplyStep, Work};
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::moved::Moved;
use crate::life::relocate::plan::PlanCommand;
use crate::life::repair::RepairMode;
use crate::life::verbs::RequiredPrivileges;
use crate::life::{CatalogRule, Life};
use crate::rule::{Kind, Rule};
use document::backend::Answer;
use document::{Doc, Error, Result};

pub(crate) trait Lifecycle: Send + Sync {
    /// What a new or changed declaration asks for; `entry` is the rule as it is kept, if it is.
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        work: Work,
    ) -> Answer<'a, Work>;

    /// The work as steps that a person could run; `None` if it is one step.
    fn steps(&self, _at: &Access<'_>, _rule: &Rule, _work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        Ok(None)
    }

    /// What [`Work::Convert`] does to documents that are there.
    fn rewriting(&self) -> &'static str {
        "divides arrays that are there"
    }

    /// What the work moves from one place to another.
    fn moves<'a>(&'a self, _at: &'a mut Access<'_>, _rule: &'a Rule, _work: &'a Work) -> Answer<'a, Vec<Moved>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Makes a new row what the work begins with. `known` is the rule as it was.
    fn begin<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        known: Option<&'a CatalogRule>,
        step: &'a ApplyStep,
        row: &'a mut Row,
    ) -> Answer<'a, ()>;

    /// Brings into a row that is written anew what the catalog knows by now.
    fn take_over(&self, _now: &Row, _row: &mut Row) {}

    /// Brings the rule one step further to where it should be.
    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()>;

    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()>;

    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        mode: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()>;

    /// Why values cannot be made right that nobody keeps afterwards; `None` if they can.
    fn refuse_once(&self, _rule: &Rule) -> Option<Error> {
        None
    }

    /// What of its collections does not exist, so that there is nothing to compare.
    fn lacks(&self, presence: &Presence, asked: &AuditedRule, rights: &Rights) -> Option<Note> {
        let host = &asked.rule.host;
        (!presence.has(host)).then(|| presence.no_collection(host, rights))
    }

    /// Writes down that the rule goes; [`Lifecycle::advance`] does it.
    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()>;

    /// Makes a row that comes with a dump one of this database.
    fn adopt(&self, _: &Rights, _: &Rule, row: &mut Row) -> Result<()> {
        row.shape = None;
        Ok(())
    }

    /// A restored rule begins on what there is: its row becomes that of a new one.
    fn restore<'a>(&'a self, _: &'a mut Access<'_>, _: &'a CatalogRule, _: &'a mut Row) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The database is emptied: the row says that the rule begins anew.
    fn reset(&self, _rule: &Rule, _row: &mut Row) {}

    /// How it is beside its state and progress.
    fn status<'a>(
        &'a self,
        _life: &'a Life,
        _at: &'a mut Access<'_>,
        _entry: &'a CatalogRule,
    ) -> Answer<'a, Option<Doc<'static>>> {
        Box::pin(async { Ok(None) })
    }

    /// Fails unless the client could change what the rule changes by commands of its own. `needed`: as the verb lists it.
    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()>;

    /// The same of the collection that the items of an array become documents of.
    fn need_to_lift(&self, _needed: RequiredPrivileges, _rights: &Rights, _rule: &Rule) -> Result<()> {
        Ok(())
    }

    /// The same of what a repair writes.
    fn need_to_repair(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        self.need_to_change(needed, rights, rule)
    }
}

/// The life of rules of this kind.
pub(crate) fn of(rule: &Rule) -> &'static dyn Lifecycle {
    match &rule.kind {
        Kind::Field(_) => &of_field::OfField,
        Kind::Shape(_) => &of_shape::OfShape,
        Kind::Constraint(_) => &of_constraint::OfConstraint,
        Kind::Outlier(_) => &of_outlier::OfOutlier,
        Kind::Lens(_) => &of_lens::OfLens,
    }
}
