//! What a client needs so that work is put off for it (SEMANTICS R13, R37). The worker of the outbox does it later with rights of its
//! own, so the client's are looked at when the job is written: those that the same statements would need in its transaction.

use crate::active::{ActiveRule, Rules};
use crate::execute::executor::Executor;
use crate::execute::rights::{Rights, privilege_cache};
use crate::rule::{Refers, WhenDeleted};
use document::backend::Relay;
use document::op::Namespace;
use document::{Code, Error, Result};
use std::sync::Arc;

/// What a job does to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobAction {
    /// Makes them where they are missing (SEMANTICS R35), which is an upsert.
    Make,
    Update,
    Delete,
}

impl JobAction {
    /// Where so many children come to a host, or leave it.
    pub(crate) fn of_children(children: i64) -> JobAction {
        match children {
            1.. => JobAction::Make,
            0 => JobAction::Update,
            _ => JobAction::Delete,
        }
    }

    fn privilege(self) -> &'static str {
        match self {
            JobAction::Make => "insert",
            JobAction::Update => "update",
            JobAction::Delete => "remove",
        }
    }

    fn command(self) -> &'static str {
        match self {
            JobAction::Make | JobAction::Update => "update",
            JobAction::Delete => "delete",
        }
    }
}

/// Fails as MongoDB would unless the client may do what a job of the rule will do, to its hosts and to what follows from them.
pub(crate) async fn need_to_put_off(
    executor: &Executor,
    line: Option<&Arc<dyn Relay>>,
    rules: &Rules,
    kept: &Arc<ActiveRule>,
    action: JobAction,
) -> Result<()> {
    if line.is_none() {
        return Ok(());
    }
    let mut all = Vec::new();
    follow(rules, kept, action, &mut all);
    let suffices = |rights: &Rights| {
        let lacks = all.iter().find(|(kept, action)| !rights.may(action.privilege(), &kept.rule.host));
        lacks.map_or(Ok(()), |(kept, action)| Err(refused(&kept.rule.host, *action)))
    };
    privilege_cache::rights(executor, line, "update: 1", suffices).await.map(drop)
}

/// All that follows from what a job does, each rule once for each action.
fn follow<'r>(
    rules: &'r Rules,
    kept: &'r Arc<ActiveRule>,
    action: JobAction,
    all: &mut Vec<(&'r Arc<ActiveRule>, JobAction)>,
) {
    if all.iter().any(|(other, known)| Arc::ptr_eq(other, kept) && *known == action) {
        return;
    }
    all.push((kept, action));
    let makes_hosts = kept.makes_hosts();
    let sourced = || rules.of(&kept.rule.host).map(|local| &*local.sourced).unwrap_or_default();
    if makes_hosts && action != JobAction::Update {
        follow(rules, kept, JobAction::Update, all);
    }
    match action {
        JobAction::Make => {
            for reader in sourced() {
                let appears = if reader.makes_hosts() { JobAction::Make } else { JobAction::Update };
                follow(rules, reader, appears, all);
            }
        }
        JobAction::Update => {
            for reader in rules.readers(kept) {
                follow(rules, reader, JobAction::Update, all);
            }
        }
        JobAction::Delete => {
            for reader in sourced() {
                if let Some(action) = when_deleted(reader) {
                    follow(rules, reader, action, all);
                }
            }
        }
    }
}

/// What the hosts of a rule see of a deleted source; `None` if nothing.
fn when_deleted(kept: &ActiveRule) -> Option<JobAction> {
    let link = kept.rule.link()?;
    match (link.refers, link.when_deleted) {
        (Refers::Source, _) if link.create => Some(JobAction::Delete),
        (Refers::Source, _) | (_, WhenDeleted::Unset) => Some(JobAction::Update),
        (_, WhenDeleted::Cascade) => Some(JobAction::Delete),
        (_, WhenDeleted::Keep | WhenDeleted::Reject) => None,
    }
}

/// MongoDB's refusal of the statement.
fn refused(ns: &Namespace, action: JobAction) -> Error {
    let message =
        format!("not authorized on {} to execute command {{ {}: \"{}\" }}", ns.db, action.command(), ns.collection);
    Error::new(Code::Unauthorized, message)
}
