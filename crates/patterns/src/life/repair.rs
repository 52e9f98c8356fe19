//! `repair`: makes drifted values right again, while clients write.
//!
//! A drifted document is evaluated anew in a transaction with its fences: what a client wrote since the audit looked is seen, and a
//! client that writes at the same time conflicts. So a newer write is never overwritten.

use super::audit::{Asked, Drift, Figures, Hosts, Report};
use super::evaluate::{Difference, Evaluator};
use super::records::{At, find};
use super::transient::{Began, is_transient};
use super::{Life, derived, shape};
use document::filter::{Filter, InSet, Node, Test};
use document::{Error, Result, Value};
use std::sync::Arc;
use std::time::Instant;

/// How many documents are repaired in one transaction.
const BATCH: usize = 200;

/// How often a whole batch is tried.
const FEW_TIMES: u32 = 3;

impl Life {
    /// Repairs every host of the rules that drifted; says what was changed.
    pub(crate) async fn repair(&self, asked: &[Asked], examples: usize) -> Result<Report> {
        let mut report = Report::new(examples);
        for asked in asked {
            if shape::bucket_of(&asked.rule).is_some() {
                shape::repair::repair(self, asked, &mut report).await?;
                continue;
            }
            let began = Instant::now();
            let mut figures = Figures::new(&asked.rule);
            let mut hosts = Hosts::of(asked)?;
            while let Some(part) = hosts.next(self).await? {
                figures.checked += part.checked;
                for batch in part.differences.chunks(BATCH) {
                    self.repair_batch(&hosts.evaluator, batch, &mut figures, &mut report).await?;
                }
            }
            figures.time = began.elapsed();
            report.rules.push(figures);
        }
        Ok(report)
    }

    /// All at once; one by one if that fails: clients that write all the time leave a gap for one document, and one that cannot
    /// be repaired holds up no other.
    async fn repair_batch(
        &self,
        evaluator: &Evaluator,
        batch: &[Difference],
        figures: &mut Figures,
        report: &mut Report,
    ) -> Result<()> {
        if let Ok(repaired) = self.repair_some(evaluator, batch, FEW_TIMES).await {
            repaired.into_iter().for_each(|difference| report.add(figures, difference));
            return Ok(());
        }
        for one in batch {
            self.check_stopped()?;
            match self.repair_some(evaluator, std::slice::from_ref(one), u32::MAX).await {
                Ok(repaired) => repaired.into_iter().for_each(|difference| report.add(figures, difference)),
                Err(error) => {
                    let drift = Drift::of(evaluator.rule(), one.clone());
                    report.failures.push((drift, error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Evaluates the documents anew and writes what is wrong; gives what was.
    async fn repair_some(&self, evaluator: &Evaluator, drifted: &[Difference], times: u32) -> Result<Vec<Difference>> {
        let ids: Vec<Value<'static>> = drifted.iter().map(|difference| difference.id.clone()).collect();
        let filter = Filter::from_node(Node::field("_id", Test::In(Arc::new(InSet::new(ids, Vec::new())))));
        let mut tried = 0;
        loop {
            self.check_stopped()?;
            tried += 1;
            match self.repair_matching(evaluator, filter.clone()).await {
                Err(error) if is_transient(&error) && tried < times => {
                    tokio::time::sleep(std::time::Duration::from_micros(rand::random_range(1..200))).await;
                }
                other => return other,
            }
        }
    }

    async fn repair_matching(&self, evaluator: &Evaluator, filter: Filter) -> Result<Vec<Difference>, Error> {
        let (context, rule) = (self.context(), evaluator.rule());
        // Held until the commit: by a rule that was changed meanwhile nothing may be written any more.
        let Some(_held) = self.in_force(rule) else { return Ok(Vec::new()) };
        let mut began = Began::begin(self, &context).await?;
        let mut at = At { backend: &*self.backend, session: &mut began.session, context: &context };
        let hosts = at.find(find(&rule.host, filter)).await?;
        at.backend.fence_all(at.session, &evaluator.fences(&hosts)).await?;
        let differences = evaluator.differences(&mut at, &hosts).await?;
        if !differences.is_empty() {
            derived::write(self, &mut began, rule, &differences).await?;
            began.commit().await?;
        }
        Ok(differences)
    }
}
