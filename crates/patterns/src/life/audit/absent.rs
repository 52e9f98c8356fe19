//! Documents of a roll-up that should exist and do not (SEMANTICS R35): an audit finds them from the source, and a repair makes them.

use crate::execute::access::Access;
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::life::Life;
use crate::life::audit::{AuditedRule, leave_pending};
use crate::life::repair::RepairMode;
use crate::life::transaction::{OwnTransaction, retried};
use crate::mql;
use crate::rule::Rule;
use crate::rule::key;
use crate::rule::state::State;
use document::backend::{Backend, Session};
use document::op::{Capture, Insert, WriteOp};
use document::{Code, Doc, Result, Value};
use hashbrown::HashSet;
use std::time::Duration;

/// How often a document must be missing on a server that gives no snapshot, and how long is waited between two looks.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Life {
    /// The documents that the rule should have made and that are not there.
    pub(crate) async fn find_absent_hosts(
        &self,
        asked: &AuditedRule,
        evaluator: &Evaluator,
    ) -> Result<Vec<HostDifference>> {
        let is_whole = matches!(asked.kept(), None | Some(State::On));
        if !is_whole || !asked.rule.link().is_some_and(|link| link.create) {
            return Ok(Vec::new());
        }
        if self.audits_in_snapshots() {
            return self.absent_in_snapshot(asked, evaluator).await;
        }
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let mut absent: Option<Vec<HostDifference>> = None;
        for _ in 0..LOOKS {
            let _free = self.patterned.until_free(&context, &asked.rule.namespaces()).await?;
            let mut found = missing(&mut at, asked, evaluator).await?;
            if let Some(before) = &absent {
                let earlier: HashSet<Vec<u8>> = before.iter().map(|one| key::bytes(&one.id)).collect();
                found.retain(|one| earlier.contains(&key::bytes(&one.id)));
            }
            let is_done = found.is_empty();
            absent = Some(found);
            if is_done {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(absent.unwrap_or_default())
    }

    async fn absent_in_snapshot(&self, asked: &AuditedRule, evaluator: &Evaluator) -> Result<Vec<HostDifference>> {
        let context = &self.context();
        let attempt = || async move {
            let mut began = OwnTransaction::begin_for(self, context, evaluator.rule()).await?;
            let mut at = Access { backend: &*self.backend, session: &mut began.session, context };
            missing(&mut at, asked, evaluator).await
        };
        retried(self, attempt).await
    }

    /// Makes such a document. Returns whether it was still missing.
    pub(crate) async fn make_absent(
        &self,
        evaluator: &Evaluator,
        mode: RepairMode,
        absent: &HostDifference,
    ) -> Result<bool> {
        match retried(self, || self.insert_absent(evaluator.rule(), mode, absent)).await {
            Err(error) if error.code() == Code::DuplicateKey => Ok(false),
            made => made.map(|()| true),
        }
    }

    async fn insert_absent(&self, rule: &Rule, mode: RepairMode, absent: &HostDifference) -> Result<()> {
        let context = self.context();
        let mut began = OwnTransaction::begin_for(self, &context, rule).await?;
        let mut written = match mode {
            // As a client would insert it: every rule fills in what it keeps there.
            RepairMode::Kept => {
                let op = WriteOp::Insert(Insert::of(rule.host.clone(), vec![bare(&absent.id)]));
                self.patterned.write(&mut began.session, &context, &op, &Capture::Nothing).await?
            }
            RepairMode::OneTime => {
                let value = [(&rule.field.parts[..], absent.expected.clone())];
                let whole = crate::fields::set_paths::put(&bare(&absent.id), &value);
                let op = WriteOp::Insert(Insert::of(rule.host.clone(), vec![whole]));
                self.backend.write(&mut began.session, &context, &op, &Capture::Nothing).await?
            }
        };
        match written.errors.pop() {
            Some(failed) => Err(failed.error),
            None => began.commit().await,
        }
    }
}

/// The documents that `at` does not see and should; those that wait in the outbox are no drift.
async fn missing(at: &mut Access<'_>, asked: &AuditedRule, evaluator: &Evaluator) -> Result<Vec<HostDifference>> {
    let mut absent = evaluator.absent(at).await?;
    if asked.kept().is_some() && !absent.is_empty() {
        leave_pending(at, evaluator.rule(), &mut absent).await?;
    }
    Ok(absent)
}

fn bare(id: &Value<'_>) -> Doc<'static> {
    mql::document([("_id", id.borrow())])
}
