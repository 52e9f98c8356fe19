//! Documents of a roll-up that should exist and do not (SEMANTICS R35): an audit finds them from the source, and a repair makes them.

use crate::execute::access::Access;
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::life::Life;
use crate::life::audit::{AuditedRule, leave_pending};
use crate::life::repair::RepairMode;
use crate::life::transaction::{OwnTransaction, is_transient};
use crate::mql;
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
        let context = self.context();
        loop {
            self.check_stopped()?;
            let mut began = OwnTransaction::begin_for(self, &context, evaluator.rule()).await?;
            let mut at = Access { backend: &*self.backend, session: &mut began.session, context: &context };
            match missing(&mut at, asked, evaluator).await {
                Err(error) if is_transient(&error) => tokio::task::yield_now().await,
                found => return found,
            }
        }
    }

    /// Makes such a document. Returns whether it was still missing.
    pub(crate) async fn make_absent(
        &self,
        evaluator: &Evaluator,
        mode: RepairMode,
        absent: &HostDifference,
    ) -> Result<bool> {
        let rule = evaluator.rule();
        loop {
            self.check_stopped()?;
            let context = self.context();
            let mut began = OwnTransaction::begin_for(self, &context, rule).await?;
            let made = match mode {
                // As a client would insert it: every rule fills in what it keeps there.
                RepairMode::Kept => {
                    let op = WriteOp::Insert(Insert::of(rule.host.clone(), vec![bare(&absent.id)]));
                    self.patterned.write(&mut began.session, &context, &op, &Capture::Nothing).await
                }
                RepairMode::OneTime => {
                    let value = [(&rule.field.parts[..], absent.expected.clone())];
                    let whole = crate::fields::set_paths::put(&bare(&absent.id), &value);
                    let op = WriteOp::Insert(Insert::of(rule.host.clone(), vec![whole]));
                    self.backend.write(&mut began.session, &context, &op, &Capture::Nothing).await
                }
            };
            let made = match made.map(|mut written| written.errors.pop()) {
                Ok(None) => began.commit().await,
                Ok(Some(failed)) => Err(failed.error),
                Err(error) => Err(error),
            };
            match made {
                Err(error) if is_transient(&error) => tokio::task::yield_now().await,
                Err(error) if error.code() == Code::DuplicateKey => return Ok(false),
                made => return made.map(|()| true),
            }
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
