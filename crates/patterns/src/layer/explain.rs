//! `explain` of a write that rules concern: the backend's answer for the stored operation, and what Pleach adds to it
//! (SEMANTICS R25). The plan is run in a transaction that is given up, so that its steps are the real ones.

use super::{Shared, rights, shaped};
use crate::plan::Plan;
use crate::retry::Attempts;
use crate::run::Run;
use crate::run::statement::{execute, namespace};
use document::backend::Session;
use document::op::{Context, Explained, ReadOp, Verbosity, WriteOp};
use document::{Doc, DocWriter, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn explain(
    shared: &Arc<Shared>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let write = match &op {
        Explained::Write(write) => {
            let rules = shared.rules();
            if let Some(shaped) = rules.shaped(namespace(write)) {
                rights::before_explain(shared, session.relay.clone(), write).await?;
                return shaped::write::explain(shared, session, context, write, shaped, verbosity).await;
            }
            shared
                .rules()
                .of(namespace(write))
                .filter(|local| super::who::concerns(local, write))
                .map(|_| write.clone())
        }
        Explained::Read(read) => {
            let rules = shared.rules();
            if let Some(shaped) = shaped::of_read(&rules, read) {
                return shaped::read::explain(shared, session, context, read, shaped, verbosity).await;
            }
            None
        }
    };
    let stored = shared.inner.explain(session, context, op, verbosity).await?;
    let Some(write) = write else { return Ok(stored) };
    let rights = rights::before_explain(shared, session.relay.clone(), &write).await?;
    let plan = plan(shared, session, context, &write).await;
    let plan = rights::checked(&rights, &shared.rules(), write.ns(), plan)?;
    Ok(with_plan(&stored, &plan))
}

/// MongoDB's answer for the stored operation, and one field more (SEMANTICS R25).
pub(crate) fn with_plan(stored: &Doc<'_>, plan: &Plan) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(stored.as_bytes().len() + 512);
    for (name, value) in stored.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("pleach", &Value::Document(plan.to_mql()));
    writer.finish()
}

/// The steps of a read of a collection that is stored in another form; nothing for other reads.
pub(crate) fn read_plan(shared: &Shared, context: &Context, op: &ReadOp) -> Result<Option<Doc<'static>>> {
    let rules = shared.rules();
    shaped::of_read(&rules, op).map(|shaped| shaped::read::planned(shared, context, op, shaped)).transpose()
}

/// The steps of a write, without keeping anything of it.
pub(crate) async fn plan(shared: &Arc<Shared>, client: &mut Session, context: &Context, op: &WriteOp) -> Result<Plan> {
    let rules = shared.rules();
    if let Some(shaped) = rules.shaped(namespace(op)) {
        return shaped::write::plan(shared, client, context, op, shaped).await;
    }
    let local = rules.of(namespace(op)).cloned();
    drop(rules);
    let op = match &local {
        Some(local) => super::owned::rewritten(local, op)?,
        None => Cow::Borrowed(op),
    };
    if let Some((_, error)) = local.as_ref().and_then(|local| super::owned::refused(local, &op, 0)) {
        return Err(error);
    }
    let mut attempts = Attempts::new(context);
    loop {
        let mut session = Session { relay: client.relay.clone(), ..Session::default() };
        shared.inner.begin(&mut session, context).await?;
        let mut run = Run::new(shared, &mut session, context, shared.rules());
        run.trace = Some(Plan::default());
        let result = match execute(&mut run, &op).await {
            Ok(mut written) if !written.errors.is_empty() => Err(written.errors.remove(0).error),
            Ok(_) => run.finish().await,
            Err(error) => Err(error),
        };
        let plan = run.trace.take().unwrap_or_default();
        super::transact::abort(&mut session);
        match result {
            Ok(()) => return Ok(plan),
            Err(error) => attempts.again(error, context).await?,
        }
    }
}
