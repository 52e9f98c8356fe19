//! Leases: which processes keep the rules of a database, where there can be several (upstream). A row of the catalog
//! `{ _id: { process }, who, until, trace }` is renewed while the process lives.
//!
//! A lease also says which transactions to end if its process is killed: the next one to come does that.
//!
//! The rules change only while nobody else keeps them: a process that learns of a change too late would leave a gap.

use super::records::At;
use super::{Life, names};
use document::backend::Session;
use document::filter::{Filter, Node, Test};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long a lease lasts, and how often it is renewed.
const LASTS: Duration = Duration::from_secs(30);
const RENEWED: Duration = Duration::from_secs(10);

impl Life {
    /// Refuses if another live process keeps the rules of the database.
    pub(crate) async fn refuse_while_others_live(&self, at: &mut At<'_>, db: &str) -> Result<()> {
        if !self.backend.abilities().forwards {
            return Ok(());
        }
        self.clear_up(at, db).await?;
        let alive = Filter::from_node(Node::field("until", Test::Gt(Value::DateTime(at.context.env.now))));
        for lease in at.find(super::records::find(&names::catalog(db), alive)).await? {
            if process(&lease).as_deref() != Some(&*self.process) {
                let who = lease.get("who").and_then(|who| who.as_str().map(str::to_owned)).unwrap_or_default();
                return Err(Error::new(
                    Code::ConflictingOperationInProgress,
                    format!("another Pleach keeps the rules of {db}: {who}"),
                )
                .with_hint("send the command to that one with --server, or stop it first"));
            }
        }
        Ok(())
    }

    /// Holds the rules as they are now against other processes.
    pub(crate) async fn renew_leases(&self) -> Result<()> {
        match self.backend.abilities().forwards {
            true => self.renew(LASTS).await,
            false => Ok(()),
        }
    }

    async fn renew(&self, lasts: Duration) -> Result<()> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = At { backend: &*self.backend, session: &mut session, context: &context };
        let databases: std::collections::BTreeSet<Arc<str>> =
            self.entries().into_iter().map(|entry| entry.db).collect();
        let until = context.env.now.saturating_add(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX));
        for db in databases {
            let mut lease = DocWriter::new();
            lease.start_document("_id").append("process", &Value::from(&*self.process)).end();
            lease.append("who", &Value::from(&*self.who)).append("until", &Value::DateTime(until));
            if let Some(trace) = self.backend.trace() {
                lease.append("trace", &Value::Document(trace));
            }
            at.put(&names::catalog(&db), &lease.finish()).await?;
            self.clear_up(&mut at, &db).await?;
        }
        Ok(())
    }

    /// Ends what processes that are no more left open, and their leases.
    pub(crate) async fn clear_up(&self, at: &mut At<'_>, db: &str) -> Result<()> {
        let leases = Filter::from_node(Node::field("until", Test::Gt(Value::DateTime(i64::MIN))));
        for lease in at.find(super::records::find(&names::catalog(db), leases)).await? {
            if process(&lease).as_deref() == Some(&*self.process) {
                continue;
            }
            let (Some(id), Some(Value::Document(trace))) = (lease.get("_id"), lease.get("trace")) else { continue };
            let expired = matches!(lease.get("until"), Some(Value::DateTime(until)) if until < at.context.env.now);
            match self.backend.clear(&trace, expired).await {
                Ok(true) => {
                    at.delete(&names::catalog(db), Filter::equality("_id", &id)).await?;
                }
                Ok(false) => {}
                // Whoever may not end the sessions of others waits until the server does.
                Err(error) => tracing::warn!(%error, "the transactions of a process that is gone could not be ended"),
            }
        }
        Ok(())
    }
}

/// Whether this process is the one that does what only one needs to do: the first of those that hold a lease.
pub(crate) async fn is_first(life: &Life, at: &mut At<'_>, db: &str) -> Result<bool> {
    let alive = Filter::from_node(Node::field("until", Test::Gt(Value::DateTime(at.context.env.now))));
    let leases = at.find(super::records::find(&names::catalog(db), alive)).await?;
    Ok(leases.iter().filter_map(|lease| process(lease)).min().is_some_and(|first| first == life.process))
}

fn process(lease: &Doc<'_>) -> Option<String> {
    match lease.get("_id") {
        Some(Value::Document(id)) => Some(id.get("process")?.as_str()?.to_owned()),
        _ => None,
    }
}

/// Renews the leases until the life is stopped, and gives them back then.
pub(crate) async fn hold(life: Arc<Life>) {
    if !life.backend.abilities().forwards {
        return;
    }
    while !life.is_stopped() {
        if let Err(error) = life.renew(LASTS).await {
            tracing::warn!(%error, "the lease on the rules could not be renewed");
        }
        life.wait_for_stop(RENEWED).await;
    }
    let _ = life.renew(Duration::ZERO).await;
}
