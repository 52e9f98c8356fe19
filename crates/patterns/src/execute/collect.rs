//! A plan that needs no answer of its own statements is collected instead of run, where the backend is across a network: its
//! statements, fences and commit are then sent at once (see `execute/flying.rs`).

use crate::active::{ActiveRule, Rules};
use crate::execute::attempt::Attempt;
use crate::execute::host_queue::HostHash;
use crate::execute::plan::Action;
use crate::rule::State;
use document::Result;
use document::backend::Leg;
use document::op::{Insert, WriteOp};
use std::sync::Arc;

/// What is to be sent.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) legs: Vec<Leg>,
    /// The hosts that the statements of each leg are about; none for the client's own.
    pub(crate) hosts: Vec<Vec<HostHash>>,
    /// The sources of whom copies were taken that had been read earlier.
    pub(crate) relied_on: Vec<(Arc<ActiveRule>, Vec<u8>)>,
}

impl Collected {
    /// One statement behind those that were run.
    pub(crate) fn of(op: WriteOp) -> Collected {
        Collected { legs: vec![Leg { op, must_match: false }], hosts: vec![Vec::new()], relied_on: Vec::new() }
    }
}

/// Whether nothing that follows from an insert there needs an answer: what hosts hold then is told by the stages of their updates, or
/// these fail. While a rule is being seeded its position must be held against the transaction's moment, which is known with the first
/// answer.
pub(crate) fn is_collectable(rules: &Rules, op: &Insert) -> bool {
    let Some(local) = rules.of(&op.ns) else { return false };
    let is_on = |kept: &Arc<ActiveRule>| matches!(kept.state, State::On);
    // What brings a host to the newest version is a statement of its own.
    let is_plain = |kept: &Arc<ActiveRule>| rules.lenses().of(&kept.rule.host).is_none();
    let is_sent = |kept: &Arc<ActiveRule>| is_on(kept) && is_blind(kept) && is_plain(kept);
    local.outliers.is_empty() && local.hosted.iter().all(is_on) && local.sourced.iter().all(is_sent)
}

fn is_blind(kept: &ActiveRule) -> bool {
    let at_once = kept.rule.link().is_some_and(|link| link.lag.is_none());
    at_once && !kept.is_read_by_others && kept.field.as_ref().is_some_and(|field| field.is_blind())
}

impl Attempt<'_> {
    /// From now on steps are collected.
    pub(crate) fn collect(&mut self) {
        self.collected = Some(Collected::default());
        self.leaves_to_stages = true;
    }

    pub(crate) fn is_collecting(&self) -> bool {
        self.collected.is_some()
    }

    /// Whether an insert may be collected by this run.
    pub(crate) fn may_collect(&self, op: &Insert) -> bool {
        self.collects && is_collectable(&self.rules, op)
    }

    /// Adds the client's own insert.
    pub(crate) async fn collect_own(&mut self, op: &Insert) -> Result<()> {
        let op = WriteOp::Insert(op.clone());
        self.pass(&[], || Action::Write(op.clone())).await?;
        self.add_leg(op, false, Vec::new());
        Ok(())
    }

    /// Adds a derived statement about these hosts; with `must_match` each of them has to be there.
    pub(crate) async fn collect_derived(
        &mut self,
        rules: &[Arc<ActiveRule>],
        op: WriteOp,
        must_match: bool,
        hosts: Vec<HostHash>,
    ) -> Result<()> {
        self.pass(rules, || Action::Derive(op.clone())).await?;
        self.add_leg(op, must_match, hosts);
        Ok(())
    }

    fn add_leg(&mut self, op: WriteOp, must_match: bool, hosts: Vec<HostHash>) {
        if let Some(collected) = &mut self.collected {
            collected.legs.push(Leg { op, must_match });
            collected.hosts.push(hosts);
        }
    }
}
