//! What the server lets a client do (SEMANTICS R37), asked on the client's own line.

use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::line::Line;
use crate::shared::Shared;
use document::backend::{Privileges, Relay};
use document::op::{Namespace, WriteOp};
use document::{Code, Result, Value};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the answer to "does the server restrict its clients?" is relied on. It changes with a restart of the server only.
const RELIED_ON: Duration = Duration::from_secs(1);

/// How long the privileges of the connection string's user are relied on.
const OWN_RELIED_ON: Duration = Duration::from_secs(10);

/// Whether the server restricts its clients, and what it lets the connection string's user do, as last seen.
#[derive(Debug, Default)]
pub(crate) struct AccessControl {
    seen: Mutex<Option<(Instant, u64, bool)>>,
    own: Mutex<Option<(Instant, Option<Arc<Privileges>>)>>,
}

/// The privileges of the line's user, or of our own if there is no line; `None` if the server does not restrict anyone.
pub(crate) async fn of(shared: &Arc<Shared>, line: Option<&Arc<dyn Relay>>) -> Result<Option<Privileges>> {
    if !is_enforced(shared).await? {
        return Ok(None);
    }
    Ok(Some(of_line(&ClientOrOwn::of_relay(shared, line)).await?))
}

/// The users of a line and what they may do, whether the server enforces it or not.
pub(crate) async fn of_line(line: &Line) -> Result<Privileges> {
    let status = Command::new("admin", "connectionStatus", 1).with("showPrivileges", Value::Bool(true));
    Ok(Privileges::parse(&line.run(status).await?))
}

/// A write of our own goes past validators, since it is about derived fields only. A user who may not do that does without: the
/// statement is then refused if the validator finds fault with the document.
pub(crate) async fn permitted<'o>(shared: &Arc<Shared>, is_ours: bool, op: &'o WriteOp) -> Result<Cow<'o, WriteOp>> {
    let bypasses = match op {
        WriteOp::Insert(op) => op.bypass_validation,
        WriteOp::Update(op) => op.bypass_validation,
        WriteOp::FindAndModify(op) => op.bypass_validation,
        WriteOp::Delete(_) => false,
    };
    if !is_ours || !bypasses || may_bypass(shared, op.ns()).await? {
        return Ok(Cow::Borrowed(op));
    }
    let mut op = op.clone();
    match &mut op {
        WriteOp::Insert(op) => op.bypass_validation = false,
        WriteOp::Update(op) => op.bypass_validation = false,
        WriteOp::FindAndModify(op) => op.bypass_validation = false,
        WriteOp::Delete(_) => {}
    }
    Ok(Cow::Owned(op))
}

async fn may_bypass(shared: &Arc<Shared>, ns: &Namespace) -> Result<bool> {
    let known = shared.access_control.own.lock().clone().filter(|(at, _)| at.elapsed() < OWN_RELIED_ON);
    let privileges = match known {
        Some((_, privileges)) => privileges,
        None => {
            let privileges = of(shared, None).await?.map(Arc::new);
            *shared.access_control.own.lock() = Some((Instant::now(), privileges.clone()));
            privileges
        }
    };
    Ok(privileges.is_none_or(|privileges| privileges.allows("bypassDocumentValidation", ns)))
}

/// A client without a name is let in everywhere, or nowhere: one of ours tries.
async fn is_enforced(shared: &Arc<Shared>) -> Result<bool> {
    let generation = shared.topology.generation();
    if let Some((at, seen_in, enforced)) = *shared.access_control.seen.lock()
        && seen_in == generation
        && at.elapsed() < RELIED_ON
    {
        return Ok(enforced);
    }
    let nobody = Line::new(shared.clone(), true);
    let enforced = match nobody.run(Command::new("admin", "hostInfo", 1)).await {
        Ok(_) => false,
        Err(error) if error.code() == Code::Unauthorized => true,
        Err(error) => return Err(error),
    };
    *shared.access_control.seen.lock() = Some((Instant::now(), generation, enforced));
    Ok(enforced)
}
