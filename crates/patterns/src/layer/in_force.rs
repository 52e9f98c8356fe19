//! What the life of rules asks of the layer: put them in force, tell when nobody works by earlier ones any more, and carry on
//! from what it writes itself.

use crate::active::{ActiveRule, RuleInState, Rules};
use crate::execute::attempt::Attempt;
use crate::execute::deferred::JobAction;
use crate::execute::{jobs, react, roll_up};
use crate::layer::{Patterned, switchover_wait};
use crate::rule::Rule;
use document::backend::Session;
use document::op::{Capture, Change, Context, Namespace};
use document::{Code, Error, Result, Value};
use std::sync::{Arc, Weak};

impl Patterned {
    /// Puts rules in force for every write and transaction that begins from now on.
    pub fn set_rules(&self, rules: Vec<impl Into<RuleInState>>) -> Result<()> {
        let rules = rules.into_iter().map(Into::into).collect();
        let rules = Rules::new(rules, Some(&self.rules()))?;
        self.executor.put_in_force(rules);
        Ok(())
    }

    /// What a write to the rule's field must capture for [`Patterned::follow`]: nothing if no other rule reads it, nor the hosts that
    /// it makes.
    pub fn watched(&self, rule: &Rule) -> Capture {
        let rules = self.rules();
        match (rules.find(&rule.host.db, &rule.name), rules.of(&rule.host)) {
            (Some(kept), Some(local)) if kept.is_read_by_others || kept.makes_hosts() && roll_up::is_watched(local) => {
                local.capture.clone()
            }
            _ => Capture::Nothing,
        }
    }

    /// Runs, in the session's transaction, what follows for other rules from changes that were made to one rule's field.
    pub async fn follow(
        &self,
        session: &mut Session,
        context: &Context,
        rule: &Rule,
        changes: Vec<Change>,
    ) -> Result<()> {
        let rules = self.rules();
        let kept = find(&rules, rule)?;
        let mut run = Attempt::new(&self.executor, session, context, rules.clone());
        react::after_rule(&mut run, kept, changes).await?;
        run.finish().await
    }

    /// Puts a job into the outbox, in the session's transaction (SEMANTICS R13).
    pub async fn enqueue(&self, session: &mut Session, context: &Context, rule: &Rule, key: &Value<'_>) -> Result<()> {
        let rules = self.rules();
        let kept = find(&rules, rule)?;
        let mut run = Attempt::new(&self.executor, session, context, rules.clone());
        jobs::enqueue(&mut run, kept, key, JobAction::Update).await
    }
}

fn find<'r>(rules: &'r Rules, rule: &Rule) -> Result<&'r Arc<ActiveRule>> {
    let gone = || Error::new(Code::InternalError, format!("rule {} is not in force", rule.name));
    rules.find(&rule.host.db, &rule.name).ok_or_else(gone)
}

impl Patterned {
    /// Waits until none of these collections is being renamed. As long as the rules that are returned are held, none is.
    pub(crate) async fn until_free(&self, context: &Context, names: &[&Namespace]) -> Result<Arc<Rules>> {
        let is_free = |rules: &Arc<Rules>| !names.iter().any(|ns| rules.is_switching(ns));
        switchover_wait::until(&self.executor, context, is_free).await
    }

    /// The rules of before that something under way still works by.
    pub(crate) fn earlier(&self) -> Vec<Weak<Rules>> {
        self.transactions.forget_old();
        self.executor.earlier()
    }

    /// Whether some write or transaction is still under way that began before the last change of rules.
    pub(crate) fn is_settling(&self) -> bool {
        !self.earlier().is_empty()
    }

    /// How often a client's value for the rule's field was overridden (SEMANTICS R11).
    pub(crate) fn overridden(&self, rule: &Rule) -> u64 {
        self.rules().find(&rule.host.db, &rule.name).map_or(0, |kept| kept.overridden())
    }
}
