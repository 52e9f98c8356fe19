//! `repair`: makes drifted values right again, while clients write.
//!
//! A drifted document is evaluated anew in a transaction with its fences: what a client wrote since the audit looked is seen, and a
//! client that writes at the same time conflicts. So a newer write is never overwritten.
//!
//! `once`: for rules that are not applied. Their fences and state would be kept by nobody, so neither is written: a value is right
//! as of its transaction's snapshot, a write to the document meanwhile conflicts, and nothing keeps it right afterwards.

use crate::execute::access::{Access, find};
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Differences, Drift, Figures, Hosts, Report};
use crate::life::transaction::{OwnTransaction, retried_at_most};
use crate::life::{Life, audit_upstream, lifecycle, write_differences};
use document::backend::Answer;
use document::filter::Filter;
use document::{Code, Error, Result, Value};
use std::time::Instant;

/// How many documents are repaired in one transaction.
const BATCH: usize = 200;

/// How often a whole batch is tried.
const FEW_TIMES: u32 = 3;

/// By what right values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepairMode {
    /// Of rules that are applied: whoever writes keeps the values.
    Kept,
    /// Nobody keeps them afterwards.
    OneTime,
}

impl Life {
    /// Repairs every host of the rules that drifted; says what was changed.
    pub(crate) async fn repair(
        &self,
        asked: &[AuditedRule],
        mode: RepairMode,
        examples: usize,
        rights: &Rights,
    ) -> Result<Report> {
        let mut report = Report::of_repair(examples);
        let mut known = Vec::new();
        for asked in asked {
            let (began, mut figures) = (Instant::now(), Figures::new(asked));
            if self.is_comparable(asked, &mut figures, rights, &mut known).await? {
                lifecycle::of(&asked.rule).repair(self, asked, mode, &mut figures, &mut report).await?;
            }
            figures.time = began.elapsed();
            report.rules.push(figures);
        }
        Ok(report)
    }

    pub(super) async fn repair_rule(
        &self,
        asked: &AuditedRule,
        mode: RepairMode,
        figures: &mut Figures,
        report: &mut Report,
    ) -> Result<()> {
        let hosts = match mode {
            RepairMode::Kept => Hosts::of(self, asked)?,
            RepairMode::OneTime => Hosts::once(asked)?,
        };
        let waiting = hosts.compare(self, &mut Repairing { life: self, mode, figures, report }).await?;
        figures.note_waiting(waiting);
        for absent in self.find_absent_hosts(asked, &hosts.evaluator).await? {
            figures.checked += 1;
            match self.make_absent(&hosts.evaluator, mode, &absent).await {
                Ok(true) => report.add(figures, absent),
                Ok(false) => {}
                Err(error) if error.code() == Code::Unauthorized => return Err(error),
                Err(error) => report.failures.push((Drift::of(hosts.evaluator.rule(), absent), problem(&error))),
            }
        }
        Ok(())
    }

    /// All at once; one by one if that fails: clients that write all the time leave a gap for one document, and one that cannot
    /// be repaired holds up no other.
    async fn repair_batch(
        &self,
        evaluator: &Evaluator,
        mode: RepairMode,
        batch: &[HostDifference],
        figures: &mut Figures,
        report: &mut Report,
    ) -> Result<()> {
        if let Ok(repaired) = self.repair_some(evaluator, mode, batch, FEW_TIMES).await {
            repaired.into_iter().for_each(|difference| report.add(figures, difference));
            return Ok(());
        }
        for one in batch {
            self.check_stopped()?;
            match self.repair_some(evaluator, mode, std::slice::from_ref(one), u32::MAX).await {
                Ok(repaired) => repaired.into_iter().for_each(|difference| report.add(figures, difference)),
                // The next one would be refused as well.
                Err(error) if error.code() == Code::Unauthorized => return Err(error),
                Err(error) => {
                    let drift = Drift::of(evaluator.rule(), one.clone());
                    report.failures.push((drift, problem(&error)));
                }
            }
        }
        Ok(())
    }

    /// Evaluates the documents anew and writes what is wrong; gives what was.
    async fn repair_some(
        &self,
        evaluator: &Evaluator,
        mode: RepairMode,
        drifted: &[HostDifference],
        times: u32,
    ) -> Result<Vec<HostDifference>> {
        let ids: Vec<Value<'static>> = drifted.iter().map(|difference| difference.id.clone()).collect();
        let filter = &Filter::among("_id", ids);
        let attempt = || async move {
            match mode {
                RepairMode::Kept => self.repair_matching(evaluator, filter.clone()).await,
                RepairMode::OneTime => self.repair_once(evaluator, filter.clone()).await,
            }
        };
        retried_at_most(self, times, attempt).await
    }

    async fn repair_matching(&self, evaluator: &Evaluator, filter: Filter) -> Result<Vec<HostDifference>, Error> {
        let (context, rule) = (self.context(), evaluator.rule());
        // Held until the commit: by a rule that was changed meanwhile nothing may be written any more.
        let Some(_held) = self.in_force(rule) else { return Ok(Vec::new()) };
        let mut began = OwnTransaction::begin_for(self, &context, evaluator.rule()).await?;
        let mut at = Access { backend: &*self.backend, session: &mut began.session, context: &context };
        let hosts = at.find(find(&rule.host, filter)).await?;
        at.backend.fences(at.session, &evaluator.fences(&hosts)).await?;
        let differences = evaluator.differences(&mut at, &hosts).await?;
        if !differences.is_empty() {
            write_differences::write(self, &mut began, rule, &differences).await?;
            began.commit().await?;
        }
        Ok(differences)
    }

    /// The same for a rule that is not applied: without fences.
    async fn repair_once(&self, evaluator: &Evaluator, filter: Filter) -> Result<Vec<HostDifference>, Error> {
        let (context, rule) = (self.context(), evaluator.rule());
        // Held until the commit: the effects on rules that are applied follow by these.
        let _held = self.patterned.rules();
        let mut began = OwnTransaction::begin_for(self, &context, evaluator.rule()).await?;
        let mut at = Access { backend: &*self.backend, session: &mut began.session, context: &context };
        let hosts = at.find(find(&rule.host, filter)).await?;
        let mut differences = evaluator.differences(&mut at, &hosts).await?;
        differences.retain(audit_upstream::is_visible);
        if !differences.is_empty() {
            write_differences::write_once(self, &mut began, rule, &differences).await?;
            began.commit().await?;
        }
        Ok(differences)
    }
}

/// The differences are made right.
struct Repairing<'a> {
    life: &'a Life,
    mode: RepairMode,
    figures: &'a mut Figures,
    report: &'a mut Report,
}

impl Differences for Repairing<'_> {
    fn add<'a>(
        &'a mut self,
        evaluator: &'a Evaluator,
        checked: u64,
        differences: Vec<HostDifference>,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            self.figures.checked += checked;
            for batch in differences.chunks(BATCH) {
                self.life.repair_batch(evaluator, self.mode, batch, self.figures, self.report).await?;
            }
            Ok(())
        })
    }
}

/// Why a document could not be repaired, and what to do then.
fn problem(error: &Error) -> String {
    match error.code() {
        Code::DocumentValidationFailure => format!(
            "{}; the collection's validator does not allow the value: change the validator with collMod, or the document by hand",
            error.message()
        ),
        _ => error.to_string(),
    }
}
