//! What a client needs so that work is put off for it (SEMANTICS R13, R37). Who works on the outbox does it later with rights of its
//! own, so the client's are looked at when the job is written: those that the same statements would need in its transaction.

use crate::active::{ActiveRule, Rules};
use crate::execute::executor::Executor;
use crate::execute::rights::{Rights, remembered};
use crate::rule::{Refers, WhenDeleted};
use document::backend::Relay;
use document::op::Namespace;
use document::{Code, Error, Result};
use std::sync::Arc;

/// What a job does to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Update,
    Delete,
}

impl Effect {
    fn action(self) -> &'static str {
        match self {
            Effect::Update => "update",
            Effect::Delete => "remove",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Effect::Update => "update",
            Effect::Delete => "delete",
        }
    }
}

/// Fails as MongoDB would unless the client may do what a job of the rule will do, to its hosts and to what follows from them.
pub(crate) async fn need_to_put_off(
    executor: &Executor,
    line: Option<&Arc<dyn Relay>>,
    rules: &Rules,
    kept: &Arc<ActiveRule>,
    effect: Effect,
) -> Result<()> {
    if line.is_none() {
        return Ok(());
    }
    let mut all = Vec::new();
    follow(rules, kept, effect, &mut all);
    let suffices = |rights: &Rights| {
        let lacks = all.iter().find(|(kept, effect)| !rights.may(effect.action(), &kept.rule.host));
        lacks.map_or(Ok(()), |(kept, effect)| Err(refused(&kept.rule.host, *effect)))
    };
    remembered::rights(executor, line, "update: 1", suffices).await.map(drop)
}

/// All that follows from what a job does, each rule once for each effect.
fn follow<'r>(
    rules: &'r Rules,
    kept: &'r Arc<ActiveRule>,
    effect: Effect,
    all: &mut Vec<(&'r Arc<ActiveRule>, Effect)>,
) {
    if all.iter().any(|(other, known)| Arc::ptr_eq(other, kept) && *known == effect) {
        return;
    }
    all.push((kept, effect));
    match effect {
        Effect::Update => {
            for reader in rules.readers(kept) {
                follow(rules, reader, Effect::Update, all);
            }
        }
        Effect::Delete => {
            let sourced = rules.of(&kept.rule.host).map(|local| &*local.sourced).unwrap_or_default();
            for reader in sourced {
                if let Some(effect) = when_deleted(reader) {
                    follow(rules, reader, effect, all);
                }
            }
        }
    }
}

/// What the hosts of a rule see of a deleted source; `None` if nothing.
fn when_deleted(kept: &ActiveRule) -> Option<Effect> {
    let link = kept.rule.link()?;
    match (link.refers, link.when_deleted) {
        (Refers::Source, _) | (_, WhenDeleted::Unset) => Some(Effect::Update),
        (_, WhenDeleted::Cascade) => Some(Effect::Delete),
        (_, WhenDeleted::Keep | WhenDeleted::Reject) => None,
    }
}

/// MongoDB's refusal of the statement.
fn refused(ns: &Namespace, effect: Effect) -> Error {
    let message =
        format!("not authorized on {} to execute command {{ {}: \"{}\" }}", ns.db, effect.command(), ns.collection);
    Error::new(Code::Unauthorized, message)
}
